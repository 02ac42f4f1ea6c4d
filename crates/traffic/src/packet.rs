//! The twelve octets at the head of every UDP payload.
//!
//! ```text
//! 0        4        8        12
//! | cookie | number | stamp  | padding that does not compress
//! ```
//! All are big-endian. Twelve octets, because the smallest packet of a simple IMIX (40 octets over
//! IPv4) has room for no more.
//! - *cookie*: drawn by the sink for each flow. A datagram without a known one is passed over.
//! - *number*: of the packet within its flow, from 0; wraps.
//! - *stamp*: the sender's monotonic clock when it handed the packet over, in units of 16 ns; wraps
//!   after 68.7 s.
//!
//! What wraps is unwrapped against what is expected: numbers against the last one, stamps against
//! the delay of the last packet. So a delay may change by up to 34 s from one packet to the next.

/// Octets of the header.
pub(crate) const HEADER_OCTETS: usize = 12;
/// Nanoseconds of one unit of the stamp.
const UNIT_NS: i64 = 16;

/// The header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) cookie: u32,
    pub(crate) number: u32,
    pub(crate) stamp: u32,
}

impl Header {
    /// With the low bits of a number and of a time.
    pub(crate) fn new(cookie: u32, number: u64, at_ns: i64) -> Self {
        Self { cookie, number: low(number), stamp: low(at_ns.div_euclid(UNIT_NS).cast_unsigned()) }
    }

    /// Writes it at the head of a payload; shorter payloads stay as they are.
    pub(crate) fn write(self, payload: &mut [u8]) {
        if let Some(head) = payload.first_chunk_mut::<HEADER_OCTETS>() {
            head[..4].copy_from_slice(&self.cookie.to_be_bytes());
            head[4..8].copy_from_slice(&self.number.to_be_bytes());
            head[8..].copy_from_slice(&self.stamp.to_be_bytes());
        }
    }

    /// Reads it; `None` if the payload is shorter.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(payload.get(at..at + 4)?.try_into().ok()?));
        Some(Self { cookie: word(0)?, number: word(4)?, stamp: word(8)? })
    }

    /// The whole number, nearest to the one that is expected next; `None` if that is below zero,
    /// which no sender has.
    pub(crate) fn number_near(self, expected: u64) -> Option<u64> {
        let ahead = self.number.wrapping_sub(low(expected)).cast_signed();
        expected.checked_add_signed(i64::from(ahead))
    }

    /// Arrival minus departure: the one nearest to `expected_ns` that the stamp allows. Between two
    /// clocks it holds their unknown offset.
    pub(crate) fn transit_near(self, arrived_ns: i64, expected_ns: i64) -> i64 {
        let left = arrived_ns.saturating_sub(expected_ns).div_euclid(UNIT_NS);
        let ahead = self.stamp.wrapping_sub(low(left.cast_unsigned())).cast_signed();
        arrived_ns.saturating_sub(left.saturating_add(i64::from(ahead)).saturating_mul(UNIT_NS))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
fn low(value: u64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_payloads_have_no_header() {
        assert_eq!(Header::read(&[0; 11]), None);
        Header::new(1, 2, 3).write(&mut [0; 11]);
    }

    proptest! {
        #[test]
        fn written_is_read(cookie in any::<u32>(), number in any::<u64>(), at in any::<i64>(), length in 12usize..40) {
            let header = Header::new(cookie, number, at);
            let mut payload = vec![7; length];
            header.write(&mut payload);
            prop_assert_eq!(Header::read(&payload), Some(header));
        }

        #[test]
        fn numbers_and_delays_unwrap(number in 0u64..1 << 40, jump in -1_000_000i64..1_000_000, sent in 0i64..1 << 60,
            delay in -30_000_000_000i64..30_000_000_000, offset in -1i64 << 58..1 << 58) {
            let header = Header::new(0, number, sent);
            if let Some(expected) = number.checked_add_signed(jump) {
                prop_assert_eq!(header.number_near(expected), Some(number));
            }
            let arrived = sent + offset + delay;
            // What is lost of the stamp is less than one unit.
            let transit = header.transit_near(arrived, offset);
            prop_assert!((0..UNIT_NS).contains(&(transit - offset - delay)), "{} {}", transit, offset + delay);
        }

        #[test]
        fn any_bits_never_panic(number in any::<u32>(), stamp in any::<u32>(), expected in any::<u64>(), arrived in any::<i64>(),
            near in any::<i64>()) {
            let header = Header { cookie: 0, number, stamp };
            let _ = (header.number_near(expected), header.transit_near(arrived, near));
        }
    }
}
