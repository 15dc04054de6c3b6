//! Whose service a URL addresses: the account, in the host or in the path, and the secondary endpoint.
//!
//! ```text
//! path style   http://127.0.0.1:10002/account[-secondary]/...
//! host style   http://account[-secondary].table.example:10002/...
//! ```
//!
//! A host name is taken for host style if its first label is the name of an account we have; that way any name the
//! machine may have in a network works with path style.

use crate::query_string::decode;
use std::borrow::Cow;
use std::net::Ipv4Addr;

const SECONDARY: &str = "-secondary";

/// Where a request was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The account, whether or not we know it.
    pub(crate) account: String,
    /// Whether it was sent to the secondary endpoint.
    pub(crate) secondary: bool,
    /// Whether the account stands in the path.
    pub(crate) path_style: bool,
    /// The URL of the service as the client knows it, without a slash at the end.
    pub(crate) base: String,
    /// What follows it, percent-decoded.
    pub(crate) path: String,
}

impl Address {
    /// Reads scheme, host (with port) and path as they were sent. `None` if the path has a broken escape.
    pub(crate) fn parse(scheme: &str, host: &str, path: &str, is_account: impl Fn(&str) -> bool) -> Option<Address> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let is_number = name.parse::<Ipv4Addr>().is_ok();
        if let Some((label, _)) = host.split_once('.').filter(|_| !is_number) {
            let (account, secondary) = primary(label);
            if is_account(account) {
                let base = [scheme, "://", host].concat();
                let path = decode(path, false)?.into_owned();
                return Some(Address { account: account.into(), secondary, path_style: false, base, path });
            }
        }
        let rest = path.strip_prefix('/').unwrap_or(path);
        let (segment, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let segment = decode(segment, false)?;
        let (account, secondary) = primary(&segment);
        // The Python client appends the path of its primary endpoint, account and all, to that of the secondary.
        let again = rest.strip_prefix('/').and_then(|rest| rest.strip_prefix(account));
        let again = again.filter(|rest| secondary && (rest.is_empty() || rest.starts_with('/')));
        let base = [scheme, "://", host, "/", &segment].concat();
        let path = decode(again.unwrap_or(rest), false)?.into_owned();
        Some(Address { account: account.into(), secondary, path_style: true, base, path })
    }

    /// The path of a part of a batch: absolute, from the root, or relative; with the account or without. `None` if it has
    /// a broken escape.
    pub(crate) fn part_path<'t>(&self, target: &'t str) -> Option<Cow<'t, str>> {
        let authority = target.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
        let path = match authority {
            Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
            None => target.strip_prefix('/').unwrap_or(target),
        };
        Some(match decode(path, false)? {
            Cow::Borrowed(path) => Cow::Borrowed(self.without_account(path)),
            Cow::Owned(path) => Cow::Owned(self.without_account(&path).to_owned()),
        })
    }

    fn without_account<'p>(&self, path: &'p str) -> &'p str {
        let inner = path.split_once('/').filter(|(first, _)| primary(first).0 == self.account);
        inner.map_or(path, |(_, inner)| inner)
    }
}

fn primary(name: &str) -> (&str, bool) {
    match name.strip_suffix(SECONDARY) {
        Some(account) => (account, true),
        None => (name, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(host: &str, path: &str) -> (String, bool, String, String) {
        let address = Address::parse("http", host, path, |name| name == "acct").unwrap();
        (address.account, address.secondary, address.base, address.path)
    }

    #[test]
    fn styles() {
        let expect =
            |account: &str, secondary, base: &str, path: &str| (account.into(), secondary, base.into(), path.into());
        for (host, path, wanted) in [
            ("127.0.0.1:10002", "/acct/Tables", expect("acct", false, "http://127.0.0.1:10002/acct", "/Tables")),
            ("127.0.0.1:10002", "/acct", expect("acct", false, "http://127.0.0.1:10002/acct", "")),
            ("localhost", "/acct-secondary/T()", expect("acct", true, "http://localhost/acct-secondary", "/T()")),
            ("localhost", "/acct-secondary/acct/", expect("acct", true, "http://localhost/acct-secondary", "/")),
            ("localhost", "/acct/acct/", expect("acct", false, "http://localhost/acct", "/acct/")),
            ("tables.internal", "/acct/T%28%29", expect("acct", false, "http://tables.internal/acct", "/T()")),
            ("acct.table.localhost:1", "/Tables", expect("acct", false, "http://acct.table.localhost:1", "/Tables")),
            ("acct-secondary.table.core.net", "/", expect("acct", true, "http://acct-secondary.table.core.net", "/")),
            ("127.0.0.1", "/", expect("", false, "http://127.0.0.1/", "")),
        ] {
            assert_eq!(parse(host, path), wanted, "{host} {path}");
        }
    }

    #[test]
    fn parts() {
        let address = Address::parse("http", "127.0.0.1:1", "/acct/$batch", |_| true).unwrap();
        for target in [
            "http://127.0.0.1:1/acct/T(a)",
            "https://acct.table.core.net/T(a)",
            "/acct/T(a)",
            "/T(a)",
            "T(a)",
            "T%28a)",
        ] {
            assert_eq!(address.part_path(target).as_deref(), Some("T(a)"), "{target}");
        }
        assert_eq!(address.part_path("/acct").as_deref(), Some("acct"));
        assert_eq!(address.part_path("T(a:'://b')").as_deref(), Some("T(a:'://b')"));
    }
}
