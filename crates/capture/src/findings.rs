//! What an analysis found: flows in the order in which they began, and what they say together about
//! each pair of hosts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;

use narrows_diagnose::passive::Sight;
use narrows_probe::{BoundKind, MethodInfo, Outcome, Reason};
use narrows_units::BitRate;

use crate::decode::Endpoint;

/// What one method made of one direction of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The method.
    pub method: &'static MethodInfo,
    /// Samples that the outcome rests on.
    pub samples: u64,
    /// The outcome.
    pub outcome: Outcome,
}

/// One direction of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowFinding {
    /// Connections that began before it, and itself.
    pub number: u64,
    /// VLAN identifiers with bit 12 set, the outer one in the upper half; 0 without.
    pub vlan: u32,
    /// The data's sender.
    pub source: Endpoint,
    /// Their receiver.
    pub destination: Endpoint,
    /// The sender opened the connection; `None` if its opening was not seen.
    pub opened_by_source: Option<bool>,
    /// First packet, in nanoseconds of the capturing clock.
    pub began_ns: i64,
    /// From the first packet to the last.
    pub lasted_ns: i64,
    /// Packets with data.
    pub data_packets: u64,
    /// Their payload, retransmissions included.
    pub payload_octets: u64,
    /// What was found out about the place of the capture.
    pub sight: Sight,
    /// Of each method, in its order.
    pub answers: Vec<Answer>,
}

/// What became of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowCounts {
    /// Connections in all.
    pub connections: u64,
    /// Directions with data, but too few for a result.
    pub small: u64,
    /// Connections that were ended early for want of room.
    pub evicted: u64,
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets in all.
    pub packets: u64,
    /// Octets that they had on their links.
    pub octets: u64,
    /// TCP packets that were used.
    pub tcp: u64,
    /// UDP packets.
    pub udp: u64,
    /// Other protocols over IP.
    pub other_ip: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
    /// Not IP.
    pub other_link: u64,
    /// TCP packets without a stamp.
    pub unstamped: u64,
    /// Packets of which the capture holds too little.
    pub cut_short: u64,
    /// Packets whose headers contradict themselves.
    pub malformed: u64,
    /// Packets of a link type that we do not know.
    pub unknown_link: u64,
    /// That link type, of the first of them.
    pub unknown_link_type: Option<u32>,
    /// Time stamps that lie before that of the packet in front.
    pub stepped_back: u64,
    /// Connections.
    pub flows: FlowCounts,
    /// Directions that were left out of the result for want of room, the smallest first.
    pub left_out: u64,
}

impl Counts {
    /// Packets that could not be read.
    pub const fn unreadable(&self) -> u64 {
        self.cut_short + self.malformed + self.unknown_link
    }
}

/// What one method found between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct PairFinding {
    /// The data's sender.
    pub source: IpAddr,
    /// Their receiver.
    pub destination: IpAddr,
    /// The method.
    pub method: &'static MethodInfo,
    /// Flows with an answer of any kind.
    pub flows: usize,
    /// Of these, flows that the value rests on.
    pub used: usize,
    /// Flows that say something else.
    pub disagreeing: usize,
    /// Samples of the flows that the value rests on.
    pub samples: u64,
    /// What they say together.
    pub together: Together,
}

/// A value for several flows, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Together {
    /// A value.
    Value {
        /// In bit/s at the IP layer.
        value: BitRate,
        /// Lower end of the interval.
        low: BitRate,
        /// Upper end.
        high: BitRate,
        /// What the number claims.
        verdict: BoundKind,
    },
    /// None.
    Nothing(Reason),
}

/// All that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// Directions of connections, in the order in which these began.
    pub flows: Vec<FlowFinding>,
    /// Pairs of hosts, in the order in which their first flow began.
    pub pairs: Vec<PairFinding>,
    /// What was counted.
    pub counts: Counts,
    /// Finest step between stamps, in nanoseconds.
    pub resolution_ns: i64,
    /// Packets that the capture is known to have dropped.
    pub dropped: u64,
}

/// The largest flows, up to a number.
pub(crate) struct Largest {
    most: usize,
    flows: BinaryHeap<BySize>,
    left_out: u64,
}

struct BySize(FlowFinding);

/// Few packets first; of as many, the later flow.
type Rank = Reverse<(u64, Reverse<(u64, bool, Endpoint)>)>;

impl Largest {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, flows: BinaryHeap::new(), left_out: 0 }
    }

    pub(crate) fn add(&mut self, flow: FlowFinding) {
        self.flows.push(BySize(flow));
        if self.flows.len() > self.most {
            self.flows.pop();
            self.left_out += 1;
        }
    }

    /// In the order in which they began, and how many were left out.
    pub(crate) fn in_order(self) -> (Vec<FlowFinding>, u64) {
        let mut flows: Vec<FlowFinding> = self.flows.into_iter().map(|BySize(flow)| flow).collect();
        flows.sort_by_key(FlowFinding::order);
        (flows, self.left_out)
    }
}

impl FlowFinding {
    /// The opener's direction comes first.
    fn order(&self) -> (u64, bool, Endpoint) {
        (self.number, self.opened_by_source == Some(false), self.source)
    }
}

impl BySize {
    /// The smallest, and of equals the latest, is the first to go.
    fn rank(&self) -> Rank {
        Reverse((self.0.data_packets, Reverse(self.0.order())))
    }
}

impl PartialEq for BySize {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for BySize {}

impl PartialOrd for BySize {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BySize {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}
