//! Cross traffic.

use std::time::Duration;

use units::BitRate;

use crate::model::Way;

/// Traffic that shares some hops with the probes.
#[derive(Debug, Clone, PartialEq)]
pub struct Cross {
    /// Which way it goes.
    pub way: Way,
    /// Index of the first hop it crosses (from 0, in the order of its way).
    pub first_hop: usize,
    /// Index of the last hop it crosses.
    pub last_hop: usize,
    /// When it begins.
    pub from: Duration,
    /// When it ends; `None`: never.
    pub until: Option<Duration>,
    /// What it is made of.
    pub source: Source,
}

/// What cross traffic is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Packets that come whatever happens to them.
    Open {
        /// How they come.
        arrivals: Arrivals,
        /// Long-run IP-layer rate.
        rate: BitRate,
        /// How large they are.
        sizes: SizeMix,
    },
    /// TCP connections that take what they get.
    Elastic(Elastic),
}

/// How open-loop packets come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// Evenly: each packet follows the last after the last one's size divided by the rate. The first comes at a random phase.
    Cbr,
    /// Independently: exponential gaps.
    Poisson,
    /// In bursts: on- and off-times are Pareto distributed with this shape (1 < shape), packets come evenly at the peak rate
    /// while on. Off-times are as long as the long-run rate demands.
    ParetoOnOff {
        /// Tail index of both times; 1.5 is usual, below 2 the variance is infinite.
        shape: f64,
        /// Mean on-time.
        mean_on: Duration,
        /// IP-layer rate while on.
        peak: BitRate,
    },
}

/// Packet sizes and their shares.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeMix(Vec<(u16, f64)>);

impl SizeMix {
    /// One size.
    pub fn constant(ip_octets: u16) -> Self {
        Self(vec![(ip_octets, 1.0)])
    }

    /// Simple IMIX: 40, 576 and 1500 octets in 7:4:1.
    pub fn imix() -> Self {
        Self(vec![(40, 7.0), (576, 4.0), (1500, 1.0)])
    }

    /// Sizes with weights; `None` if there is none, a weight is not positive and finite, or a size is below 20 octets.
    pub fn weighted(mix: impl Into<Vec<(u16, f64)>>) -> Option<Self> {
        let mix = mix.into();
        let fine = !mix.is_empty()
            && mix
                .iter()
                .all(|&(size, weight)| size >= 20 && weight.is_finite() && weight > 0.0);
        fine.then_some(Self(mix))
    }

    /// Sizes in IP octets with their shares of packets, which sum to 1.
    pub fn shares(&self) -> impl Iterator<Item = (u16, f64)> + '_ {
        let total: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        self.0.iter().map(move |&(size, weight)| (size, weight / total))
    }

    /// Mean size in IP octets.
    pub fn mean_ip_octets(&self) -> f64 {
        self.shares().map(|(size, share)| f64::from(size) * share).sum()
    }
}

/// TCP connections as cross traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elastic {
    /// How many.
    pub flows: u16,
    /// Their congestion control.
    pub control: ElasticControl,
    /// Round-trip time outside the hops they share with the probes.
    pub extra_rtt: Duration,
    /// Most payload octets in flight per flow; `None`: no limit.
    pub window_octets: Option<u32>,
}

/// Congestion control of elastic cross traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElasticControl {
    /// RFC 5681 and RFC 6582.
    Reno,
    /// RFC 9438.
    Cubic,
}

impl Cross {
    /// Open-loop traffic over one hop of the forward way, for all time.
    pub fn on_hop(hop: usize, arrivals: Arrivals, rate: BitRate, sizes: SizeMix) -> Self {
        Self {
            way: Way::Forward,
            first_hop: hop,
            last_hop: hop,
            from: Duration::ZERO,
            until: None,
            source: Source::Open { arrivals, rate, sizes },
        }
    }

    /// TCP connections over one hop of the forward way, for all time.
    pub fn elastic_on_hop(hop: usize, elastic: Elastic) -> Self {
        Self {
            source: Source::Elastic(elastic),
            ..Self::on_hop(hop, Arrivals::Cbr, BitRate::ZERO, SizeMix::constant(1500))
        }
    }

    /// The same traffic over more hops.
    #[must_use]
    pub fn to_hop(mut self, last: usize) -> Self {
        self.last_hop = last;
        self
    }

    /// The same traffic, the other way.
    #[must_use]
    pub fn way(mut self, way: Way) -> Self {
        self.way = way;
        self
    }

    /// Whether it crosses this hop of this way.
    pub fn crosses(&self, way: Way, hop: usize) -> bool {
        self.way == way && (self.first_hop..=self.last_hop).contains(&hop)
    }
}
