//! Table names.

use crate::limits::{TABLE_NAME_CHARS_MAX, TABLE_NAME_CHARS_MIN};
use std::fmt;

/// A valid table name, in the case in which it was written. Two names that differ only in case name the same table:
/// compare [`TableName::lower`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName(String);

/// What is wrong with a table name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableNameError {
    /// Shorter than 3 or longer than 63 characters.
    Length,
    /// A first character that is no letter, or any that is neither letter nor digit.
    Characters,
    /// `tables`, in any case.
    Reserved,
}

impl TableName {
    /// Checks the naming rule. Length is checked before characters.
    pub fn parse(text: &str) -> Result<TableName, TableNameError> {
        let units = text.encode_utf16().count();
        if !(TABLE_NAME_CHARS_MIN..=TABLE_NAME_CHARS_MAX).contains(&units) {
            return Err(TableNameError::Length);
        }
        if !text.starts_with(|first: char| first.is_ascii_alphabetic())
            || !text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return Err(TableNameError::Characters);
        }
        if text.eq_ignore_ascii_case("tables") {
            return Err(TableNameError::Reserved);
        }
        Ok(TableName(text.to_owned()))
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that identifies the table.
    pub fn lower(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule() {
        for name in ["abc", "ABC", "a12", "Tables1", &"a".repeat(63)] {
            assert!(TableName::parse(name).is_ok(), "{name}");
        }
        for (name, error) in [
            ("", TableNameError::Length),
            ("ab", TableNameError::Length),
            ("-a", TableNameError::Length),
            (&"a".repeat(64), TableNameError::Length),
            ("1abc", TableNameError::Characters),
            ("my-table", TableNameError::Characters),
            ("a b c", TableNameError::Characters),
            ("\u{554A}\u{9F44}\u{4E02}", TableNameError::Characters),
            ("$Metrics", TableNameError::Characters),
            ("tables", TableNameError::Reserved),
            ("TABLES", TableNameError::Reserved),
        ] {
            assert_eq!(TableName::parse(name), Err(error), "{name}");
        }
    }
}
