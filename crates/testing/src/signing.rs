//! Accounts, keys and signatures.

use crate::http::Request;
use partita_auth::{AccountKey, SasBuilder, Scheme, TableRequest, sign, string_to_sign};
use partita_model::Ticks;
use partita_server::config::{AccountList, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use std::time::{Duration, SystemTime};

pub const ACCOUNT: &str = DEVELOPMENT_ACCOUNT;
pub const KEY: &str = DEVELOPMENT_KEY;
/// The second key of [`ACCOUNT`].
pub const KEY_TWO: &str = "dGhlIHNlY29uZCBrZXkgb2YgdGhlIGZpcnN0IGFjY291bnQ=";
/// An account beside [`ACCOUNT`].
pub const OTHER_ACCOUNT: &str = "other";
pub const OTHER_KEY: &str = "dGhlIGtleSBvZiB0aGUgb3RoZXIgYWNjb3VudA==";
/// A key that nobody has.
pub const WRONG_KEY: &str = "bm9ib2R5IGhhcyB0aGlzIGtleQ==";

/// The accounts of a server under test.
pub fn accounts() -> AccountList {
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    AccountList::from([(ACCOUNT.into(), keys(&[KEY, KEY_TWO])), (OTHER_ACCOUNT.into(), keys(&[OTHER_KEY]))])
}

/// The moment that lies this many seconds ahead.
pub fn moment(seconds: i64) -> Ticks {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let now = SystemTime::now();
    Ticks::from_system_time(if seconds < 0 { now - distance } else { now + distance })
}

/// A request and how it may be signed.
impl Request {
    /// Signed with the first key of its account, unless it carries credentials already.
    pub fn signed(self) -> Request {
        let is_signed = self.get_header("Authorization").is_some() || self.target.contains("sig=");
        let key = if self.account.starts_with(OTHER_ACCOUNT) { OTHER_KEY } else { KEY };
        if is_signed { self } else { self.signed_with(Scheme::SharedKeyLite, key) }
    }

    pub fn signed_with(self, scheme: Scheme, key: &str) -> Request {
        self.signed_at(scheme, key, &moment(0).rfc1123())
    }

    /// Signed at a given date.
    pub fn signed_at(self, scheme: Scheme, key: &str, date: &str) -> Request {
        let account = self.account.strip_suffix("-secondary").unwrap_or(&self.account).to_owned();
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let signature = sign(
            &AccountKey::parse(key).expect("a key of the tests"),
            &string_to_sign(
                scheme,
                &TableRequest {
                    account: &account,
                    method: &self.method,
                    path: &self.path(),
                    comp: query.split('&').find_map(|pair| pair.strip_prefix("comp=")),
                    content_md5: self.get_header("Content-MD5").unwrap_or_default(),
                    content_type: self.get_header("Content-Type").unwrap_or_default(),
                    date,
                },
            ),
        );
        let authorization = format!("{scheme:?} {account}:{signature}");
        self.header("x-ms-date", date).header("Authorization", authorization)
    }

    /// With a shared access signature in its query.
    pub fn sas(self, builder: &SasBuilder) -> Request {
        self.sas_of(builder, ACCOUNT, KEY)
    }

    pub fn sas_of(self, builder: &SasBuilder, account: &str, key: &str) -> Request {
        let query = token(builder, account, key);
        self.query(&query)
    }
}

/// A token as the query of a URL.
pub fn token(builder: &SasBuilder, account: &str, key: &str) -> String {
    builder.query(account, &AccountKey::parse(key).expect("a key of the tests")).expect("a token that is well formed")
}

/// A token for a table that is valid for an hour.
pub fn table_sas(table: &str, permissions: &str) -> SasBuilder {
    SasBuilder::table(table).permissions(permissions).expiry(moment(3600))
}

/// A token for the Table service of an account that is valid for an hour.
pub fn account_sas(resource_types: &str, permissions: &str) -> SasBuilder {
    SasBuilder::account("t", resource_types).permissions(permissions).expiry(moment(3600))
}
