//! Signatures: who holds one must not be able to read another right into it.
//!
//! The input has three lines: the query of a shared access signature and two paths.
//!
//! - The text that a signature signs is cut up again in every layout there is, as a thief would do it. Whatever the
//!   server would take for a signature over the same text must grant the same.
//! - A field that is not signed changes nothing.
//! - A request signed with the account key is accepted for the path that was signed, and for another spelling only if
//!   that leads to the same place.

use crate::address::Address;
use crate::query_string::Query;
use partita_auth::{AccountKeys, Sas, SasKind, Scheme, TableRequest, sign, string_to_sign, verify_shared_key};
use partita_model::{StoredAccessPolicy, Ticks};

const ACCOUNT: &str = "acct";
type Pairs = Vec<(String, String)>;

/// Takes the query of a signature and two paths, a line each.
pub fn signature(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let query = lines.next().unwrap_or_default();
    if let Some(query) = Query::parse(query) {
        check_sas(query.pairs());
    }
    if let (Some(signed), Some(sent)) = (lines.next(), lines.next()) {
        check_shared_key(signed, sent);
    }
}

fn keys() -> AccountKeys {
    AccountKeys::parse(&["c2VjcmV0", "b3RoZXI="]).expect("two keys in base64")
}

fn check_sas(pairs: &[(String, String)]) {
    let sas = match Sas::from_query(pairs) {
        Ok(Some(sas)) => sas,
        Ok(None) => return,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let text = sas.string_to_sign(ACCOUNT);
    let rights = rights(&sas);
    for reading in readings(&text) {
        let Ok(Some(other)) = Sas::from_query(&reading) else { continue };
        if other.string_to_sign(ACCOUNT) == text {
            assert_eq!(self::rights(&other), rights, "{text:?}\n{pairs:?}\n{reading:?}");
        }
    }
    // `sig` itself is the last that could be put in the place of another field.
    let signature = sign(keys().primary(), &text);
    let signed: Pairs = pairs
        .iter()
        .map(|(name, value)| (name.clone(), if name == "sig" { signature.clone() } else { value.clone() }))
        .collect();
    let signed = Sas::from_query(&signed).expect("the same fields").expect("there is a sig");
    assert!(signed.verify(ACCOUNT, &keys()));
    assert!(!signed.verify("other", &keys()));
    assert_eq!(self::rights(&signed), rights);
    check_unsigned(pairs, &text, &rights);
}

/// Gives each field other values, whether it was there or not.
fn check_unsigned(pairs: &[(String, String)], text: &str, rights: &[String; 4]) {
    const FIELDS: [&str; 17] = [
        "sv", "ss", "srt", "tn", "sp", "st", "se", "si", "sip", "spr", "spk", "srk", "epk", "erk", "ses", "sr", "skoid",
    ];
    for name in FIELDS {
        for value in ["", "r", "t", "o", "2030-01-01", "2012-02-12", "https", "10.0.0.1", "abc"] {
            let mut changed: Pairs = pairs.iter().filter(|(given, _)| given != name).cloned().collect();
            changed.push((name.to_owned(), value.to_owned()));
            if let Ok(Some(changed)) = Sas::from_query(&changed)
                && changed.string_to_sign(ACCOUNT) == text
            {
                assert_eq!(&self::rights(&changed), rights, "{name}={value} is not signed");
            }
        }
    }
}

/// What a signature comes to, with and without a stored policy. Names of tables are the same in any case.
fn rights(sas: &Sas) -> [String; 4] {
    let policy = |permission: Option<&str>, expiry| StoredAccessPolicy {
        id: sas.policy_id().unwrap_or_default().to_owned(),
        start: None,
        expiry,
        permission: permission.map(str::to_owned),
    };
    let policies = [None, Some(policy(Some("r"), None)), Some(policy(Some("raud"), Some(Ticks::MAX)))];
    let kind = match sas.kind() {
        SasKind::Table { table_name, policy_id, key_range } => {
            format!("{} {policy_id:?} {key_range:?}", table_name.to_ascii_lowercase())
        }
        account => format!("{account:?}"),
    };
    let grants = policies.map(|policy| format!("{:?}", sas.grant(policy.as_ref())).to_ascii_lowercase());
    let [alone, narrow, wide] = grants;
    [kind, alone, narrow, wide]
}

/// The fields that a signed text could have come from.
fn readings(text: &str) -> Vec<Pairs> {
    const ACCOUNT_LAYOUTS: [&[&str]; 2] = [
        &["account", "sp", "ss", "srt", "st", "se", "sip", "spr", "sv", ""],
        &["account", "sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses", ""],
    ];
    const TABLE_LAYOUTS: [&[&str]; 2] = [
        &["sp", "st", "se", "resource", "si", "sv", "spk", "srk", "epk", "erk"],
        &["sp", "st", "se", "resource", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"],
    ];
    let lines: Vec<&str> = text.split('\n').collect();
    let mut readings = Vec::new();
    for layout in ACCOUNT_LAYOUTS.into_iter().chain(TABLE_LAYOUTS).filter(|layout| layout.len() == lines.len()) {
        let mut pairs = vec![("sig".to_owned(), "c2ln".to_owned())];
        for (name, value) in layout.iter().zip(&lines).filter(|(_, value)| !value.is_empty()) {
            match *name {
                "account" | "" => {}
                "resource" => {
                    let table = value.rsplit('/').next().unwrap_or_default();
                    pairs.push(("tn".to_owned(), table.to_owned()));
                }
                name => pairs.push((name.to_owned(), (*value).to_owned())),
            }
        }
        readings.push(pairs);
    }
    readings
}

fn check_shared_key(signed: &str, sent: &str) {
    let request = |path| TableRequest {
        account: ACCOUNT,
        method: "GET",
        path,
        comp: None,
        content_md5: "",
        content_type: "",
        date: "Thu, 01 Jan 2026 00:00:00 GMT",
    };
    let place = |path| Address::parse("http", "127.0.0.1", path, |_| false).map(|found| (found.account, found.path));
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        let signature = sign(keys().primary(), &string_to_sign(scheme, &request(signed)));
        assert!(verify_shared_key(&keys(), scheme, &request(signed), &signature), "{signed}");
        if verify_shared_key(&keys(), scheme, &request(sent), &signature) {
            assert_eq!(place(signed), place(sent), "{signed} and {sent} are not the same place");
        }
    }
}
