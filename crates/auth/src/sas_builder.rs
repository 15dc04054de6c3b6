//! The other side of a shared access signature: making one.
//!
//! What is built goes through the same parser and the same layout of the signed text as what is received, so a token
//! that the server would refuse as malformed is not made in the first place.

use crate::{AccountKey, Sas, authentication_failed, sign};
use partita_model::{ServiceError, Ticks};

/// The version written unless another is asked for; that of the Tables client libraries.
const DEFAULT_VERSION: &str = "2019-02-02";

/// Collects the fields of a signature.
///
/// ```
/// use partita_auth::{AccountKey, SasBuilder};
/// use partita_model::Ticks;
///
/// let key = AccountKey::parse("c2VjcmV0").unwrap();
/// let query = SasBuilder::table("MyTable")
///     .permissions("r")
///     .expiry(Ticks::parse_iso("2026-12-31").unwrap())
///     .start_keys("a", Some("1"))
///     .query("devstoreaccount1", &key)
///     .unwrap();
/// assert!(query.starts_with("sv=2019-02-02&tn=MyTable&sp=r&se=2026-12-31T00%3A00%3A00Z&spk=a&srk=1&sig="));
/// ```
#[derive(Clone, Debug)]
pub struct SasBuilder {
    pairs: Vec<(String, String)>,
}

impl SasBuilder {
    /// A signature for services (letters of `bqtf`) and resource types (letters of `sco`) of the account.
    pub fn account(services: &str, resource_types: &str) -> SasBuilder {
        SasBuilder { pairs: Vec::new() }.field("sv", DEFAULT_VERSION).field("ss", services).field("srt", resource_types)
    }

    /// A signature for one table.
    pub fn table(name: &str) -> SasBuilder {
        SasBuilder { pairs: Vec::new() }.field("sv", DEFAULT_VERSION).field("tn", name)
    }

    /// Signs in the layout of this version.
    pub fn version(self, version: &str) -> SasBuilder {
        self.field("sv", version)
    }

    /// The permissions, in the order they shall be written.
    pub fn permissions(self, letters: &str) -> SasBuilder {
        self.field("sp", letters)
    }

    /// From when on it is valid.
    pub fn start(self, start: Ticks) -> SasBuilder {
        self.field("st", &start.to_string())
    }

    /// When it ceases to be valid.
    pub fn expiry(self, expiry: Ticks) -> SasBuilder {
        self.field("se", &expiry.to_string())
    }

    /// The stored access policy that holds what is not given here.
    pub fn policy(self, id: &str) -> SasBuilder {
        self.field("si", id)
    }

    /// The addresses it may be used from: an IPv4 address, or two with `-` between.
    pub fn addresses(self, range: &str) -> SasBuilder {
        self.field("sip", range)
    }

    /// Refuses plain HTTP.
    pub fn https_only(self) -> SasBuilder {
        self.field("spr", "https")
    }

    /// The first row it reaches, or the first partition.
    pub fn start_keys(self, partition_key: &str, row_key: Option<&str>) -> SasBuilder {
        self.keys(("spk", partition_key), ("srk", row_key))
    }

    /// The last row it reaches, or the last partition.
    pub fn end_keys(self, partition_key: &str, row_key: Option<&str>) -> SasBuilder {
        self.keys(("epk", partition_key), ("erk", row_key))
    }

    fn keys(self, partition: (&str, &str), row: (&str, Option<&str>)) -> SasBuilder {
        let builder = self.field(partition.0, partition.1);
        match row.1 {
            Some(row_key) => builder.field(row.0, row_key),
            None => builder,
        }
    }

    fn field(mut self, name: &str, value: &str) -> SasBuilder {
        match self.pairs.iter_mut().find(|(other, _)| other == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.pairs.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    /// The signed fields, not yet encoded for a URL.
    pub fn pairs(&self, account: &str, key: &AccountKey) -> Result<Vec<(String, String)>, ServiceError> {
        // The signature does not cover the difference between an empty field and none. For the end of a range that is
        // the difference between almost nothing and everything.
        if let Some((name, _)) = self.pairs.iter().find(|(_, value)| value.is_empty()) {
            return Err(authentication_failed(format_args!("{name} is empty, which the signature cannot express.")));
        }
        let mut pairs = self.pairs.clone();
        pairs.push(("sig".to_owned(), "unsigned".to_owned()));
        let sas = Sas::from_query(&pairs)?.expect("there is a sig");
        if sas.policy_id().is_none() {
            sas.grant(None)?;
        }
        let signature = sign(key, &sas.string_to_sign(account));
        pairs.last_mut().expect("there is a sig").1 = signature;
        Ok(pairs)
    }

    /// The query string, without a leading `?`.
    pub fn query(&self, account: &str, key: &AccountKey) -> Result<String, ServiceError> {
        let pairs = self.pairs(account, key)?;
        Ok(pairs.iter().map(|(name, value)| format!("{name}={}", percent_encode(value))).collect::<Vec<_>>().join("&"))
    }
}

fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}
