use super::*;
use crate::sign;
use proptest::prelude::*;

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const OTHER_KEY: &str = "b3RoZXI=";
const ACCOUNT: &str = "devstoreaccount1";
const SCHEMES: [Scheme; 2] = [Scheme::SharedKey, Scheme::SharedKeyLite];

fn request(path: &str) -> TableRequest<'_> {
    TableRequest {
        account: ACCOUNT,
        method: "GET",
        path,
        comp: None,
        content_md5: "",
        content_type: "",
        date: "Thu, 01 Jan 2026 00:00:00 GMT",
    }
}

fn keys() -> AccountKeys {
    AccountKeys::parse(&[KEY]).unwrap()
}

/// Signatures made by the official client libraries.
#[test]
fn vectors() {
    for (scheme, request, signature) in [
        (
            Scheme::SharedKey,
            TableRequest {
                method: "POST",
                content_type: "application/json;odata=nometadata",
                ..request("/devstoreaccount1/Tables")
            },
            "VJjnA4OzA3vvz5eC+jy0UwDoEV5qMx7KmBhJb8P3hKY=",
        ),
        (
            Scheme::SharedKey,
            TableRequest { comp: Some("acl"), ..request("/devstoreaccount1/MyTable") },
            "di1bIxuDjbEfR6GXMoGQ4KgUAmlNqjyFV2aLCMd31s8=",
        ),
        (Scheme::SharedKeyLite, request("/devstoreaccount1/Tables"), "WRN6nOrne13nPse4EBO5ULIQ1KAssaa6ujBtCrgHTls="),
        (
            Scheme::SharedKeyLite,
            request("/devstoreaccount1/T(PartitionKey='a%20b',RowKey='x')"),
            "X4OnpiOzTPFl6rSCqRbP0dft0tp6RLG4H01IvoXsbOo=",
        ),
    ] {
        assert_eq!(sign(keys().primary(), &string_to_sign(scheme, &request)), signature, "{request:?}");
        assert!(verify_shared_key(&keys(), scheme, &request, signature), "{request:?}");
    }
}

#[test]
fn the_text() {
    let request = TableRequest {
        method: "merge",
        content_md5: "md5",
        content_type: "type",
        comp: Some("acl"),
        ..request("/T(PartitionKey='%27',RowKey='')")
    };
    let resource = "/devstoreaccount1/T(PartitionKey='%27',RowKey='')?comp=acl";
    assert_eq!(
        string_to_sign(Scheme::SharedKey, &request),
        format!("MERGE\nmd5\ntype\nThu, 01 Jan 2026 00:00:00 GMT\n{resource}")
    );
    assert_eq!(string_to_sign(Scheme::SharedKeyLite, &request), format!("Thu, 01 Jan 2026 00:00:00 GMT\n{resource}"));
}

#[test]
fn either_key() {
    let both = AccountKeys::parse(&[KEY, OTHER_KEY]).unwrap();
    let request = request("/devstoreaccount1/Tables");
    for scheme in SCHEMES {
        for key in both.iter() {
            assert!(verify_shared_key(&both, scheme, &request, &sign(key, &string_to_sign(scheme, &request))));
        }
        let second = both.iter().nth(1).unwrap();
        assert!(!verify_shared_key(&keys(), scheme, &request, &sign(second, &string_to_sign(scheme, &request))));
    }
}

#[test]
fn spellings_of_one_path() {
    for (sent, signed, expect) in [
        ("/T(a='b')", "/T(a='b')", true),
        ("/T(a='b')", "/T(a=%27b%27)", true),
        ("/T(a=%27b%27)", "/T(a='b')", true),
        ("/T%28a='b'%29", "/T(a='b')", true),
        ("/T%28a='b'%29", "/T(a=%27b%27)", true),
        ("/T(a='%7Eb%21%2a')", "/T(a='~b!*')", true),
        ("/T(a='b%2fc')", "/T(a='b%2Fc')", true),
        ("/T(a='b c')", "/T(a='b%20c')", true),
        ("/T(a='\u{e9}')", "/T(a='%C3%A9')", true),
        ("/T(a='%zz')", "/T(a='%25zz')", true),
        // Another path, not another spelling.
        ("/T(a='b%2Fc')", "/T(a='b/c')", false),
        ("/T(a='b%2Cc')", "/T(a='b,c')", false),
        ("/T(a='b')", "/T(a='B')", false),
        ("/T(a='b%2527')", "/T(a='b%27')", false),
        ("/T(a='%%32%35')", "/T(a='%25')", false),
        ("/T", "/T/", false),
        // A secondary in path style.
        ("/devstoreaccount1-secondary/T", "/devstoreaccount1-secondary/T", true),
        ("/devstoreaccount1-secondary/T", "/devstoreaccount1/T", true),
        ("/devstoreaccount1-secondary", "/devstoreaccount1", true),
        ("/devstoreaccount1-secondary/devstoreaccount1/T", "/devstoreaccount1/T", true),
        ("/devstoreaccount1-secondary/devstoreaccount1T", "/devstoreaccount1T", false),
        ("/devstoreaccount1-secondary/T(a=%27b%27)", "/devstoreaccount1/T(a='b')", true),
        ("/devstoreaccount1/T", "/devstoreaccount1-secondary/T", false),
        ("/devstoreaccount1-secondaryT", "/devstoreaccount1T", false),
        ("/devstoreaccount1/T", "/T", false),
    ] {
        for scheme in SCHEMES {
            let signature = sign(keys().primary(), &string_to_sign(scheme, &request(signed)));
            let verified = verify_shared_key(&keys(), scheme, &request(sent), &signature);
            assert_eq!(verified, expect, "{scheme:?}: {sent} signed as {signed}");
        }
    }
}

#[test]
fn a_signature_opens_nothing_else() {
    let signed =
        TableRequest { comp: Some("acl"), content_md5: "md5", content_type: "type", ..request("/devstoreaccount1/T") };
    for scheme in SCHEMES {
        let signature = sign(keys().primary(), &string_to_sign(scheme, &signed));
        // What only the longer text covers may differ under the other scheme.
        let lite = scheme == Scheme::SharedKeyLite;
        for (forged, expect) in [
            (signed, true),
            (TableRequest { account: "another", ..signed }, false),
            (TableRequest { method: "PUT", ..signed }, lite),
            (TableRequest { path: "/devstoreaccount1/U", ..signed }, false),
            (TableRequest { comp: None, ..signed }, false),
            (TableRequest { comp: Some("properties"), ..signed }, false),
            (TableRequest { content_md5: "", ..signed }, lite),
            (TableRequest { content_type: "", ..signed }, lite),
            (TableRequest { date: "Thu, 01 Jan 2026 00:00:01 GMT", ..signed }, false),
            (TableRequest { date: "", ..signed }, false),
        ] {
            assert_eq!(verify_shared_key(&keys(), scheme, &forged, &signature), expect, "{scheme:?} {forged:?}");
        }
        let other = if lite { Scheme::SharedKey } else { Scheme::SharedKeyLite };
        assert!(!verify_shared_key(&keys(), other, &signed, &signature));
        for bad in ["", "x", &signature[1..], &signature.to_lowercase()] {
            assert!(!verify_shared_key(&keys(), scheme, &signed, bad));
        }
    }
}

/// A lenient reader of escapes, as servers are.
fn decode(path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, tail.first_chunk().and_then(|&digits| hex(digits))) {
            (b'%', Some(escaped)) => {
                bytes.push(escaped);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    bytes
}

proptest! {
    #[test]
    fn another_spelling_is_the_same_path(path in "(%|%2|%27|%25|%2F|%C3|[a-f0-9'()!*~/,=é])*") {
        for apostrophe in ["'", "%27"] {
            let spelling = respell(&path, apostrophe);
            prop_assert_eq!(decode(&spelling), decode(&path));
            prop_assert_eq!(respell(&spelling, apostrophe), spelling);
        }
    }
}
