//! `Edm.Guid`.

use std::fmt;

/// Sixteen bytes in the order in which they are written, so that byte order is the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

/// What is not the value of a digit, whatever is set besides.
const NO_DIGIT: u8 = 0xFF;

/// The values of hexadecimal digits.
const DIGITS: [u8; 256] = {
    let (mut digits, mut byte) = ([NO_DIGIT; 256], 0);
    while byte < digits.len() {
        if let Some(value) = char::to_digit(byte as u8 as char, 16) {
            digits[byte] = value as u8;
        }
        byte += 1;
    }
    digits
};

impl Guid {
    /// Reads `8-4-4-4-12` hexadecimal digits of either case.
    pub fn parse(text: &str) -> Option<Guid> {
        /// Where the two digits of each byte stand.
        const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
        let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
        if [8, 13, 18, 23].iter().any(|&at| text[at] != b'-') {
            return None;
        }
        let digit = |at: usize| DIGITS[usize::from(text[at])];
        let (mut bytes, mut all) = ([0; 16], 0);
        for (byte, at) in bytes.iter_mut().zip(PLACES) {
            let (high, low) = (digit(at), digit(at + 1));
            *byte = high << 4 | low & 0x0F;
            all |= high | low;
        }
        (all != NO_DIGIT).then_some(Guid(bytes))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_and_print() {
        let guid = Guid::parse("C9DA6455-213D-42c9-9a79-3e9149a57833").unwrap();
        assert_eq!(guid.to_string(), "c9da6455-213d-42c9-9a79-3e9149a57833");
        for text in [
            "",
            "c9da6455213d42c99a793e9149a57833",
            "c9da6455-213d-42c9-9a79-3e9149a5783g",
            "{c9da6455-213d-42c9-9a79-3e9149a57833}",
        ] {
            assert_eq!(Guid::parse(text), None, "{text}");
        }
    }
}
