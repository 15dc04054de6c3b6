//! Shared access signatures: what is in the query, the text that was signed, and what it grants.
//!
//! The table service knows two kinds. An account signature names services, resource types and permissions of a whole
//! account; a table signature names one table, perhaps a range of its rows, and perhaps a stored policy that holds the
//! rest. Blob and queue signatures and user delegation are refused.
//!
//! The signed text has one line per field and an empty line for a field that is not there. Two rules follow from that
//! and keep a holder from rewriting a token into another one with the same signature. A field that is empty counts as
//! absent, since the signature cannot tell the two apart. And every field is checked strictly enough that no line can
//! be read as another: none contains a line break, and the kinds of field differ where the layouts could be shifted
//! against one another.

use crate::{AccountKeys, AddressRange, Grant, KeyBound, KeyRange, Letters, authentication_failed};
use partita_model::{ServiceError, StoredAccessPolicy, Ticks};
use std::fmt;

/// The first version with table signatures.
const FIRST_TABLE_VERSION: &str = "2012-02-12";
/// From here on the resource starts with the name of the service.
const FIRST_SERVICE_IN_RESOURCE: &str = "2015-02-21";
/// The first version with account signatures, and with `sip` and `spr`.
const FIRST_ACCOUNT_VERSION: &str = "2015-04-05";
/// From here on an account signature has a line for the encryption scope.
const FIRST_ENCRYPTION_SCOPE: &str = "2020-12-06";

macro_rules! fields {
    ($($name:ident),+) => {
        /// The fields as they came, decoded; empty if absent.
        #[derive(Clone, Default, PartialEq, Eq)]
        struct Fields { $($name: String),+ }

        impl Fields {
            fn slot(&mut self, name: &str) -> Option<&mut String> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)+
                    _ => None,
                }
            }
        }
    };
}

fields!(sv, ss, srt, tn, sp, st, se, si, sip, spr, spk, srk, epk, erk, ses, sr, skoid, sig);

/// A shared access signature as the query holds it: well formed, but not yet verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Sas {
    fields: Fields,
    kind: SasKind,
    permissions: Option<Letters>,
    start: Option<Ticks>,
    expiry: Option<Ticks>,
    addresses: Option<AddressRange>,
}

/// What a signature is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SasKind {
    /// Some services and resource types of the account.
    Account {
        /// Letters of `bqtf`.
        services: Letters,
        /// Letters of `sco`: service, container (a table), object (an entity).
        resource_types: Letters,
    },
    /// One table.
    Table {
        /// As the token spells it; case does not matter.
        table_name: String,
        /// The stored access policy that holds what the token does not.
        policy_id: Option<String>,
        /// The rows it reaches.
        key_range: KeyRange,
    },
}

impl SasKind {
    pub(crate) fn table_matches(&self, name: &str) -> bool {
        match self {
            SasKind::Account { .. } => true,
            SasKind::Table { table_name, .. } => table_name.eq_ignore_ascii_case(name),
        }
    }
}

impl Sas {
    /// Reads the signature in a query of decoded pairs; `None` if there is no `sig`. Other parameters are left alone.
    pub fn from_query(pairs: &[(String, String)]) -> Result<Option<Sas>, ServiceError> {
        if !pairs.iter().any(|(name, _)| name == "sig") {
            return Ok(None);
        }
        let mut fields = Fields::default();
        let mut seen = Vec::new();
        for (name, value) in pairs {
            let Some(slot) = fields.slot(name) else { continue };
            // Which of two values the signer meant is a guess that could be turned against him.
            if seen.contains(&name) {
                return Err(authentication_failed(format_args!("{name} is given more than once.")));
            }
            if value.contains('\n') {
                return Err(authentication_failed(format_args!("{name} contains a line break.")));
            }
            seen.push(name);
            slot.clone_from(value);
        }
        Sas::new(fields).map(Some)
    }

    fn new(fields: Fields) -> Result<Sas, ServiceError> {
        required("sig", &fields.sig)?;
        if !fields.skoid.is_empty() {
            return Err(authentication_failed("skoid: user delegation signatures are not supported for tables."));
        }
        if !fields.sr.is_empty() {
            return Err(authentication_failed(
                "sr is for blobs; a signature for a table has tn, one for an account ss.",
            ));
        }
        required("sv", &fields.sv)?;
        if fields.sv.len() != "YYYY-MM-DD".len() || Ticks::parse_iso(&fields.sv).is_none() {
            return Err(malformed("sv", &fields.sv));
        }
        let kind = if fields.tn.is_empty() { account(&fields)? } else { table(&fields)? };
        let addresses = optional("sip", &fields.sip, AddressRange::parse)?;
        optional("spr", &fields.spr, |text| matches!(text, "https" | "https,http").then_some(()))?;
        Ok(Sas {
            permissions: optional("sp", &fields.sp, Letters::parse)?,
            start: optional("st", &fields.st, Ticks::parse_iso)?,
            expiry: optional("se", &fields.se, Ticks::parse_iso)?,
            addresses,
            kind,
            fields,
        })
    }

    /// The version of the signature, `sv`. A request without `x-ms-version` runs under it.
    pub fn version(&self) -> &str {
        &self.fields.sv
    }

    /// What the signature is for.
    pub fn kind(&self) -> &SasKind {
        &self.kind
    }

    /// The stored access policy to look up before [`Sas::grant`].
    pub fn policy_id(&self) -> Option<&str> {
        match &self.kind {
            SasKind::Account { .. } => None,
            SasKind::Table { policy_id, .. } => policy_id.as_deref(),
        }
    }

    /// The table of a table signature.
    pub fn table_name(&self) -> Option<&str> {
        match &self.kind {
            SasKind::Account { .. } => None,
            SasKind::Table { table_name, .. } => Some(table_name),
        }
    }

    /// Whether the signature may be used on this table, in whatever case it is spelled. An account signature may be
    /// used on all of them.
    pub fn table_matches(&self, name: &str) -> bool {
        self.kind.table_matches(name)
    }

    /// The text that the holder of the key signed, in the layout of the version.
    pub fn string_to_sign(&self, account: &str) -> String {
        let Fields { sv, ss, srt, tn, sp, st, se, si, sip, spr, spk, srk, epk, erk, ses, .. } = &self.fields;
        let since = |version: &str| sv.as_str() >= version;
        match &self.kind {
            SasKind::Account { .. } => {
                let mut lines: Vec<&str> = vec![account, sp, ss, srt, st, se, sip, spr, sv];
                if since(FIRST_ENCRYPTION_SCOPE) {
                    lines.push(ses);
                }
                lines.push("");
                lines.join("\n")
            }
            SasKind::Table { .. } => {
                let service = if since(FIRST_SERVICE_IN_RESOURCE) { "/table" } else { "" };
                let resource = format!("{service}/{account}/{}", tn.to_ascii_lowercase());
                let mut lines: Vec<&str> = vec![sp, st, se, &resource, si];
                if since(FIRST_ACCOUNT_VERSION) {
                    lines.extend([sip.as_str(), spr]);
                }
                lines.extend([sv.as_str(), spk, srk, epk, erk]);
                lines.join("\n")
            }
        }
    }

    /// Whether one of the keys of the account made the signature.
    pub fn verify(&self, account: &str, keys: &AccountKeys) -> bool {
        keys.verify(&self.string_to_sign(account), &self.fields.sig)
    }

    /// What the signature grants, with the policy of [`Sas::policy_id`] if it names one: each field comes from one of
    /// the two places, and expiry and permissions have to come from somewhere. Only for a signature that was verified.
    pub fn grant(&self, policy: Option<&StoredAccessPolicy>) -> Result<Grant, ServiceError> {
        let nothing = StoredAccessPolicy::default();
        let policy = match (self.policy_id(), policy) {
            (None, _) => &nothing,
            (Some(_), Some(policy)) => policy,
            (Some(id), None) => {
                return Err(authentication_failed(format_args!("There is no stored access policy '{id}'.")));
            }
        };
        let permission = match policy.permission.as_deref() {
            None | Some("") => None,
            Some(text) => Some(Letters::parse(text).ok_or_else(|| malformed("Permission", text))?),
        };
        let start = either(self.start, policy.start)?;
        let expiry = either(self.expiry, policy.expiry)?.ok_or_else(|| mandatory("se"))?;
        let permissions = either(self.permissions, permission)?.ok_or_else(|| mandatory("sp"))?;
        if let Some(start) = start.filter(|&start| start >= expiry) {
            return Err(authentication_failed(format_args!(
                "Signed expiry time [{}] must be after signed start time [{}]",
                expiry.rfc1123(),
                start.rfc1123()
            )));
        }
        Ok(Grant {
            kind: self.kind.clone(),
            permissions,
            start,
            expiry,
            https_only: self.fields.spr == "https",
            addresses: self.addresses,
        })
    }
}

/// Whoever holds the signature has its rights, so it stays out of logs.
impl fmt::Debug for Sas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sas")
            .field("sv", &self.fields.sv)
            .field("kind", &self.kind)
            .field("sp", &self.fields.sp)
            .field("st", &self.fields.st)
            .field("se", &self.fields.se)
            .field("sip", &self.fields.sip)
            .field("spr", &self.fields.spr)
            .finish_non_exhaustive()
    }
}

fn account(fields: &Fields) -> Result<SasKind, ServiceError> {
    if fields.ss.is_empty() && fields.srt.is_empty() {
        return Err(authentication_failed("The signature names neither a table (tn) nor services (ss)."));
    }
    since(FIRST_ACCOUNT_VERSION, fields, "an account signature")?;
    absent(
        "An account signature",
        [("si", &fields.si), ("spk", &fields.spk), ("srk", &fields.srk), ("epk", &fields.epk), ("erk", &fields.erk)],
    )?;
    // Neither can come from a stored policy.
    required("sp", &fields.sp)?;
    required("se", &fields.se)?;
    let subset = |name, text: &str, all: &str| {
        required(name, text)?;
        let letters = Letters::parse(text).filter(|&letters| Letters::of(all).includes(letters));
        letters.ok_or_else(|| malformed(name, text))
    };
    Ok(SasKind::Account {
        services: subset("ss", &fields.ss, "bqtf")?,
        resource_types: subset("srt", &fields.srt, "sco")?,
    })
}

fn table(fields: &Fields) -> Result<SasKind, ServiceError> {
    since(FIRST_TABLE_VERSION, fields, "a table signature")?;
    absent("A table signature", [("ss", &fields.ss), ("srt", &fields.srt)])?;
    if fields.sv.as_str() < FIRST_ACCOUNT_VERSION {
        // They would not be covered by the signature, so a thief could leave them away.
        absent("A table signature of this version", [("sip", &fields.sip), ("spr", &fields.spr)])?;
    }
    Ok(SasKind::Table {
        table_name: fields.tn.clone(),
        policy_id: Some(fields.si.clone()).filter(|id| !id.is_empty()),
        key_range: KeyRange::new(
            key_bound(("spk", &fields.spk), ("srk", &fields.srk))?,
            key_bound(("epk", &fields.epk), ("erk", &fields.erk))?,
        ),
    })
}

fn key_bound<'a>(
    (partition_name, partition_key): (&str, &'a str),
    (row_name, row_key): (&str, &'a str),
) -> Result<Option<KeyBound<'a>>, ServiceError> {
    match (partition_key, row_key) {
        ("", "") => Ok(None),
        ("", _) => Err(authentication_failed(format_args!("{row_name} is given without {partition_name}."))),
        _ => Ok(Some(KeyBound { partition_key, row_key: Some(row_key).filter(|key| !key.is_empty()) })),
    }
}

fn either<T>(signed: Option<T>, stored: Option<T>) -> Result<Option<T>, ServiceError> {
    if signed.is_some() && stored.is_some() {
        return Err(authentication_failed(
            "Access policy fields can be associated with signature or SAS identifier but not both",
        ));
    }
    Ok(signed.or(stored))
}

fn since(version: &str, fields: &Fields, what: &str) -> Result<(), ServiceError> {
    if fields.sv.as_str() >= version {
        return Ok(());
    }
    Err(authentication_failed(format_args!("sv is {}, but {what} needs {version} or later.", fields.sv)))
}

fn absent<const N: usize>(what: &str, fields: [(&str, &String); N]) -> Result<(), ServiceError> {
    match fields.iter().find(|(_, value)| !value.is_empty()) {
        Some((name, _)) => Err(authentication_failed(format_args!("{what} has no {name}."))),
        None => Ok(()),
    }
}

fn required(name: &str, value: &str) -> Result<(), ServiceError> {
    if value.is_empty() { Err(mandatory(name)) } else { Ok(()) }
}

fn optional<T>(name: &str, text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, ServiceError> {
    if text.is_empty() {
        return Ok(None);
    }
    parse(text).map(Some).ok_or_else(|| malformed(name, text))
}

fn mandatory(name: &str) -> ServiceError {
    authentication_failed(format_args!("{name} is mandatory. Cannot be empty"))
}

fn malformed(name: &str, value: &str) -> ServiceError {
    authentication_failed(format_args!("Signature fields not well formed: {name} is '{value}'."))
}

#[cfg(test)]
mod tests;
