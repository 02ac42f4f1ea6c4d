//! Least round trips per hop and size.

use std::collections::BTreeMap;
use std::net::IpAddr;

use narrows_probe::probes::{Arrival, Fate, HopReplyKind, Train};
use narrows_train::train_method::reply_octets;

/// What is known of one size at one hop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// IP octets of the probe.
    pub(crate) octets: u16,
    /// Probes sent.
    pub(crate) sent: u32,
    /// Answers, and the sum of their round trips, ns: the mean less the least is what queues take.
    pub(crate) answered: u32,
    sum_ns: f64,
    /// Least round trip of all, of the probes with an even number and of those with an odd one, ns.
    least_ns: [Option<i64>; 3],
    /// IP octets of the answer to the quickest.
    pub(crate) reply_octets: u16,
}

/// Which probes of a size count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// All.
    Both,
    /// The first, third, …
    Even,
    /// The second, fourth, …
    Odd,
}

impl Half {
    fn index(self) -> usize {
        match self {
            Self::Both => 0,
            Self::Even => 1,
            Self::Odd => 2,
        }
    }
}

impl Cell {
    pub(crate) fn new(octets: u16) -> Self {
        Self { octets, sent: 0, answered: 0, sum_ns: 0.0, least_ns: [None; 3], reply_octets: 0 }
    }

    /// Takes an answer; true if none of this size was quicker.
    pub(crate) fn take(&mut self, round_trip_ns: i64, reply_octets: u16) -> bool {
        let half = if self.answered.is_multiple_of(2) { Half::Even } else { Half::Odd };
        self.answered += 1;
        self.sum_ns += round_trip_ns as f64;
        let better = self.least_ns[0].is_none_or(|least| round_trip_ns < least);
        if better {
            self.reply_octets = reply_octets;
        }
        for index in [Half::Both.index(), half.index()] {
            let least = &mut self.least_ns[index];
            *least = Some(least.map_or(round_trip_ns, |least| least.min(round_trip_ns)));
        }
        better
    }

    pub(crate) fn least_ns(&self, half: Half) -> Option<i64> {
        self.least_ns[half.index()]
    }

    /// Mean wait beyond the quickest, ns.
    fn queueing_ns(&self) -> Option<f64> {
        let least = self.least_ns(Half::Both)?;
        (self.answered > 0).then(|| self.sum_ns / f64::from(self.answered) - least as f64)
    }
}

/// One hop limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HopTable {
    pub(crate) cells: Vec<Cell>,
    /// Who answered, and how often.
    pub(crate) routers: BTreeMap<IpAddr, u32>,
    /// It was the peer.
    pub(crate) remote: bool,
}

impl HopTable {
    pub(crate) fn new(sizes: &[u16]) -> Self {
        Self { cells: sizes.iter().map(|&octets| Cell::new(octets)).collect(), routers: BTreeMap::new(), remote: false }
    }

    /// Takes what became of a probe of the size with this index: its round trip, ns, and whether
    /// none of that size was quicker. `None` if it came to nothing.
    pub(crate) fn take(&mut self, index: usize, asked: &Train, row: &Arrival) -> Option<(i64, bool)> {
        let cell = self.cells.get_mut(index)?;
        cell.sent += 1;
        let (returned, remote) = match row.fate {
            Fate::Answered(reply) => {
                let remote = match reply.kind {
                    HopReplyKind::TimeExceeded => false,
                    HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer => true,
                    HopReplyKind::PacketTooBig { .. } | HopReplyKind::Unreachable { .. } => return None,
                };
                *self.routers.entry(reply.from).or_default() += 1;
                (reply.returned, remote)
            }
            Fate::Echoed { returned, .. } => (returned, true),
            Fate::Received(_) | Fate::Lost => return None,
        };
        let round_trip_ns = returned.nanos().saturating_sub(row.departed.nanos());
        if round_trip_ns <= 0 {
            return None;
        }
        self.remote |= remote;
        Some((round_trip_ns, cell.take(round_trip_ns, reply_octets(asked, row).unwrap_or(0))))
    }

    pub(crate) fn answered(&self) -> u32 {
        self.cells.iter().map(|cell| cell.answered).sum()
    }

    pub(crate) fn sent(&self) -> u32 {
        self.cells.iter().map(|cell| cell.sent).sum()
    }

    /// More than a tenth of the answers came from another router than the most frequent one.
    pub(crate) fn several_routers(&self) -> bool {
        let all: u32 = self.routers.values().sum();
        let most = self.routers.values().max().copied().unwrap_or(0);
        10 * (all - most) > all
    }

    /// Median over sizes of the mean wait beyond the least round trip, ns; both ways.
    pub(crate) fn queueing_ns(&self) -> Option<f64> {
        let waits: Vec<f64> = self.cells.iter().filter_map(Cell::queueing_ns).collect();
        narrows_stat::median(&waits)
    }
}
