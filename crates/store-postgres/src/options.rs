//! The URL of a store.

use crate::sql::Engine;
use crate::tls::Tls;
use partita_store::Clock;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

const CONNECTIONS_DEFAULT: usize = 32;
const CONNECTIONS_MAX: usize = 10_000;
/// A database that does not take a connection within this time is passed over for the next one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the database is, and how it is used. Shows itself without its password.
#[derive(Clone)]
pub struct Options {
    pub(crate) config: Config,
    pub(crate) tls: Option<Tls>,
    /// Most connections at a time.
    pub connections: usize,
    /// Where versions come from.
    pub clock: Clock,
    pub(crate) steps: fn(Engine) -> Vec<String>,
}

impl Options {
    /// Reads `postgres://user:password@host1:port,host2/database?connections=32&sslmode=require&sslrootcert=FILE&...`. Other
    /// parameters are those of libpq that `tokio-postgres` knows. An error is a sentence without secrets.
    pub fn parse(url: &str) -> Result<Options, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("A store is given as postgres://user@host1,host2/database.".into());
        }
        let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
        let mut connections = CONNECTIONS_DEFAULT;
        let mut trusted = None;
        let mut others = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=').unwrap_or((parameter, "")) {
                ("connections", count) => {
                    let count = count.parse().ok().filter(|count| (1..=CONNECTIONS_MAX).contains(count));
                    connections = count.ok_or(format!("connections is a number from 1 to {CONNECTIONS_MAX}."))?;
                }
                ("sslrootcert", file) => trusted = Some(file),
                // Certificates are always verified.
                ("sslmode", "verify-full" | "verify-ca") => others.push("sslmode=require"),
                _ => others.push(parameter),
            }
        }
        let url = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let why = std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string);
            format!("The URL of the store cannot be read: {why}.")
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("The URL of the store names no host: postgres://user@host/database.".into());
        }
        let tls = match (config.get_ssl_mode(), trusted) {
            (SslMode::Require, trusted) => Some(Tls::new(trusted.map(Path::new))?),
            (_, Some(_)) => return Err("sslrootcert needs sslmode=require.".into()),
            (_, None) => None,
        };
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("partita");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        // A peer that is gone without a word is noticed within half a minute.
        config.keepalives_idle(Duration::from_secs(10));
        config.keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3);
        config.tcp_user_timeout(Duration::from_secs(25));
        Ok(Options { config, tls, connections, clock: Clock::system(), steps: Engine::steps })
    }

    /// The same with versions from another clock.
    pub fn with_clock(self, clock: Clock) -> Options {
        Options { clock, ..self }
    }

    /// The same with other steps that lead to the tables, as a later version may have them.
    pub fn with_steps(self, steps: fn(Engine) -> Vec<String>) -> Options {
        Options { steps, ..self }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        f.write_str("postgres://")?;
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(host) => write!(f, "{comma}{host}:{port}")?,
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().or(self.config.get_user()).unwrap_or_default())
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_shown_without_its_password() {
        let url = "postgres://me:s3cret@one:5433,two/tables?connections=7&application_name=x";
        let options = Options::parse(url).unwrap();
        assert_eq!(options.connections, 7);
        assert_eq!(options.config.get_hosts().len(), 2);
        assert_eq!(options.config.get_password(), Some(&b"s3cret"[..]));
        assert_eq!(options.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let shown = format!("{options} {options:?}");
        assert!(shown.contains("one:5433,two:") && shown.contains("/tables") && !shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (url, says) in [
            ("mysql://me:s3cret@one/tables", "postgres://"),
            ("postgres://me:s3cret@one/tables?connections=0", "from 1 to"),
            ("postgres://me:s3cret@one/tables?connections=many", "from 1 to"),
            ("postgres://me:s3cret@one/tables?colour=blue", "colour"),
            ("postgres://me:s3cret@one:port/tables", "port"),
            ("postgres:///tables", "no host"),
            ("postgres://me:s3cret@one/tables?sslrootcert=some.pem", "sslmode"),
            ("postgres://me:s3cret@one/tables?sslmode=require&sslrootcert=/nowhere.pem", "/nowhere.pem"),
        ] {
            let error = Options::parse(url).unwrap_err();
            assert!(error.contains(says) && !error.contains("s3cret"), "{url}: {error}");
        }
    }
}
