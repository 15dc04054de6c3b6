//! The secret keys of an account, and signing with them.
//!
//! An account has two keys so that one can be replaced while clients still use the other; either is good at any time.
//! A key is hashed into its HMAC state once, which halves the work for the short texts that are signed here. Nothing
//! in this module can print a key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use subtle::ConstantTimeEq;

/// The account everybody has on their own machine.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
/// Its key, which everybody knows.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// One decoded account key, ready to sign.
#[derive(Clone)]
pub struct AccountKey(Hmac<Sha256>);

/// Why a text is no account key. It names the key by its place, never by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// An account has one or two keys.
    Count(usize),
    /// The key at this place is empty.
    Empty(usize),
    /// The key at this place is not base64.
    NotBase64(usize),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Count(count) => write!(f, "an account has one or two keys, but {count} were given"),
            KeyError::Empty(index) => write!(f, "account key {} is empty", index + 1),
            KeyError::NotBase64(index) => write!(
                f,
                "account key {} is not base64: expected letters, digits, '+' and '/', padded with '=' to a multiple of \
                 four characters",
                index + 1
            ),
        }
    }
}

impl std::error::Error for KeyError {}

impl AccountKey {
    /// Reads a key in base64.
    pub fn parse(text: &str) -> Result<AccountKey, KeyError> {
        AccountKey::parse_at(0, text)
    }

    fn parse_at(index: usize, text: &str) -> Result<AccountKey, KeyError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| KeyError::NotBase64(index))?;
        if bytes.is_empty() {
            return Err(KeyError::Empty(index));
        }
        Ok(AccountKey(Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length")))
    }

    fn mac(&self, string_to_sign: &str) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(string_to_sign.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(..)")
    }
}

/// The keys of one account.
#[derive(Clone, Debug)]
pub struct AccountKeys(Vec<AccountKey>);

impl AccountKeys {
    /// Reads one or two keys in base64.
    pub fn parse(keys: &[&str]) -> Result<AccountKeys, KeyError> {
        if !(1..=2).contains(&keys.len()) {
            return Err(KeyError::Count(keys.len()));
        }
        let keys = keys.iter().enumerate().map(|(index, key)| AccountKey::parse_at(index, key));
        Ok(AccountKeys(keys.collect::<Result<_, _>>()?))
    }

    /// The first key.
    pub fn primary(&self) -> &AccountKey {
        &self.0[0]
    }

    /// All keys, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &AccountKey> {
        self.0.iter()
    }

    /// Whether one of the keys made this signature, given in base64, of this text.
    pub fn verify(&self, string_to_sign: &str, signature: &str) -> bool {
        let Ok(given) = STANDARD.decode(signature) else { return false };
        // Which key fits is no secret; how many bytes of a wrong signature fit is.
        self.0.iter().any(|key| bool::from(key.mac(string_to_sign).as_slice().ct_eq(&given)))
    }
}

/// The signature of a text in base64.
pub fn sign(key: &AccountKey, string_to_sign: &str) -> String {
    STANDARD.encode(key.mac(string_to_sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_of_rfc_4231() {
        let key = AccountKey::parse(&STANDARD.encode("Jefe")).unwrap();
        let expect = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let hex: String = key.mac("what do ya want for nothing?").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expect);
    }

    #[test]
    fn either_key_is_good() {
        let keys = AccountKeys::parse(&["a2V5MQ==", "a2V5Mg=="]).unwrap();
        for key in keys.iter() {
            assert!(keys.verify("text", &sign(key, "text")));
            assert!(!keys.verify("texT", &sign(key, "text")));
        }
        let other = AccountKey::parse("a2V5Mw==").unwrap();
        assert!(!keys.verify("text", &sign(&other, "text")));
        assert!(!AccountKeys::parse(&["a2V5MQ=="]).unwrap().verify("text", &sign(&keys.0[1], "text")));
    }

    #[test]
    fn a_signature_fits_as_a_whole_or_not_at_all() {
        let keys = AccountKeys::parse(&["a2V5MQ=="]).unwrap();
        let good = sign(keys.primary(), "text");
        assert!(keys.verify("text", &good));
        for bad in ["", "=", "not base64", &good[..40], &good[..43], &format!("{good}{good}"), &format!(" {good}")] {
            assert!(!keys.verify("text", bad), "{bad}");
        }
    }

    #[test]
    fn what_is_no_key() {
        for (keys, error) in [
            (&[][..], KeyError::Count(0)),
            (&["YQ==", "YQ==", "YQ=="], KeyError::Count(3)),
            (&[""], KeyError::Empty(0)),
            (&["YQ==", " "], KeyError::Empty(1)),
            (&["YQ==", "secret!"], KeyError::NotBase64(1)),
            (&["YQ"], KeyError::NotBase64(0)),
        ] {
            assert_eq!(AccountKeys::parse(keys).unwrap_err(), error);
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn keys_are_not_printed() {
        let keys = AccountKeys::parse(&["c2VjcmV0", "c2VjcmV0"]).unwrap();
        assert_eq!(format!("{keys:?}"), "AccountKeys([AccountKey(..), AccountKey(..)])");
    }
}
