//! XML bodies: stored access policies and service properties. What is read is written, and reads back as the same.

use partita_model::ServiceProperties;
use partita_model::limits::{ACCESS_POLICIES_MAX, CORS_RULES_MAX};
use partita_wire::cors;
use partita_wire::xml::{access_policies, service_properties};

/// Takes a document of either kind.
pub fn xml(data: &[u8]) {
    match access_policies::parse(data) {
        Ok(policies) => {
            assert!(policies.len() <= ACCESS_POLICIES_MAX);
            let text = access_policies::print(&policies);
            assert_eq!(access_policies::parse(&text).as_ref(), Ok(&policies), "{}", String::from_utf8_lossy(&text));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match service_properties::parse(data) {
        Ok(update) => {
            let mut properties = ServiceProperties::default();
            update.apply(&mut properties);
            check_properties(&properties);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_properties(properties: &ServiceProperties) {
    assert!(properties.cors.len() <= CORS_RULES_MAX);
    let text = service_properties::print(properties);
    let update =
        service_properties::parse(&text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
    let mut again = ServiceProperties::default();
    update.apply(&mut again);
    assert_eq!(&again, properties, "{}", String::from_utf8_lossy(&text));
    // What a rule names, it allows.
    for rule in &properties.cors {
        for origin in rule.allowed_origins.iter().filter(|origin| !origin.contains('*')) {
            for method in &rule.allowed_methods {
                assert!(cors::matching(&properties.cors, origin, method).is_some(), "{origin} {method}");
                let headers = rule.allowed_headers.join(", ");
                assert!(cors::preflight(&properties.cors, origin, method, &headers).is_some(), "{origin} {headers}");
            }
        }
    }
}
