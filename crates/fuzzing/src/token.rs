//! Continuation tokens. What a token stands for gets a token that stands for the same.

use partita_wire::token::{decode_key, decode_table, encode_key, encode_table};

/// Takes a token, and takes the same text for a key and for the name of a table.
pub fn token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(key) = decode_key(text) {
        assert_eq!(decode_key(&encode_key(&key)), Ok(key));
    }
    if let Ok(name) = decode_table(text) {
        assert_eq!(decode_table(&encode_table(&name, data.len() as u64)), Ok(name));
    }
    let token = encode_key(text);
    assert!(!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()), "{token}");
    assert_eq!(decode_key(&token).as_deref(), Ok(text));
    if !text.contains('\u{1}') {
        assert_eq!(decode_table(&encode_table(text, u64::MAX)).as_deref(), Ok(text));
    }
}
