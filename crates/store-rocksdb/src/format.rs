//! The bytes of what is stored beside rows, and of a row's value. The picture is in the crate's documentation.

use partita_store::{Error, Result, Version};

/// The format that this code writes.
pub(crate) const FORMAT: u32 = 1;
pub(crate) const FORMAT_KEY: &[u8] = b"\0format";
pub(crate) const LAST_VERSION_KEY: &[u8] = b"\0version";

/// Makes of `stored` what is stored of a row: its version, which is known only when the row is committed, and its value.
pub(crate) fn stamp(version: Version, value: &[u8], stored: &mut Vec<u8>) {
    stored.clear();
    stored.extend_from_slice(&version.to_be_bytes());
    stored.extend_from_slice(value);
}

pub(crate) fn split_value(stored: &[u8]) -> Result<(Version, &[u8])> {
    match stored.split_first_chunk() {
        Some((version, value)) => Ok((Version::from_be_bytes(*version), value)),
        None => Err(Error::Corrupt(format!("the value of a row has {} bytes, too few for a version", stored.len()))),
    }
}
