//! The gate: who is asking, and may they do this. Nothing reaches a handler but through here.

use crate::accounts::Accounts;
use crate::header_name;
use crate::headers::text;
use crate::host;
use crate::operation::Operation;
use crate::request::Request;
use partita_auth::{
    Authorization, Caller, Credential, Grant, KeyRange, TableRequest, authentication_failed, check_date,
    verify_shared_key,
};
use partita_model::{ServiceError, TableName};
use partita_table::TableService;
use partita_wire::cors;
use std::time::Duration;

/// From this version on a request without credentials is told how to get some.
const CHALLENGE_SINCE: &str = "2020-12-06";

/// What a request may do, once it is known who sent it.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// The account key: everything.
    Key,
    /// A shared access signature: what it says.
    Signature(Box<Grant>),
}

impl Access {
    /// Whether a part of a batch may be done. The plain request it came in has passed the gate.
    pub(crate) fn check_part(&self, operation: &Operation) -> Result<(), ServiceError> {
        let Access::Signature(grant) = self else { return Ok(()) };
        let need = operation.need().ok_or(ServiceError::BatchNotForSignatures)?;
        grant.check_table(operation.table().unwrap_or_default()).map_err(|_| ServiceError::BatchNotForSignatures)?;
        grant.allows(&need).map_err(|error| match error {
            ServiceError::PermissionMismatch => ServiceError::BatchPermissionMismatch,
            ServiceError::ResourceTypeMismatch => ServiceError::BatchResourceTypeMismatch,
            _ => ServiceError::BatchNotForSignatures,
        })
    }

    /// The rows it reaches; `None` for all.
    pub(crate) fn key_range(&self) -> Option<&KeyRange> {
        match self {
            Access::Key => None,
            Access::Signature(grant) => grant.key_range(),
        }
    }

    /// Whether it reaches an entity.
    pub(crate) fn check_keys(&self, partition_key: &str, row_key: &str) -> Result<(), ServiceError> {
        match self.key_range() {
            Some(range) if !range.contains(partition_key, row_key) => Err(ServiceError::KeyRangeViolated),
            _ => Ok(()),
        }
    }
}

/// What the gate looks at besides the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate<'a> {
    pub(crate) accounts: &'a Accounts,
    pub(crate) service: &'a TableService,
    pub(crate) clock_skew: Duration,
    /// Whether the key that everybody knows is only for this machine.
    pub(crate) guards_development_key: bool,
    pub(crate) caller: Caller,
}

impl Gate<'_> {
    /// The host or origin that tells a request of a page from elsewhere in somebody's browser. Every page can sign with a
    /// key that everybody knows; its browser may take us for the server of the page, or send us a change whose answer it
    /// does not show to the page.
    fn stranger<'r>(&self, request: &Request<'r>, operation: &Operation) -> Option<&'r str> {
        if let Some(host) = host::of(request.head).filter(|host| host::is_foreign(host)) {
            return Some(host);
        }
        // A browser asks before it sends a header with credentials, and sends it only if a rule allows that.
        let headers = request.head.headers();
        let is_blind = !headers.contains(header_name::AUTHORIZATION);
        if !is_blind || (!operation.writes() && *operation != Operation::Batch) {
            return None;
        }
        let origin = text(headers.bytes(header_name::ORIGIN)?).unwrap_or("null");
        let rules = &self.service.service_properties(&request.address.account).cors;
        let is_stranger =
            host::is_foreign_origin(origin) && cors::matching(rules, origin, request.head.method).is_none();
        is_stranger.then_some(origin)
    }

    pub(crate) fn check(&self, request: &Request<'_>, operation: &Operation) -> Result<Access, ServiceError> {
        let account = request.address.account.as_str();
        let keys = self.accounts.keys(account).ok_or(ServiceError::AccountNotFound)?;
        if self.guards_development_key
            && let Some(stranger) = self.stranger(request, operation)
            && self.accounts.has_development_key(account)
        {
            return Err(authentication_failed(format_args!(
                "Everybody knows the development key, so it is not for '{stranger}': use localhost or an address, set a \
                 CORS rule, give accounts of your own, or start the server with --allow-development-key."
            )));
        }
        let headers = request.head.headers();
        let header = match headers.bytes(header_name::AUTHORIZATION) {
            Some(value) => Some(text(value).ok_or(ServiceError::AuthorizationMalformed)?),
            None => None,
        };
        match Credential::from_request(header, request.query.pairs())? {
            Credential::None if request.version() >= CHALLENGE_SINCE => Err(ServiceError::NoAuthenticationInformation),
            Credential::None => Err(authentication_failed("The request carries no credentials.")),
            Credential::Header(Authorization::Bearer { .. }) if request.version() >= CHALLENGE_SINCE => {
                Err(ServiceError::BearerRefused)
            }
            Credential::Header(Authorization::Bearer { .. }) => {
                Err(authentication_failed("Bearer tokens are not supported."))
            }
            Credential::Header(Authorization::SharedKey { scheme, account: claimed, signature }) => {
                if claimed != account {
                    return Err(authentication_failed("The account of the signature is not the account of the URL."));
                }
                // One that is no text is there, but nothing it could be compared with is equal to it.
                let text = |name| headers.bytes(name).map(|value| text(value).unwrap_or("\u{FFFD}"));
                let date = text(header_name::MS_DATE).or_else(|| text(header_name::DATE));
                check_date(date.unwrap_or_default(), self.caller.now, self.clock_skew)?;
                let signed = TableRequest {
                    account,
                    method: request.head.method,
                    path: request.head.path,
                    comp: request.query.get("comp"),
                    content_md5: text(header_name::CONTENT_MD5).unwrap_or_default(),
                    content_type: text(header_name::CONTENT_TYPE).unwrap_or_default(),
                    date: date.unwrap_or_default(),
                };
                if !verify_shared_key(&keys, scheme, &signed, signature) {
                    let expected = partita_auth::string_to_sign(scheme, &signed).replace('\n', "\\n");
                    return Err(authentication_failed(format_args!("The server signed the string '{expected}'.")));
                }
                Ok(Access::Key)
            }
            Credential::Sas(sas) => {
                if !sas.verify(account, &keys) {
                    return Err(authentication_failed("Signature did not match."));
                }
                let table = sas.policy_id().and(sas.table_name());
                let table = table.and_then(|name| TableName::parse(name).ok());
                let table = table.and_then(|name| self.service.table(account, &name).ok());
                let policy = match (sas.policy_id(), &table) {
                    (Some(id), Some(table)) => table.access_policies.iter().find(|policy| policy.id == id),
                    _ => None,
                };
                let grant = sas.grant(policy)?;
                match operation.need() {
                    None => grant.check_caller(&self.caller)?,
                    Some(need) => {
                        if let Some(table) = operation.table() {
                            grant.check_table(table)?;
                        }
                        grant.check(&self.caller, &need)?;
                    }
                }
                Ok(Access::Signature(Box::new(grant)))
            }
        }
    }
}
