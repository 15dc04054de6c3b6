use super::*;
use crate::{AccountKey, SasBuilder, sign};
use proptest::prelude::*;

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const OTHER_KEY: &str = "b3RoZXI=";
const ACCOUNT: &str = "devstoreaccount1";
const TIME: &str = "st=2026-01-01T00:00:00Z&se=2026-12-31T00:00:00Z";

type Pairs = Vec<(String, String)>;

fn pairs(query: &str) -> Pairs {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    query.split('&').filter_map(pair).collect()
}

fn parse(query: &str) -> Sas {
    Sas::from_query(&pairs(query)).unwrap_or_else(|error| panic!("{query}: {error}")).expect("a signature")
}

fn keys() -> AccountKeys {
    AccountKeys::parse(&[KEY]).unwrap()
}

/// Signatures made by the official client libraries.
#[test]
fn vectors() {
    for (query, signature) in [
        (
            format!("{TIME}&sp=raud&spr=https&sv=2019-02-02&tn=MyTable&spk=a&srk=1&epk=b&erk=9"),
            "4bCK7TiwxEzOm5irbAlIH1/2C34MmBlL5w6KcRv56KY=",
        ),
        ("sv=2019-02-02&si=pol1&tn=MyTable".to_owned(), "axYq4ImqDamyfi65Fs65/r9XSVgqfDrgjxTtJMr2hPA="),
        (format!("{TIME}&sp=rwdlacup&sv=2019-02-02&ss=t&srt=so"), "0FTnh1rR4sFz3lBm585VkGGPOOY3FLpkq7/mhq2CQ+8="),
        (format!("{TIME}&sp=rwdlacup&sv=2026-10-06&ss=bqt&srt=sco"), "nSBKeyF/M9Wl/qFaNAt7FKak0wqYWntw8VnMrjzfHrA="),
    ] {
        let sas = parse(&format!("{query}&sig={signature}"));
        assert_eq!(sign(keys().primary(), &sas.string_to_sign(ACCOUNT)), signature, "{query}");
        assert!(sas.verify(ACCOUNT, &keys()), "{query}");
        assert!(!sas.verify("devstoreaccount2", &keys()), "{query}");
    }
}

#[test]
fn the_same_vectors_built() {
    let (start, expiry) = (Ticks::parse_iso("2026-01-01").unwrap(), Ticks::parse_iso("2026-12-31").unwrap());
    let within = |builder: SasBuilder| builder.start(start).expiry(expiry);
    for (builder, signature) in [
        (
            within(SasBuilder::table("MyTable"))
                .permissions("raud")
                .https_only()
                .start_keys("a", Some("1"))
                .end_keys("b", Some("9")),
            "4bCK7TiwxEzOm5irbAlIH1%2F2C34MmBlL5w6KcRv56KY%3D",
        ),
        (SasBuilder::table("MyTable").policy("pol1"), "axYq4ImqDamyfi65Fs65%2Fr9XSVgqfDrgjxTtJMr2hPA%3D"),
        (
            within(SasBuilder::account("t", "so")).permissions("rwdlacup"),
            "0FTnh1rR4sFz3lBm585VkGGPOOY3FLpkq7%2Fmhq2CQ%2B8%3D",
        ),
        (
            within(SasBuilder::account("bqt", "sco")).permissions("rwdlacup").version("2026-10-06"),
            "nSBKeyF%2FM9Wl%2FqFaNAt7FKak0wqYWntw8VnMrjzfHrA%3D",
        ),
    ] {
        let query = builder.query(ACCOUNT, keys().primary()).unwrap();
        assert_eq!(query.rsplit_once("&sig=").unwrap().1, signature, "{query}");
    }
}

#[test]
fn what_is_not_built() {
    let expiry = Ticks::parse_iso("2026-12-31").unwrap();
    let table = || SasBuilder::table("T").permissions("r").expiry(expiry);
    for builder in [
        SasBuilder::table("T"),
        SasBuilder::table("T").permissions("r"),
        SasBuilder::table("").permissions("r").expiry(expiry),
        SasBuilder::account("t", "").permissions("r").expiry(expiry),
        SasBuilder::account("t", "o").permissions("r"),
        SasBuilder::account("t", "o").permissions("r").expiry(expiry).policy("p"),
        table().start(expiry),
        table().addresses("everywhere"),
        table().version("2012-02-11"),
        table().version("2014-02-14").https_only(),
        table().end_keys("", None),
        table().end_keys("a", Some("")),
        table().start_keys("a\nb", None),
    ] {
        assert!(builder.query(ACCOUNT, keys().primary()).is_err(), "{builder:?}");
    }
    assert!(table().query(ACCOUNT, keys().primary()).is_ok());
}

#[test]
fn the_text_of_each_generation() {
    let newest_table = "r|2026-01-01|2026-02-01|/table/devstoreaccount1/mytable|id|10.0.0.1|https,http|{sv}|a|1|b|9";
    let newest_account = "devstoreaccount1|r|tq|os|2026-01-01|2026-02-01|10.0.0.1|https,http|{sv}|scope|";
    for (sv, expect) in [
        ("2012-02-12", "r|2026-01-01|2026-02-01|/devstoreaccount1/mytable|id|{sv}|a|1|b|9"),
        ("2015-02-20", "r|2026-01-01|2026-02-01|/devstoreaccount1/mytable|id|{sv}|a|1|b|9"),
        ("2015-02-21", "r|2026-01-01|2026-02-01|/table/devstoreaccount1/mytable|id|{sv}|a|1|b|9"),
        ("2015-04-04", "r|2026-01-01|2026-02-01|/table/devstoreaccount1/mytable|id|{sv}|a|1|b|9"),
        ("2015-04-05", newest_table),
        ("2019-02-02", newest_table),
        ("2020-12-06", newest_table),
        ("2099-12-31", newest_table),
    ] {
        let origin = if sv < "2015-04-05" { "" } else { "&sip=10.0.0.1&spr=https,http" };
        let sas = parse(&format!(
            "sv={sv}&tn=MyTable&si=id&sp=r&st=2026-01-01&se=2026-02-01&spk=a&srk=1&epk=b&erk=9&ses=scope&sig=x{origin}"
        ));
        assert_eq!(sas.string_to_sign(ACCOUNT), expect.replace("{sv}", sv).replace('|', "\n"));
    }
    for (sv, expect) in [
        ("2015-04-05", newest_account.replace("scope|", "")),
        ("2020-10-02", newest_account.replace("scope|", "")),
        ("2020-12-05", newest_account.replace("scope|", "")),
        ("2020-12-06", newest_account.to_owned()),
        ("2026-10-06", newest_account.to_owned()),
    ] {
        let sas = parse(&format!(
            "sv={sv}&ss=tq&srt=os&sp=r&st=2026-01-01&se=2026-02-01&sip=10.0.0.1&spr=https,http&ses=scope&sig=x"
        ));
        assert_eq!(sas.string_to_sign(ACCOUNT), expect.replace("{sv}", sv).replace('|', "\n"));
    }
    let bare = parse("sv=2019-02-02&tn=T&sig=x");
    assert_eq!(bare.string_to_sign("a"), "\n\n\n/table/a/t\n\n\n\n2019-02-02\n\n\n\n");
}

#[test]
fn either_key() {
    let both = AccountKeys::parse(&[KEY, OTHER_KEY]).unwrap();
    let builder = SasBuilder::table("T").permissions("r").expiry(Ticks::MAX);
    for key in both.iter() {
        let sas = Sas::from_query(&builder.pairs(ACCOUNT, key).unwrap()).unwrap().unwrap();
        assert!(sas.verify(ACCOUNT, &both));
    }
    let second = builder.pairs(ACCOUNT, &AccountKey::parse(OTHER_KEY).unwrap()).unwrap();
    assert!(!Sas::from_query(&second).unwrap().unwrap().verify(ACCOUNT, &keys()));
}

#[test]
fn what_it_says_of_itself() {
    let table = parse("sv=2019-02-02&tn=MyTable&si=pol&spk=a&sig=x&timeout=5&$filter=a");
    assert_eq!((table.version(), table.table_name(), table.policy_id()), ("2019-02-02", Some("MyTable"), Some("pol")));
    assert!(table.table_matches("mytable") && table.table_matches("MYTABLE") && !table.table_matches("MyTable1"));
    let account = parse("sv=2019-02-02&ss=t&srt=sco&sp=r&se=2026-12-31&sig=x");
    assert_eq!((account.table_name(), account.policy_id()), (None, None));
    assert!(account.table_matches("anything"));
    assert!(matches!(account.kind(), SasKind::Account { resource_types, .. } if resource_types.to_string() == "cos"));
    assert_eq!(Sas::from_query(&pairs("sv=2019-02-02&tn=T&SIG=x&$top=1")), Ok(None));
    assert!(!format!("{:?}", parse("sv=2019-02-02&tn=T&sig=secret")).contains("secret"));
}

#[test]
fn what_is_refused() {
    for (query, reason) in [
        ("sig=", "sig is mandatory"),
        ("sig=x", "sv is mandatory"),
        ("sig=x&tn=T&sp=r&se=2026-12-31", "sv is mandatory"),
        ("sig=x&sv=&tn=T", "sv is mandatory"),
        ("sig=x&sv=2019&tn=T", "sv is '2019'"),
        ("sig=x&sv=2019-13-02&tn=T", "sv is '2019-13-02'"),
        ("sig=x&sv=2019-02-02T00:00&tn=T", "sv is '2019-02-02T00:00'"),
        ("sig=x&sv=latest&tn=T", "sv is 'latest'"),
        ("sig=x&sv=2012-02-11&tn=T", "needs 2012-02-12 or later"),
        ("sig=x&sv=2015-04-04&ss=t&srt=o&sp=r&se=2026-12-31", "needs 2015-04-05 or later"),
        // Neither, both, or half of a kind; kinds of other services.
        ("sig=x&sv=2019-02-02&sp=r&se=2026-12-31", "neither a table (tn) nor services (ss)"),
        ("sig=x&sv=2019-02-02&tn=&sp=r&se=2026-12-31", "neither a table (tn) nor services (ss)"),
        ("sig=x&sv=2019-02-02&tn=T&ss=t", "table signature has no ss"),
        ("sig=x&sv=2019-02-02&tn=T&srt=o", "table signature has no srt"),
        ("sig=x&sv=2019-02-02&tn=T&ss=t&srt=o", "table signature has no ss"),
        ("sig=x&sv=2019-02-02&ss=t&sp=r&se=2026-12-31", "srt is mandatory"),
        ("sig=x&sv=2019-02-02&srt=o&sp=r&se=2026-12-31", "ss is mandatory"),
        ("sig=x&sv=2019-02-02&ss=t&srt=o&sp=r", "se is mandatory"),
        ("sig=x&sv=2019-02-02&ss=t&srt=o&se=2026-12-31", "sp is mandatory"),
        ("sig=x&sv=2019-02-02&ss=t&srt=o&sp=r&se=2026-12-31&si=p", "account signature has no si"),
        ("sig=x&sv=2019-02-02&ss=t&srt=o&sp=r&se=2026-12-31&epk=a", "account signature has no epk"),
        ("sig=x&sv=2019-02-02&sr=b&sp=r&se=2026-12-31", "sr is for blobs"),
        ("sig=x&sv=2019-02-02&tn=T&sr=c", "sr is for blobs"),
        ("sig=x&sv=2020-12-06&tn=T&skoid=o&sktid=t", "user delegation"),
        // Values.
        ("sig=x&sv=2019-02-02&ss=tx&srt=o&sp=r&se=2026-12-31", "ss is 'tx'"),
        ("sig=x&sv=2019-02-02&ss=T&srt=o&sp=r&se=2026-12-31", "ss is 'T'"),
        ("sig=x&sv=2019-02-02&ss=t&srt=oz&sp=r&se=2026-12-31", "srt is 'oz'"),
        ("sig=x&sv=2019-02-02&tn=T&sp=r,a&se=2026-12-31", "sp is 'r,a'"),
        ("sig=x&sv=2019-02-02&tn=T&sp=r&se=tomorrow", "se is 'tomorrow'"),
        ("sig=x&sv=2019-02-02&tn=T&sp=r&se=2026-02-30", "se is '2026-02-30'"),
        ("sig=x&sv=2019-02-02&tn=T&sp=r&se=2026-12-31&st=yesterday", "st is 'yesterday'"),
        ("sig=x&sv=2019-02-02&tn=T&sip=10.0.0.300", "sip is '10.0.0.300'"),
        ("sig=x&sv=2019-02-02&tn=T&sip=10.0.0.2-10.0.0.1", "sip is '10.0.0.2-10.0.0.1'"),
        ("sig=x&sv=2019-02-02&tn=T&spr=http", "spr is 'http'"),
        ("sig=x&sv=2019-02-02&tn=T&spr=HTTPS", "spr is 'HTTPS'"),
        ("sig=x&sv=2015-04-04&tn=T&sip=10.0.0.1", "of this version has no sip"),
        ("sig=x&sv=2015-04-04&tn=T&spr=https", "of this version has no spr"),
        ("sig=x&sv=2019-02-02&tn=T&srk=1", "srk is given without spk"),
        ("sig=x&sv=2019-02-02&tn=T&spk=&srk=1", "srk is given without spk"),
        ("sig=x&sv=2019-02-02&tn=T&erk=1", "erk is given without epk"),
        ("sig=x&sv=2019-02-02&tn=T&spk=a&erk=1", "erk is given without epk"),
        // A line break would move the fields that follow it.
        ("sig=x&sv=2019-02-02&tn=T&spk=a\nb", "spk contains a line break"),
        ("sig=x&sv=2019-02-02&tn=T\n", "tn contains a line break"),
        ("sig=x&sv=2019-02-02&tn=T&si=p\n\nhttps", "si contains a line break"),
    ] {
        let error = Sas::from_query(&pairs(query)).expect_err(query);
        assert_eq!((error.code(), error.status()), ("AuthenticationFailed", 403), "{query}");
        assert!(error.to_string().contains(reason), "{query}: {error}");
    }
}

#[test]
fn a_doubled_field_is_refused() {
    let table =
        "sv=2019-02-02&tn=T&sp=r&st=2026-01-01&se=2026-12-31&si=p&sip=10.0.0.1&spr=https&spk=a&srk=1&epk=b&erk=9";
    let account = "sv=2020-12-06&ss=t&srt=o&sp=r&st=2026-01-01&se=2026-12-31&sip=10.0.0.1&spr=https&ses=s";
    for query in [table, account] {
        let query = format!("{query}&sig=x");
        parse(&query);
        for (name, value) in pairs(&query) {
            for value in [value.as_str(), "", "other"] {
                let error = Sas::from_query(&pairs(&format!("{name}={value}&{query}"))).expect_err(&name);
                assert_eq!(error, authentication_failed(format_args!("{name} is given more than once.")));
            }
        }
    }
    parse("sv=2019-02-02&tn=T&timeout=1&timeout=2&sig=x");
}

/// Whatever a holder changes, leaves away or adds, the signature no longer fits.
#[test]
fn a_forged_field_is_refused() {
    let other = pairs(
        "sv=2020-12-06&tn=U&ss=qt&srt=sco&sp=raud&st=2025-01-01&se=2030-12-31&si=q&sip=10.0.0.2&spr=https,http\
         &spk=A&srk=0&epk=z&erk=z",
    );
    let expiry = Ticks::parse_iso("2026-12-31").unwrap();
    let table = SasBuilder::table("T").permissions("r").start(Ticks(0)).expiry(expiry);
    for builder in [
        table.clone(),
        table.clone().policy("p").addresses("10.0.0.1").https_only(),
        table.clone().start_keys("a", Some("1")).end_keys("b", Some("9")),
        table.clone().start_keys("a", None).end_keys("b", None),
        table.version("2012-02-12").end_keys("b", Some("9")),
        SasBuilder::account("t", "o").permissions("r").expiry(expiry).https_only(),
        SasBuilder::account("t", "o").permissions("r").expiry(expiry).version("2026-10-06"),
    ] {
        let signed = builder.pairs(ACCOUNT, keys().primary()).unwrap();
        let verifies = |pairs: &Pairs| match Sas::from_query(pairs) {
            Ok(sas) => sas.is_some_and(|sas| sas.verify(ACCOUNT, &keys())),
            Err(_) => false,
        };
        assert!(verifies(&signed), "{signed:?}");
        for (name, value) in &other {
            let mut forged = signed.clone();
            match forged.iter_mut().find(|(signed, _)| signed == name) {
                Some((_, old)) => old.clone_from(value),
                None => forged.push((name.clone(), value.clone())),
            }
            assert!(!verifies(&forged), "{forged:?}");
        }
        for index in 0..signed.len() {
            let mut forged = signed.clone();
            forged.remove(index);
            assert!(!verifies(&forged), "{forged:?}");
        }
        let mut reordered = signed.clone();
        reordered.reverse();
        assert!(verifies(&reordered), "the order of parameters is not signed");
    }
}

/// The old table layout and the old account layout have ten lines each. Reading the lines of one as the other must
/// fail even where the account is called like a set of permissions.
#[test]
fn one_kind_is_not_read_as_the_other() {
    let read_as = |text: &str, names: &[&str]| -> Pairs {
        let lines = text.split('\n').map(str::to_owned);
        let fields = names.iter().map(|name| (*name).to_owned()).zip(lines);
        fields.filter(|(name, _)| !name.is_empty()).chain([("sig".to_owned(), "x".to_owned())]).collect()
    };
    let table = parse("sv=2012-02-12&tn=T&sp=r&st=2026-01-01&se=2026-02-01&si=p&spk=a&srk=1&epk=2019-02-02&sig=x");
    let table_text = table.string_to_sign("raud");
    let as_account = read_as(&table_text, &["", "sp", "ss", "srt", "st", "se", "sip", "spr", "sv", ""]);
    assert_eq!(table_text.matches('\n').count(), 9);
    assert!(Sas::from_query(&as_account).is_err());

    let account = parse("sv=2015-04-05&ss=t&srt=o&sp=r&st=2026-01-01&se=2026-02-01&sig=x");
    let account_text = account.string_to_sign("raud");
    assert_eq!(account_text.matches('\n').count(), 9);
    let as_table = read_as(&account_text, &["sp", "st", "se", "tn", "si", "sv", "spk", "srk", "epk", "erk"]);
    assert!(Sas::from_query(&as_table).is_err());
}

#[test]
fn an_empty_field_counts_as_absent() {
    let plain = parse("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&sig=x");
    let empty = parse("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&st=&si=&sip=&spr=&spk=&srk=&epk=&erk=&ss=&srt=&sig=x");
    assert_eq!(plain, empty);
    assert_eq!(plain.grant(None), empty.grant(None));
    let partition = parse("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&spk=a&srk=&epk=a&erk=&sig=x").grant(None).unwrap();
    assert!(partition.key_range().unwrap().contains("a", "anything"));
}

#[test]
fn token_and_policy_together() {
    let (start, expiry) = (Ticks::parse_iso("2026-01-01").unwrap(), Ticks::parse_iso("2026-12-31").unwrap());
    let policy = |fields: &str| StoredAccessPolicy {
        id: String::new(),
        start: fields.contains("st").then_some(start),
        expiry: fields.contains("se").then_some(expiry),
        permission: fields.contains("sp").then(|| "r".to_owned()),
    };
    let both = "not both";
    for (token, stored, refused) in [
        ("", "st se sp", None),
        ("", "se sp", None),
        ("&sp=r", "st se", None),
        ("&st=2026-01-01", "se sp", None),
        ("&se=2026-12-31", "sp", None),
        ("&st=2026-01-01&se=2026-12-31&sp=r", "", None),
        ("&sp=r", "se sp", Some(both)),
        ("&se=2026-12-31", "se sp", Some(both)),
        ("&st=2026-01-01", "st se sp", Some(both)),
        ("", "", Some("se is mandatory")),
        ("", "sp", Some("se is mandatory")),
        ("", "se", Some("sp is mandatory")),
        ("&sp=r", "st", Some("se is mandatory")),
        ("&sp=", "se", Some("sp is mandatory")),
        ("&st=2026-12-31", "se sp", Some("must be after signed start")),
        ("&st=2027-01-01", "se sp", Some("must be after signed start")),
    ] {
        let sas = parse(&format!("sv=2019-02-02&tn=T&si=pol&sig=x{token}"));
        match (sas.grant(Some(&policy(stored))), refused) {
            (Ok(grant), None) => {
                assert_eq!((grant.expiry, grant.permissions().to_string()), (expiry, "r".to_owned()));
                let starts = token.contains("st=") || stored.contains("st");
                assert_eq!(grant.start, starts.then_some(start), "{token} with {stored}");
            }
            (Err(error), Some(reason)) => {
                assert_eq!(error.code(), "AuthenticationFailed");
                assert!(error.to_string().contains(reason), "{token} with {stored}: {error}");
            }
            (result, _) => panic!("{token} with {stored}: {result:?}"),
        }
    }
}

#[test]
fn a_policy_that_is_not_there_and_one_that_is_not_asked_for() {
    let named = parse("sv=2019-02-02&tn=T&si=pol&sp=r&se=2026-12-31&sig=x");
    assert!(named.grant(None).unwrap_err().to_string().contains("There is no stored access policy 'pol'."));
    let unnamed = parse("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&sig=x");
    let policy = StoredAccessPolicy { permission: Some("raud".to_owned()), ..StoredAccessPolicy::default() };
    assert_eq!(unnamed.grant(Some(&policy)).unwrap().permissions().to_string(), "r");
    let empty = StoredAccessPolicy { permission: Some(String::new()), ..StoredAccessPolicy::default() };
    assert!(named.grant(Some(&empty)).is_ok());
    let broken = StoredAccessPolicy {
        permission: Some("R!".to_owned()),
        expiry: Some(Ticks::MAX),
        ..StoredAccessPolicy::default()
    };
    assert!(parse("sv=2019-02-02&tn=T&si=pol&sig=x").grant(Some(&broken)).is_err());
}

#[test]
fn forms_of_a_date() {
    for se in ["2026-12-31", "2026-12-31T00:00Z", "2026-12-31T00:00:00Z", "2026-12-31T00:00:00.0000000Z"] {
        let grant = parse(&format!("sv=2019-02-02&tn=T&sp=r&se={se}&sig=x")).grant(None).unwrap();
        assert_eq!(Some(grant.expiry), Ticks::parse_iso("2026-12-31"), "{se}");
    }
}

fn any_pairs() -> impl Strategy<Value = Pairs> {
    let names = vec![
        "sv", "ss", "srt", "tn", "sp", "st", "se", "si", "sip", "spr", "spk", "srk", "epk", "erk", "ses", "sr",
        "skoid", "sig", "comp",
    ];
    let values = vec![
        "",
        "2012-02-12",
        "2019-02-02",
        "2020-12-06",
        "2026-12-31T00:00Z",
        "t",
        "o",
        "sco",
        "r",
        "raud",
        "T",
        "10.0.0.1",
        "https",
        "a\nb",
        "\u{1F600}",
    ];
    let value = prop_oneof![4 => proptest::sample::select(values).prop_map(str::to_owned), 1 => any::<String>()];
    proptest::collection::vec((proptest::sample::select(names).prop_map(str::to_owned), value), 0..12)
}

proptest! {
    #[test]
    fn no_query_panics(pairs in any_pairs()) {
        if let Ok(Some(sas)) = Sas::from_query(&pairs) {
            prop_assert!(!sas.verify(ACCOUNT, &keys()));
            let _ = sas.grant(Some(&StoredAccessPolicy::default()));
            let _ = format!("{sas:?}");
        }
    }

    #[test]
    fn any_text_is_a_value(
        pairs in proptest::collection::vec((any::<String>(), any::<String>()), 0..4),
        name in proptest::sample::select(vec!["sv", "sp", "st", "se", "sip", "spr", "spk", "tn", "sig"]),
        value in any::<String>(),
    ) {
        let mut query = super::tests::pairs("sv=2019-02-02&tn=T&sp=r&se=2026-12-31&sig=x");
        query.retain(|(other, _)| other != name);
        query.push((name.to_owned(), value));
        query.extend(pairs);
        if let Ok(Some(sas)) = Sas::from_query(&query) {
            prop_assert!(!sas.verify(ACCOUNT, &keys()));
        }
    }

    #[test]
    fn what_is_built_verifies(
        start in "[^\n]{1,4}", start_row in proptest::option::of("[^\n]{1,4}"),
        end in "[^\n]{1,4}", end_row in proptest::option::of("[^\n]{1,4}"),
        sp in "[raud]{1,4}", version in proptest::sample::select(vec!["2012-02-12", "2015-02-21", "2015-04-05", "2026-10-06"]),
    ) {
        let builder = SasBuilder::table("T")
            .version(version)
            .permissions(&sp)
            .expiry(Ticks::MAX)
            .start_keys(&start, start_row.as_deref())
            .end_keys(&end, end_row.as_deref());
        let pairs = builder.pairs(ACCOUNT, keys().primary()).unwrap();
        let sas = Sas::from_query(&pairs).unwrap().unwrap();
        prop_assert!(sas.verify(ACCOUNT, &keys()));
        prop_assert!(!sas.verify("other", &keys()));
    }
}
