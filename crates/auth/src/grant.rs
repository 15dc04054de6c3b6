//! What a verified signature allows: token and stored policy together, and the checks in the order of the service.
//!
//! Everything is denied unless the table in `need.rs` allows it. Each check has its own error, and when several fail
//! the first in the order of [`Grant::check`] is the one the caller hears of.

use crate::{AddressRange, KeyRange, Letters, Need, SasKind, authentication_failed};
use partita_model::{ServiceError, Ticks};
use std::net::IpAddr;

/// Where and when a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The moment of the request.
    pub now: Ticks,
    /// Whether it came over TLS.
    pub https: bool,
    /// The address it came from.
    pub address: IpAddr,
}

/// What a signature allows. Made by [`Sas::grant`](crate::Sas::grant) of a signature that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub(crate) kind: SasKind,
    pub(crate) permissions: Letters,
    pub(crate) start: Option<Ticks>,
    pub(crate) expiry: Ticks,
    pub(crate) https_only: bool,
    pub(crate) addresses: Option<AddressRange>,
}

impl Grant {
    /// All checks of one operation of the table service in their order: time, protocol, address, service, resource
    /// type, permission. For a batch, make it for the first part and [`Grant::allows`] for the others.
    pub fn check(&self, caller: &Caller, need: &Need) -> Result<(), ServiceError> {
        self.check_caller(caller)?;
        self.allows(need)
    }

    /// The checks that do not depend on the operation: time, protocol, address, service.
    pub fn check_caller(&self, caller: &Caller) -> Result<(), ServiceError> {
        self.check_time(caller.now)?;
        self.check_protocol(caller.https)?;
        self.check_address(caller.address)?;
        self.check_service('t')
    }

    /// The signature is valid from its start on and until just before its expiry.
    pub fn check_time(&self, now: Ticks) -> Result<(), ServiceError> {
        if self.start.is_none_or(|start| start <= now) && now < self.expiry {
            return Ok(());
        }
        let start = self.start.map(|start| format!("Start [{}] - ", start.rfc1123())).unwrap_or_default();
        Err(authentication_failed(format_args!(
            "Signature not valid in the specified time frame: {start}Expiry [{}] - Current [{}]",
            self.expiry.rfc1123(),
            now.rfc1123()
        )))
    }

    /// Plain HTTP is refused if the signature is for HTTPS only.
    pub fn check_protocol(&self, https: bool) -> Result<(), ServiceError> {
        if https || !self.https_only { Ok(()) } else { Err(ServiceError::ProtocolMismatch) }
    }

    /// The caller must be in the range of addresses, if there is one.
    pub fn check_address(&self, address: IpAddr) -> Result<(), ServiceError> {
        match &self.addresses {
            Some(addresses) if !addresses.contains(address) => {
                Err(ServiceError::SourceAddressMismatch { address: address.to_canonical().to_string() })
            }
            _ => Ok(()),
        }
    }

    /// The signature must be for the service with this letter; a table signature is for `t`.
    pub fn check_service(&self, service: char) -> Result<(), ServiceError> {
        let allowed = match &self.kind {
            SasKind::Account { services, .. } => services.contains(service),
            SasKind::Table { .. } => service == 't',
        };
        if allowed { Ok(()) } else { Err(ServiceError::ServiceMismatch) }
    }

    /// A table signature is for its table only. The name is part of what was signed, so another table is a failure to
    /// authenticate.
    pub fn check_table(&self, name: &str) -> Result<(), ServiceError> {
        if self.kind.table_matches(name) {
            return Ok(());
        }
        Err(authentication_failed("The signature is for another table."))
    }

    /// Whether the operation is allowed: resource type, then permission, then what no signature of this kind may do.
    pub fn allows(&self, need: &Need) -> Result<(), ServiceError> {
        let permissions = match &self.kind {
            SasKind::Account { resource_types, .. } => {
                let rule = need.of_account().ok_or(ServiceError::NotForSignatures)?;
                if !resource_types.intersects(rule.resource_types) {
                    return Err(ServiceError::ResourceTypeMismatch);
                }
                rule.permissions
            }
            SasKind::Table { .. } => need.of_table().ok_or(ServiceError::NotForSignatures)?,
        };
        if permissions.iter().any(|&set| self.permissions.includes(set)) {
            Ok(())
        } else {
            Err(ServiceError::PermissionMismatch)
        }
    }

    /// The rows the signature reaches; `None` if all of them.
    pub fn key_range(&self) -> Option<&KeyRange> {
        match &self.kind {
            SasKind::Table { key_range, .. } if !key_range.is_unbounded() => Some(key_range),
            _ => None,
        }
    }

    /// The permissions, from the token or the stored policy.
    pub fn permissions(&self) -> Letters {
        self.permissions
    }
}

#[cfg(test)]
mod tests;
