//! JSON strings: on their way out, the escapes that JSON asks for and no others.

use partita_model::CorruptRecord;

/// Writes `text` with its quotes.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Writes `text` without quotes, as a piece of a longer string.
pub(crate) fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut bytes = text.as_bytes();
    loop {
        let (plain, rest) = bytes.split_at(length_before(bytes, is_special));
        out.extend_from_slice(plain);
        let Some((&special, rest)) = rest.split_first() else { return };
        write_escape(out, special);
        bytes = rest;
    }
}

/// Writes a stored text without quotes, and finds out if it is none. Most texts are plain ASCII, which is seen in the same
/// glance as whether anything needs an escape.
pub(crate) fn write_stored(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), CorruptRecord> {
    let (plain, rest) = bytes.split_at(length_before(bytes, |byte| is_special(byte) | !byte.is_ascii()));
    out.extend_from_slice(plain);
    if !rest.is_empty() {
        write_escaped(out, std::str::from_utf8(rest).map_err(|_| CorruptRecord)?);
    }
    Ok(())
}

/// Whether a byte cannot stand in a JSON string as it is.
fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// How many bytes stand before the first that is `wanted`.
fn length_before(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    let mut length = blocks_before::<32>(bytes, &wanted);
    length += blocks_before::<8>(&bytes[length..], &wanted);
    length + bytes[length..].iter().position(|&byte| wanted(byte)).unwrap_or(bytes.len() - length)
}

/// The same for whole blocks of `N` bytes, or for all bytes if none is wanted and there are `N`: what is left behind the last block is
/// looked at with the end of that block. Looking at all bytes of a block, and not stopping at the first, compiles to a few vector
/// instructions: a text of 500 bytes takes a quarter of the instructions of a search byte by byte.
fn blocks_before<const N: usize>(bytes: &[u8], wanted: &impl Fn(u8) -> bool) -> usize {
    let any = |block: &[u8; N]| block.iter().fold(false, |found, &byte| found | wanted(byte));
    let (blocks, _) = bytes.as_chunks();
    match blocks.iter().position(any) {
        Some(before) => N * before,
        None if bytes.last_chunk().is_some_and(|last| !any(last)) => bytes.len(),
        None => N * blocks.len(),
    }
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0C => out.extend_from_slice(b"\\f"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_back(text in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }

    proptest! {
        #[test]
        fn specials_are_found(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x1Eu8..0x24, Just(b'\\'), 0x40u8..0xFF, 0x60u8..0x70], 0..100)) {
            prop_assert_eq!(length_before(&bytes, is_special), bytes.iter().take_while(|byte| !is_special(**byte)).count());
        }
    }

    #[test]
    fn a_special_is_found_at_every_place() {
        for length in 0..100 {
            let mut bytes = vec![b'a'; length];
            assert_eq!(length_before(&bytes, is_special), length);
            for place in (0..length).rev() {
                bytes[place] = b'"';
                assert_eq!(length_before(&bytes, is_special), place, "of {length}");
            }
        }
    }

    #[test]
    fn escapes() {
        let mut out = Vec::new();
        write_string(&mut out, "a\"b\\c\n\r\t\u{8}\u{C}\u{1}\u{1F}\u{7F}\u{E9}/");
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\u{7F}\u{E9}/\"");
    }
}
