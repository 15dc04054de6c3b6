//! Who may come in: accounts and their keys, exchangeable while the server runs.

use crate::config::{AccountList, Config, DEVELOPMENT_KEY, read_accounts};
use arc_swap::ArcSwap;
use partita_auth::AccountKeys;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tracing::{error, info};

/// The accounts of now.
#[derive(Debug)]
pub(crate) struct Accounts(ArcSwap<HashMap<String, Account>>);

#[derive(Debug)]
struct Account {
    keys: Arc<AccountKeys>,
    has_development_key: bool,
}

impl Accounts {
    /// Checks and takes accounts. An error is a sentence for the user; it never holds a key.
    pub(crate) fn new(list: &AccountList) -> Result<Accounts, String> {
        Ok(Accounts(ArcSwap::from_pointee(parse(list)?)))
    }

    pub(crate) fn keys(&self, account: &str) -> Option<Arc<AccountKeys>> {
        self.0.load().get(account).map(|account| account.keys.clone())
    }

    /// Whether everybody knows a key of the account.
    pub(crate) fn has_development_key(&self, account: &str) -> bool {
        self.0.load().get(account).is_some_and(|account| account.has_development_key)
    }

    fn replace(&self, list: &AccountList) -> Result<(), String> {
        self.0.store(Arc::new(parse(list)?));
        Ok(())
    }
}

/// Far more than Azure's 24.
const NAME_BYTES_MAX: usize = 100;

/// Whether an account can be called so.
pub(crate) fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_letter)
}

fn parse(list: &AccountList) -> Result<HashMap<String, Account>, String> {
    list.iter()
        .map(|(name, keys)| {
            if !is_name(name) {
                return Err(format!(
                    "Account '{name}': a name consists of lower-case letters and digits, at most {NAME_BYTES_MAX}."
                ));
            }
            let has_development_key = keys.iter().any(|key| key == DEVELOPMENT_KEY);
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let keys = AccountKeys::parse(&keys).map_err(|error| format!("Account '{name}': {error}."))?;
            Ok((name.clone(), Account { keys: Arc::new(keys), has_development_key }))
        })
        .collect()
}

/// Reads the accounts again whenever the file changes or somebody `asks`; a file that cannot be read changes nothing.
pub(crate) async fn follow_file(
    accounts: Arc<Accounts>,
    config: Arc<Config>,
    mut asks: tokio::sync::mpsc::Receiver<()>,
) {
    let Some(path) = config.accounts_file.clone() else { return };
    let mut seen = modified(&path);
    loop {
        let asked = tokio::time::timeout(Duration::from_secs(1), asks.recv()).await;
        let now = modified(&path);
        if now == seen && asked.is_err() {
            continue;
        }
        seen = now;
        let read = read_accounts(&path).and_then(|list| {
            config.check_accounts(&list)?;
            accounts.replace(&list).map(|()| list.len())
        });
        match read {
            Ok(count) => info!(count, "accounts were read again"),
            Err(why) => error!(why, "accounts stay as they were"),
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
