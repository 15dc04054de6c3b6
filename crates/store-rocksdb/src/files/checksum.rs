//! The checksum that RocksDB stores: CRC-32C, masked because a checksum of bytes that hold checksums is a weak one.

pub(crate) fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// Of a piece and one byte behind it.
pub(super) fn of(bytes: &[u8], last: u8) -> u32 {
    masked(crc32c::crc32c_append(crc32c::crc32c(bytes), &[last]))
}
