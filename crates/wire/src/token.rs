//! Continuation tokens, in the service's own dress so that logs look alike. Clients take them as opaque.
//!
//! ```text
//! token = "1!" length "!" text       text = base64 of the content, with = + / written as - * _
//! key   "pk1"                     -> 1!4!cGsx
//! table "people", stamp 1         -> base64 of "people" 01 "0000000000000001"
//! ```
//!
//! The length counts the characters of the text. An empty key gives `1!0!`, never an empty token: clients drop those.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use partita_model::ServiceError;

/// Stands between the name of a table and its stamp. No name contains it.
const STAMP_SEPARATOR: char = '\u{1}';

/// The token of a PartitionKey or RowKey.
pub fn encode_key(key: &str) -> String {
    let text = STANDARD.encode(key).replace('=', "-").replace('+', "*").replace('/', "_");
    format!("1!{}!{text}", text.len())
}

/// The PartitionKey or RowKey of a token. An empty token is an empty key: not what we send, but what a client may.
pub fn decode_key(token: &str) -> Result<String, ServiceError> {
    if token.is_empty() {
        return Ok(String::new());
    }
    decode(token).ok_or(ServiceError::RequestInputInvalid)
}

/// The token of a table in a list of tables: its lower-case name, and a stamp of its creation.
pub fn encode_table(name_lower: &str, stamp: u64) -> String {
    encode_key(&format!("{name_lower}{STAMP_SEPARATOR}{stamp:016x}"))
}

/// The lower-case name in the token of a table. The stamp is not needed: a list goes on at the name, whether or not
/// the table has been created anew meanwhile.
pub fn decode_table(token: &str) -> Result<String, ServiceError> {
    let mut name = decode_key(token)?;
    if let Some(at) = name.find(STAMP_SEPARATOR) {
        name.truncate(at);
    }
    Ok(name)
}

fn decode(token: &str) -> Option<String> {
    let (length, text) = token.strip_prefix("1!")?.split_once('!')?;
    if length.parse() != Ok(text.len()) {
        return None;
    }
    let text = text.replace('-', "=").replace('*', "+").replace('_', "/");
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys() {
        for (key, token) in [
            ("", "1!0!"),
            ("pk1", "1!4!cGsx"),
            ("0001", "1!8!MDAwMQ--"),
            ("partition", "1!12!cGFydGl0aW9u"),
            ("\u{FFFF}>", "1!8!77*_Pg--"),
        ] {
            assert_eq!(encode_key(key), token);
            assert_eq!(decode_key(token).as_deref(), Ok(key));
        }
        assert_eq!(decode_key("").as_deref(), Ok(""));
    }

    #[test]
    fn tables() {
        let token = encode_table("people", 0x01D7_C46B_4BB0_3EB3);
        assert_eq!(token, "1!32!cGVvcGxlATAxZDdjNDZiNGJiMDNlYjM-");
        assert_eq!(decode_table(&token).as_deref(), Ok("people"));
        assert_eq!(decode_table(&encode_key("people")).as_deref(), Ok("people"));
    }

    #[test]
    fn nonsense_is_refused() {
        for token in ["x", "1!", "1!4", "1!5!cGsx", "1!-4!cGsx", "2!4!cGsx", "1!4!cG!x", "1!4!____", "1!3!cGs", "cGsx"]
        {
            assert_eq!(decode_key(token), Err(ServiceError::RequestInputInvalid), "{token}");
            assert_eq!(decode_table(token), Err(ServiceError::RequestInputInvalid), "{token}");
        }
    }

    proptest! {
        #[test]
        fn every_key_round_trips(key in any::<String>()) {
            let token = encode_key(&key);
            prop_assert!(!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(decode_key(&token), Ok(key));
        }

        #[test]
        fn any_text_is_answered(token in any::<String>()) {
            let _ = (decode_key(&token), decode_table(&token));
        }
    }
}
