//! What came of the probes to each hop.

use std::collections::BTreeMap;
use std::net::IpAddr;

use narrows_probe::probes::{Fate, HopReplyKind, PeerKind, Train, TrainReport};

/// Counts and round-trip times, hop by hop, of all packets that had a hop limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HopStatistics {
    hops: BTreeMap<u8, HopCounts>,
    remote: Option<u8>,
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HopCounts {
    /// Packets sent.
    pub sent: u64,
    /// Packets answered.
    pub answered: u64,
    /// Who answered.
    pub routers: BTreeMap<IpAddr, Router>,
    /// The round trip of the last answer.
    pub last_ns: i64,
    /// The least.
    pub best_ns: i64,
    /// The longest.
    pub worst_ns: i64,
    mean_ns: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

/// One that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Router {
    /// How often.
    pub answers: u64,
    /// When it came first among those that answered at this hop.
    pub order: u64,
    /// It said that there is no way on from there, with this ICMP code.
    pub unreachable: Option<u8>,
}

impl HopStatistics {
    /// One more train. `remote`: the remote host, which does not say its name in an echo.
    pub fn take(&mut self, asked: &Train, report: &TrainReport, remote: Option<IpAddr>) {
        for (plan, row) in asked.packets.iter().zip(&report.arrivals) {
            let Some(limit) = plan.hop_limit.map(std::num::NonZeroU8::get) else {
                continue;
            };
            let hop = self.hops.entry(limit).or_default();
            hop.sent = hop.sent.saturating_add(1);
            let (from, returned, kind) = match row.fate {
                Fate::Answered(reply) => (Some(reply.from), reply.returned, Some(reply.kind)),
                Fate::Echoed { returned, .. } => (remote, returned, None),
                Fate::Received(_) => {
                    // It got there, and nobody says when it could have been back.
                    hop.answered = hop.answered.saturating_add(1);
                    if let Some(remote) = remote {
                        hop.answered_by(remote, None);
                    }
                    self.reaches(limit);
                    continue;
                }
                Fate::Lost => continue,
            };
            hop.answer(returned.nanos().saturating_sub(row.departed.nanos()));
            if let Some(from) = from {
                hop.answered_by(from, kind);
            }
            if is_remote(kind, asked.peer_kind) {
                self.reaches(limit);
            }
        }
    }

    /// Somebody answered there to a packet that no method counts (one of another flow).
    pub fn meet(&mut self, limit: u8, from: IpAddr) {
        let hop = self.hops.entry(limit).or_default();
        let order = u64::try_from(hop.routers.len()).unwrap_or(u64::MAX);
        hop.routers.entry(from).or_insert(Router { order, ..Router::default() });
    }

    fn reaches(&mut self, limit: u8) {
        self.remote = Some(self.remote.map_or(limit, |remote| remote.min(limit)));
    }

    /// At which hop limit the remote host was reached.
    pub fn remote(&self) -> Option<u8> {
        self.remote
    }

    /// One hop.
    pub fn hop(&self, limit: u8) -> Option<&HopCounts> {
        self.hops.get(&limit)
    }

    /// The last hop worth telling of: the remote host's, or the last that anybody answered at.
    pub fn last(&self) -> u8 {
        let answered = self.hops.iter().filter(|(_, hop)| hop.answered > 0 || !hop.routers.is_empty());
        self.remote.unwrap_or_else(|| answered.map(|(limit, _)| *limit).max().unwrap_or(0))
    }

    /// Everybody who answered.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.hops.values().flat_map(|hop| hop.routers.keys().copied())
    }
}

/// The remote host itself answered.
fn is_remote(kind: Option<HopReplyKind>, peer_kind: PeerKind) -> bool {
    match kind {
        // What is echoed has been there; what a closed port or a TCP says, too.
        None => peer_kind != PeerKind::Receiver,
        Some(HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer) => true,
        Some(HopReplyKind::TimeExceeded | HopReplyKind::PacketTooBig { .. } | HopReplyKind::Unreachable { .. }) => {
            false
        }
    }
}

impl HopCounts {
    fn answer(&mut self, round_trip_ns: i64) {
        self.answered = self.answered.saturating_add(1);
        let time = round_trip_ns.max(0);
        self.best_ns = if self.answered == 1 { time } else { self.best_ns.min(time) };
        self.worst_ns = self.worst_ns.max(time);
        self.last_ns = time;
        // Welford's update: no sum grows beyond what a float holds.
        let off = time as f64 - self.mean_ns;
        self.mean_ns += off / self.answered as f64;
        self.squares += off * (time as f64 - self.mean_ns);
    }

    fn answered_by(&mut self, from: IpAddr, kind: Option<HopReplyKind>) {
        let order = u64::try_from(self.routers.len()).unwrap_or(u64::MAX);
        let router = self.routers.entry(from).or_insert(Router { order, ..Router::default() });
        router.answers = router.answers.saturating_add(1);
        if let Some(HopReplyKind::Unreachable { code }) = kind {
            router.unreachable = Some(code);
        }
    }

    /// Share of the packets without an answer.
    pub fn loss_ratio(&self) -> f64 {
        if self.sent == 0 {
            return 0.0;
        }
        (self.sent.saturating_sub(self.answered)) as f64 / self.sent as f64
    }

    /// Mean round trip.
    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// Standard deviation of the round trips.
    pub fn deviation_ns(&self) -> f64 {
        if self.answered < 2 {
            return 0.0;
        }
        (self.squares.max(0.0) / (self.answered - 1) as f64).sqrt()
    }
}
