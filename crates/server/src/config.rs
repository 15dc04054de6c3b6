//! Configuration: flags, environment, a TOML file, in this order of precedence.
//!
//! One struct is all three: each setting is a flag, an environment variable and a key of the file of the same name.
//! Azurite's flags are accepted as aliases; the ones that have no meaning here are accepted too and said to have none.

use crate::commands::{Backup, Check, Copy, Export, Import, Migrate, Restore};
use clap::{Args, Parser, ValueEnum};
use partita_store_postgres::Options as StoreOptions;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A table storage server that speaks the Azure Table protocol.
#[derive(Debug, Parser)]
#[command(name = "partita", version, about, args_conflicts_with_subcommands = true, args_override_self = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Settings,
}

/// What the process is to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Runs the server; the same as giving no command.
    Serve(Box<Settings>),
    #[allow(missing_docs, reason = "help shows what is said of the arguments")]
    Backup(Backup),
    #[allow(missing_docs, reason = "help shows what is said of the arguments")]
    Restore(Restore),
    #[allow(missing_docs, reason = "help shows what is said of the arguments")]
    Check(Check),
    #[allow(missing_docs, reason = "help shows what is said of the arguments")]
    Export(Export),
    #[allow(missing_docs, reason = "help shows what is said of the arguments")]
    Import(Import),
    #[allow(missing_docs, reason = "help shows what is said of the arguments")]
    Copy(Copy),
    #[allow(missing_docs, reason = "help shows what is said of the arguments")]
    Migrate(Migrate),
}

impl Cli {
    /// What was asked for.
    pub fn command(self) -> Command {
        self.command.unwrap_or_else(|| Command::Serve(Box::new(self.settings)))
    }
}

/// Settings as a user gave them; whatever is `None` was not given.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// A TOML file with any of these settings and an `[accounts]` table; accounts are read again when it changes.
    #[arg(long, value_name = "FILE", env = "PARTITA_CONFIG")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Address to listen on for the Table service [default: 127.0.0.1].
    #[arg(long, alias = "tableHost", value_name = "ADDRESS", env = "PARTITA_TABLE_HOST")]
    pub table_host: Option<String>,
    /// Port of the Table service; 0 picks a free one and prints it [default: 10002].
    #[arg(long, alias = "tablePort", value_name = "PORT", env = "PARTITA_TABLE_PORT")]
    pub table_port: Option<u16>,
    /// Address of the admin port [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_ADMIN_HOST")]
    pub admin_host: Option<String>,
    /// Port of /livez, /readyz and /metrics; 0 picks a free one [default: 10012, if it is free].
    #[arg(long, value_name = "PORT", env = "PARTITA_ADMIN_PORT")]
    pub admin_port: Option<u16>,

    /// Folder of the data [default: ./partita-data].
    #[arg(short, long, value_name = "FOLDER", env = "PARTITA_LOCATION")]
    pub location: Option<PathBuf>,
    /// Keep everything in memory, and nothing after the end.
    #[arg(long, alias = "inMemoryPersistence", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, env = "PARTITA_IN_MEMORY")]
    pub in_memory: Option<bool>,
    /// A database that this and other nodes keep the data in, as postgres://user@host1,host2/database, in place of a folder.
    #[arg(long, value_name = "URL", env = "PARTITA_STORE", hide_env_values = true)]
    pub store: Option<Secret>,
    /// When an answered write is safe: at once, within an interval, or when the system pleases [default: sync].
    #[arg(long, value_enum, value_name = "WHEN", env = "PARTITA_DURABILITY")]
    pub durability: Option<DurabilityName>,
    /// The interval of `--durability=interval`, in milliseconds [default: 100].
    #[arg(long, value_name = "MS", env = "PARTITA_SYNC_INTERVAL_MS")]
    pub sync_interval_ms: Option<u64>,
    /// Memory for recently read rows and blocks, in MiB [default: 128].
    #[arg(long, value_name = "MIB", env = "PARTITA_CACHE_MIB")]
    pub cache_mib: Option<usize>,
    /// What is written before it becomes a file of its own, in MiB; up to three times as much is in memory [default: 32].
    #[arg(long, value_name = "MIB", env = "PARTITA_WRITE_BUFFER_MIB")]
    pub write_buffer_mib: Option<usize>,
    /// Start although files are damaged, without what was written behind the damage; for one start.
    #[arg(long)]
    #[serde(skip)]
    pub accept_damage: bool,

    /// Certificate chain in a PEM file; serves HTTPS. Needs --key.
    #[arg(long, value_name = "FILE", env = "PARTITA_CERT")]
    pub cert: Option<PathBuf>,
    /// Private key of the certificate in a PEM file.
    #[arg(long, value_name = "FILE", env = "PARTITA_KEY")]
    pub key: Option<PathBuf>,

    /// Accounts as `name:key1[:key2];...` in place of the development account; keys are base64.
    #[arg(long = "accounts", value_name = "ACCOUNTS", env = "AZURITE_ACCOUNTS", hide_env_values = true)]
    #[serde(skip)]
    pub account_list: Option<String>,
    /// Accounts of the file: `name = ["key1", "key2"]`.
    #[arg(skip)]
    #[serde(deserialize_with = "accounts_of_file")]
    pub accounts: BTreeMap<String, Vec<String>>,
    /// Listen beyond this machine although an account has the development key, which everybody knows.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, env = "PARTITA_ALLOW_DEVELOPMENT_KEY")]
    pub allow_development_key: Option<bool>,
    /// Always take the account from the path, never from the host name.
    #[arg(long, alias = "disableProductStyleUrl", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, env = "PARTITA_DISABLE_PRODUCT_STYLE_URL")]
    pub disable_product_style_url: Option<bool>,
    /// How far the clock of a client may be off, in minutes [default: 15].
    #[arg(long, value_name = "MINUTES", env = "PARTITA_CLOCK_SKEW_MINUTES")]
    pub clock_skew_minutes: Option<u64>,

    /// Most connections at a time [default: 20000].
    #[arg(long, value_name = "COUNT", env = "PARTITA_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// How long an idle connection is kept, in seconds [default: 120].
    #[arg(long, alias = "tableKeepAliveTimeout", value_name = "SECONDS", env = "PARTITA_KEEP_ALIVE_SECONDS")]
    pub keep_alive_seconds: Option<u64>,
    /// Add x-partita-plan to every answer of a query; a request may also ask for it with that header.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, env = "PARTITA_PLAN_HEADER")]
    pub plan_header: Option<bool>,

    /// Log only errors.
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, env = "PARTITA_SILENT")]
    pub silent: Option<bool>,
    /// Log every request to a file.
    #[arg(short, long, value_name = "FILE", env = "PARTITA_DEBUG")]
    pub debug: Option<PathBuf>,
    /// What is logged: error, warn, info, debug (every request) or trace [default: info].
    #[arg(long, value_name = "LEVEL", env = "PARTITA_LOG_LEVEL")]
    pub log_level: Option<tracing_level::Level>,
    /// How it is written [default: text].
    #[arg(long, value_enum, value_name = "FORMAT", env = "PARTITA_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,

    #[command(flatten)]
    #[serde(skip)]
    azurite: AzuriteFlags,
}

/// Where data is, with what opens it: a text that may hold a password or a key, and is therefore not shown.
#[derive(Clone, Deserialize)]
pub struct Secret(pub(crate) String);

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Flags of Azurite that have no meaning here.
#[derive(Clone, Debug, Default, Args)]
struct AzuriteFlags {
    #[arg(long = "blobHost", hide = true)]
    blob_host: Option<String>,
    #[arg(long = "blobPort", hide = true)]
    blob_port: Option<String>,
    #[arg(long = "blobKeepAliveTimeout", hide = true)]
    blob_keep_alive_timeout: Option<String>,
    #[arg(long = "queueHost", hide = true)]
    queue_host: Option<String>,
    #[arg(long = "queuePort", hide = true)]
    queue_port: Option<String>,
    #[arg(long = "queueKeepAliveTimeout", hide = true)]
    queue_keep_alive_timeout: Option<String>,
    #[arg(short = 'L', long = "loose", hide = true)]
    loose: bool,
    #[arg(long = "skipApiVersionCheck", hide = true)]
    skip_api_version_check: bool,
    #[arg(long = "disableTelemetry", hide = true)]
    disable_telemetry: bool,
    #[arg(long = "extentMemoryLimit", hide = true)]
    extent_memory_limit: Option<String>,
    #[arg(long = "oauth", hide = true)]
    oauth: Option<String>,
    #[arg(long = "pwd", hide = true)]
    pwd: Option<String>,
}

impl AzuriteFlags {
    /// One sentence for each flag that was given.
    fn notes(&self) -> Vec<String> {
        let here = [
            (self.blob_host.is_some(), "--blobHost", "there is no Blob service yet"),
            (self.blob_port.is_some(), "--blobPort", "there is no Blob service yet"),
            (self.blob_keep_alive_timeout.is_some(), "--blobKeepAliveTimeout", "there is no Blob service yet"),
            (self.queue_host.is_some(), "--queueHost", "there is no Queue service yet"),
            (self.queue_port.is_some(), "--queuePort", "there is no Queue service yet"),
            (self.queue_keep_alive_timeout.is_some(), "--queueKeepAliveTimeout", "there is no Queue service yet"),
            (self.loose, "--loose", "unknown headers and parameters are always ignored"),
            (self.skip_api_version_check, "--skipApiVersionCheck", "every version of the protocol is always accepted"),
            (self.disable_telemetry, "--disableTelemetry", "there is no telemetry"),
            (self.extent_memory_limit.is_some(), "--extentMemoryLimit", "there is no Blob service yet"),
            (self.oauth.is_some(), "--oauth", "bearer tokens are not supported"),
            (self.pwd.is_some(), "--pwd", "certificates are read from PEM files, which have no password"),
        ];
        let given = here.into_iter().filter(|(given, _, _)| *given);
        given.map(|(_, flag, why)| format!("{flag} has no effect: {why}.")).collect()
    }
}

/// When an answered write is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityName {
    /// Before it is answered.
    Sync,
    /// Within `sync_interval_ms`.
    Interval,
    /// When the system pleases.
    None,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
    Json,
}

mod tracing_level {
    use serde::{Deserialize, Deserializer};
    use std::str::FromStr;

    /// A level of logging.
    #[derive(Clone, Copy, Debug)]
    pub struct Level(pub tracing::Level);

    impl FromStr for Level {
        type Err = String;

        fn from_str(text: &str) -> Result<Level, String> {
            text.parse().map(Level).map_err(|_| "expected error, warn, info, debug or trace".into())
        }
    }

    impl<'de> Deserialize<'de> for Level {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
            String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
        }
    }
}

pub use partita_auth::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};

/// Names and keys of accounts, as given.
pub type AccountList = BTreeMap<String, Vec<String>>;

/// Everything the server needs to know, complete and checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the Table service listens.
    pub table: SocketAddr,
    /// Where the admin port listens, and whether it must.
    pub admin: (SocketAddr, bool),
    /// The data folder; `None` keeps everything in memory, or in the database.
    pub location: Option<PathBuf>,
    /// The database, if there is one in place of a folder.
    pub store: Option<StoreOptions>,
    /// When an answered write is safe.
    pub durability: DurabilityName,
    /// How often the log is synced with [`DurabilityName::Interval`].
    pub sync_interval: Duration,
    /// Memory for recently read blocks.
    pub cache_bytes: usize,
    /// How much is written before it becomes a file of its own.
    pub write_buffer_bytes: usize,
    /// Whether to start without what was written behind damage.
    pub accept_damage: bool,
    /// Certificate chain and private key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Who may come in.
    pub accounts: AccountList,
    /// Whether the development key may be used from other machines.
    pub allow_development_key: bool,
    /// The file the accounts came from, to be read again.
    pub accounts_file: Option<PathBuf>,
    /// Whether the account may stand in the host name.
    pub host_style: bool,
    /// How far the clock of a client may be off.
    pub clock_skew: Duration,
    /// Most connections at a time.
    pub max_connections: usize,
    /// How long an idle connection is kept.
    pub keep_alive: Duration,
    /// Whether every query answers with its plan.
    pub plan_header: bool,
    /// What is logged.
    pub log_level: tracing::Level,
    /// How it is written.
    pub log_format: LogFormat,
    /// Where every request is logged.
    pub debug_log: Option<PathBuf>,
    /// Things to tell the user that are not errors.
    pub notes: Vec<String>,
}

impl Settings {
    /// Fills in the file and the defaults, and checks what belongs together. An error is a sentence for the user.
    pub fn complete(self) -> Result<Config, String> {
        let notes = self.azurite.notes();
        let accounts_file = self.config.clone();
        let settings = match &accounts_file {
            Some(path) => self.over(read_file(path)?),
            None => self,
        };
        let host = |host: &Option<String>| match host.as_deref() {
            None | Some("localhost") => Ok(IpAddr::from([127, 0, 0, 1])),
            Some(text) => text.parse().map_err(|_| format!("'{text}' is not an IP address to listen on.")),
        };
        let tls = match (settings.cert, settings.key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => return Err("--cert needs --key, the private key as a PEM file. For a PFX file: openssl pkcs12 -in FILE -nodes -out both.pem, then give both.pem to both flags.".into()),
            (None, Some(_)) => return Err("--key needs --cert, the certificate as a PEM file.".into()),
        };
        let accounts = match settings.account_list.as_deref().filter(|list| !list.trim().is_empty()) {
            Some(list) => parse_accounts(list)?,
            None if !settings.accounts.is_empty() => settings.accounts,
            None => AccountList::from([(DEVELOPMENT_ACCOUNT.into(), vec![DEVELOPMENT_KEY.into()])]),
        };
        let store = match settings.store {
            None => None,
            Some(_) if settings.location.is_some() => {
                return Err(
                    "--store and --location exclude each other: the data are in a database or in a folder.".into()
                );
            }
            Some(_) if settings.in_memory == Some(true) => {
                return Err(
                    "--store and --in-memory exclude each other: the data are in a database or in memory.".into()
                );
            }
            Some(Secret(url)) => Some(StoreOptions::parse(&url)?),
        };
        let config = Config {
            table: (host(&settings.table_host)?, settings.table_port.unwrap_or(10002)).into(),
            admin: (
                (host(&settings.admin_host)?, settings.admin_port.unwrap_or(10012)).into(),
                settings.admin_port.is_some(),
            ),
            location: match settings.in_memory {
                Some(true) => None,
                _ if store.is_some() => None,
                _ => Some(settings.location.unwrap_or_else(|| "partita-data".into())),
            },
            store,
            durability: settings.durability.unwrap_or(DurabilityName::Sync),
            sync_interval: Duration::from_millis(settings.sync_interval_ms.unwrap_or(100).max(1)),
            cache_bytes: settings.cache_mib.unwrap_or(160).max(1) << 20,
            write_buffer_bytes: settings.write_buffer_mib.unwrap_or(32).clamp(1, 4096) << 20,
            accept_damage: settings.accept_damage,
            tls,
            accounts,
            allow_development_key: settings.allow_development_key.unwrap_or(false),
            accounts_file: accounts_file.filter(|_| settings.account_list.is_none()),
            host_style: !settings.disable_product_style_url.unwrap_or(false),
            clock_skew: Duration::from_secs(60 * settings.clock_skew_minutes.unwrap_or(15)),
            max_connections: settings.max_connections.unwrap_or(20_000).max(1),
            keep_alive: Duration::from_secs(settings.keep_alive_seconds.unwrap_or(120).max(1)),
            plan_header: settings.plan_header.unwrap_or(false),
            log_level: match (settings.log_level, settings.silent) {
                (Some(level), _) => level.0,
                (None, Some(true)) => tracing::Level::ERROR,
                (None, _) => tracing::Level::INFO,
            },
            log_format: settings.log_format.unwrap_or(LogFormat::Text),
            debug_log: settings.debug,
            notes,
        };
        config.check_accounts(&config.accounts)?;
        Ok(config)
    }

    /// These settings where they are given, else the ones of the file.
    fn over(self, file: Settings) -> Settings {
        Settings {
            config: self.config,
            table_host: self.table_host.or(file.table_host),
            table_port: self.table_port.or(file.table_port),
            admin_host: self.admin_host.or(file.admin_host),
            admin_port: self.admin_port.or(file.admin_port),
            location: self.location.or(file.location),
            in_memory: self.in_memory.or(file.in_memory),
            store: self.store.or(file.store),
            durability: self.durability.or(file.durability),
            sync_interval_ms: self.sync_interval_ms.or(file.sync_interval_ms),
            cache_mib: self.cache_mib.or(file.cache_mib),
            write_buffer_mib: self.write_buffer_mib.or(file.write_buffer_mib),
            accept_damage: self.accept_damage,
            cert: self.cert.or(file.cert),
            key: self.key.or(file.key),
            account_list: self.account_list,
            accounts: file.accounts,
            allow_development_key: self.allow_development_key.or(file.allow_development_key),
            disable_product_style_url: self.disable_product_style_url.or(file.disable_product_style_url),
            clock_skew_minutes: self.clock_skew_minutes.or(file.clock_skew_minutes),
            max_connections: self.max_connections.or(file.max_connections),
            keep_alive_seconds: self.keep_alive_seconds.or(file.keep_alive_seconds),
            plan_header: self.plan_header.or(file.plan_header),
            silent: self.silent.or(file.silent),
            debug: self.debug.or(file.debug),
            log_level: self.log_level.or(file.log_level),
            log_format: self.log_format.or(file.log_format),
            azurite: self.azurite,
        }
    }
}

impl Config {
    /// Whether these accounts may be served where we listen. An error is a sentence for the user.
    pub fn check_accounts(&self, accounts: &AccountList) -> Result<(), String> {
        let well_known = accounts.values().flatten().any(|key| key == DEVELOPMENT_KEY);
        if well_known && !self.table.ip().is_loopback() && !self.allow_development_key {
            return Err(format!(
                "Refusing to listen on {} with the development key, which everybody knows: give accounts of your own \
                 (--accounts or AZURITE_ACCOUNTS=name:key), or say --allow-development-key.",
                self.table.ip()
            ));
        }
        Ok(())
    }

    /// Whether the key that everybody knows is only for this machine, and so for no page that a browser took from elsewhere.
    pub(crate) fn guards_development_key(&self) -> bool {
        self.table.ip().is_loopback() && !self.allow_development_key
    }
}

fn read_file(path: &Path) -> Result<Settings, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("Cannot read {}: {error}.", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        // The error's own text quotes the line, which may hold a key.
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        format!("{} is not a valid configuration: line {line}: {}.", path.display(), error.message())
    })
}

/// Reads the accounts of a file. Unlike serde's own errors these do not quote what was found, which may be a key.
fn accounts_of_file<'de, D: serde::Deserializer<'de>>(from: D) -> Result<AccountList, D::Error> {
    let wrong = || serde::de::Error::custom("accounts are given as name = [\"key1\", \"key2\"]");
    let toml::Value::Table(table) = toml::Value::deserialize(from)? else { return Err(wrong()) };
    let account = |(name, keys): (String, toml::Value)| {
        let toml::Value::Array(keys) = keys else { return Err(wrong()) };
        let keys = keys.into_iter().map(|key| match key {
            toml::Value::String(key) => Ok(key),
            _ => Err(wrong()),
        });
        Ok((name, keys.collect::<Result<_, _>>()?))
    };
    table.into_iter().map(account).collect()
}

/// Reads the accounts of a configuration file once more.
pub(crate) fn read_accounts(path: &Path) -> Result<AccountList, String> {
    read_file(path).map(|settings| settings.accounts)
}

/// Reads `name:key1[:key2];...`.
fn parse_accounts(list: &str) -> Result<AccountList, String> {
    let mut accounts = AccountList::new();
    for entry in list.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let mut fields = entry.split(':').map(str::trim);
        let name = fields.next().unwrap_or_default();
        let keys: Vec<String> = fields.map(str::to_owned).collect();
        if name.is_empty() || keys.is_empty() || keys.len() > 2 {
            return Err("Accounts are given as name:key1[:key2], separated by semicolons.".into());
        }
        accounts.insert(name.into(), keys);
    }
    Ok(accounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(arguments: &[&str]) -> Result<Config, String> {
        let arguments = ["partita"].into_iter().chain(arguments.iter().copied());
        match Cli::try_parse_from(arguments).map_err(|error| error.to_string())?.command() {
            Command::Serve(settings) => settings.complete(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn defaults() {
        let config = config(&[]).unwrap();
        assert_eq!(config.table.to_string(), "127.0.0.1:10002");
        assert_eq!(config.location, Some("partita-data".into()));
        assert_eq!(config.durability, DurabilityName::Sync);
        assert_eq!(config.accounts.keys().collect::<Vec<_>>(), [DEVELOPMENT_ACCOUNT]);
    }

    #[test]
    fn azurite_flags() {
        let config = config(&[
            "--tableHost",
            "127.0.0.1",
            "--tablePort",
            "0",
            "-l",
            "data",
            "--inMemoryPersistence",
            "--silent",
            "--loose",
            "--skipApiVersionCheck",
            "--disableProductStyleUrl",
            "--blobPort",
            "10000",
            "--queueHost",
            "0.0.0.0",
        ])
        .unwrap();
        assert_eq!(config.table.to_string(), "127.0.0.1:0");
        assert_eq!(config.location, None);
        assert!(!config.host_style);
        assert_eq!(config.log_level, tracing::Level::ERROR);
        assert_eq!(config.notes.len(), 4, "{:?}", config.notes);
    }

    #[test]
    fn refusals_are_sentences() {
        for (arguments, says) in [
            (&["--tableHost", "0.0.0.0"][..], "--allow-development-key"),
            (&["--tableHost", "example"], "not an IP address"),
            (&["--cert", "a.pem"], "needs --key"),
            (&["--accounts", "a"], "name:key1[:key2]"),
            (&["--store", "postgres://me@here/tables", "--location", "data"], "exclude each other"),
            (&["--store", "postgres://me@here/tables", "--in-memory"], "exclude each other"),
            (&["--store", "folder"], "postgres://"),
            (&["--config", "/nowhere/partita.toml"], "Cannot read"),
        ] {
            let error = config(arguments).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        assert!(config(&["--tableHost", "0.0.0.0", "--allow-development-key"]).is_ok());
        assert!(config(&["--tableHost", "0.0.0.0", "--accounts", "a:a2V5"]).is_ok());
    }

    #[test]
    fn the_password_of_a_store_is_not_shown() {
        let arguments = ["partita", "--store", "postgres://me:s3cret@here/tables"];
        let settings = Cli::try_parse_from(arguments).unwrap().settings;
        let shown = format!("{settings:?} {:?}", settings.clone().complete().unwrap());
        assert!(shown.contains("postgres://here:5432/tables") && !shown.contains("s3cret"), "{shown}");
        assert_eq!(settings.complete().unwrap().location, None);
    }

    #[test]
    fn flags_win_over_the_file() {
        let file: Settings = toml::from_str(
            "table-port = 1\nlocation = 'there'\ndurability = 'interval'\nlog-level = 'warn'\n[accounts]\nmine = ['a2V5']",
        )
        .unwrap();
        let flags = Settings { table_port: Some(2), ..Settings::default() };
        let config = flags.over(file).complete().unwrap();
        assert_eq!(config.table.port(), 2);
        assert_eq!(config.location, Some("there".into()));
        assert_eq!(config.durability, DurabilityName::Interval);
        assert_eq!(config.accounts.keys().collect::<Vec<_>>(), ["mine"]);
        assert!(toml::from_str::<Settings>("tabel-port = 1").is_err());
    }
}
