//! One round: its packets, and what became of them.

use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use super::session::MethodRun;
use super::table::{HopTable, Sample};
use narrows_probe::probes::{Arrival, Fate, HopReplyKind, PacketPlan, Train};
use narrows_train::train_method::reply_octets;

/// Gap between the probes of a round before anything is known: more than a packet of 1500 octets
/// takes at 10 Mbit/s (ours).
const FIRST_GAP: Duration = Duration::from_millis(4);
const LONGEST_GAP: Duration = Duration::from_millis(500);

impl MethodRun {
    /// One packet to each, in any order, so far apart that none waits behind another.
    pub(super) fn round_of(&mut self, mut asked: Vec<(usize, u16)>) -> Vec<PacketPlan> {
        for last in (1..asked.len()).rev() {
            let word = self.draw.next_u64() % (u64::try_from(last).unwrap_or(u64::MAX) + 1);
            asked.swap(last, usize::try_from(word).unwrap_or(0));
        }
        let mut gap = Duration::ZERO;
        let mut packets = Vec::with_capacity(asked.len());
        for (hop, ip_octets) in asked {
            let Some(hop_limit) = hop_limit(hop) else { continue };
            let word = self.draw.next_u64() >> 11;
            let share = 1.0 + word as f64 / (1u64 << 53) as f64;
            packets.push(PacketPlan { gap: gap.mul_f64(share), ip_octets, hop_limit: Some(hop_limit) });
            gap = self.gap(hop);
        }
        packets
    }

    /// What a full packet to that hop takes longer than a small one over all links: the next one
    /// meets it nowhere if it leaves later by as much.
    pub(super) fn gap(&self, hop: usize) -> Duration {
        let takes = |hop: &HopTable| {
            let small = hop.least_ns(self.plan.smallest())?;
            let full = hop.least_ns(self.plan.largest())?;
            u64::try_from(full.saturating_sub(small)).ok().map(Duration::from_nanos)
        };
        let longest = self.hops.get(hop).and_then(takes);
        longest.map_or(FIRST_GAP, |longest| longest.mul_f64(1.1).clamp(Duration::from_micros(100), LONGEST_GAP))
    }

    /// A packet's fate, told to its hop.
    pub(super) fn row(&mut self, hop: usize, octets: u16, fate: &ProbeFate) {
        while self.hops.len() <= hop {
            self.hops.push(HopTable::new());
        }
        let table = &mut self.hops[hop];
        match *fate {
            ProbeFate::Answer { from, remote, sample } => {
                table.remote |= remote;
                table.pace.reported(true);
                table.take(from, sample);
                debug_assert_eq!(sample.octets, octets);
            }
            ProbeFate::Nothing => {
                if table.pace.every().is_none() {
                    table.lost = table.lost.saturating_add(1);
                }
                table.pace.reported(false);
                if table.pace.every().is_some() {
                    // What it kept back was not lost.
                    table.lost = 0;
                }
            }
        }
    }
}

/// What became of a probe.
pub(super) enum ProbeFate {
    Answer { from: IpAddr, remote: bool, sample: Sample },
    Nothing,
}

pub(super) fn hop_limit(hop: usize) -> Option<NonZeroU8> {
    u8::try_from(hop + 1).ok().and_then(NonZeroU8::new)
}

/// What a row tells; `None`: nothing of use.
pub(super) fn reported(asked: &Train, row: &Arrival) -> Option<ProbeFate> {
    let (from, returned, remote) = match row.fate {
        Fate::Answered(reply) => {
            let remote = match reply.kind {
                HopReplyKind::TimeExceeded => false,
                HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer => true,
                HopReplyKind::PacketTooBig { .. } | HopReplyKind::Unreachable { .. } => return None,
            };
            (reply.from, reply.returned, remote)
        }
        // An echo does not say from where: from where it was sent to.
        Fate::Echoed { returned, .. } => (IpAddr::from([0, 0, 0, 0]), returned, true),
        Fate::Received(_) => return None,
        Fate::Lost => return Some(ProbeFate::Nothing),
    };
    let round_trip_ns = returned.nanos().saturating_sub(row.departed.nanos());
    let sample = Sample { octets: row.ip_octets, reply_octets: reply_octets(asked, row).unwrap_or(0), round_trip_ns };
    (round_trip_ns > 0).then_some(ProbeFate::Answer { from, remote, sample })
}
