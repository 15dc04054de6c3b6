//! A short run of every target with any compiler: stored inputs, changed at random. It knows nothing of coverage and so finds
//! less than cargo-fuzz, but it runs with the other tests, the same each time; `SEED` makes another run of it, `RUNS` a longer.

use partita_fuzzing::TARGETS;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Of each target.
const RUNS: u64 = 40_000;

/// The generator of Marsaglia, good enough to shake inputs.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).expect("it is below a usize")
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(folder).expect("a corpus").map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("an input")).collect()
}

/// An input with one to four changes: a bit, a byte, a piece removed, doubled or taken from another input.
fn changed(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = inputs[random.below(inputs.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(20)).min(bytes.len());
        match random.below(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.insert(at, random.below(256) as u8),
            2 => drop(bytes.drain(at..end)),
            3 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            _ => {
                let other = &inputs[random.below(inputs.len())];
                let from = random.below(other.len() + 1);
                let piece = &other[from..(from + random.below(40)).min(other.len())];
                drop(bytes.splice(at..end, piece.iter().copied()));
            }
        }
    }
    bytes
}

#[test]
fn changed_inputs_break_nothing() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, runs) = (number("SEED").unwrap_or(1), number("RUNS").unwrap_or(RUNS));
    for target in TARGETS {
        let inputs = corpus(target.name);
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        let mut random = Random(seed);
        for _ in 0..runs {
            let input = changed(&inputs, &mut random);
            let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
            assert!(
                outcome.is_ok(),
                "{} with SEED={seed} breaks on {:?}",
                target.name,
                input.escape_ascii().to_string()
            );
        }
    }
}
