//! The names of headers, made once and not anew for every request.
//!
//! Those of replies have two forms: as the service spells them, which is how they stand in a part of a batch, and as HTTP
//! libraries keep them.

use http::header::{self, HeaderName};

/// The name of a header of a reply.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) text: &'static str,
    pub(crate) http: HeaderName,
}

macro_rules! names {
    ($($constant:ident = $text:literal, $http:expr;)*) => {
        $(pub(crate) static $constant: Name = Name { text: $text, http: $http };)*
    };
}

names! {
    ALLOW_CREDENTIALS = "Access-Control-Allow-Credentials", header::ACCESS_CONTROL_ALLOW_CREDENTIALS;
    ALLOW_HEADERS = "Access-Control-Allow-Headers", header::ACCESS_CONTROL_ALLOW_HEADERS;
    ALLOW_METHODS = "Access-Control-Allow-Methods", header::ACCESS_CONTROL_ALLOW_METHODS;
    ALLOW_ORIGIN = "Access-Control-Allow-Origin", header::ACCESS_CONTROL_ALLOW_ORIGIN;
    CACHE_CONTROL = "Cache-Control", header::CACHE_CONTROL;
    CLIENT_REQUEST_ID = "x-ms-client-request-id", HeaderName::from_static("x-ms-client-request-id");
    CONTENT_TYPE = "Content-Type", header::CONTENT_TYPE;
    CONTENT_TYPE_OPTIONS = "X-Content-Type-Options", header::X_CONTENT_TYPE_OPTIONS;
    DATA_SERVICE_ID = "DataServiceId", HeaderName::from_static("dataserviceid");
    ERROR_CODE = "x-ms-error-code", HeaderName::from_static("x-ms-error-code");
    ETAG = "ETag", header::ETAG;
    EXPOSE_HEADERS = "Access-Control-Expose-Headers", header::ACCESS_CONTROL_EXPOSE_HEADERS;
    LOCATION = "Location", header::LOCATION;
    MAX_AGE = "Access-Control-Max-Age", header::ACCESS_CONTROL_MAX_AGE;
    NEXT_PARTITION_KEY = "x-ms-continuation-NextPartitionKey",
        HeaderName::from_static("x-ms-continuation-nextpartitionkey");
    NEXT_ROW_KEY = "x-ms-continuation-NextRowKey", HeaderName::from_static("x-ms-continuation-nextrowkey");
    NEXT_TABLE_NAME = "x-ms-continuation-NextTableName", HeaderName::from_static("x-ms-continuation-nexttablename");
    PLAN = "x-partita-plan", HeaderName::from_static("x-partita-plan");
    PREFERENCE_APPLIED = "Preference-Applied", HeaderName::from_static("preference-applied");
    REQUEST_ID = "x-ms-request-id", HeaderName::from_static("x-ms-request-id");
    RETRY_AFTER = "Retry-After", header::RETRY_AFTER;
    SERVER = "Server", header::SERVER;
    VARY = "Vary", header::VARY;
    VERSION = "x-ms-version", HeaderName::from_static("x-ms-version");
    WWW_AUTHENTICATE = "WWW-Authenticate", header::WWW_AUTHENTICATE;
}

/// Headers of requests.
pub(crate) static CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
pub(crate) static MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
pub(crate) static PREFER: HeaderName = HeaderName::from_static("prefer");
pub(crate) static X_HTTP_METHOD: HeaderName = HeaderName::from_static("x-http-method");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_the_same_name() {
        for name in [&ETAG, &NEXT_PARTITION_KEY, &NEXT_ROW_KEY, &NEXT_TABLE_NAME, &DATA_SERVICE_ID, &PREFERENCE_APPLIED]
        {
            assert!(name.text.eq_ignore_ascii_case(name.http.as_str()), "{}", name.text);
        }
    }
}
