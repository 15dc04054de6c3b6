//! The documents as exact text, what is refused, and round trips.

use super::stats::GeoReplication;
use super::*;
use partita_model::{CorsRule, Logging, Metrics, ServiceProperties, StoredAccessPolicy, Ticks};
use proptest::prelude::*;

const HEAD: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn code<T>(result: Result<T, ServiceError>) -> Result<T, &'static str> {
    result.map_err(|error| error.code())
}

/// Policies written like this come back like that.
fn check_policies(input: &str, output: &str) {
    let policies = access_policies::parse(input.as_bytes()).expect(input);
    assert_eq!(text(access_policies::print(&policies)), format!("{HEAD}{output}"));
}

fn identifiers(inner: &str) -> String {
    format!("<SignedIdentifiers>{inner}</SignedIdentifiers>")
}

fn identifier(inner: &str) -> String {
    identifiers(&format!("<SignedIdentifier>{inner}</SignedIdentifier>"))
}

#[test]
fn access_policies() {
    let none = "<SignedIdentifiers />";
    for empty in [
        "",
        "  \r\n",
        "\u{FEFF}",
        none,
        "text <SignedIdentifiers /> text",
        "<?xml version='1.0'?><SignedIdentifiers></SignedIdentifiers>",
    ] {
        check_policies(empty, none);
    }
    let full = identifier(
        "<Id>p1</Id><AccessPolicy><Start>2026-01-01T00:00:00.0000000Z</Start>\
         <Expiry>2026-02-01T12:30:00.1230000Z</Expiry><Permission>raud</Permission></AccessPolicy>",
    );
    check_policies(&full, &full);
    check_policies(&format!("\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n{full}\n"), &full);
    check_policies(&full.replace("2026-01-01T00:00:00.0000000Z", "2026-01-01"), &full);
    check_policies(&full.replace(".1230000Z", ".123"), &full);
    check_policies(&full.replace("><", ">\n  <").replace("p1", " p1 "), &full);
    let spaced = full.replace("<Id>p1</Id>", "").replace("</AccessPolicy>", "</AccessPolicy><Id>p1</Id>");
    check_policies(&spaced, &full);
    let alone = identifier("<Id>p1</Id>");
    for policy in
        ["", "<AccessPolicy/>", "<AccessPolicy></AccessPolicy>", "<AccessPolicy><Start/><Expiry /></AccessPolicy>"]
    {
        check_policies(&identifier(&format!("<Id>p1</Id>{policy}")), &alone);
    }
    let permission = identifier("<Id>p1</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>");
    check_policies(&permission, &permission);
    let escaped = identifier("<Id>a&amp;b&lt;c&gt;d\u{E9}</Id>");
    check_policies(&escaped, &escaped);
    check_policies(&identifier("<Id><![CDATA[a&b<c>d]]>&#xE9;</Id>"), &escaped);
}

#[test]
fn access_policies_that_are_refused() {
    let many =
        identifiers(&(0..6).map(|n| format!("<SignedIdentifier><Id>{n}</Id></SignedIdentifier>")).collect::<String>());
    for (body, expect) in [
        (many, "InvalidXmlDocument"),
        (identifier(&format!("<Id>{}</Id>", "x".repeat(65))), "InvalidXmlDocument"),
        (identifier("<Id/>"), "InvalidXmlDocument"),
        (identifier(""), "InvalidXmlDocument"),
        (identifier("<Id>a</Id><Id>a</Id>"), "InvalidXmlDocument"),
        (identifier("<Id>a</Id><Other/>"), "InvalidXmlDocument"),
        (
            identifiers(
                "<SignedIdentifier><Id>a</Id></SignedIdentifier><SignedIdentifier><Id>a</Id></SignedIdentifier>",
            ),
            "InvalidXmlDocument",
        ),
        (identifier("<Id>a</Id><AccessPolicy><Start>soon</Start></AccessPolicy>"), "InvalidXmlNodeValue"),
        (identifier("<Id>a</Id><AccessPolicy><Permission>rx</Permission></AccessPolicy>"), "InvalidXmlNodeValue"),
        ("<Other />".into(), "InvalidXmlDocument"),
        ("text".into(), "InvalidXmlDocument"),
        ("<SignedIdentifiers>".into(), "InvalidXmlDocument"),
        ("<SignedIdentifiers></Other>".into(), "InvalidXmlDocument"),
        ("<SignedIdentifiers /><SignedIdentifiers />".into(), "InvalidXmlDocument"),
        ("<SignedIdentifiers a='1' a='2'/>".into(), "InvalidXmlDocument"),
        ("</SignedIdentifiers>".into(), "InvalidXmlDocument"),
        (identifier("<Id>&unknown;</Id>"), "InvalidXmlDocument"),
        (identifier("<Id>&#0;</Id>"), "InvalidXmlDocument"),
        (identifier("<Id>&#1;</Id>"), "InvalidXmlDocument"),
        (identifier("<Id>\u{1}</Id>"), "InvalidXmlDocument"),
        (identifier("<Id>a & b</Id>"), "InvalidXmlDocument"),
        (
            format!("<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>{}", identifier("<Id>&e;</Id>")),
            "InvalidXmlDocument",
        ),
        (format!("<!DOCTYPE SignedIdentifiers>{}", identifier("<Id>a</Id>")), "InvalidXmlDocument"),
        ("<a>".repeat(100_000), "InvalidXmlDocument"),
        (identifiers(&"<a/>".repeat(10_000)), "InvalidXmlDocument"),
        (identifier(&format!("<Id>{}</Id>", "x".repeat(1_000_000))), "InvalidXmlDocument"),
    ] {
        let shown: String = body.chars().take(100).collect();
        assert_eq!(code(access_policies::parse(body.as_bytes())), Err(expect), "{shown}");
    }
    assert_eq!(code(access_policies::parse(b"<SignedIdentifiers>\xFF</SignedIdentifiers>")), Err("InvalidXmlDocument"));
}

fn properties(inner: &str) -> String {
    format!("<StorageServiceProperties>{inner}</StorageServiceProperties>")
}

const DEFAULTS: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write>\
    <Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>\
    <HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>\
    <MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>\
    <Cors /></StorageServiceProperties>";

/// An update of the defaults prints as the defaults with one piece replaced.
fn check_update(input: &str, replaced: &str, by: &str) {
    let mut state = ServiceProperties::default();
    service_properties::parse(properties(input).as_bytes()).expect(input).apply(&mut state);
    let expect = DEFAULTS.replacen(replaced, by, 1);
    assert_eq!(text(service_properties::print(&state)), format!("{HEAD}{expect}"));
}

fn rule(origins: &str, methods: &str, headers: &str, exposed: &str, age: &str) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods>\
         <AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders>\
         <MaxAgeInSeconds>{age}</MaxAgeInSeconds></CorsRule>"
    )
}

#[test]
fn service_property_updates() {
    check_update("", "", "");
    check_update("<Cors/>", "", "");
    check_update(
        "<Logging><Delete>true</Delete><Version>1.0</Version><Read>true</Read><Write>false</Write>\
         <RetentionPolicy><Days>5</Days><Enabled>true</Enabled></RetentionPolicy></Logging>",
        "<Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>",
        "<Read>true</Read><Write>false</Write><Delete>true</Delete><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy>",
    );
    check_update(
        "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>\
         <RetentionPolicy><Enabled>true</Enabled><Days>365</Days></RetentionPolicy></HourMetrics>",
        "<Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>",
        "<Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>365</Days></RetentionPolicy></HourMetrics>",
    );
    check_update("<MinuteMetrics><Enabled>false</Enabled><IncludeAPIs>true</IncludeAPIs></MinuteMetrics>", "", "");
    check_update(
        &format!(
            "<Cors>{}{}</Cors>",
            rule("*", "GET", "", "", "0"),
            rule("http://a, http://*.b", "PUT,GET", "x*,a,b", "*", "500")
        ),
        "<Cors />",
        "<Cors><CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>*</AllowedOrigins><AllowedHeaders />\
         <ExposedHeaders /><MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule>\
         <CorsRule><AllowedMethods>PUT,GET</AllowedMethods><AllowedOrigins>http://a,http://*.b</AllowedOrigins>\
         <AllowedHeaders>a,b,x*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
         <MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>",
    );
}

#[test]
fn an_update_keeps_what_it_does_not_mention() {
    let mut state = ServiceProperties::default();
    let cors = properties(&format!("<Cors>{}</Cors>", rule("*", "GET", "", "", "0")));
    service_properties::parse(cors.as_bytes()).unwrap().apply(&mut state);
    let hour = properties("<HourMetrics><Enabled>true</Enabled></HourMetrics>");
    service_properties::parse(hour.as_bytes()).unwrap().apply(&mut state);
    assert_eq!((state.cors.len(), state.hour_metrics.enabled, state.minute_metrics.enabled), (1, true, false));
    service_properties::parse(properties("<Cors />").as_bytes()).unwrap().apply(&mut state);
    assert_eq!((state.cors.len(), state.hour_metrics.enabled), (0, true));
}

#[test]
fn service_properties_that_are_refused() {
    let days = |days: &str| {
        format!(
            "<MinuteMetrics><Enabled>true</Enabled><RetentionPolicy><Enabled>true</Enabled>{days}</RetentionPolicy></MinuteMetrics>"
        )
    };
    let cors = |rules: String| format!("<Cors>{rules}</Cors>");
    let names = |count: usize| (0..count).map(|n| format!("h{n}")).collect::<Vec<_>>().join(",");
    let long = format!("http://{}", "x".repeat(260));
    let (document, node) = (Err("InvalidXmlDocument"), Err("InvalidXmlNodeValue"));
    for (inner, expect) in [
        (days("<Days>1</Days>"), Ok(())),
        (days("<Days>0</Days>"), document),
        (days("<Days>366</Days>"), document),
        (days("<Days>-1</Days>"), node),
        (days("<Days>many</Days>"), node),
        (days(""), document),
        ("<Logging><Read>true</Read></Logging>".into(), document),
        ("<HourMetrics />".into(), document),
        ("<HourMetrics><Enabled>maybe</Enabled></HourMetrics>".into(), node),
        ("<HourMetrics><Enabled>true</Enabled></HourMetrics>".repeat(2), document),
        ("<Other />".into(), document),
        (cors(rule("*", "GET", "", "", "0").repeat(5)), Ok(())),
        (cors(rule("*", "GET", "", "", "0").repeat(6)), document),
        (cors(rule("*", "GET,MERGE,PATCH,HEAD,POST,OPTIONS,PUT,DELETE", "", "", "0")), Ok(())),
        (cors(rule("*", "TRACE", "", "", "0")), node),
        (cors(rule("*", "get", "", "", "0")), node),
        (cors(rule("*", "", "", "", "0")), node),
        (cors(rule("", "GET", "", "", "0")), node),
        (cors(rule(&long, "GET", "", "", "0")), node),
        (cors(rule(&names(65), "GET", "", "", "0")), node),
        (cors(rule("*", "GET", &names(64), "a*,b*", "0")), Ok(())),
        (cors(rule("*", "GET", &names(65), "", "0")), node),
        (cors(rule("*", "GET", "", "a*,b*,c*", "0")), node),
        (cors(rule("*", "GET", "a\u{E9}", "", "0")), node),
        (cors(rule("*", "GET", "", "", "-1")), node),
        (cors(rule("*", "GET", "", "", "")), node),
        (cors(rule("*", "GET", &"h".repeat(2049), "", "0")), document),
        (cors("<CorsRule />".into()), document),
        (cors("<Other />".into()), document),
    ] {
        let result = code(service_properties::parse(properties(&inner).as_bytes()).map(drop));
        assert_eq!(result, expect, "{}", inner.chars().take(200).collect::<String>());
    }
    assert_eq!(code(service_properties::parse(b"").map(drop)), document);
}

#[test]
fn replication_stats() {
    let time = Ticks::parse_iso("2026-01-01T00:00:00Z").unwrap();
    for (replication, status, sync) in [
        (GeoReplication::Live(time), "live", "Thu, 01 Jan 2026 00:00:00 GMT"),
        (GeoReplication::Bootstrap, "bootstrap", ""),
        (GeoReplication::Unavailable, "unavailable", ""),
    ] {
        let expect = format!(
            "{HEAD}<StorageServiceStats><GeoReplication><Status>{status}</Status>\
             <LastSyncTime>{sync}</LastSyncTime></GeoReplication></StorageServiceStats>"
        );
        assert_eq!(text(stats::print(replication)), expect);
    }
}

fn policy() -> impl Strategy<Value = StoredAccessPolicy> {
    let date = || proptest::option::of((0..=Ticks::MAX.0).prop_map(Ticks));
    let id = "[^\\x00-\\x20\u{7F}-\u{A0}\u{FFFE}\u{FFFF}\\p{White_Space}]{1,30}";
    (id, date(), date(), proptest::option::of("[raud]{1,4}"))
        .prop_map(|(id, start, expiry, permission)| StoredAccessPolicy { id, start, expiry, permission })
}

proptest! {
    #[test]
    fn policies_round_trip(mut policies in proptest::collection::vec(policy(), 0..=5)) {
        policies.sort_by(|a, b| a.id.cmp(&b.id));
        policies.dedup_by(|a, b| a.id == b.id);
        prop_assert_eq!(access_policies::parse(&access_policies::print(&policies)), Ok(policies));
    }

    #[test]
    fn properties_round_trip(
        flags in any::<[bool; 5]>(),
        days in proptest::option::of(1u16..=365),
        origins in proptest::collection::vec("https?://[a-z&<>]{1,10}", 1..4),
        headers in proptest::collection::vec("[a-z-]{1,8}", 0..4),
        max_age_seconds in any::<u32>(),
    ) {
        let metrics = Metrics { enabled: flags[3], include_apis: flags[3].then_some(flags[4]), retention_days: days };
        let rule = CorsRule {
            allowed_origins: origins,
            allowed_methods: vec!["GET".into(), "MERGE".into()],
            allowed_headers: headers.clone(),
            exposed_headers: headers.into_iter().chain(["x*".to_owned()]).collect(),
            max_age_seconds,
        };
        let state = ServiceProperties {
            logging: Logging { read: flags[0], write: flags[1], delete: flags[2], retention_days: days },
            hour_metrics: metrics,
            minute_metrics: Metrics::default(),
            cors: vec![rule],
        };
        let mut read = ServiceProperties { minute_metrics: metrics, ..ServiceProperties::default() };
        service_properties::parse(&service_properties::print(&state)).unwrap().apply(&mut read);
        prop_assert_eq!(read, state);
    }

    #[test]
    fn any_text_is_answered(body in any::<String>(), at in 0usize..300, byte in any::<u8>()) {
        let _ = access_policies::parse(body.as_bytes());
        let mut document = DEFAULTS.as_bytes().to_vec();
        document[at] = byte;
        let _ = service_properties::parse(&document);
    }
}
