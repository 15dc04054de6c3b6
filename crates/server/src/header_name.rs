//! The names of headers, spelled as the service spells them. Whatever case a client writes, they are the same names.

macro_rules! names {
    ($($constant:ident = $text:literal;)*) => {
        $(pub(crate) const $constant: &str = $text;)*
    };
}

names! {
    ACCEPT = "Accept";
    ALLOW_CREDENTIALS = "Access-Control-Allow-Credentials";
    ALLOW_HEADERS = "Access-Control-Allow-Headers";
    ALLOW_METHODS = "Access-Control-Allow-Methods";
    ALLOW_ORIGIN = "Access-Control-Allow-Origin";
    AUTHORIZATION = "Authorization";
    CACHE_CONTROL = "Cache-Control";
    CLIENT_REQUEST_ID = "x-ms-client-request-id";
    CONTENT_MD5 = "Content-MD5";
    CONTENT_TYPE = "Content-Type";
    CONTENT_TYPE_OPTIONS = "X-Content-Type-Options";
    DATA_SERVICE_ID = "DataServiceId";
    DATA_SERVICE_VERSION = "DataServiceVersion";
    DATE = "Date";
    ERROR_CODE = "x-ms-error-code";
    ETAG = "ETag";
    EXPOSE_HEADERS = "Access-Control-Expose-Headers";
    HOST = "Host";
    IF_MATCH = "If-Match";
    IF_NONE_MATCH = "If-None-Match";
    LOCATION = "Location";
    MAX_AGE = "Access-Control-Max-Age";
    MS_DATE = "x-ms-date";
    NEXT_PARTITION_KEY = "x-ms-continuation-NextPartitionKey";
    NEXT_ROW_KEY = "x-ms-continuation-NextRowKey";
    NEXT_TABLE_NAME = "x-ms-continuation-NextTableName";
    ORIGIN = "Origin";
    PLAN = "x-partita-plan";
    PREFER = "Prefer";
    PREFERENCE_APPLIED = "Preference-Applied";
    REQUEST_HEADERS = "Access-Control-Request-Headers";
    REQUEST_ID = "x-ms-request-id";
    REQUEST_METHOD = "Access-Control-Request-Method";
    RETRY_AFTER = "Retry-After";
    SERVER = "Server";
    VARY = "Vary";
    VERSION = "x-ms-version";
    WWW_AUTHENTICATE = "WWW-Authenticate";
    X_HTTP_METHOD = "X-HTTP-Method";
}
