//! Service properties: logging, metrics and CORS rules of an account's Table service.
//!
//! Setting them is a partial update: a top-level element that is missing keeps its old value. Logging and metrics are
//! kept and given back for the sake of tools that set them; nothing else reads them.

use super::document::Element;
use super::{PROLOGUE, invalid_document, write_element};
use partita_model::limits::CORS_RULES_MAX;
use partita_model::{CorsRule, Logging, Metrics, ServiceError, ServiceProperties};

/// The verbs a CORS rule may allow.
const CORS_METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"];
/// Most bytes of all CORS rules together, without markup.
const CORS_BYTES_MAX: usize = 2048;
/// Most origins of a rule.
const CORS_ORIGINS_MAX: usize = 64;
/// Most characters of an origin.
const CORS_ORIGIN_CHARS_MAX: usize = 256;
/// Most header names of a rule written in full.
const CORS_LITERAL_HEADERS_MAX: usize = 64;
/// Most header prefixes of a rule.
const CORS_PREFIXED_HEADERS_MAX: usize = 2;
/// Longest retention.
const RETENTION_DAYS_MAX: u16 = 365;

/// The body of Set Service Properties: `None` keeps what is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePropertiesUpdate {
    /// New logging.
    pub logging: Option<Logging>,
    /// New metrics by the hour.
    pub hour_metrics: Option<Metrics>,
    /// New metrics by the minute.
    pub minute_metrics: Option<Metrics>,
    /// New CORS rules, which may be none.
    pub cors: Option<Vec<CorsRule>>,
}

impl ServicePropertiesUpdate {
    /// Writes what the update says into `properties`.
    pub fn apply(self, properties: &mut ServiceProperties) {
        let ServicePropertiesUpdate { logging, hour_metrics, minute_metrics, cors } = self;
        properties.logging = logging.unwrap_or(properties.logging);
        properties.hour_metrics = hour_metrics.unwrap_or(properties.hour_metrics);
        properties.minute_metrics = minute_metrics.unwrap_or(properties.minute_metrics);
        if let Some(cors) = cors {
            properties.cors = cors;
        }
    }
}

/// Reads the body of Set Service Properties.
pub fn parse(body: &[u8]) -> Result<ServicePropertiesUpdate, ServiceError> {
    let document = Element::read(body, "StorageServiceProperties")?
        .ok_or_else(|| invalid_document("The request has no document."))?;
    document.only(&["Logging", "HourMetrics", "MinuteMetrics", "Cors"])?;
    Ok(ServicePropertiesUpdate {
        logging: document.child("Logging")?.map(parse_logging).transpose()?,
        hour_metrics: document.child("HourMetrics")?.map(parse_metrics).transpose()?,
        minute_metrics: document.child("MinuteMetrics")?.map(parse_metrics).transpose()?,
        cors: document.child("Cors")?.map(parse_cors).transpose()?,
    })
}

fn parse_logging(logging: &Element) -> Result<Logging, ServiceError> {
    logging.only(&["Version", "Read", "Write", "Delete", "RetentionPolicy"])?;
    Ok(Logging {
        read: logging.required("Read")?.boolean()?,
        write: logging.required("Write")?.boolean()?,
        delete: logging.required("Delete")?.boolean()?,
        retention_days: parse_retention(logging)?,
    })
}

fn parse_metrics(metrics: &Element) -> Result<Metrics, ServiceError> {
    metrics.only(&["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
    let enabled = metrics.required("Enabled")?.boolean()?;
    let include_apis = metrics.child("IncludeAPIs")?.map(Element::boolean).transpose()?;
    let retention_days = parse_retention(metrics)?;
    Ok(Metrics { enabled, include_apis: include_apis.filter(|_| enabled), retention_days })
}

fn parse_retention(parent: &Element) -> Result<Option<u16>, ServiceError> {
    let Some(policy) = parent.child("RetentionPolicy")? else { return Ok(None) };
    policy.only(&["Enabled", "Days"])?;
    if !policy.required("Enabled")?.boolean()? {
        return Ok(None);
    }
    let days = policy.required("Days")?;
    let days: u16 = days.value().parse().map_err(|_| days.bad_value())?;
    if !(1..=RETENTION_DAYS_MAX).contains(&days) {
        return Err(invalid_document(format_args!("Days is between 1 and {RETENTION_DAYS_MAX}.")));
    }
    Ok(Some(days))
}

fn parse_cors(cors: &Element) -> Result<Vec<CorsRule>, ServiceError> {
    cors.only(&["CorsRule"])?;
    if cors.children.len() > CORS_RULES_MAX {
        return Err(invalid_document(format_args!("There are more than {CORS_RULES_MAX} CORS rules.")));
    }
    let texts = cors.children.iter().flat_map(|rule| &rule.children).map(|field| field.value().len());
    if texts.sum::<usize>() > CORS_BYTES_MAX {
        return Err(invalid_document(format_args!("The CORS rules are longer than {CORS_BYTES_MAX} bytes.")));
    }
    cors.children.iter().map(parse_rule).collect()
}

fn parse_rule(rule: &Element) -> Result<CorsRule, ServiceError> {
    rule.only(&["AllowedOrigins", "AllowedMethods", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds"])?;
    let max_age = rule.required("MaxAgeInSeconds")?;
    Ok(CorsRule {
        allowed_origins: parse_origins(rule.required("AllowedOrigins")?)?,
        allowed_methods: parse_methods(rule.required("AllowedMethods")?)?,
        allowed_headers: parse_header_names(rule, "AllowedHeaders")?,
        exposed_headers: parse_header_names(rule, "ExposedHeaders")?,
        max_age_seconds: max_age.value().parse().map_err(|_| max_age.bad_value())?,
    })
}

fn parse_origins(element: &Element) -> Result<Vec<String>, ServiceError> {
    let origins = list(element);
    let is_too_long = |origin: &String| origin.chars().count() > CORS_ORIGIN_CHARS_MAX;
    if origins.is_empty() || origins.len() > CORS_ORIGINS_MAX || origins.iter().any(is_too_long) {
        return Err(element.bad_value());
    }
    Ok(origins)
}

fn parse_methods(element: &Element) -> Result<Vec<String>, ServiceError> {
    let methods = list(element);
    if methods.is_empty() || methods.iter().any(|method| !CORS_METHODS.contains(&method.as_str())) {
        return Err(element.bad_value());
    }
    Ok(methods)
}

fn parse_header_names(rule: &Element, name: &str) -> Result<Vec<String>, ServiceError> {
    let Some(element) = rule.child(name)? else { return Ok(Vec::new()) };
    let (prefixes, mut names): (Vec<_>, Vec<_>) = list(element).into_iter().partition(|name| name.ends_with('*'));
    // A name is repeated in response headers, so it must be able to stand in one.
    let is_name = |name: &String| name.bytes().all(|byte| byte.is_ascii_graphic());
    let is_too_many = names.len() > CORS_LITERAL_HEADERS_MAX || prefixes.len() > CORS_PREFIXED_HEADERS_MAX;
    if is_too_many || !names.iter().chain(&prefixes).all(is_name) {
        return Err(element.bad_value());
    }
    names.extend(prefixes);
    Ok(names)
}

fn list(element: &Element) -> Vec<String> {
    element.value().split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Writes the body of Get Service Properties.
pub fn print(properties: &ServiceProperties) -> Vec<u8> {
    let mut out = String::from(PROLOGUE);
    out.push_str("<StorageServiceProperties>");
    let Logging { read, write, delete, retention_days } = properties.logging;
    out.push_str("<Logging><Version>1.0</Version>");
    for (name, value) in [("Read", read), ("Write", write), ("Delete", delete)] {
        print_boolean(&mut out, name, value);
    }
    print_retention(&mut out, retention_days);
    out.push_str("</Logging>");
    print_metrics(&mut out, "HourMetrics", &properties.hour_metrics);
    print_metrics(&mut out, "MinuteMetrics", &properties.minute_metrics);
    print_cors(&mut out, &properties.cors);
    out.push_str("</StorageServiceProperties>");
    out.into_bytes()
}

fn print_metrics(out: &mut String, name: &str, metrics: &Metrics) {
    out.push_str(&format!("<{name}><Version>1.0</Version>"));
    print_boolean(out, "Enabled", metrics.enabled);
    if let Some(include_apis) = metrics.include_apis {
        print_boolean(out, "IncludeAPIs", include_apis);
    }
    print_retention(out, metrics.retention_days);
    out.push_str(&format!("</{name}>"));
}

fn print_boolean(out: &mut String, name: &str, value: bool) {
    write_element(out, name, if value { "true" } else { "false" });
}

fn print_retention(out: &mut String, days: Option<u16>) {
    out.push_str("<RetentionPolicy>");
    print_boolean(out, "Enabled", days.is_some());
    if let Some(days) = days {
        write_element(out, "Days", &days.to_string());
    }
    out.push_str("</RetentionPolicy>");
}

fn print_cors(out: &mut String, rules: &[CorsRule]) {
    if rules.is_empty() {
        out.push_str("<Cors />");
        return;
    }
    out.push_str("<Cors>");
    for rule in rules {
        out.push_str("<CorsRule>");
        write_element(out, "AllowedMethods", &rule.allowed_methods.join(","));
        write_element(out, "AllowedOrigins", &rule.allowed_origins.join(","));
        write_element(out, "AllowedHeaders", &rule.allowed_headers.join(","));
        write_element(out, "ExposedHeaders", &rule.exposed_headers.join(","));
        write_element(out, "MaxAgeInSeconds", &rule.max_age_seconds.to_string());
        out.push_str("</CorsRule>");
    }
    out.push_str("</Cors>");
}
