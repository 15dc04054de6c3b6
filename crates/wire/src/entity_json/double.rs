//! Doubles, printed as .NET prints them, since that is what the service's clients have always seen.
//!
//! The digits are the fewest that read back as the same number. From 1E+15 up and below 0.0001 the exponent is
//! written, with a sign and at least two digits; otherwise there is a decimal point, so that no reader takes the
//! number for an integer.

use std::io::Write;

/// Writes a finite double as a JSON number.
pub(super) fn write(out: &mut Vec<u8>, value: f64) {
    // In this range the common shortest form is .NET's too, and there is a writer of it that takes a fifth of the time.
    if (1e-4..1e15).contains(&value.abs()) {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        return;
    }
    write_slowly(out, value);
}

fn write_slowly(out: &mut Vec<u8>, value: f64) {
    // Rust's scientific form has the shortest digits: `-1.25e-7`. At most 17 digits, sign, point and exponent.
    let mut buffer = [0u8; 32];
    let mut rest = &mut buffer[..];
    write!(rest, "{value:e}").expect("the scientific form of a double fits 32 bytes");
    let unused = rest.len();
    let text = &buffer[..32 - unused];
    let at = memchr::memchr(b'e', text).expect("the scientific form has an exponent");
    let exponent: i32 = std::str::from_utf8(&text[at + 1..]).expect("ASCII").parse().expect("an exponent is a number");
    let (sign, mantissa) = match &text[..at] {
        [b'-', mantissa @ ..] => (&b"-"[..], mantissa),
        mantissa => (&b""[..], mantissa),
    };
    out.extend_from_slice(sign);
    if !(-4..15).contains(&exponent) {
        out.extend_from_slice(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "E{sign}{:02}", exponent.unsigned_abs()).expect("a Vec takes every write");
        return;
    }
    let digits = || mantissa.iter().copied().filter(|&byte| byte != b'.');
    let count = digits().count();
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend(digits());
    } else {
        let whole = exponent as usize + 1;
        out.extend(digits().chain(std::iter::repeat(b'0')).take(whole));
        out.push(b'.');
        out.extend(digits().skip(whole));
        if count <= whole {
            out.push(b'0');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn print(value: f64) -> String {
        let mut out = Vec::new();
        write(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn forms() {
        for (value, expect) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (5.0, "5.0"),
            (-3.1, "-3.1"),
            (0.5, "0.5"),
            (100.25, "100.25"),
            (123456.0, "123456.0"),
            (0.0001, "0.0001"),
            (0.00012345, "0.00012345"),
            (0.00001, "1E-05"),
            (1.5e-7, "1.5E-07"),
            (1e14, "100000000000000.0"),
            (999999999999999.0, "999999999999999.0"),
            (1e15, "1E+15"),
            (-1.25e20, "-1.25E+20"),
            (1.23456789012346e24, "1.23456789012346E+24"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::MAX, "1.7976931348623157E+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (5e-324, "5E-324"),
        ] {
            assert_eq!(print(value), expect);
        }
    }

    proptest! {
        #[test]
        fn reads_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = print(value);
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            prop_assert!(text.contains(['.', 'E']));
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert!(json.is_f64());
        }

        #[test]
        fn small_numbers_read_back(value in -1e6..1e6) {
            prop_assert_eq!(print(value).parse(), Ok(value));
        }

        #[test]
        fn both_ways_write_as_many_digits(mantissa in 1.0..10.0f64, places in 0..17i32, exponent in -6..18i32) {
            let value = (mantissa * 10f64.powi(places)).trunc() * 10f64.powi(exponent - places);
            let mut out = Vec::new();
            write_slowly(&mut out, value);
            let (fast, slow) = (print(value), String::from_utf8(out).unwrap());
            // Of two numbers of as many digits that are as near, either may be written.
            prop_assert_eq!((fast.len(), fast.parse()), (slow.len(), slow.parse::<f64>()));
        }
    }
}
