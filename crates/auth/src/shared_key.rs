//! Shared Key and Shared Key Lite of the Table service.
//!
//! Other than in the Blob and Queue services no `x-ms-` header is signed, the date is never empty, and of the query
//! only `comp` counts. The path is signed as it stands on the request line; in path style it begins with the account,
//! which the resource has once more in front:
//!
//! ```text
//! SharedKey      VERB \n Content-MD5 \n Content-Type \n Date \n /account/path?comp=value
//! SharedKeyLite                                         Date \n /account/path?comp=value
//! ```
//!
//! Between the client that signed and the server there are HTTP stacks and proxies that write the same path with other
//! escapes, so verification tries the documented spellings too. They all decode to the same path, and the two names of
//! a secondary lead to the same data: a signature still opens nothing but what was signed.

use crate::{AccountKeys, Scheme};
use std::borrow::Cow;

/// What is signed of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRequest<'a> {
    /// The account that is asked, without `-secondary`.
    pub account: &'a str,
    /// The verb on the wire.
    pub method: &'a str,
    /// The path exactly as on the request line, escapes untouched. In path style it begins with the account.
    pub path: &'a str,
    /// The value of the query parameter `comp`.
    pub comp: Option<&'a str>,
    /// The header `Content-MD5`, empty if absent.
    pub content_md5: &'a str,
    /// The header `Content-Type`, empty if absent.
    pub content_type: &'a str,
    /// The header `x-ms-date`, or `Date` if there is none of the former.
    pub date: &'a str,
}

/// The text a client signs.
pub fn string_to_sign(scheme: Scheme, request: &TableRequest<'_>) -> String {
    let TableRequest { account, path, date, .. } = request;
    let mut text = String::with_capacity(192 + path.len());
    if scheme == Scheme::SharedKey {
        text.push_str(request.method);
        text.make_ascii_uppercase();
        for line in [request.content_md5, request.content_type] {
            text.push('\n');
            text.push_str(line);
        }
        text.push('\n');
    }
    for piece in [date, "\n/", account, path] {
        text.push_str(piece);
    }
    if let Some(comp) = request.comp {
        text.push_str("?comp=");
        text.push_str(comp);
    }
    text
}

/// Whether one of the account's keys signed the request, in any spelling of its path that decodes to the same.
pub fn verify_shared_key(keys: &AccountKeys, scheme: Scheme, request: &TableRequest<'_>, signature: &str) -> bool {
    let verify = |path: &str| keys.verify(&string_to_sign(scheme, &TableRequest { path, ..*request }), signature);
    // Nearly every request is signed as it was sent; the rest costs only those that are not.
    if verify(request.path) {
        return true;
    }
    let mut tried = vec![request.path.to_owned()];
    for path in [Cow::Borrowed(request.path), primary_path(request)] {
        for spelling in [path.clone().into_owned(), respell(&path, "'"), respell(&path, "%27")] {
            if !tried.contains(&spelling) {
                if verify(&spelling) {
                    return true;
                }
                tried.push(spelling);
            }
        }
    }
    false
}

/// The path with the account in place of `{account}-secondary`, as some clients sign a request to a secondary in path
/// style. The Python client sends `/{account}-secondary/{account}/...` and signs `/{account}/...`.
fn primary_path<'a>(request: &TableRequest<'a>) -> Cow<'a, str> {
    let behind_account = |path: &'a str| path.strip_prefix('/').and_then(|path| path.strip_prefix(request.account));
    let ends = |rest: &str| rest.is_empty() || rest.starts_with('/');
    match behind_account(request.path).and_then(|rest| rest.strip_prefix("-secondary")) {
        Some(rest) if behind_account(rest).is_some_and(ends) => Cow::Borrowed(rest),
        Some(rest) if ends(rest) => Cow::Owned(format!("/{}{rest}", request.account)),
        _ => Cow::Borrowed(request.path),
    }
}

/// Writes the escapes of a path anew: letters, digits and `-._~!*()` plain, the apostrophe as asked, other reserved
/// characters as they were, since plain and escaped they are not the same, and everything else escaped. That includes
/// a `%` that starts no escape, which might otherwise form one with what follows.
fn respell(path: &str, apostrophe: &str) -> String {
    let mut spelling = String::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = if byte == b'%' { tail.first_chunk().and_then(|&digits| hex(digits)) } else { None };
        rest = if escaped.is_some() { &tail[2..] } else { tail };
        match escaped.unwrap_or(byte) {
            b'\'' => spelling.push_str(apostrophe),
            byte if byte.is_ascii_alphanumeric() || b"-._~!*()".contains(&byte) => spelling.push(char::from(byte)),
            byte if escaped.is_none() && b"/:@&=+$,;".contains(&byte) => spelling.push(char::from(byte)),
            byte => spelling.push_str(&format!("%{byte:02X}")),
        }
    }
    spelling
}

fn hex([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests;
