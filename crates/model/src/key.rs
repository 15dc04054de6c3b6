//! PartitionKey and RowKey: their rule and their order.
//!
//! The service orders keys by UTF-16 code unit. That is the order of the UTF-8 bytes, except that characters outside
//! the Basic Multilingual Plane, which are surrogate pairs (U+D800 to U+DFFF) in UTF-16, come before U+E000 to U+FFFF.
//! In UTF-8 the former start with the bytes F0 to F4 and the latter with EE and EF, so renaming those seven lead bytes
//! makes byte order the wanted order:
//!
//! ```text
//! UTF-8 lead byte   EE EF  F0 F1 F2 F3 F4
//! ordered byte      F3 F4  EE EF F0 F1 F2
//! ```

use crate::limits::KEY_UNITS_MAX;
use crate::value::utf16_units;
use std::borrow::Cow;

/// What is wrong with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// `/` or `\`, which the service refuses in another way than the rest.
    Slash,
    /// `#`, `?` or a control character.
    Forbidden,
    /// More than 1,024 UTF-16 code units.
    TooLong,
}

/// A text that is no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedKey {
    /// What is wrong with it.
    pub error: KeyError,
    /// The text.
    pub text: String,
}

fn check(text: &str) -> Result<(), KeyError> {
    // Nearly all keys are of plain characters. Without stopping at the first that is not, many bytes are looked at together.
    let is_plain =
        |byte: u8| (b' '..=b'~').contains(&byte) & (byte != b'/') & (byte != b'\\') & (byte != b'#') & (byte != b'?');
    if text.len() <= KEY_UNITS_MAX && text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        return Ok(());
    }
    if text.contains(['/', '\\']) {
        return Err(KeyError::Slash);
    }
    if text.contains(|c: char| matches!(c, '#' | '?' | '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}')) {
        return Err(KeyError::Forbidden);
    }
    if text.len() > KEY_UNITS_MAX && utf16_units(text.as_bytes()) > KEY_UNITS_MAX {
        return Err(KeyError::TooLong);
    }
    Ok(())
}

/// The bytes of a key, comparable as bytes in the service's order. Any text is taken, valid key or not, since a filter
/// may compare with any text.
fn to_ordered(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    match bytes.iter().position(|&byte| byte >= 0xEE) {
        None => Cow::Borrowed(bytes),
        Some(_) => Cow::Owned(
            bytes
                .iter()
                .map(|&byte| match byte {
                    0xEE..=0xEF => byte + 5,
                    0xF0..=0xF4 => byte - 2,
                    _ => byte,
                })
                .collect(),
        ),
    }
}

/// The text of ordered bytes, or `None` if they are not the bytes of a text.
fn from_ordered(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if !bytes.iter().fold(false, |found, &byte| found | (byte >= 0xEE)) {
        return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    }
    let utf8 = bytes.iter().map(|&byte| match byte {
        0xEE..=0xF2 => byte + 2,
        0xF3..=0xF4 => byte - 5,
        _ => byte,
    });
    String::from_utf8(utf8.collect()).ok().map(Cow::Owned)
}

macro_rules! key {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// Checks characters, then length.
            pub fn parse(text: &str) -> Result<$name, KeyError> {
                check(text)?;
                Ok($name(text.to_owned()))
            }

            /// The text of the key.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Bytes of any text that compare in the service's order of keys.
            pub fn to_ordered(text: &str) -> Cow<'_, [u8]> {
                to_ordered(text)
            }

            /// The text of bytes made by [`Self::to_ordered`]; `None` if they were not.
            pub fn from_ordered(bytes: &[u8]) -> Option<Cow<'_, str>> {
                from_ordered(bytes)
            }
        }

        impl TryFrom<String> for $name {
            type Error = RefusedKey;

            fn try_from(text: String) -> Result<$name, RefusedKey> {
                match check(&text) {
                    Ok(()) => Ok($name(text)),
                    Err(error) => Err(RefusedKey { error, text }),
                }
            }
        }
    };
}

key!(PartitionKey, "A valid PartitionKey: the partition an entity belongs to.");
key!(RowKey, "A valid RowKey: the name of an entity in its partition.");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rule() {
        for text in ["", " ", "a%+'\",&=:@", "\u{1F600}", "\u{A0}", &"k".repeat(1024), &"\u{1F600}".repeat(512)] {
            assert!(RowKey::parse(text).is_ok(), "{text}");
        }
        for (text, error) in [
            ("a/b", KeyError::Slash),
            ("a\\b", KeyError::Slash),
            ("a#b", KeyError::Forbidden),
            ("a?b", KeyError::Forbidden),
            ("\t", KeyError::Forbidden),
            ("\u{7F}", KeyError::Forbidden),
            ("\u{9F}", KeyError::Forbidden),
            (&"k".repeat(1025), KeyError::TooLong),
            (&"\u{1F600}".repeat(513), KeyError::TooLong),
        ] {
            assert_eq!(PartitionKey::parse(text), Err(error), "{text}");
        }
    }

    fn text() -> impl Strategy<Value = String> {
        // Short strings of characters from both sides of every border between encodings.
        let character = prop_oneof![
            proptest::sample::select(vec![
                '\0',
                'a',
                '\u{7F}',
                '\u{80}',
                '\u{7FF}',
                '\u{800}',
                '\u{D7FF}',
                '\u{E000}',
                '\u{FFFF}',
                '\u{10000}',
                '\u{10FFFF}'
            ]),
            any::<char>(),
        ];
        proptest::collection::vec(character, 0..6).prop_map(|characters| characters.into_iter().collect())
    }

    proptest! {
        #[test]
        fn byte_order_is_utf16_order(a in text(), b in text()) {
            let units = a.encode_utf16().cmp(b.encode_utf16());
            prop_assert_eq!(RowKey::to_ordered(&a).cmp(&RowKey::to_ordered(&b)), units);
        }

        #[test]
        fn ordered_bytes_round_trip(a in text()) {
            let ordered = RowKey::to_ordered(&a).into_owned();
            let text = RowKey::from_ordered(&ordered).expect("a text");
            prop_assert_eq!(text.as_ref(), a.as_str());
        }
    }
}
