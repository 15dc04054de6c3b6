//! The addresses of tables and entities, as the service writes them into `Location`, `odata.id` and `odata.editLink`.
//!
//! Everything but unreserved characters is percent-encoded; a quote is doubled and stays as it is, since clients look
//! for `RowKey='...'` in these addresses.

/// The absolute address of an entity.
///
/// ```
/// let url = partita_wire::url::entity_url("http://127.0.0.1:10002/acct", "People", "A'b", ":@ +");
/// assert_eq!(url, "http://127.0.0.1:10002/acct/People(PartitionKey='A''b',RowKey='%3A%40%20%2B')");
/// ```
pub fn entity_url(base: &str, table: &str, partition_key: &str, row_key: &str) -> String {
    let mut url = Vec::with_capacity(base.len() + path_bytes(table, partition_key, row_key) + 1);
    url.extend_from_slice(base.as_bytes());
    url.push(b'/');
    write_entity_path(&mut url, table, partition_key, row_key);
    String::from_utf8(url).expect("a base is text, and so is a path")
}

/// The address of an entity relative to the service.
pub fn entity_path(table: &str, partition_key: &str, row_key: &str) -> String {
    let mut path = Vec::with_capacity(path_bytes(table, partition_key, row_key));
    write_entity_path(&mut path, table, partition_key, row_key);
    String::from_utf8(path).expect("a path is made of text and ASCII escapes")
}

/// How long a path is of keys that need no escapes.
fn path_bytes(table: &str, partition_key: &str, row_key: &str) -> usize {
    table.len() + partition_key.len() + row_key.len() + "(PartitionKey='',RowKey='')".len()
}

/// The absolute address of a table.
pub fn table_url(base: &str, table: &str) -> String {
    format!("{base}/{}", table_path(table))
}

/// The address of a table relative to the service.
pub fn table_path(table: &str) -> String {
    format!("Tables('{table}')")
}

pub(crate) fn write_entity_path(out: &mut Vec<u8>, table: &str, partition_key: &str, row_key: &str) {
    out.extend_from_slice(table.as_bytes());
    out.extend_from_slice(b"(PartitionKey='");
    write_key(out, partition_key);
    out.extend_from_slice(b"',RowKey='");
    write_key(out, row_key);
    out.extend_from_slice(b"')");
}

fn write_key(out: &mut Vec<u8>, key: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    // Nearly all keys stay as they are. Without stopping at the first byte that does not, many are looked at together.
    if key.bytes().fold(true, |all, byte| all & is_unreserved(byte)) {
        return out.extend_from_slice(key.as_bytes());
    }
    for &byte in key.as_bytes() {
        match byte {
            byte if is_unreserved(byte) => out.push(byte),
            b'\'' => out.extend_from_slice(b"''"),
            _ => out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_escaped() {
        for (key, expect) in [
            ("", ""),
            ("0001", "0001"),
            ("a-b_c.d~e", "a-b_c.d~e"),
            ("O'Neil", "O''Neil"),
            ("\"x\"", "%22x%22"),
            ("+,$", "%2B%2C%24"),
            ("a b%", "a%20b%25"),
            ("!*()", "%21%2A%28%29"),
            ("\u{E9}\u{1F600}", "%C3%A9%F0%9F%98%80"),
        ] {
            assert_eq!(entity_path("T", key, "r"), format!("T(PartitionKey='{expect}',RowKey='r')"));
            assert_eq!(
                entity_url("http://h/a", "T", "p", key),
                format!("http://h/a/T(PartitionKey='p',RowKey='{expect}')")
            );
        }
        assert_eq!(table_url("http://h/a", "People"), "http://h/a/Tables('People')");
    }
}
