//! Connection strings: `AccountName=...;AccountKey=...;TableEndpoint=...` and their relatives.

use crate::{Error, Result};
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use partita_auth::{AccountKey, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const DEVELOPMENT_PORT: u16 = 10002;

/// Whose tables, where, and with which right.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Whether TLS is spoken.
    pub https: bool,
    /// The host, without a port.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path of the service, without a slash at the end: in path style it names the account.
    pub path: String,
    /// The account.
    pub account: String,
    /// What opens it.
    pub credential: Credential,
    /// Whether the service has ever been reached, by any client.
    pub(crate) reached: Arc<AtomicBool>,
}

/// What a request is signed with.
#[derive(Clone)]
pub enum Credential {
    /// The account's key.
    Key(AccountKey),
    /// A shared access signature, as the query of a URL.
    Sas(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Key(_) => "Key(..)",
            Credential::Sas(_) => "Sas(..)",
        })
    }
}

/// The address of the service, without credentials.
impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl Connection {
    /// The account that everybody has on their own machine.
    pub fn development() -> Connection {
        Connection::parse("UseDevelopmentStorage=true").expect("the string is valid")
    }

    /// Reads a connection string, or the URL of a service with a shared access signature. The error never quotes a value:
    /// it may be a secret.
    pub fn parse(text: &str) -> Result<Connection> {
        let wrong = |why: &str| Error::Option(format!("The connection string cannot be used: {why}."));
        if text.starts_with("https://") || text.starts_with("http://") {
            let (endpoint, sas) =
                text.split_once('?').ok_or_else(|| wrong("a URL needs ?, and a signature behind it"))?;
            return Connection::at(endpoint, None, Credential::Sas(sas.to_owned())).map_err(wrong);
        }
        let mut settings = HashMap::new();
        for pair in text.split(';').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| wrong("it consists of Name=Value, with ; between"))?;
            settings.insert(name.trim().to_ascii_lowercase(), value.trim());
        }
        let get = |name: &str| settings.get(name).copied().filter(|value| !value.is_empty());
        if get("usedevelopmentstorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            let base = get("developmentstorageproxyuri").unwrap_or("http://127.0.0.1");
            let endpoint = format!("{}:{DEVELOPMENT_PORT}/{DEVELOPMENT_ACCOUNT}", base.trim_end_matches('/'));
            let key = AccountKey::parse(DEVELOPMENT_KEY).expect("the key is one");
            return Connection::at(&endpoint, Some(DEVELOPMENT_ACCOUNT), Credential::Key(key)).map_err(wrong);
        }
        let account = get("accountname");
        let credential = match (get("accountkey"), get("sharedaccesssignature")) {
            (_, Some(sas)) => Credential::Sas(sas.trim_start_matches('?').to_owned()),
            (Some(key), None) => Credential::Key(AccountKey::parse(key).map_err(|error| wrong(&error.to_string()))?),
            (None, None) => return Err(wrong("it has neither AccountKey nor SharedAccessSignature")),
        };
        let endpoint = match (get("tableendpoint"), account) {
            (Some(endpoint), _) => endpoint.to_owned(),
            (None, Some(account)) => {
                let scheme = get("defaultendpointsprotocol").unwrap_or("https");
                let suffix = get("endpointsuffix").unwrap_or("core.windows.net");
                format!("{scheme}://{account}.table.{suffix}")
            }
            (None, None) => return Err(wrong("it has neither TableEndpoint nor AccountName")),
        };
        Connection::at(&endpoint, account, credential).map_err(wrong)
    }

    fn at(
        endpoint: &str,
        account: Option<&str>,
        credential: Credential,
    ) -> std::result::Result<Connection, &'static str> {
        let uri: Uri = endpoint.parse().map_err(|_| "its endpoint is not a URL")?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("its endpoint begins neither with https:// nor with http://"),
        };
        let host = uri.host().ok_or("its endpoint names no host")?;
        let path = uri.path().trim_end_matches('/').to_owned();
        // In path style the path names the account, else the host does.
        let first_label = host.split('.').next().unwrap_or_default();
        let account = account.or(path.strip_prefix('/')).unwrap_or(first_label).to_owned();
        // What cannot stand in a request is said now.
        HeaderValue::from_str(&account).map_err(|_| "its AccountName has characters that no account has")?;
        if let Credential::Sas(sas) = &credential {
            let query = format!("/?{sas}").parse::<PathAndQuery>();
            query.map_err(|_| "its SharedAccessSignature has characters that no URL has")?;
        }
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        Ok(Connection { https, host: host.to_owned(), port, path, account, credential, reached: Arc::default() })
    }

    /// Host and port as they stand in a URL.
    pub fn authority(&self) -> String {
        let usual = if self.https { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (text, url, account, has_key) in [
            ("UseDevelopmentStorage=true", "http://127.0.0.1:10002/devstoreaccount1", "devstoreaccount1", true),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://azurite/;",
                "http://azurite:10002/devstoreaccount1",
                "devstoreaccount1",
                true,
            ),
            (
                "DefaultEndpointsProtocol=https;AccountName=mine;AccountKey=a2V5;EndpointSuffix=core.windows.net",
                "https://mine.table.core.windows.net",
                "mine",
                true,
            ),
            ("AccountName=mine;AccountKey=a2V5", "https://mine.table.core.windows.net", "mine", true),
            (
                "defaultendpointsprotocol=http;accountname=a;accountkey=a2V5;tableendpoint=http://localhost:1/a/;",
                "http://localhost:1/a",
                "a",
                true,
            ),
            (
                "TableEndpoint=https://mine.table.core.windows.net/;SharedAccessSignature=?sv=1&sig=a%3D",
                "https://mine.table.core.windows.net",
                "mine",
                false,
            ),
            ("TableEndpoint=http://[::1]:2/a;SharedAccessSignature=sv=1&sig=a%3D", "http://[::1]:2/a", "a", false),
            ("https://mine.table.core.windows.net/?sv=1&sig=a", "https://mine.table.core.windows.net", "mine", false),
            ("http://localhost:1/mine?sv=1&sig=a", "http://localhost:1/mine", "mine", false),
        ] {
            let connection = Connection::parse(text).expect(text);
            assert_eq!(connection.to_string(), url);
            assert_eq!(connection.account, account);
            assert_eq!(matches!(connection.credential, Credential::Key(_)), has_key);
        }
        let Credential::Sas(sas) =
            Connection::parse("TableEndpoint=http://h/a;SharedAccessSignature=?sv=1&sig=a%3D").unwrap().credential
        else {
            panic!("not a SAS")
        };
        assert_eq!(sas, "sv=1&sig=a%3D");
    }

    #[test]
    fn refusals_are_sentences_without_secrets() {
        for (text, says) in [
            ("", "neither AccountKey"),
            ("c2VjcmV0", "Name=Value"),
            ("AccountName=a", "neither AccountKey"),
            ("AccountKey=c2VjcmV0", "neither TableEndpoint"),
            ("AccountName=a;AccountKey=secret!", "not base64"),
            ("AccountName=a;AccountKey=c2VjcmV0;TableEndpoint=localhost", "neither with https"),
            ("AccountName=a;AccountKey=c2VjcmV0;TableEndpoint=http:// x", "not a URL"),
            ("AccountName=a\u{1}b;AccountKey=c2VjcmV0;TableEndpoint=http://h", "AccountName has"),
            ("TableEndpoint=http://h/a;SharedAccessSignature=sig=sec ret", "SharedAccessSignature has"),
            ("https://mine.table.core.windows.net/", "needs ?"),
        ] {
            let error = Connection::parse(text).unwrap_err().to_string();
            assert!(error.contains(says) && error.ends_with('.'), "{text}: {error}");
            assert!(!error.contains("secret") && !error.contains("c2VjcmV0"), "{error}");
        }
        let shown = format!("{:?}", Connection::parse("AccountName=a;AccountKey=c2VjcmV0").unwrap());
        assert!(!shown.contains("c2VjcmV0") && shown.contains("Key(..)"), "{shown}");
    }
}
