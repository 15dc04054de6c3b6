//! The path grammar: what a URL names.
//!
//! ```text
//! /                                        the service
//! /Tables  /Tables()  /Tables('name')      tables
//! /name  /name()                           the entities of a table
//! /name(PartitionKey='..',RowKey='..')     one entity
//! /$batch                                  entity group transactions
//! ```
//!
//! Paths are percent-decoded before they are read, so `%2F` separates like `/`. Names and keys are only cut out here; whether
//! they are valid is said after the caller is known.

/// What the path of a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// `/`.
    Service,
    /// `/$batch`.
    Batch,
    /// `/Tables`, or one table of it.
    Tables(Option<String>),
    /// A table, with what stands in the parentheses behind its name.
    Entities(String, Keys),
}

/// What a path says of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// No parentheses, or empty ones.
    None,
    /// Both keys.
    Pair { partition_key: String, row_key: String },
    /// Something in parentheses that is well formed but not these two keys.
    WrongNumber,
    /// Something that is not well formed.
    Malformed,
}

impl Resource {
    /// Reads a decoded path, without the account of path style.
    pub(crate) fn parse(path: &str) -> Resource {
        let path = path.trim_start_matches('/');
        let name_ends = path.find(['(', '/']).unwrap_or(path.len());
        let (name, rest) = path.split_at(name_ends);
        let (keys, rest) = match rest.strip_prefix('(') {
            Some(inner) => parse_keys(inner),
            None => (Parsed::None, rest),
        };
        // A further segment in parentheses is taken for keys, and there are never as many as a table has.
        let trailing_keys = rest.contains('(');
        if name.eq_ignore_ascii_case("tables") {
            return match keys {
                Parsed::None => Resource::Tables(None),
                Parsed::Single(name) => Resource::Tables(Some(name)),
                Parsed::Named(keys) => {
                    let name = keys.into_iter().find(|(key, _)| *key == "TableName").map(|(_, name)| name);
                    Resource::Tables(Some(name.unwrap_or_default()))
                }
                Parsed::Malformed => Resource::Tables(Some(String::new())),
            };
        }
        match name {
            "" => Resource::Service,
            "$batch" => Resource::Batch,
            name => {
                let keys = match keys {
                    _ if trailing_keys => Keys::WrongNumber,
                    Parsed::None => Keys::None,
                    Parsed::Single(_) => Keys::WrongNumber,
                    Parsed::Named(keys) => pair(keys),
                    Parsed::Malformed => Keys::Malformed,
                };
                Resource::Entities(name.to_owned(), keys)
            }
        }
    }
}

/// What stands in parentheses.
enum Parsed<'a> {
    None,
    Single(String),
    Named(Vec<(&'a str, String)>),
    Malformed,
}

fn pair(keys: Vec<(&str, String)>) -> Keys {
    match <[(&str, String); 2]>::try_from(keys) {
        Ok([(a, first), (b, second)]) => match (a, b) {
            ("PartitionKey", "RowKey") => Keys::Pair { partition_key: first, row_key: second },
            ("RowKey", "PartitionKey") => Keys::Pair { partition_key: second, row_key: first },
            _ => Keys::WrongNumber,
        },
        Err(_) => Keys::WrongNumber,
    }
}

/// Reads up to the closing parenthesis; returns the rest behind it.
fn parse_keys(mut text: &str) -> (Parsed<'_>, &str) {
    let mut named = Vec::with_capacity(2);
    if let Some(rest) = text.trim_start().strip_prefix(')') {
        return (Parsed::None, rest);
    }
    loop {
        text = text.trim_start();
        let name_ends = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (name, rest) = text.split_at(name_ends);
        let rest = rest.trim_start();
        let value = if name.is_empty() { Some(rest) } else { rest.strip_prefix('=') };
        let Some((value, rest)) = value.and_then(|value| quoted(value.trim_start())) else {
            return (Parsed::Malformed, "");
        };
        named.push((name, value));
        let rest = rest.trim_start();
        if let Some(rest) = rest.strip_prefix(')') {
            return match named.as_mut_slice() {
                [("", value)] => (Parsed::Single(std::mem::take(value)), rest),
                _ => (Parsed::Named(named), rest),
            };
        }
        let Some(rest) = rest.strip_prefix(',') else { return (Parsed::Malformed, "") };
        text = rest;
    }
}

/// Reads `'text'`, in which `''` stands for `'`; returns the rest behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let end = rest.find('\'')?;
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(more) => {
                value.push('\'');
                rest = more;
            }
            None => return Some((value, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(table: &str, partition_key: &str, row_key: &str) -> Resource {
        let keys = Keys::Pair { partition_key: partition_key.into(), row_key: row_key.into() };
        Resource::Entities(table.into(), keys)
    }

    #[test]
    fn paths() {
        let collection = |name: &str| Resource::Entities(name.into(), Keys::None);
        let wrong = |name: &str| Resource::Entities(name.into(), Keys::WrongNumber);
        let malformed = |name: &str| Resource::Entities(name.into(), Keys::Malformed);
        for (path, expect) in [
            ("", Resource::Service),
            ("/", Resource::Service),
            ("/$batch", Resource::Batch),
            ("/Tables", Resource::Tables(None)),
            ("/Tables()", Resource::Tables(None)),
            ("/Tables('abc')", Resource::Tables(Some("abc".into()))),
            ("/Tables(TableName='abc')", Resource::Tables(Some("abc".into()))),
            ("/abc", collection("abc")),
            ("/abc()", collection("abc")),
            ("/abc( )", collection("abc")),
            ("/abc//", collection("abc")),
            ("/abc/Tables", collection("abc")),
            ("/abc/Tables('x')", wrong("abc")),
            ("/abc(PartitionKey='p',RowKey='r')", entity("abc", "p", "r")),
            ("/abc(RowKey='r',PartitionKey='p')", entity("abc", "p", "r")),
            ("/abc(PartitionKey='',RowKey='')", entity("abc", "", "")),
            ("/abc(PartitionKey='A''b',RowKey='''')", entity("abc", "A'b", "'")),
            ("/abc(PartitionKey='a,b)',RowKey='/c')", entity("abc", "a,b)", "/c")),
            ("/abc(PartitionKey = 'p' , RowKey = 'r')", entity("abc", "p", "r")),
            ("/abc(PartitionKey='p')", wrong("abc")),
            ("/abc('p')", wrong("abc")),
            ("/abc(PartitionKey='p',RowKey='r',X='y')", wrong("abc")),
            ("/abc(PartitionKey='p',RowKey='r", malformed("abc")),
            ("/abc(PartitionKey='a'b',RowKey='r')", malformed("abc")),
            ("/abc(PartitionKey=p,RowKey='r')", malformed("abc")),
        ] {
            assert_eq!(Resource::parse(path), expect, "{path}");
        }
    }
}
