//! The attributes of a message: length, kind, value, filled up to four octets.

use std::net::IpAddr;

/// A message that grows by attributes.
#[derive(Debug, Clone)]
pub(super) struct Attributes {
    octets: Vec<u8>,
}

impl Attributes {
    /// Behind this head.
    pub(super) fn new(head: Vec<u8>) -> Self {
        Self { octets: head }
    }

    /// Values are ours, and short: a length beyond 65 535 cannot be said.
    pub(super) fn put(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(HEAD + value.len()).expect("values are short");
        self.octets.extend(length.to_ne_bytes());
        self.octets.extend(kind.to_ne_bytes());
        self.octets.extend(value);
        self.octets.resize(self.octets.len().next_multiple_of(ALIGNED), 0);
    }

    pub(super) fn put_ip(&mut self, kind: u16, address: IpAddr) {
        match address {
            IpAddr::V4(ipv4) => self.put(kind, &ipv4.octets()),
            IpAddr::V6(ipv6) => self.put(kind, &ipv6.octets()),
        }
    }

    /// Text ends with a zero octet.
    pub(super) fn put_text(&mut self, kind: u16, text: &str) {
        self.put(kind, &[text.as_bytes(), &[0]].concat());
    }

    pub(super) fn octets(self) -> Vec<u8> {
        self.octets
    }
}

/// The value of the first attribute of this kind; `None` if there is none, or where a length goes
/// beyond the message.
pub(super) fn value(mut message: &[u8], wanted: u16) -> Option<&[u8]> {
    while let Some((head, _)) = message.split_first_chunk::<HEAD>() {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = message.get(HEAD..length)?;
        if u16::from_ne_bytes([head[2], head[3]]) == wanted {
            return Some(value);
        }
        message = message.get(length.next_multiple_of(ALIGNED)..)?;
    }
    None
}

const HEAD: usize = 4;
const ALIGNED: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_begins_at_a_multiple_of_four() {
        let mut attributes = Attributes::new(vec![9; 4]);
        attributes.put_text(3, "lo");
        attributes.put(13, &[1, 0, 0, 0]);
        let octets = attributes.octets();
        assert_eq!(octets[..4], [9; 4]);
        assert_eq!(octets[4..12], [&7_u16.to_ne_bytes()[..], &3_u16.to_ne_bytes(), b"lo\0\0"].concat());
        assert_eq!(octets.len(), 20);
        assert_eq!(value(&octets[4..], 3), Some(&b"lo\0"[..]));
        assert_eq!(value(&octets[4..], 13), Some(&[1, 0, 0, 0][..]));
        assert_eq!(value(&octets[4..], 7), None);
        assert_eq!(value(&octets[4..14], 13), None, "cut short");
        assert_eq!(value(&[0; 8], 13), None, "no length");
    }
}
