//! The `Authorization` header: which scheme, and for Shared Key whose signature.

use partita_model::ServiceError;
use std::fmt;

/// The two ways to sign a request with an account key. They differ in the text that is signed and in nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Verb, content headers, date and resource.
    SharedKey,
    /// Date and resource only.
    SharedKeyLite,
}

/// A parsed `Authorization` header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Authorization<'a> {
    /// A signature with an account key.
    SharedKey {
        /// What was signed.
        scheme: Scheme,
        /// The account whose key it claims to be.
        account: &'a str,
        /// In base64.
        signature: &'a str,
    },
    /// A token of an identity provider, not looked at.
    Bearer {
        /// All that follows the scheme.
        token: &'a str,
    },
}

impl<'a> Authorization<'a> {
    /// Reads the value of the header. The name of the scheme is taken in any case, as HTTP has it.
    pub fn parse(header: &'a str) -> Result<Authorization<'a>, ServiceError> {
        let (name, rest) = header.trim().split_once(' ').ok_or(ServiceError::AuthorizationMalformed)?;
        let rest = rest.trim_start();
        let scheme = match name {
            name if name.eq_ignore_ascii_case("SharedKey") => Scheme::SharedKey,
            name if name.eq_ignore_ascii_case("SharedKeyLite") => Scheme::SharedKeyLite,
            name if name.eq_ignore_ascii_case("Bearer") => {
                return Ok(Authorization::Bearer { token: rest });
            }
            _ => return Err(ServiceError::AuthorizationMalformed),
        };
        match rest.split_once(':') {
            Some((account, signature)) if !account.is_empty() => {
                Ok(Authorization::SharedKey { scheme, account, signature })
            }
            _ => Err(ServiceError::AuthorizationMalformed),
        }
    }
}

/// Whoever reads a log must not be able to repeat the request, so signature and token stay out of it.
impl fmt::Debug for Authorization<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Authorization::SharedKey { scheme, account, .. } => write!(f, "{scheme:?} {account}:.."),
            Authorization::Bearer { .. } => f.write_str("Bearer .."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemes() {
        for (header, scheme, account, signature) in [
            ("SharedKey a:c2ln", Scheme::SharedKey, "a", "c2ln"),
            ("SharedKeyLite a:c2ln=", Scheme::SharedKeyLite, "a", "c2ln="),
            ("sharedkeylite  a:b:c ", Scheme::SharedKeyLite, "a", "b:c"),
        ] {
            let expect = Authorization::SharedKey { scheme, account, signature };
            assert_eq!(Authorization::parse(header), Ok(expect), "{header}");
        }
        assert_eq!(Authorization::parse("Bearer a.b.c"), Ok(Authorization::Bearer { token: "a.b.c" }));
    }

    #[test]
    fn everything_else_is_malformed() {
        for header in ["", " ", "SharedKey", "SharedKey ", "SharedKey a", "SharedKey :s", "Basic YTpi", "a:b"] {
            assert_eq!(Authorization::parse(header), Err(ServiceError::AuthorizationMalformed), "{header}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        for header in ["SharedKey a:secret", "Bearer secret"] {
            assert!(!format!("{:?}", Authorization::parse(header)).contains("secret"));
        }
    }
}
