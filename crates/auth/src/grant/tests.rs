use super::*;
use crate::Sas;
use partita_model::StoredAccessPolicy;
use std::net::Ipv4Addr;

fn sas(query: &str) -> Sas {
    let pairs: Vec<_> = query
        .split('&')
        .map(|pair| {
            let (name, value) = pair.split_once('=').expect("name=value");
            (name.to_owned(), value.to_owned())
        })
        .collect();
    Sas::from_query(&pairs).unwrap_or_else(|error| panic!("{query}: {error}")).expect("a signature")
}

fn grant(query: &str) -> Grant {
    sas(query).grant(None).unwrap_or_else(|error| panic!("{query}: {error}"))
}

fn at(text: &str) -> Ticks {
    Ticks::parse_iso(text).expect(text)
}

/// The whole rule: need, resource types (any of), permissions of an account signature (alternatives; all letters of
/// one), permissions of a table signature. What is not here is denied.
const ALLOWED: [(Need, &str, &str, &str); 11] = [
    (Need::ServiceRead, "s", "r", ""),
    (Need::ServiceWrite, "s", "w", ""),
    (Need::TableList, "c", "l", ""),
    (Need::TableCreate, "c", "c|w", ""),
    (Need::TableDelete, "c", "d", ""),
    (Need::TableAcl, "", "", ""),
    (Need::EntityRead, "co", "r", "r"),
    (Need::EntityInsert, "o", "a", "a"),
    (Need::EntityUpdate, "o", "u", "u"),
    (Need::EntityUpsert, "o", "au", "au"),
    (Need::EntityDelete, "o", "d", "d"),
];

fn subsets(letters: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = letters.chars().collect();
    (1_u32..1 << letters.len()).map(move |bits| {
        letters.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1).map(|(_, letter)| letter).collect()
    })
}

fn holds(permissions: &str, alternatives: &str) -> bool {
    alternatives.split('|').any(|set| set.chars().all(|letter| permissions.contains(letter)))
}

/// Every combination of the letters that matter, and every single letter.
fn permission_texts() -> impl Iterator<Item = String> {
    subsets("rwdlacup").chain(('a'..='z').map(String::from))
}

#[test]
fn every_need_is_in_the_table() {
    assert_eq!(ALLOWED.map(|row| row.0), Need::ALL);
}

#[test]
fn permission_matrix_of_account_signatures() {
    for resource_types in subsets("sco") {
        for permissions in permission_texts() {
            let grant = grant(&format!("sv=2019-02-02&ss=t&srt={resource_types}&sp={permissions}&se=2026-12-31&sig=x"));
            for (need, types, alternatives, _) in ALLOWED {
                let expect = if types.is_empty() {
                    Err(ServiceError::NotForSignatures)
                } else if !types.chars().any(|letter| resource_types.contains(letter)) {
                    Err(ServiceError::ResourceTypeMismatch)
                } else if !holds(&permissions, alternatives) {
                    Err(ServiceError::PermissionMismatch)
                } else {
                    Ok(())
                };
                assert_eq!(grant.allows(&need), expect, "{need:?} with srt={resource_types} sp={permissions}");
            }
        }
    }
}

#[test]
fn permission_matrix_of_table_signatures() {
    for permissions in permission_texts() {
        let in_token = grant(&format!("sv=2019-02-02&tn=T&sp={permissions}&se=2026-12-31&sig=x"));
        let policy = StoredAccessPolicy { permission: Some(permissions.clone()), ..StoredAccessPolicy::default() };
        let in_policy = sas("sv=2019-02-02&tn=T&si=p&se=2026-12-31&sig=x").grant(Some(&policy)).unwrap();
        for (need, _, _, alternatives) in ALLOWED {
            let expect = if alternatives.is_empty() {
                Err(ServiceError::NotForSignatures)
            } else if !holds(&permissions, alternatives) {
                Err(ServiceError::PermissionMismatch)
            } else {
                Ok(())
            };
            assert_eq!(in_token.allows(&need), expect, "{need:?} with sp={permissions}");
            assert_eq!(in_policy.allows(&need), expect, "{need:?} with stored {permissions}");
        }
    }
}

#[test]
fn time() {
    let grant = grant("sv=2019-02-02&tn=T&sp=r&st=2026-01-01T00:00:00Z&se=2026-01-02&sig=x");
    for (now, expect) in [
        ("2025-12-31T23:59:59.9999999Z", false),
        ("2026-01-01T00:00:00Z", true),
        ("2026-01-01T23:59:59.9999999Z", true),
        ("2026-01-02T00:00:00Z", false),
        ("2027-01-01T00:00:00Z", false),
    ] {
        assert_eq!(grant.check_time(at(now)).is_ok(), expect, "{now}");
    }
    assert_eq!(
        grant.check_time(at("2026-01-02")).unwrap_err(),
        authentication_failed(
            "Signature not valid in the specified time frame: Start [Thu, 01 Jan 2026 00:00:00 GMT] - \
             Expiry [Fri, 02 Jan 2026 00:00:00 GMT] - Current [Fri, 02 Jan 2026 00:00:00 GMT]"
        )
    );
    let no_start = self::grant("sv=2019-02-02&tn=T&sp=r&se=2026-01-02&sig=x");
    assert!(no_start.check_time(Ticks(0)).is_ok());
    assert!(no_start.check_time(at("2026-01-02")).unwrap_err().to_string().contains("frame: Expiry ["));
}

#[test]
fn protocol() {
    for (field, http) in [("", true), ("&spr=https,http", true), ("&spr=https", false)] {
        let grant = grant(&format!("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&sig=x{field}"));
        assert_eq!(grant.check_protocol(true), Ok(()));
        assert_eq!(grant.check_protocol(false), if http { Ok(()) } else { Err(ServiceError::ProtocolMismatch) });
    }
}

#[test]
fn address() {
    let grant = grant("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&sip=10.0.0.1-10.0.0.9&sig=x");
    for (address, refused) in [
        ("10.0.0.1", None),
        ("::ffff:10.0.0.9", None),
        ("10.0.0.10", Some("10.0.0.10")),
        ("::ffff:10.0.0.10", Some("10.0.0.10")),
        ("2001:db8::1", Some("2001:db8::1")),
    ] {
        let expect =
            refused.map_or(Ok(()), |refused| Err(ServiceError::SourceAddressMismatch { address: refused.to_owned() }));
        assert_eq!(grant.check_address(address.parse().unwrap()), expect, "{address}");
    }
    let anywhere = self::grant("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&sig=x");
    assert_eq!(anywhere.check_address("2001:db8::1".parse().unwrap()), Ok(()));
}

#[test]
fn service() {
    for services in subsets("bqtf") {
        let grant = grant(&format!("sv=2019-02-02&ss={services}&srt=o&sp=r&se=2026-12-31&sig=x"));
        for service in "bqtf".chars() {
            let expect = if services.contains(service) { Ok(()) } else { Err(ServiceError::ServiceMismatch) };
            assert_eq!(grant.check_service(service), expect, "{service} with ss={services}");
        }
    }
    let table = grant("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&sig=x");
    assert_eq!(table.check_service('t'), Ok(()));
    assert_eq!(table.check_service('q'), Err(ServiceError::ServiceMismatch));
}

#[test]
fn table() {
    let grant = grant("sv=2019-02-02&tn=MyTable&sp=r&se=2026-12-31&sig=x");
    assert_eq!(grant.check_table("MYTABLE"), Ok(()));
    assert_eq!(grant.check_table("MyTable2").unwrap_err().code(), "AuthenticationFailed");
    assert_eq!(grant.key_range(), None);
    let account = self::grant("sv=2019-02-02&ss=t&srt=o&sp=r&se=2026-12-31&sig=x");
    assert_eq!(account.check_table("anything"), Ok(()));
    assert_eq!(account.key_range(), None);
    let rows = self::grant("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&epk=a&sig=x");
    assert!(rows.key_range().unwrap().contains("a", "z") && !rows.key_range().unwrap().contains("b", ""));
}

/// Everything is wrong at first; each row puts right what the row before was refused for.
#[test]
fn which_error_wins() {
    let caller = |now, https, last| Caller { now: at(now), https, address: Ipv4Addr::new(10, 0, 0, last).into() };
    let (late, now) = ("2030-01-01", "2026-06-01");
    for (fields, caller, need, expect) in [
        ("ss=q&srt=s&sp=x", caller(late, false, 9), Need::TableCreate, "AuthenticationFailed"),
        ("ss=q&srt=s&sp=x", caller(now, false, 9), Need::TableCreate, "AuthorizationProtocolMismatch"),
        ("ss=q&srt=s&sp=x", caller(now, true, 9), Need::TableCreate, "AuthorizationSourceIPMismatch"),
        ("ss=q&srt=s&sp=x", caller(now, true, 1), Need::TableCreate, "AuthorizationServiceMismatch"),
        ("ss=t&srt=s&sp=x", caller(now, true, 1), Need::TableCreate, "AuthorizationResourceTypeMismatch"),
        ("ss=t&srt=c&sp=x", caller(now, true, 1), Need::TableCreate, "AuthorizationPermissionMismatch"),
        ("ss=t&srt=c&sp=c", caller(now, true, 1), Need::TableAcl, "AuthorizationFailure"),
        ("ss=t&srt=c&sp=c", caller(now, true, 1), Need::TableCreate, ""),
        ("tn=T&sp=x", caller(now, false, 9), Need::TableList, "AuthorizationProtocolMismatch"),
        ("tn=T&sp=x", caller(now, true, 9), Need::TableList, "AuthorizationSourceIPMismatch"),
        ("tn=T&sp=x", caller(now, true, 1), Need::TableList, "AuthorizationFailure"),
        ("tn=T&sp=x", caller(now, true, 1), Need::EntityRead, "AuthorizationPermissionMismatch"),
        ("tn=T&sp=ru", caller(now, true, 1), Need::EntityUpsert, "AuthorizationPermissionMismatch"),
        ("tn=T&sp=r", caller(now, true, 1), Need::EntityRead, ""),
    ] {
        let grant = grant(&format!("sv=2019-02-02&{fields}&se=2026-12-31&spr=https&sip=10.0.0.1&sig=x"));
        let code = grant.check(&caller, &need).map_or_else(|error| error.code(), |()| "");
        assert_eq!(code, expect, "{fields} {caller:?} {need:?}");
    }
}
