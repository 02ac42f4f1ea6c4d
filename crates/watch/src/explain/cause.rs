//! The causes that can be named, and how they are said.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A fact about a path that may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// The routers.
    Route,
    /// The interface, source address or next hop that packets leave by.
    Egress,
    /// The target's address.
    Address,
    /// The largest packet.
    Mtu,
}

impl FactKind {
    /// The machine name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Egress => "egress",
            Self::Address => "address",
            Self::Mtu => "mtu",
        }
    }
}

/// Why a signal changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Cause {
    /// This host was too busy to measure: no alert.
    HostBusy,
    /// This host's own traffic.
    OwnTraffic,
    /// All targets that share something changed together.
    SharedSegment {
        /// What they share.
        shared: String,
    },
    /// A fact changed first.
    Fact {
        /// Which.
        kind: FactKind,
        /// From.
        before: String,
        /// To.
        after: String,
    },
    /// The link's rate, or a shaper.
    LinkRate,
    /// Queueing that begins at a hop.
    CrossTraffic {
        /// The first hop with queueing.
        hop: u8,
    },
    /// Queueing that begins at one of several hops.
    CrossTrafficBetween {
        /// The first behind one that has none.
        first: u8,
        /// The first that is known to have it.
        last: u8,
    },
    /// Queueing rose, at a hop that is not known.
    CrossTrafficSomewhere,
    /// Loss without queueing.
    LinkErrorsOrPolicer,
    /// The evidence does not decide.
    NotSeen,
}

impl Cause {
    /// The machine name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::HostBusy => "host_busy",
            Self::OwnTraffic => "own_traffic",
            Self::SharedSegment { .. } => "shared_segment",
            Self::Fact { .. } => "fact",
            Self::LinkRate => "link_rate",
            Self::CrossTraffic { .. } => "cross_traffic",
            Self::CrossTrafficBetween { .. } => "cross_traffic_between",
            Self::CrossTrafficSomewhere => "cross_traffic_somewhere",
            Self::LinkErrorsOrPolicer => "link_errors_or_policer",
            Self::NotSeen => "not_seen",
        }
    }

    /// The first and the last of the hops at one of which it lies, if it names any.
    pub const fn hops(&self) -> Option<(u8, u8)> {
        match *self {
            Self::CrossTraffic { hop } => Some((hop, hop)),
            Self::CrossTrafficBetween { first, last } => Some((first, last)),
            _ => None,
        }
    }

    /// A change of which this host is the cause is nobody's alarm.
    pub const fn deserves_alert(&self) -> bool {
        !matches!(self, Self::HostBusy)
    }

    /// Whether it says less than this one, and nothing against it: that what was seen is not seen
    /// any more is no news of why a change began.
    pub fn says_less_than(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::NotSeen, earlier) => *earlier != Self::NotSeen,
            (Self::CrossTrafficSomewhere, Self::CrossTraffic { .. } | Self::CrossTrafficBetween { .. }) => true,
            (Self::CrossTrafficBetween { first, last }, Self::CrossTraffic { hop }) => (first..=last).contains(&hop),
            (Self::CrossTrafficBetween { first, last }, Self::CrossTrafficBetween { first: from, last: to }) => {
                self != earlier && first <= from && to <= last
            }
            _ => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostBusy => f.write_str("this host is busy"),
            Self::OwnTraffic => f.write_str("this host's own traffic"),
            Self::SharedSegment { shared } => write!(f, "shared segment ({shared})"),
            Self::Fact { kind, before, after } => write!(f, "{} changed from {before} to {after}", kind.name()),
            Self::LinkRate => f.write_str("link rate or shaper"),
            Self::CrossTraffic { hop } => write!(f, "queue at hop {hop}"),
            Self::CrossTrafficBetween { first, last } => write!(f, "queue at one of hops {first} to {last}"),
            Self::CrossTrafficSomewhere => f.write_str("queue at a hop that is not known"),
            Self::LinkErrorsOrPolicer => f.write_str("link errors or a policer"),
            Self::NotSeen => f.write_str("not seen"),
        }
    }
}
