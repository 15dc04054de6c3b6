//! What a request carries to say who is asking.

use crate::{Authorization, Sas};
use partita_model::ServiceError;

/// The credential of a request. It is only read here, not yet believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential<'a> {
    /// Neither header nor signature.
    None,
    /// An `Authorization` header.
    Header(Authorization<'a>),
    /// A shared access signature in the query.
    Sas(Box<Sas>),
}

impl<'a> Credential<'a> {
    /// Reads header and query. The header wins: beside it a signature in the query is not even parsed.
    pub fn from_request(
        authorization: Option<&'a str>,
        query: &[(String, String)],
    ) -> Result<Credential<'a>, ServiceError> {
        if let Some(header) = authorization {
            return Authorization::parse(header).map(Credential::Header);
        }
        Ok(Sas::from_query(query)?.map_or(Credential::None, |sas| Credential::Sas(Box::new(sas))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_wins() {
        let broken = [("sig".to_owned(), String::new())];
        assert!(matches!(
            Credential::from_request(Some("Bearer t"), &broken),
            Ok(Credential::Header(Authorization::Bearer { .. }))
        ));
        assert_eq!(Credential::from_request(Some(""), &[]), Err(ServiceError::AuthorizationMalformed));
        assert_eq!(Credential::from_request(None, &broken).unwrap_err().code(), "AuthenticationFailed");
        assert_eq!(Credential::from_request(None, &[]), Ok(Credential::None));
    }
}
