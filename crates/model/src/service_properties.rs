//! What an account has set for its Table service: logging, metrics, CORS rules.
//!
//! Logging and metrics are kept and given back for the sake of tools that set them; nothing else reads them.

/// The properties of the service of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceProperties {
    /// Request logs.
    pub logging: Logging,
    /// Metrics by the hour.
    pub hour_metrics: Metrics,
    /// Metrics by the minute.
    pub minute_metrics: Metrics,
    /// Rules for requests from pages of other origins; the first that matches counts.
    pub cors: Vec<CorsRule>,
}

/// What is logged, and how long it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    /// Reads are logged.
    pub read: bool,
    /// Writes are logged.
    pub write: bool,
    /// Deletes are logged.
    pub delete: bool,
    /// Days after which logs are deleted, 1 to 365; `None` to keep them.
    pub retention_days: Option<u16>,
}

/// What is measured, and how long it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Anything is measured at all.
    pub enabled: bool,
    /// Each operation is measured by itself. Only said while metrics are enabled.
    pub include_apis: Option<bool>,
    /// Days after which metrics are deleted, 1 to 365; `None` to keep them.
    pub retention_days: Option<u16>,
}

/// Which requests from pages of other origins browsers may send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorsRule {
    /// Origins, `*` for all, or `http://*.contoso.com` for those of a domain.
    pub allowed_origins: Vec<String>,
    /// Verbs.
    pub allowed_methods: Vec<String>,
    /// Names of request headers, those in full before prefixes such as `x-ms-meta*`; `*` for all.
    pub allowed_headers: Vec<String>,
    /// Names of response headers that pages may read, in the same form.
    pub exposed_headers: Vec<String>,
    /// How long a browser may remember the answer to its preflight.
    pub max_age_seconds: u32,
}

impl CorsRule {
    /// Whether the rule is for all origins. The answer then says `*` instead of the origin, and no credentials.
    pub fn allows_any_origin(&self) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == "*")
    }
}
