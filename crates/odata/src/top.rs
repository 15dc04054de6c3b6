//! `$top`: how many rows a page holds at most.

use partita_model::ServiceError;
use partita_model::limits::PAGE_ROWS_MAX;

/// Reads a number of rows from 1 to 1,000: digits only, without sign or white space.
pub fn parse_top(text: &str) -> Result<usize, ServiceError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let rows = text.parse().ok().filter(|rows| digits && (1..=PAGE_ROWS_MAX).contains(rows));
    rows.ok_or(ServiceError::RequestInputInvalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, rows) in [("1", 1), ("2", 2), ("1000", 1000), ("007", 7)] {
            assert_eq!(parse_top(text), Ok(rows), "{text}");
        }
        for text in ["", "0", "-1", "+1", "1001", " 1", "1 ", "1.0", "x", "99999999999999999999999", "\u{661}"] {
            assert_eq!(parse_top(text), Err(ServiceError::RequestInputInvalid), "{text}");
        }
    }
}
