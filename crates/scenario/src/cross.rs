//! Cross traffic.

use std::time::Duration;

use narrows_units::BitRate;

use crate::elastic::{Elastic, ElasticControl};
use crate::error::ScenarioError;
use crate::way::PathDirection;

/// Traffic that shares some hops with the probes.
#[derive(Debug, Clone, PartialEq)]
pub struct Cross {
    /// Which way it goes.
    pub way: PathDirection,
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
    /// Who carries it where a path is played in real time; `None`: whoever plays the path chooses.
    pub generated_by: Option<GeneratedBy>,
}

/// Who carries cross traffic over a path that is played in real time. The simulator treats both
/// alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeneratedBy {
    /// The link itself reckons with packets that exist nowhere else.
    Virtual,
    /// Real hosts send real packets.
    Hosts,
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
    /// Evenly: each packet follows the last after the last one's size divided by the rate. The
    /// first comes at a random phase.
    Cbr,
    /// Independently: exponential gaps.
    Poisson,
    /// In bursts: on- and off-times are Pareto distributed with this shape (1 < shape), packets
    /// come evenly at the peak rate while on. Off-times are as long as the long-run rate demands.
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
pub struct SizeMix(Sizes);

#[derive(Debug, Clone, PartialEq)]
enum Sizes {
    Weighted(Vec<(u16, f64)>),
    /// Both ends included.
    Uniform(u16, u16),
}

/// An IP header alone: nothing shorter is a packet.
const SHORTEST: u16 = 20;

impl SizeMix {
    /// One size.
    pub fn constant(ip_octets: u16) -> Self {
        Self(Sizes::Weighted(vec![(ip_octets, 1.0)]))
    }

    /// Simple IMIX: 40, 576 and 1500 octets in 7:4:1.
    pub fn imix() -> Self {
        Self(Sizes::Weighted(vec![(40, 7.0), (576, 4.0), (1500, 1.0)]))
    }

    /// Every size from `low` to `high`, both included, equally often; `None` if `low` is above
    /// `high` or below 20 octets.
    pub fn uniform(low: u16, high: u16) -> Option<Self> {
        (SHORTEST <= low && low <= high).then_some(Self(Sizes::Uniform(low, high)))
    }

    /// Sizes with weights; `None` if there is none, a weight is not positive and finite, their sum
    /// is not finite, or a size is below 20 octets.
    pub fn weighted(mix: impl Into<Vec<(u16, f64)>>) -> Option<Self> {
        let mix = mix.into();
        let fine = !mix.is_empty()
            && mix.iter().all(|&(size, weight)| size >= SHORTEST && weight.is_finite() && weight > 0.0)
            && mix.iter().map(|(_, weight)| weight).sum::<f64>().is_finite();
        fine.then_some(Self(Sizes::Weighted(mix)))
    }

    /// Sizes in IP octets with their shares of packets, which sum to 1.
    pub fn shares(&self) -> impl Iterator<Item = (u16, f64)> + '_ {
        let (listed, range): (&[(u16, f64)], _) = match &self.0 {
            Sizes::Weighted(mix) => (mix, None),
            Sizes::Uniform(low, high) => (&[], Some((*low, *high))),
        };
        let total: f64 = listed.iter().map(|(_, weight)| weight).sum();
        let listed = listed.iter().map(move |&(size, weight)| (size, weight / total));
        let even = range.into_iter().flat_map(|(low, high)| {
            let share = 1.0 / (f64::from(high) - f64::from(low) + 1.0);
            (low..=high).map(move |size| (size, share))
        });
        listed.chain(even)
    }

    /// Smallest and largest size if the sizes between are equally frequent; `None` for a list with
    /// weights.
    pub fn uniform_range(&self) -> Option<(u16, u16)> {
        match self.0 {
            Sizes::Weighted(_) => None,
            Sizes::Uniform(low, high) => Some((low, high)),
        }
    }

    /// Smallest and largest size in IP octets.
    pub fn extremes(&self) -> (u16, u16) {
        match &self.0 {
            Sizes::Uniform(low, high) => (*low, *high),
            Sizes::Weighted(mix) => {
                mix.iter().fold((u16::MAX, 0), |(low, high), &(size, _)| (low.min(size), high.max(size)))
            }
        }
    }

    /// Mean size in IP octets.
    pub fn mean_ip_octets(&self) -> f64 {
        match self.0 {
            Sizes::Uniform(low, high) => f64::midpoint(f64::from(low), f64::from(high)),
            Sizes::Weighted(_) => self.shares().map(|(size, share)| f64::from(size) * share).sum(),
        }
    }
}

/// The transfer that passive methods listen to: one TCP connection from the sender of the direction
/// asked for to its receiver, from the moment that somebody listens. It is no cross traffic:
/// without a listener there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Passing {
    /// Its congestion control.
    pub control: ElasticControl,
    /// Most payload octets in flight; `None`: the receiver's own limit.
    pub window_octets: Option<u32>,
    /// IP-layer rate at which its application hands over segment after segment; `None`: as fast as
    /// they can be sent.
    pub application: Option<BitRate>,
    /// Its packets carry TCP timestamps. Without them packets keep their length (other options take
    /// the place).
    pub timestamps: bool,
}

impl Default for Passing {
    /// As a bulk transfer between two Linux hosts.
    fn default() -> Self {
        Self { control: ElasticControl::Cubic, window_octets: None, application: None, timestamps: true }
    }
}

impl Cross {
    /// Open-loop traffic over one hop of the forward way, for all time.
    pub fn on_hop(hop: usize, arrivals: Arrivals, rate: BitRate, sizes: SizeMix) -> Self {
        Self {
            way: PathDirection::Forward,
            first_hop: hop,
            last_hop: hop,
            from: Duration::ZERO,
            until: None,
            source: Source::Open { arrivals, rate, sizes },
            generated_by: None,
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
    pub fn way(mut self, way: PathDirection) -> Self {
        self.way = way;
        self
    }

    /// Refuses what no traffic can be; `place` names it in the complaint.
    pub fn validate(&self, place: &str) -> Result<(), ScenarioError> {
        match &self.source {
            Source::Elastic(elastic) => elastic.validate(place),
            Source::Open { rate, .. } if rate.bps() == 0 => {
                Err(ScenarioError::invalid(place, "a rate of zero is no traffic; leave it out"))
            }
            Source::Open { rate, arrivals: Arrivals::ParetoOnOff { shape, peak, mean_on }, .. } => {
                let fine = shape.is_finite() && *shape > 1.0 && peak > rate && !mean_on.is_zero();
                let why = "needs shape above 1, a peak above the rate, and a mean on-time";
                fine.then_some(()).ok_or_else(|| ScenarioError::invalid(place, why))
            }
            Source::Open { .. } => Ok(()),
        }
    }

    /// Whether it crosses this hop of this way.
    pub fn crosses(&self, way: PathDirection, hop: usize) -> bool {
        self.way == way && (self.first_hop..=self.last_hop).contains(&hop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one_and_the_mean_is_theirs() {
        let mixes = [
            (SizeMix::constant(900), 900.0, (900, 900)),
            (SizeMix::imix(), (7.0 * 40.0 + 4.0 * 576.0 + 1500.0) / 12.0, (40, 1500)),
            (SizeMix::uniform(64, 1500).unwrap(), 782.0, (64, 1500)),
            (SizeMix::uniform(20, 20).unwrap(), 20.0, (20, 20)),
            (SizeMix::uniform(20, u16::MAX).unwrap(), 32_777.5, (20, u16::MAX)),
            (SizeMix::weighted([(100, 1.0), (400, 2.0)]).unwrap(), 300.0, (100, 400)),
        ];
        for (mix, mean, extremes) in mixes {
            let (mut total, mut sum) = (0.0, 0.0);
            for (size, share) in mix.shares() {
                total += share;
                sum += f64::from(size) * share;
            }
            assert!((total - 1.0).abs() < 1e-9, "{mix:?} {total}");
            assert!((sum - mean).abs() < 1e-6 && (mix.mean_ip_octets() - mean).abs() < 1e-6, "{mix:?} {sum}");
            assert_eq!(mix.extremes(), extremes);
        }
    }

    #[test]
    fn mixes_that_are_none_are_refused() {
        assert_eq!(SizeMix::uniform(1500, 64), None);
        assert_eq!(SizeMix::uniform(19, 64), None);
        for mix in [vec![], vec![(19, 1.0)], vec![(100, 0.0)], vec![(100, f64::MAX), (200, f64::MAX)]] {
            assert_eq!(SizeMix::weighted(mix.clone()), None, "{mix:?}");
        }
    }
}
