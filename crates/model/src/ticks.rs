//! A moment, as the service counts it: 100 ns ticks since 0001-01-01T00:00:00Z.
//!
//! Timestamps, ETags, `Edm.DateTime` values and the versions of stored rows are all this one number.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 100 ns ticks since 0001-01-01T00:00:00Z, proleptic Gregorian, no leap seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

const PER_SECOND: u64 = 10_000_000;
const PER_DAY: u64 = 86_400 * PER_SECOND;
const UNIX_EPOCH_TICKS: u64 = 719_162 * PER_DAY;
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Ticks {
    /// 1601-01-01T00:00:00Z, the earliest `Edm.DateTime` the service stores.
    pub const MIN_DATE_TIME: Ticks = Ticks(584_388 * PER_DAY);
    /// 9999-12-31T23:59:59.9999999Z, the latest.
    pub const MAX: Ticks = Ticks(3_155_378_975_999_999_999);

    /// The moment `time` stands for, cut to a whole tick. Times before 1970 count as 1970.
    pub fn from_system_time(time: SystemTime) -> Ticks {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ticks(UNIX_EPOCH_TICKS + (since.as_nanos() / 100) as u64)
    }

    /// How long before `later` this moment is; zero if it is not before it.
    pub fn until(self, later: Ticks) -> Duration {
        let ticks = later.0.saturating_sub(self.0);
        Duration::new(ticks / PER_SECOND, (ticks % PER_SECOND) as u32 * 100)
    }

    /// Reads ISO 8601 as the service does: a date, or a date and a time of at least hours and minutes, up to seven
    /// digits of fraction (more are cut), and `Z`, an offset, or no zone at all, which means UTC.
    pub fn parse_iso(text: &str) -> Option<Ticks> {
        let mut scan = Scan(text.as_bytes());
        let year = scan.number(4)?;
        scan.byte(b'-')?;
        let month = scan.number(2)?;
        scan.byte(b'-')?;
        let mut ticks = days_from_civil(year, month, scan.number(2)?)? * PER_DAY;
        if scan.0.is_empty() {
            return Some(Ticks(ticks));
        }
        scan.byte(b'T').or_else(|| scan.byte(b' '))?;
        let hours = scan.number(2)?;
        scan.byte(b':')?;
        let minutes = scan.number(2)?;
        let mut seconds = 0;
        if scan.byte(b':').is_some() {
            seconds = scan.number(2)?;
            if scan.byte(b'.').is_some() {
                ticks += scan.fraction()?;
            }
        }
        if hours > 23 || minutes > 59 || seconds > 59 {
            return None;
        }
        ticks += (hours * 3600 + minutes * 60 + seconds) * PER_SECOND;
        let ticks = match scan.0 {
            [] | [b'Z' | b'z'] => ticks,
            [sign @ (b'+' | b'-'), rest @ ..] => {
                scan.0 = rest;
                let hours = scan.number(2)?;
                let _ = scan.byte(b':');
                let minutes = scan.number(2)?;
                if hours > 14 || minutes > 59 || !scan.0.is_empty() {
                    return None;
                }
                let offset = (hours * 60 + minutes) * 60 * PER_SECOND;
                if *sign == b'+' { ticks.checked_sub(offset)? } else { ticks + offset }
            }
            _ => return None,
        };
        (ticks <= Ticks::MAX.0).then_some(Ticks(ticks))
    }

    /// Reads the date of an HTTP header: `Thu, 01 Jan 2026 00:00:00 GMT`.
    pub fn parse_rfc1123(text: &str) -> Option<Ticks> {
        let mut scan = Scan(text.as_bytes().trim_ascii());
        scan.name(&WEEKDAYS)?;
        scan.byte(b',')?;
        scan.spaces()?;
        let day = scan.number(2).or_else(|| scan.number(1))?;
        scan.spaces()?;
        let month = scan.name(&MONTHS)? as u64 + 1;
        scan.spaces()?;
        let year = scan.number(4)?;
        scan.spaces()?;
        let hours = scan.number(2)?;
        scan.byte(b':')?;
        let minutes = scan.number(2)?;
        scan.byte(b':')?;
        let seconds = scan.number(2)?;
        scan.spaces()?;
        if hours > 23 || minutes > 59 || seconds > 60 || scan.0 != b"GMT" {
            return None;
        }
        let ticks = days_from_civil(year, month, day)? * PER_DAY + (hours * 3600 + minutes * 60 + seconds) * PER_SECOND;
        // A leap second may lead out of the last year.
        (ticks <= Ticks::MAX.0).then_some(Ticks(ticks))
    }

    /// Writes the date of an HTTP header.
    pub fn rfc1123(self) -> String {
        let days = self.0 / PER_DAY;
        let (year, month, day) = civil_from_days(days);
        let seconds = self.0 % PER_DAY / PER_SECOND;
        format!(
            "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
            WEEKDAYS[(days % 7) as usize],
            MONTHS[month as usize - 1],
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    }

    /// Writes ISO 8601 with all seven digits of the fraction, as in error messages and access policies.
    pub fn seven_digits(self) -> String {
        TimeText { bytes: self.iso(), length: ISO_BYTES }.as_str().to_owned()
    }

    /// Writes ISO 8601 with the trailing zeros of the fraction dropped, as in `Timestamp` and in every `Edm.DateTime`.
    pub fn text(self) -> TimeText {
        let mut bytes = self.iso();
        let digits = bytes[FRACTION].iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        // Without a fraction there is no point either.
        let end = if digits == 0 { FRACTION.start - 1 } else { FRACTION.start + digits };
        bytes[end] = b'Z';
        TimeText { bytes, length: end + 1 }
    }

    /// Every row of a page has two of these, so they are not left to the formatter, which takes twenty times as long.
    fn iso(self) -> [u8; ISO_BYTES] {
        let mut text = *b"0000-00-00T00:00:00.0000000Z";
        // Stored ticks are not checked on reading; a damaged one may lie behind the last year of four digits.
        let ticks = self.min(Ticks::MAX).0;
        let (year, month, day) = civil_from_days(ticks / PER_DAY);
        let seconds = ticks % PER_DAY / PER_SECOND;
        put_digits(&mut text[0..4], year);
        put_digits(&mut text[5..7], month);
        put_digits(&mut text[8..10], day);
        put_digits(&mut text[11..13], seconds / 3600);
        put_digits(&mut text[14..16], seconds / 60 % 60);
        put_digits(&mut text[17..19], seconds % 60);
        put_digits(&mut text[FRACTION], ticks % PER_SECOND);
        text
    }

    /// `MM/dd/yyyy HH:mm:ss`, the form in which the service quotes a date that is out of range.
    pub fn us_form(self) -> String {
        let (year, month, day) = civil_from_days(self.0 / PER_DAY);
        let seconds = self.0 % PER_DAY / PER_SECOND;
        format!("{month:02}/{day:02}/{year:04} {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

/// As [`Ticks::text`].
impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

const ISO_BYTES: usize = 28;
const FRACTION: Range<usize> = 20..27;

/// A moment in ISO 8601, in place.
#[derive(Clone, Copy, Debug)]
pub struct TimeText {
    bytes: [u8; ISO_BYTES],
    length: usize,
}

impl TimeText {
    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("digits and separators are text")
    }

    /// The bytes of the text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Writes a number over all of `place`, with leading zeros.
fn put_digits(place: &mut [u8], number: u64) {
    // All of them fit, and half the width halves the cost of dividing.
    let mut number = number as u32;
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// A cursor over ASCII text.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn byte(&mut self, wanted: u8) -> Option<()> {
        let rest = self.0.strip_prefix(&[wanted])?;
        self.0 = rest;
        Some(())
    }

    fn number(&mut self, digits: usize) -> Option<u64> {
        let (head, rest) = self.0.split_at_checked(digits)?;
        let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        let number = head.iter().try_fold(0, |number, byte| Some(number * 10 + digit(byte)?))?;
        self.0 = rest;
        Some(number)
    }

    /// At least one space.
    fn spaces(&mut self) -> Option<()> {
        self.byte(b' ')?;
        while self.byte(b' ').is_some() {}
        Some(())
    }

    /// Which of some names of three letters stands here.
    fn name(&mut self, names: &[&str]) -> Option<usize> {
        let (head, rest) = self.0.split_at_checked(3)?;
        self.0 = rest;
        names.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(head))
    }

    fn fraction(&mut self) -> Option<u64> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (head, rest) = self.0.split_at(digits);
        self.0 = rest;
        let ticks =
            (0..7).fold(0, |ticks, place| ticks * 10 + head.get(place).map_or(0, |byte| u64::from(byte - b'0')));
        (digits > 0).then_some(ticks)
    }
}

/// Days since 0001-01-01 of a date, or `None` if there is no such date in the years 1 to 9999.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let month_days = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=9999).contains(&year) || day == 0 || day > month_days {
        return None;
    }
    let before = year - 1;
    let months = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize - 1];
    Some(before * 365 + before / 4 - before / 100 + before / 400 + months + u64::from(leap && month > 2) + day - 1)
}

/// The date of a number of days since 0001-01-01 (Howard Hinnant's `civil_from_days`, shifted to years that start in March).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 306;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn iso_forms() {
        for (text, expect) in [
            ("2021-12-09T00:25:32.7684043Z", "2021-12-09T00:25:32.7684043Z"),
            ("2021-12-09T00:25:32.0606250Z", "2021-12-09T00:25:32.060625Z"),
            ("2021-12-09T00:25:32.000000Z", "2021-12-09T00:25:32Z"),
            ("2021-12-09T00:25:32.123456789Z", "2021-12-09T00:25:32.1234567Z"),
            ("2011-10-11", "2011-10-11T00:00:00Z"),
            ("2011-10-11T12:34Z", "2011-10-11T12:34:00Z"),
            ("2011-10-11T12:34:56", "2011-10-11T12:34:56Z"),
            ("2011-10-11T12:34:56+02:00", "2011-10-11T10:34:56Z"),
            ("2011-10-11T12:34:56-0230", "2011-10-11T15:04:56Z"),
            ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
            ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"),
        ] {
            assert_eq!(Ticks::parse_iso(text).expect(text).to_string(), expect);
        }
        for text in [
            "",
            "2021",
            "2021-02-29",
            "2021-13-01",
            "2021-01-01T25:00:00Z",
            "2021-01-01T00:00:00.Z",
            "x",
            "0000-01-01",
            "2021-01-01T00:00:00ZZ",
        ] {
            assert_eq!(Ticks::parse_iso(text), None, "{text}");
        }
    }

    #[test]
    fn constants() {
        assert_eq!(Ticks::parse_iso("1601-01-01"), Some(Ticks::MIN_DATE_TIME));
        assert_eq!(Ticks::parse_iso("9999-12-31T23:59:59.9999999Z"), Some(Ticks::MAX));
        assert_eq!(Ticks::parse_iso("1970-01-01"), Some(Ticks::from_system_time(UNIX_EPOCH)));
        assert_eq!(Ticks::parse_iso("0001-01-01"), Some(Ticks(0)));
    }

    #[test]
    fn rfc1123() {
        let date = Ticks::parse_iso("2026-01-01T00:00:00Z").unwrap();
        assert_eq!(date.rfc1123(), "Thu, 01 Jan 2026 00:00:00 GMT");
        assert_eq!(Ticks::parse_rfc1123("Thu, 01 Jan 2026 00:00:00 GMT"), Some(date));
        assert_eq!(Ticks::parse_rfc1123(" thu,  1 JAN 2026  00:00:00 GMT "), Some(date));
        for text in [
            "Thu, 01 Jan 2026 00:00:00 CET",
            "Thu, 001 Jan 2026 00:00:00 GMT",
            "Thu, 01 Jan 26 00:00:00 GMT",
            "Thu, 01 Foo 2026 00:00:00 GMT",
            "Thu, 01 Jan 2026 24:00:00 GMT",
            "Thu, 01 Jan 2026 00:00:00",
            "Thu 01 Jan 2026 00:00:00 GMT",
            "2026-01-01T00:00:00Z",
            "",
        ] {
            assert_eq!(Ticks::parse_rfc1123(text), None, "{text}");
        }
        assert_eq!(Ticks::parse_rfc1123("Wed, 31 Dec 2025 23:59:60 GMT"), Some(date));
        assert_eq!(Ticks::parse_rfc1123("Fri, 31 Dec 9999 23:59:60 GMT"), None);
    }

    proptest! {
        #[test]
        fn round_trips(ticks in 0..=Ticks::MAX.0) {
            let ticks = Ticks(ticks);
            prop_assert_eq!(Ticks::parse_iso(&ticks.to_string()), Some(ticks));
            prop_assert_eq!(Ticks::parse_iso(&ticks.seven_digits()), Some(ticks));
            let seconds = Ticks(ticks.0 / PER_SECOND * PER_SECOND);
            prop_assert_eq!(Ticks::parse_rfc1123(&ticks.rfc1123()), Some(seconds));
        }
    }
}
