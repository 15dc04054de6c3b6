//! The host a client says it speaks to, and whether a stranger could have sent a browser here under that name.
//!
//! A page of `evil.example` may have its name resolve to 127.0.0.1 once it is loaded. The browser then takes this machine for
//! the page's own server and lets the page read what it answers. What tells such a request is its `Host`: it is still the
//! name of the page. Addresses, names without a dot, names that no registry gives away and those of Azure cannot be pointed
//! here by strangers.

use crate::head::Head;
use crate::header_name;
use crate::headers;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The last labels of names that are never given away (RFC 6761, RFC 6762, and ICANN's `internal`).
const PRIVATE: [&str; 4] = ["localhost", "local", "internal", "test"];

/// The domains of the service itself, for clients whose names for it lead here.
const AZURE: [&str; 4] =
    [".core.windows.net", ".core.usgovcloudapi.net", ".core.chinacloudapi.cn", ".core.cloudapi.de"];

/// The host with its port, as the client gave it.
pub(crate) fn of<'h>(head: &'h Head<'_>) -> Option<&'h str> {
    head.authority.or_else(|| head.headers().bytes(header_name::HOST).and_then(headers::text))
}

/// Whether the host is a name that a stranger may own.
pub(crate) fn is_foreign(host: &str) -> bool {
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if let Some(rest) = host.strip_prefix('[') {
        return !rest.split_once(']').is_some_and(|(address, port)| {
            address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.starts_with(':'))
        });
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_suffix('.').unwrap_or(name);
    match name.rsplit_once('.') {
        None => false,
        Some((_, last)) => {
            let is_private = PRIVATE.iter().any(|private| last.eq_ignore_ascii_case(private));
            let is_azure = || AZURE.iter().any(|domain| name.to_ascii_lowercase().ends_with(domain));
            name.parse::<Ipv4Addr>().is_err() && !is_private && !is_azure()
        }
    }
}

/// Whether an `Origin` is a page of elsewhere. One that is `null` may be anybody's.
pub(crate) fn is_foreign_origin(origin: &str) -> bool {
    origin.split_once("://").is_none_or(|(_, host)| is_foreign(host))
}

/// Whether it can be part of a URL, in which it is given back to the client.
pub(crate) fn is_valid(host: &str) -> bool {
    host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses() {
        for host in [
            "",
            "127.0.0.1",
            "127.0.0.1:10002",
            "192.0.2.7:1",
            "[::1]:10002",
            "[::1]",
            "localhost",
            "LOCALHOST:10002",
            "localhost.",
            "devstoreaccount1.table.localhost:10002",
            "partita",
            "partita:10002",
            "host.docker.internal:10002",
            "partita.default.svc.cluster.local",
            "devstoreaccount1.table.core.windows.net",
            "account.table.CORE.windows.net:443",
        ] {
            assert!(!is_foreign(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:10002",
            "evil.example.",
            "127.0.0.1.evil.example",
            "127.0.0.1.nip.example:10002",
            "localhost.evil.example",
            "localhost@evil.example",
            "[evil.example]",
            "[::1].evil.example]",
            "1.2.3",
            "core.windows.net.evil.example",
            "evilcore.windows.net",
            "127.1",
        ] {
            assert!(is_foreign(host), "{host}");
        }
    }

    #[test]
    fn origins() {
        for (origin, foreign) in [
            ("http://localhost:3000", false),
            ("https://127.0.0.1", false),
            ("https://evil.example", true),
            ("null", true),
            ("", true),
        ] {
            assert_eq!(is_foreign_origin(origin), foreign, "{origin}");
        }
    }
}
