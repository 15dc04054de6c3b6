//! Bytes looked at eight at a time: for texts of a few words that takes a third of the instructions that vectors take, which
//! leave a rest to be looked at one by one.
//!
//! Of what is found in a little-endian word, the high bit of the first byte is right. What lies above it means nothing.

const ONES: u64 = u64::MAX / 0xFF;

/// The bytes below `bound`, which is at most 0x80.
pub(crate) fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(bound)) & !word & (ONES * 0x80)
}

/// The bytes that are `byte`.
pub(crate) fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// Whether there is a control character of ASCII among the bytes. It may say so of fewer than eight that have none.
pub(crate) fn may_have_control(bytes: &[u8]) -> bool {
    let found = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        below(word, 0x20) | equal(word, 0x7F)
    };
    let (words, _) = bytes.as_chunks();
    // The last word overlaps the one before it.
    bytes.last_chunk().is_none_or(|last| words.iter().fold(found(last), |all, word| all | found(word)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn control_characters_are_found(bytes in prop::collection::vec(prop_oneof![0x20u8..0x7F, 0x1Eu8..0x21, 0x7Eu8..0x82, any::<u8>()], 0..40)) {
            let expect = bytes.iter().any(u8::is_ascii_control);
            prop_assert!(may_have_control(&bytes) == expect || bytes.len() < 8);
            prop_assert!(may_have_control(&bytes) || !expect);
        }

        #[test]
        fn nothing_is_found_in_plain_text(text in "[ -~]{8,60}") {
            prop_assert!(!may_have_control(text.as_bytes()));
        }
    }
}
