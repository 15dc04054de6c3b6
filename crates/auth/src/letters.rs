//! A set of lower-case letters: permissions, services and resource types are all written as one.

use std::fmt;

/// A set of letters from `a` to `z`. Order and repetition in the text do not matter to the meaning, only to the
/// signature, which is made over the text.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Letters(u32);

impl Letters {
    /// Reads lower-case letters; `None` if there is anything else among them.
    pub const fn parse(text: &str) -> Option<Letters> {
        let bytes = text.as_bytes();
        let mut letters = 0;
        let mut index = 0;
        while index < bytes.len() {
            if !bytes[index].is_ascii_lowercase() {
                return None;
            }
            letters |= 1 << (bytes[index] - b'a');
            index += 1;
        }
        Some(Letters(letters))
    }

    pub(crate) const fn of(text: &str) -> Letters {
        Letters::parse(text).expect("a literal of lower-case letters")
    }

    /// Whether the letter is in the set.
    pub fn contains(self, letter: char) -> bool {
        letter.is_ascii_lowercase() && self.0 & 1 << (letter as u32 - 'a' as u32) != 0
    }

    /// Whether all of `others` are in the set.
    pub fn includes(self, others: Letters) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether one of `others` is in the set.
    pub fn intersects(self, others: Letters) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ('a'..='z').filter(|&letter| self.contains(letter)).try_for_each(|letter| write!(f, "{letter}"))
    }
}

impl fmt::Debug for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Letters({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        let raud = Letters::parse("raudr").unwrap();
        assert_eq!(raud.to_string(), "adru");
        assert!(raud.contains('d') && !raud.contains('w') && !raud.contains('R') && !raud.contains('é'));
        assert!(raud.includes(Letters::of("au")) && !raud.includes(Letters::of("aw")));
        assert!(raud.intersects(Letters::of("wa")) && !raud.intersects(Letters::of("wx")));
        assert!(Letters::parse("").unwrap().is_empty());
        for text in ["R", "r,", "r ", "\u{e9}", "r\n"] {
            assert_eq!(Letters::parse(text), None, "{text}");
        }
    }
}
