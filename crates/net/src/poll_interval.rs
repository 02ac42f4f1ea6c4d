//! How long the receiver of a train may leave packets in the kernel, which has stamped them.
//!
//! A thread that is woken for every packet takes the processor from whatever else runs on it some
//! hundred thousand times a second: from the interrupts that stamp the packets to come, and, where
//! one processor serves both hosts, from the sender. As the kernel stamps packets, nothing is lost
//! by taking them later, as long as the socket's buffer holds what comes meanwhile.

use std::time::Duration;

use narrows_probe::probes::Train;

use crate::socket::ProbeSocket;

/// Longest rest: by that much later a train's end is seen (ours).
const MOST_NS: i64 = 1_000_000;
/// A shorter one saves too little.
const LEAST_NS: i64 = 100_000;
/// Trains of fewer packets are taken as they come: pairs are many, and their time is round trips
/// (ours).
const FEWEST: usize = 32;
/// Share of the buffer that may fill meanwhile: packets may come closer together than they left,
/// and a sleep may end late (ours).
const SHARE: u64 = 4;
/// What the kernel counts for a packet beside its octets: buffers are powers of two, and have
/// headers of their own (ours, above the 2304 octets that it counts for a full packet of most
/// cards).
const OVERHEAD_OCTETS: u64 = 2_500;

/// A train that is about to arrive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) packets: usize,
    /// Of all packets.
    pub(crate) ip_octets: u64,
    /// First departure to last.
    pub(crate) duration: Duration,
}

impl Expected {
    pub(crate) fn of(train: &Train) -> Self {
        Self { packets: train.packets.len(), ip_octets: train.ip_octets(), duration: train.duration() }
    }

    /// Nanoseconds between two looks at the socket while the train arrives; none if every packet is
    /// to be taken at once.
    pub(crate) fn poll_interval_ns(self, socket: &ProbeSocket) -> i64 {
        match socket.buffers() {
            Ok((buffer, _)) if socket.stamps() => self.within(buffer as u64),
            _ => 0,
        }
    }

    fn within(self, buffer_octets: u64) -> i64 {
        if self.packets < FEWEST {
            return 0;
        }
        let counted = self.ip_octets + self.packets as u64 * OVERHEAD_OCTETS;
        let room = buffer_octets / SHARE;
        if counted <= room {
            return MOST_NS;
        }
        let fills = self.duration.as_nanos().saturating_mul(room.into()) / u128::from(counted);
        let fills = i64::try_from(fills).unwrap_or(i64::MAX);
        if fills < LEAST_NS { 0 } else { MOST_NS.min(fills) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(packets: usize, micros: u64) -> Expected {
        Expected { packets, ip_octets: packets as u64 * 1500, duration: Duration::from_micros(micros) }
    }

    #[test]
    fn what_the_buffer_holds_may_wait() {
        // 1000 packets count for 4 MB, a quarter of 16 MB.
        assert_eq!(train(1000, 0).within(16_000_000), MOST_NS);
        // Ten times that within 10 ms fill the quarter in 1 ms; within 5 ms, in half of that.
        assert_eq!(train(10_000, 20_000).within(16_000_000), MOST_NS);
        assert_eq!(train(10_000, 5_000).within(16_000_000), 500_000);
        // All at once they may come at once.
        assert_eq!(train(10_000, 0).within(16_000_000), 0);
        // Without privilege: 425984 octets, of which a quarter is 26 packets: 0.32 ms at 12 us
        // each, none at a tenth of that.
        assert_eq!(train(1000, 12_000).within(425_984), 319_488);
        assert_eq!(train(1000, 1_200).within(425_984), 0);
    }

    #[test]
    fn pairs_do_not_wait() {
        assert_eq!(train(2, 100).within(16_000_000), 0);
        assert_eq!(train(31, 100).within(16_000_000), 0);
        assert_eq!(train(32, 100).within(16_000_000), MOST_NS);
    }
}
