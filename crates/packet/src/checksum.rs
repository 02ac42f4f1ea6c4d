//! The checksum that IP, ICMP, UDP and TCP share (RFC 1071).

use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;

/// A sum of 16-bit words in one's complement, as far as it has come.
#[derive(Debug, Clone, Default)]
pub struct Sum(Sum16BitWords);

impl Sum {
    /// Of nothing.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Of the pseudo header of TCP, UDP and `ICMPv6` (RFC 9293 §3.1, RFC 8200 §8.1). Addresses of
    /// different versions count as none.
    #[inline]
    pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, transport_octets: u32) -> Self {
        let addresses = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Sum16BitWords::new().add_4bytes(source.octets()).add_4bytes(destination.octets())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Sum16BitWords::new().add_16bytes(source.octets()).add_16bytes(destination.octets())
            }
            _ => Sum16BitWords::new(),
        };
        let mut sum = addresses.add_2bytes([0, protocol]);
        Self(sum.add_4bytes(transport_octets.to_be_bytes()))
    }

    /// With these octets behind an even number of others; an odd last one counts as the upper half
    /// of a word.
    #[inline]
    #[must_use]
    pub fn octets(self, octets: &[u8]) -> Self {
        Self(self.0.add_slice(octets))
    }

    /// With one more word.
    #[inline]
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self(self.0.add_2bytes(word.to_be_bytes()))
    }

    /// The sum, not complemented.
    #[inline]
    pub fn value(&self) -> u16 {
        !self.checksum()
    }

    /// What a checksum field holds: the complement.
    #[inline]
    pub fn checksum(&self) -> u16 {
        self.0.ones_complement().to_be()
    }
}

/// The checksum over these octets: zero where they contain their own.
pub fn checksum(octets: &[u8]) -> u16 {
    Sum::new().octets(octets).checksum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
    #[test]
    fn the_example_of_rfc_1071() {
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::new().octets(&example).value(), 0xddf2);
        assert_eq!(checksum(&example), 0x220d);
        assert_eq!(Sum::new().octets(&[0x12]).value(), 0x1200);
        assert_eq!(Sum::new().value(), 0);
    }

    /// A multiple of ffff is ffff in one's complement, unless every word is zero.
    #[test]
    fn long_octets_do_not_overflow() {
        assert_eq!(Sum::new().octets(&vec![0xff; 400_000]).value(), 0xffff);
        let long = [vec![0xff; 131_072], vec![0x12, 0x34]].concat();
        assert_eq!(Sum::new().octets(&long).value(), 0x1234);
    }

    /// 0a00 + 0001 + 0a00 + 0002 + 6 + (0001 + 86a0 of 100 000 octets).
    #[test]
    fn pseudo_headers_by_hand() {
        let (near, remote) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let sum = Sum::pseudo_header(near, remote, 6, 100_000);
        assert_eq!(sum.value(), 0x1400 + 3 + 6 + 1 + 0x86a0);
        let (near6, far6) = ([0x2001, 0, 0, 0, 0, 0, 0, 1].into(), [0x2001, 0, 0, 0, 0, 0, 0, 2].into());
        assert_eq!(Sum::pseudo_header(near6, far6, 58, 32).value(), 0x4002 + 3 + 58 + 32);
        assert_eq!(Sum::pseudo_header(near, far6, 6, 20).value(), 26);
    }

    proptest! {
        /// The definition, word by word.
        #[test]
        fn is_the_sum_of_words(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut sum: u32 = 0;
            for word in octets.chunks(2) {
                sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low));
                sum = (sum & 0xffff) + (sum >> 16);
            }
            prop_assert_eq!(u32::from(Sum::new().octets(&octets).value()), sum);
        }
    }
}
