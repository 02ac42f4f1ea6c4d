//! One TCP connection: both directions, what its hosts show, and what methods will read of it.

use std::collections::VecDeque;

use narrows_diagnose::passive::{Course, FlowLog, SeenPacket, Sight, Vantage};

use super::FlowKey;
use super::order::before;
use super::response::Responses;
use super::vantage::{self, Signs};
use crate::decode::{Endpoint, TcpPacket};

/// Packets with data that bring a direction's log to life.
pub(super) const LIVELY_PACKETS: u64 = 8;
/// Packets that are kept until then.
const KEPT_PACKETS: usize = 32;
/// Logs are asked for their size every so many packets.
const WEIGHED_EVERY: u64 = 64;
/// Longest IP packet of an Ethernet without jumbo frames, for connections whose SYNs, which name a
/// size, were not seen.
const USUAL_IP_OCTETS: u32 = 1_500;

/// A connection.
pub(super) struct Connection {
    pub(super) key: FlowKey,
    /// The number of its first packet in the whole capture: order of results.
    pub(super) number: u64,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    /// Octets of memory that it holds, logs and all.
    pub(super) held_octets: usize,
    packets: u64,
    kept: VecDeque<(Host, SeenPacket)>,
    hosts: [HostState; 2],
    /// Who opened it, where that was seen.
    opener: Option<Host>,
    reset: bool,
}

/// One of the two hosts: that with the lower endpoint, or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    Low,
    High,
}

impl Host {
    pub(super) const BOTH: [Self; 2] = [Self::Low, Self::High];

    fn other(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }

    fn index(self) -> usize {
        usize::from(self == Self::High)
    }
}

/// What a host has sent, and what methods will read of that.
#[derive(Default)]
struct HostState {
    signs: Signs,
    /// Questions to it.
    responses: Responses,
    data_packets: u64,
    payload_octets: u64,
    merged: u64,
    /// Acknowledged, but never seen.
    unseen: u64,
    first_sequence: Option<u32>,
    finished: bool,
    mss: Option<u16>,
    window_scale: Option<u8>,
    syn_seen: bool,
    log: Option<Box<FlowLog>>,
}

/// One direction of a connection that has ended, with its log.
pub(super) struct Direction {
    pub(super) source: Endpoint,
    pub(super) destination: Endpoint,
    pub(super) opened_by_source: Option<bool>,
    pub(super) data_packets: u64,
    pub(super) payload_octets: u64,
    pub(super) merged: u64,
    pub(super) sight: Sight,
    pub(super) log: Option<Box<FlowLog>>,
}

impl Connection {
    pub(super) fn new(key: FlowKey, number: u64, at_ns: i64) -> Self {
        Self {
            key,
            number,
            first_ns: at_ns,
            last_ns: at_ns,
            held_octets: size_of::<Self>(),
            packets: 0,
            kept: VecDeque::new(),
            hosts: [HostState::default(), HostState::default()],
            opener: None,
            reset: false,
        }
    }

    /// Whether a packet begins a new connection between the same endpoints.
    #[inline]
    pub(super) fn is_over(&self, from: Host, packet: &TcpPacket) -> bool {
        let tcp = &packet.seen.tcp;
        if !tcp.syn || tcp.rst {
            return false;
        }
        let state = &self.hosts[from.index()];
        let ended = self.reset || self.hosts.iter().any(|host| host.finished);
        match state.first_sequence {
            Some(first) if state.syn_seen => first != tcp.sequence,
            // In the middle of a connection nobody sends a SYN.
            Some(_) => true,
            None => ended,
        }
    }

    /// One more packet.
    #[inline]
    pub(super) fn see(&mut self, from: Host, packet: &TcpPacket) {
        self.packets += 1;
        self.last_ns = packet.seen.at_ns;
        self.note(from, packet);
        let seen = &packet.seen;
        let mut weigh = self.packets.is_multiple_of(WEIGHED_EVERY);
        let needs_keeping = self.hosts.iter().any(|host| host.log.is_none());
        if needs_keeping {
            if self.kept.len() == KEPT_PACKETS {
                self.kept.pop_front();
            }
            let room = self.kept.capacity();
            self.kept.push_back((from, *seen));
            weigh |= self.kept.capacity() != room;
        }
        for host in Host::BOTH {
            let course = if host == from { Course::Along } else { Course::Back };
            let state = &mut self.hosts[host.index()];
            if let Some(log) = &mut state.log {
                log.see(course, seen);
            } else if host == from && state.data_packets >= LIVELY_PACKETS {
                let mut log = Box::new(FlowLog::new());
                for (from, seen) in &self.kept {
                    let course = if host == *from { Course::Along } else { Course::Back };
                    log.see(course, seen);
                }
                state.log = Some(log);
                weigh = true;
            }
        }
        if weigh {
            self.weigh();
        }
    }

    /// Ends it: the direction that each host's data took.
    pub(super) fn end(&mut self, resolution_ns: i64, missed: u64) -> [Direction; 2] {
        Host::BOTH.map(|host| self.direction(host, resolution_ns, missed))
    }

    fn direction(&mut self, host: Host, resolution_ns: i64, missed: u64) -> Direction {
        let sight = self.sight(host, resolution_ns, missed);
        let (low, high) = (self.key.low, self.key.high);
        let (source, destination) = match host {
            Host::Low => (low, high),
            Host::High => (high, low),
        };
        let opened_by_source = self.opener.map(|opener| opener == host);
        let state = &mut self.hosts[host.index()];
        Direction {
            source,
            destination,
            opened_by_source,
            data_packets: state.data_packets,
            payload_octets: state.payload_octets,
            merged: state.merged,
            sight,
            log: state.log.take(),
        }
    }

    fn sight(&self, host: Host, resolution_ns: i64, missed: u64) -> Sight {
        let (sender, receiver) = (&self.hosts[host.index()], &self.hosts[host.other().index()]);
        let signs = |state: &HostState| Signs { answer_ns: state.responses.smallest_ns(), ..state.signs };
        let where_at: Vantage = vantage::vantage(&signs(sender), &signs(receiver));
        let both_syns = sender.syn_seen && receiver.syn_seen;
        Sight {
            vantage: where_at,
            ahead_ns: receiver.responses.smallest_ns(),
            behind_ns: sender.responses.smallest_ns(),
            resolution_ns,
            missed: missed.saturating_add(sender.unseen),
            began: sender.syn_seen || receiver.syn_seen,
            // Scaling counts if both SYNs carry the option (RFC 7323 §2.2).
            window_shift: both_syns.then_some(match (sender.window_scale, receiver.window_scale) {
                (Some(_), Some(shift)) => shift,
                _ => 0,
            }),
            announced_mss: receiver.mss,
        }
    }

    #[inline]
    fn note(&mut self, from: Host, packet: &TcpPacket) {
        let tcp = &packet.seen.tcp;
        self.hosts[from.other().index()].responses.ask(&packet.seen);
        let unseen = self.hosts[from.index()].responses.answer(&packet.seen);
        if unseen {
            let other = &mut self.hosts[from.other().index()];
            other.unseen += 1;
        }
        if tcp.syn && tcp.acknowledgement.is_none() && self.opener.is_none() {
            self.opener = Some(from);
        } else if tcp.syn && self.opener.is_none() {
            self.opener = Some(from.other());
        }
        self.reset |= tcp.rst;
        let receiver_mss = self.hosts[from.other().index()].mss;
        self.hosts[from.index()].note(packet, receiver_mss);
    }

    fn weigh(&mut self) {
        let logs = self.hosts.iter().filter_map(|host| host.log.as_deref());
        let kept = self.kept.capacity() * size_of::<(Host, SeenPacket)>();
        self.held_octets = size_of::<Self>() + kept + logs.map(FlowLog::held_octets).sum::<usize>();
    }
}

impl HostState {
    #[inline]
    fn note(&mut self, packet: &TcpPacket, receiver_mss: Option<u16>) {
        let tcp = &packet.seen.tcp;
        let signs = &mut self.signs;
        signs.packets += 1;
        signs.unfinished += u64::from(packet.checksum_partial);
        signs.sent_here += u64::from(packet.outgoing == Some(true));
        signs.came_here += u64::from(packet.outgoing == Some(false));
        signs.hop_limit = signs.hop_limit.max(packet.hop_limit);
        if tcp.syn {
            self.syn_seen = true;
            self.first_sequence = Some(tcp.sequence);
            self.mss = packet.mss;
            self.window_scale = packet.window_scale;
        } else if self.first_sequence.is_none_or(|first| !self.syn_seen && before(tcp.sequence, first)) {
            self.first_sequence = Some(tcp.sequence);
        }
        self.finished |= tcp.fin;
        if tcp.payload_octets > 0 {
            self.data_packets += 1;
            self.payload_octets += u64::from(tcp.payload_octets);
            // The largest segment that the receiver takes has its size less options and headers.
            let headers = packet.seen.ip_octets - tcp.payload_octets;
            let longest = receiver_mss.map_or(USUAL_IP_OCTETS, |mss| u32::from(mss) + headers);
            self.merged += u64::from(packet.seen.ip_octets > longest);
        }
    }
}
