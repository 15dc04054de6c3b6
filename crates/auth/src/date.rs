//! The date a Shared Key request is signed with. It must be near the present, or a request that was overheard could be
//! sent again for ever.

use crate::authentication_failed;
use partita_model::{ServiceError, Ticks};
use std::time::Duration;

/// Checks the signed date: `x-ms-date`, or `Date` if there is none of the former, or nothing. The service's window is
/// 15 minutes to either side.
pub fn check_date(date: &str, now: Ticks, window: Duration) -> Result<Ticks, ServiceError> {
    if date.trim().is_empty() {
        return Err(authentication_failed("Neither x-ms-date nor Date header is specified."));
    }
    let signed = Ticks::parse_rfc1123(date)
        .ok_or_else(|| authentication_failed(format_args!("The Date header is not in the correct format: '{date}'")))?;
    if signed.until(now) > window {
        return Err(authentication_failed(format_args!("Request date header too old: '{date}'")));
    }
    if now.until(signed) > window {
        return Err(authentication_failed(format_args!("Request date header too far in the future: '{date}'")));
    }
    Ok(signed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(15 * 60);

    fn check(date: &str) -> Result<Ticks, ServiceError> {
        check_date(date, Ticks::parse_iso("2026-01-01T12:00:00Z").unwrap(), WINDOW)
    }

    #[test]
    fn inside_the_window() {
        for time in ["11:45:00", "12:00:00", "12:15:00"] {
            let signed = Ticks::parse_iso(&format!("2026-01-01T{time}Z"));
            assert_eq!(check(&format!("Thu, 01 Jan 2026 {time} GMT")).ok(), signed);
        }
    }

    #[test]
    fn outside_of_it() {
        for (date, reason) in [
            ("", "Neither x-ms-date nor Date"),
            ("  ", "Neither x-ms-date nor Date"),
            ("2026-01-01T12:00:00Z", "not in the correct format"),
            ("Thu, 01 Jan 2026 12:00:00 CET", "not in the correct format"),
            ("Thu, 01 Jan 2026 11:44:59 GMT", "too old: 'Thu, 01 Jan 2026 11:44:59 GMT'"),
            ("Thu, 01 Jan 2026 12:15:01 GMT", "too far in the future"),
        ] {
            let error = check(date).unwrap_err();
            assert_eq!((error.code(), error.status()), ("AuthenticationFailed", 403));
            assert!(error.to_string().contains("\nAuthenticationErrorDetail:"), "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
