//! The bracket around the path MTU, and the size to try next.

use super::Params;
use narrows_probe::PathFacts;
use narrows_probe::facts::{AnswerLimit, Answering};
use narrows_probe::outcome::Reason;
use narrows_probe::probes::{Arrival, Fate, HopReplyKind, PeerKind, TrainReport};
use narrows_units::to_u64;

/// What is known.
#[derive(Debug, Clone)]
pub(super) struct Search {
    /// Size of the packets that show that the path is alive.
    pub(super) small: u16,
    /// Largest size that passed.
    pub(super) low: Option<u16>,
    /// Smallest size that failed, or the first that the interface cannot send.
    pub(super) high: u16,
    /// What `high` was before any probe.
    pub(super) first_high: u16,
    /// A router's word, not yet refuted.
    pub(super) reported: Option<u16>,
    /// A size failed without any router's word.
    pub(super) black_hole: bool,
    /// Echoes come back in full size: the reverse direction limits too.
    pub(super) whole_echoes: bool,
    /// What answers, and how often.
    answering: Answering,
    limit: Option<AnswerLimit>,
    pub(super) sent: u64,
    pub(super) small_sent: u64,
    pub(super) small_lost: u64,
    /// Losses at the size now tried, while small packets passed.
    losses: u32,
    /// Trains at the size now tried.
    trains: u32,
    trying: u16,
}

impl Search {
    pub(super) fn new(facts: &PathFacts, params: &Params) -> Self {
        let guaranteed = if facts.ipv6 { 1280 } else { 576 };
        let most = facts.path_mtu.min(params.ceiling).clamp(68, u16::MAX - 1);
        let small = params.floor.unwrap_or(guaranteed).min(most);
        Self {
            small,
            low: None,
            high: most + 1,
            first_high: most + 1,
            reported: None,
            black_hole: false,
            whole_echoes: false,
            answering: facts.answering,
            limit: facts.answer_limit,
            sent: 0,
            small_sent: 0,
            small_lost: 0,
            losses: 0,
            trains: 0,
            trying: 0,
        }
    }

    /// The size to try now; `None` at the end.
    pub(super) fn next(&mut self) -> Option<u16> {
        if self.trains >= MOST_TRAINS {
            return None;
        }
        let size = self.candidate()?;
        if size != self.trying {
            self.trying = size;
            self.losses = 0;
            self.trains = 0;
        }
        Some(size)
    }

    /// Whom the packets ask.
    pub(super) fn peer_kind(&self) -> PeerKind {
        match self.answering {
            Answering::ClosedPort | Answering::TcpSyn => self.answering.peer_kind(),
            Answering::Server | Answering::Echo | Answering::Reflector if self.whole_echoes => PeerKind::Echo,
            Answering::Server | Answering::Echo | Answering::Reflector => PeerKind::EchoSized(self.small),
        }
    }

    /// Sizes of the packets of a train that tries `size`.
    pub(super) fn sizes(&self, size: u16) -> Vec<u16> {
        let Some(limit) = self.limit else {
            return [self.small, size].repeat(COPIES);
        };
        // A packet that vanishes costs the remote host no answer: the small one finds one left.
        // Behind those that pass it may find none, and then nobody needs it.
        let copies = usize::try_from(limit.burst()).map_or(COPIES, |burst| burst.saturating_sub(1).clamp(1, COPIES));
        let mut sizes = vec![size; copies];
        sizes.push(self.small);
        sizes
    }

    fn candidate(&self) -> Option<u16> {
        let low = self.low.unwrap_or(self.small - 1);
        let open = |size: u16| size > low && size < self.high;
        if low + 1 >= self.high {
            return None;
        }
        // The whole interface first: on most paths that is the end of it.
        if self.high == self.first_high {
            return Some(self.high - 1);
        }
        if let Some(reported) = self.reported.filter(|reported| open(*reported)) {
            return Some(reported);
        }
        if self.reported == Some(low) {
            return Some(low + 1);
        }
        let usual: Vec<u16> = USUAL.into_iter().filter(|size| open(*size)).collect();
        if let Some(size) = usual.get(usual.len() / 2) {
            return Some(*size);
        }
        // No usual size is left in between. If the largest that passed is one, it is probably the
        // answer.
        let known = USUAL.contains(&low) || self.low.is_none();
        if known && open(low + 1) {
            return Some(low + 1);
        }
        // A dozen sizes more would take a remote host that limits its answers a minute.
        if self.limit.is_some() {
            return None;
        }
        Some(low + (self.high - low) / 2)
    }

    /// Takes a train of small packets and packets of the size last asked for.
    pub(super) fn take(&mut self, report: &TrainReport) {
        // From the report, not from `trying`: a recording is read in the same way.
        let Some(size) = report.arrivals.iter().map(|row| row.ip_octets).max() else {
            return;
        };
        if size != self.trying {
            self.trying = size;
            self.losses = 0;
            self.trains = 0;
        }
        self.trains += 1;
        self.sent += to_u64(report.arrivals.len());
        let is_small = |row: &&Arrival| row.ip_octets < size;
        let reverse = |row: &&Arrival| arrived(row);
        let small = report.arrivals.iter().filter(is_small).count();
        let small_back = report.arrivals.iter().filter(is_small).filter(reverse).count();
        self.small_sent += to_u64(small);
        // What the remote host's limit left without an answer is no loss of the path.
        let refused = usize::try_from(report.local_drops).unwrap_or(usize::MAX);
        self.small_lost += to_u64((small - small_back).saturating_sub(refused));
        if small_back > 0 {
            self.pass(self.small.min(size - 1));
        }
        let big = || report.arrivals.iter().filter(|row| row.ip_octets == size);
        if big().any(|row| reverse(&row)) {
            self.pass(size);
            return;
        }
        if let Some(HopReplyKind::PacketTooBig { mtu }) = big().find_map(too_big) {
            self.too_big(size, mtu);
            return;
        }
        // Only losses that the small packets beside them do not share count against the size.
        if 2 * small_back >= small {
            self.losses += u32::try_from(big().count()).unwrap_or(u32::MAX);
        }
        let needed = if self.small_lost == 0 { 3 } else { 9 };
        if self.losses >= needed {
            self.black_hole = true;
            self.fail(size);
        }
    }

    /// The interface takes no more than this; whether that left anything to try.
    pub(super) fn cap(&mut self, most: u16) -> bool {
        let lower = most + 1 < self.high && most >= self.small;
        if lower {
            self.high = most + 1;
            self.first_high = self.high;
        }
        lower
    }

    /// Probes need at least this; whether that left anything to try.
    pub(super) fn raise(&mut self, least: u16) -> bool {
        let higher = least > self.small && least < self.high;
        if higher {
            self.small = least;
        }
        higher
    }

    /// What it means that not even a small packet was answered.
    pub(super) fn silence(&self) -> Reason {
        let octets = self.small;
        match self.answering {
            // The world is there because the remote host answered shorter ones.
            Answering::ClosedPort => Reason::NotOffered { what: format!("answers to packets of {octets} octets") },
            Answering::TcpSyn => Reason::NotOffered {
                what: format!("answers to SYNs that carry data; none came to SYNs of {octets} octets"),
            },
            Answering::Server | Answering::Echo | Answering::Reflector => Reason::NoAnswer,
        }
    }

    fn pass(&mut self, size: u16) {
        if size < self.high && self.low.is_none_or(|low| size > low) {
            self.low = Some(size);
        }
        self.trains = 0;
    }

    fn fail(&mut self, size: u16) {
        if self.low.is_none_or(|low| size > low) {
            self.high = self.high.min(size);
        }
        self.trains = 0;
    }

    /// A router said so. Its number is only a hint: it may be wrong, or forged; what the probes say
    /// counts (RFC 8899 §4.6.1).
    fn too_big(&mut self, size: u16, mtu: Option<u16>) {
        self.fail(size);
        let low = self.low.unwrap_or(self.small);
        self.reported = mtu.filter(|mtu| (low..size).contains(mtu)).or(self.reported);
    }
}

/// The remote host answered the packet: it had arrived.
fn arrived(row: &Arrival) -> bool {
    match row.fate {
        Fate::Echoed { .. } => true,
        Fate::Answered(reply) => matches!(reply.kind, HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer),
        Fate::Received(_) | Fate::Lost => false,
    }
}

/// A router's complaint about the packet's size.
fn too_big(row: &Arrival) -> Option<HopReplyKind> {
    match row.fate {
        Fate::Answered(reply) => Some(reply.kind).filter(|kind| matches!(kind, HopReplyKind::PacketTooBig { .. })),
        Fate::Received(_) | Fate::Echoed { .. } | Fate::Lost => None,
    }
}

/// What links and tunnels leave, in IP octets: the guaranteed sizes; Teredo, 6in4, `WireGuard` over
/// IPv6 and over IPv4, GRE, `PPPoE` with and without a tunnel; Ethernet; FDDI; jumbo frames.
const USUAL: [u16; 17] =
    [576, 1006, 1280, 1400, 1420, 1440, 1450, 1460, 1472, 1476, 1480, 1492, 1500, 4352, 8192, 9000, 9216];

/// Packets of the size in question per train, and as many small ones: the three losses of RFC
/// 8899's `MAX_PROBES`.
const COPIES: usize = 3;

/// Ours: with so many trains at one size and still no verdict, too much is lost for any.
const MOST_TRAINS: u32 = 8;
