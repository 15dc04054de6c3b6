#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| partita_fuzzing::http1(data));
