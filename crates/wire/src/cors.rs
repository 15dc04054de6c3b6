//! Which CORS rule a request from a browser falls under. Pure functions; the headers of the answer are the server's.

use partita_model::CorsRule;

/// The first rule that allows a preflight: its origin, the verb it announces, and every header it announces.
/// `headers` is the value of `Access-Control-Request-Headers`, empty if there is none.
pub fn preflight<'r>(rules: &'r [CorsRule], origin: &str, method: &str, headers: &str) -> Option<&'r CorsRule> {
    let requested = || headers.split(',').map(str::trim).filter(|name| !name.is_empty());
    rules
        .iter()
        .find(|rule| allows(rule, origin, method) && requested().all(|name| allows_header(&rule.allowed_headers, name)))
}

/// The first rule that an actual request falls under.
pub fn matching<'r>(rules: &'r [CorsRule], origin: &str, method: &str) -> Option<&'r CorsRule> {
    rules.iter().find(|rule| allows(rule, origin, method))
}

fn allows(rule: &CorsRule, origin: &str, method: &str) -> bool {
    rule.allowed_methods.iter().any(|allowed| allowed == method)
        && rule.allowed_origins.iter().any(|allowed| allows_origin(allowed, origin))
}

/// Origins compare exactly, case included. `http://*.contoso.com` stands for every host below `contoso.com`.
fn allows_origin(allowed: &str, origin: &str) -> bool {
    if allowed == "*" || allowed == origin {
        return true;
    }
    let Some((scheme, domain)) = allowed.split_once("*.") else { return false };
    let Some(host) = origin.strip_prefix(scheme).and_then(|rest| rest.strip_suffix(domain)) else { return false };
    // What the star stands for is one or more labels, and never reaches across a port or a path.
    host.len() > 1 && host.ends_with('.') && !host.starts_with('.') && !host.contains([':', '/', '@'])
}

fn allows_header(allowed: &[String], name: &str) -> bool {
    allowed.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
        None => allowed.eq_ignore_ascii_case(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &[&str], methods: &[&str], headers: &[&str]) -> CorsRule {
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        CorsRule {
            allowed_origins: list(origins),
            allowed_methods: list(methods),
            allowed_headers: list(headers),
            ..CorsRule::default()
        }
    }

    fn rules() -> Vec<CorsRule> {
        vec![
            rule(&["http://a.com", "https://*.b.com"], &["GET", "PUT"], &["accept", "x-ms-meta*"]),
            rule(&["http://a.com"], &["GET"], &["*"]),
            rule(&["*"], &["DELETE"], &[]),
        ]
    }

    #[test]
    fn origins_and_methods() {
        for (origin, method, expect) in [
            ("http://a.com", "GET", Some(0)),
            ("http://a.com", "DELETE", Some(2)),
            ("http://a.com", "POST", None),
            ("http://a.com", "get", None),
            ("http://A.com", "GET", None),
            ("http://a.com:80", "GET", None),
            ("https://x.b.com", "PUT", Some(0)),
            ("https://x.y.b.com", "PUT", Some(0)),
            ("http://x.b.com", "PUT", None),
            ("https://b.com", "PUT", None),
            ("https://.b.com", "PUT", None),
            ("https://evilb.com", "PUT", None),
            ("https://evil.com/.b.com", "PUT", None),
            ("https://evil.com:1.b.com", "PUT", None),
            ("https://x.b.com.evil.com", "PUT", None),
            ("null", "DELETE", Some(2)),
            ("", "GET", None),
        ] {
            let rules = rules();
            let expect = expect.map(|at: usize| &rules[at]);
            assert_eq!(matching(&rules, origin, method), expect, "{origin} {method}");
        }
    }

    #[test]
    fn headers_of_a_preflight() {
        for (headers, expect) in [
            ("", Some(0)),
            ("Accept", Some(0)),
            ("accept, X-MS-Meta-Data", Some(0)),
            ("x-ms-meta", Some(0)),
            ("accept,other", Some(1)),
            ("x-ms-met", Some(1)),
            ("\u{E9}\u{E9}\u{E9}\u{E9}\u{E9}", Some(1)),
        ] {
            let rules = rules();
            let expect = expect.map(|at: usize| &rules[at]);
            assert_eq!(preflight(&rules, "http://a.com", "GET", headers), expect, "{headers}");
        }
        let rules = rules();
        assert_eq!(preflight(&rules, "http://c.com", "DELETE", "accept"), None);
        assert!(preflight(&rules, "http://c.com", "DELETE", " , ").unwrap().allows_any_origin());
        assert_eq!(preflight(&[], "http://c.com", "GET", ""), None);
    }
}
