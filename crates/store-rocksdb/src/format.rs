//! The bytes of what is stored beside rows, and of a row's value. The picture is in the crate's documentation.

use partita_store::{Error, Result, Version};

/// The format that this code writes.
pub(crate) const FORMAT: u32 = 1;
pub(crate) const FORMAT_KEY: &[u8] = b"\0format";
pub(crate) const LAST_VERSION_KEY: &[u8] = b"\0version";

const VERSION_BYTES: usize = size_of::<Version>();

/// A row's value with room for the version in front, which is known only when the row is committed.
pub(crate) fn unstamped(value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(VERSION_BYTES + value.len());
    stored.extend_from_slice(&[0; VERSION_BYTES]);
    stored.extend_from_slice(value);
    stored
}

pub(crate) fn stamp(stored: &mut [u8], version: Version) {
    stored[..VERSION_BYTES].copy_from_slice(&version.to_be_bytes());
}

pub(crate) fn split_value(stored: &[u8]) -> Result<(Version, &[u8])> {
    match stored.split_first_chunk() {
        Some((version, value)) => Ok((Version::from_be_bytes(*version), value)),
        None => Err(Error::Corrupt(format!("the value of a row has {} bytes, too few for a version", stored.len()))),
    }
}
