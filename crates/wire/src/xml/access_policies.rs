//! Stored access policies of a table: the document of Get and Set Table ACL.

use super::document::Element;
use super::{PROLOGUE, invalid_document, write_element};
use partita_model::limits::{ACCESS_POLICIES_MAX, ACCESS_POLICY_ID_CHARS_MAX};
use partita_model::{ServiceError, StoredAccessPolicy, Ticks};

/// Reads the body of Set Table ACL. An empty body, like an empty list, means no policies.
pub fn parse(body: &[u8]) -> Result<Vec<StoredAccessPolicy>, ServiceError> {
    let Some(document) = Element::read(body, "SignedIdentifiers")? else { return Ok(Vec::new()) };
    document.only(&["SignedIdentifier"])?;
    if document.children.len() > ACCESS_POLICIES_MAX {
        return Err(invalid_document(format_args!("There are more than {ACCESS_POLICIES_MAX} access policies.")));
    }
    let mut policies: Vec<StoredAccessPolicy> = Vec::new();
    for identifier in &document.children {
        let policy = parse_policy(identifier)?;
        if policies.iter().any(|other| other.id == policy.id) {
            return Err(invalid_document("Two access policies have the same Id."));
        }
        policies.push(policy);
    }
    Ok(policies)
}

fn parse_policy(identifier: &Element) -> Result<StoredAccessPolicy, ServiceError> {
    identifier.only(&["Id", "AccessPolicy"])?;
    let id = identifier.required("Id")?.value().to_owned();
    if id.is_empty() || id.encode_utf16().count() > ACCESS_POLICY_ID_CHARS_MAX {
        let limit = ACCESS_POLICY_ID_CHARS_MAX;
        return Err(invalid_document(format_args!("The Id of an access policy has 1 to {limit} characters.")));
    }
    let Some(policy) = identifier.child("AccessPolicy")? else {
        return Ok(StoredAccessPolicy { id, ..StoredAccessPolicy::default() });
    };
    policy.only(&["Start", "Expiry", "Permission"])?;
    let permission = filled(policy, "Permission")?;
    if let Some(permission) = permission.filter(|permission| permission.value().contains(|c| !"raud".contains(c))) {
        return Err(permission.bad_value());
    }
    Ok(StoredAccessPolicy {
        id,
        start: date(policy, "Start")?,
        expiry: date(policy, "Expiry")?,
        permission: permission.map(|permission| permission.value().to_owned()),
    })
}

/// The child of that name if it says anything: clients write `<Start />` for a policy without a start.
fn filled<'e>(policy: &'e Element, name: &str) -> Result<Option<&'e Element>, ServiceError> {
    Ok(policy.child(name)?.filter(|child| !child.value().is_empty()))
}

fn date(policy: &Element, name: &str) -> Result<Option<Ticks>, ServiceError> {
    let Some(element) = filled(policy, name)? else { return Ok(None) };
    Ticks::parse_iso(element.value()).map(Some).ok_or_else(|| element.bad_value())
}

/// Writes the body of Get Table ACL. Dates always have seven digits of fraction.
pub fn print(policies: &[StoredAccessPolicy]) -> Vec<u8> {
    let mut out = String::from(PROLOGUE);
    if policies.is_empty() {
        out.push_str("<SignedIdentifiers />");
        return out.into_bytes();
    }
    out.push_str("<SignedIdentifiers>");
    for policy in policies {
        out.push_str("<SignedIdentifier>");
        write_element(&mut out, "Id", &policy.id);
        print_policy(&mut out, policy);
        out.push_str("</SignedIdentifier>");
    }
    out.push_str("</SignedIdentifiers>");
    out.into_bytes()
}

fn print_policy(out: &mut String, policy: &StoredAccessPolicy) {
    let start = policy.start.map(Ticks::seven_digits);
    let expiry = policy.expiry.map(Ticks::seven_digits);
    let fields = [("Start", &start), ("Expiry", &expiry), ("Permission", &policy.permission)];
    if fields.iter().all(|(_, value)| value.is_none()) {
        return;
    }
    out.push_str("<AccessPolicy>");
    for (name, value) in fields {
        if let Some(value) = value {
            write_element(out, name, value);
        }
    }
    out.push_str("</AccessPolicy>");
}
