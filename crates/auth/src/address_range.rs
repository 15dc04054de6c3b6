//! The source addresses a signature may be used from (`sip`): one IPv4 address, or two and all between them.

use std::net::{IpAddr, Ipv4Addr};

/// A range of IPv4 addresses, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

impl AddressRange {
    /// Reads `a` or `a-b`; `None` if that is not what it is, or if the range is empty.
    pub fn parse(text: &str) -> Option<AddressRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(AddressRange { first, last })
    }

    /// Whether the address is in the range. A socket that serves both families shows an IPv4 caller as an IPv4-mapped
    /// IPv6 address, so that counts as IPv4; no other IPv6 address is ever in a range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => (self.first..=self.last).contains(&address),
            IpAddr::V6(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(range: &str, address: &str) -> bool {
        AddressRange::parse(range).expect(range).contains(address.parse().expect(address))
    }

    #[test]
    fn ends_are_included_and_order_is_numeric() {
        for (range, address, expect) in [
            ("10.0.0.9", "10.0.0.9", true),
            ("10.0.0.9", "10.0.0.10", false),
            ("10.0.0.9-10.0.0.20", "10.0.0.9", true),
            ("10.0.0.9-10.0.0.20", "10.0.0.20", true),
            ("10.0.0.9-10.0.0.20", "10.0.0.8", false),
            ("10.0.0.9-10.0.0.20", "10.0.0.21", false),
            ("10.0.0.9-10.0.0.20", "10.0.0.100", false),
            ("0.0.0.0-255.255.255.255", "203.0.113.7", true),
            ("10.0.0.9", "::ffff:10.0.0.9", true),
            ("10.0.0.9", "::ffff:10.0.0.8", false),
            ("0.0.0.0-255.255.255.255", "2001:db8::1", false),
            ("127.0.0.1", "::1", false),
        ] {
            assert_eq!(contains(range, address), expect, "{address} in {range}");
        }
    }

    #[test]
    fn what_is_no_range() {
        for text in ["", "-", "10.0.0.1-", "-10.0.0.1", "10.0.0.2-10.0.0.1", "10.0.0.0/8", "::1", "10.0.0.1 ", "a-b-c"]
        {
            assert_eq!(AddressRange::parse(text), None, "{text}");
        }
    }
}
