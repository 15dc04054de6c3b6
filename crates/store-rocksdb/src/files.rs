//! The bytes of RocksDB's own files, looked at without RocksDB.
//!
//! RocksDB verifies what it happens to read. Whoever checks a folder wants every byte verified, and wants to know which
//! rows a damaged place holds; RocksDB has no call for either that we could reach. Both formats are stable and small.

pub(crate) mod checksum;
pub(crate) mod log;
pub(crate) mod table;
