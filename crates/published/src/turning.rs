//! What the methods share that look for the rate at which a train's spacing stops growing: `yaz`,
//! `kite` and `kite2` with trains.
//!
//! A [`Rule`] decides, from the rounds so far, which rate comes next and when to stop; everything
//! else is here: trains of one rate until their mean is clear of the limit ([`MethodRun`]), the
//! comparison itself ([`Round`], [`RoundAccount::limit_ns`]), and what is said in the end
//! (`answer.rs`).
//!
//! # How a round is judged
//!
//! Let `d` be the mean spacing at the receiver less that at the sender (ns), over the trains of one
//! rate. The original tools call a rate too high if `d` exceeds a constant or a resolution. Traffic
//! that comes in packets rounds off the turning point: at exactly the rate that is available the
//! queue is a random walk that is reflected at zero, and ends `sqrt(2/pi)` of its standard
//! deviation above its start. So `d` is compared with the resolution plus 0.8 of the spread that
//! trains show which fill the queue (parameter `allowance`; 0 is the original rule). The spread of
//! `d` relative to a train's time `T` falls with the root of `T`; it is taken from all rounds
//! together ([`RoundAccount::burstiness`]).
//!
//! A round ends when `d` lies clear of its limit by [`CLEAR`] standard errors, or has as many
//! trains as allowed.

mod answer;
mod round;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::BitRate;

use narrows_probe::registry::{Imposes, Range, Value};

pub(super) use round::{Round, RoundAccount};
pub(super) use session::{Ending, MethodRun, Turn};

/// What a search for the turning point can be set to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// IP octets of a packet; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// Rate of the first round; `None` is as fast as the sender can.
    pub start: Option<BitRate>,
    /// Packets of a train.
    pub length: Length,
    /// Packets of a train at most, whatever stamps and batches ask for.
    pub max_packets: usize,
    /// Trains of a round, at least.
    pub streams: usize,
    /// Trains of a round, at most.
    pub most_streams: usize,
    /// Rounds at most.
    pub max_rounds: usize,
    /// The least difference of rates that counts.
    pub resolution: Resolution,
    /// The least difference of mean spacings that counts.
    pub floor: Duration,
    /// Spread of full queues' trains that the limit allows for, in standard deviations.
    pub allowance: f64,
    /// Spacing that shrinks counts as that which grows.
    pub compression: bool,
    /// Share of packets lost on the path from which a rate is too high.
    pub loss: f64,
    /// Octets of queue that a train may build, until losses say less.
    pub burst_octets: u32,
    /// Mean load that the trains impose, as a share of the path's rate.
    pub load: f64,
}

/// How long trains are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// As many packets as this.
    Packets(usize),
    /// As many as leave in this time, within bounds.
    Time(Duration),
    /// So many, then twice as many while the error of a train's mean spacing is above a share of
    /// it.
    Doubling {
        /// Packets of the first train; `None`: 20, or 100 where the sender may reach 10 Gbit/s.
        first: Option<usize>,
        /// The share.
        error: f64,
    },
}

/// The least difference of rates that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Resolution {
    /// This share of the rate under test.
    Share(f64),
    /// This rate.
    Rate(BitRate),
}

/// One way to look for the turning point.
pub(super) trait Rule: Clone {
    /// The method's name, and what it reads.
    const READS: (&'static str, &'static str);

    /// What comes after the last of these rounds.
    fn turn(&mut self, settings: &Settings, seen: &RoundAccount) -> Turn;

    /// The rate that is stated, bit/s, from the rounds; `None` if they do not give one.
    fn value(&self, settings: &Settings, seen: &RoundAccount) -> Option<f64>;
}

/// Fewest packets of a train, unless losses shorten it.
pub(super) const MIN_PACKETS: usize = 50;
/// Standard errors that settle a round before it has all its trains (ours).
const CLEAR: f64 = 1.5;
/// Standard errors that an interval spans on either side (ours, from sweeps: a search that stops
/// where noise lets it is off by more than the error of its last round).
const SPANNED: f64 = 3.0;

impl Settings {
    /// What a run imposes with these settings, `usual` being that of the defaults: trains of the
    /// most packets at every round's most trains would be the end of every budget, so the octets at
    /// most are the usual, unless trains are longer.
    pub(super) fn imposes(&self, usual: &Imposes) -> Imposes {
        let octets = u64::from(self.ip_octets.unwrap_or(1500).max(1500));
        let trains = (self.most_streams * self.max_rounds) as u64;
        let packets = match self.length {
            Length::Packets(packets) => packets as u64,
            Length::Doubling { first, .. } => first.unwrap_or(0).max(LONGEST) as u64,
            Length::Time(_) => LONGEST as u64,
        };
        let most = trains.saturating_mul(packets).saturating_mul(octets);
        Imposes { max_octets: usual.max_octets.max(most.min(MOST_OCTETS)), ..usual.clone() }
    }
}

/// Packets of a train at most, unless stamps or batches ask for more (ours).
pub(super) const LONGEST: usize = 600;
/// No method here asks for more than this, whatever its parameters.
const MOST_OCTETS: u64 = 1_000_000_000;

impl Resolution {
    /// What is accepted.
    pub(super) const RANGE: Range = Range::Described("0.0001 to 0.2 of the rate, or a rate above 0");
}

/// A share of the rate (`0.01`, up to 1) or a rate (`500 kbit/s`).
impl Value for Resolution {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(share) = text.parse().ok().filter(|share| *share <= 1.0) {
            return Ok(Self::Share(share));
        }
        BitRate::parse(text).map(Self::Rate)
    }

    fn lies_in(&self, _: Range) -> bool {
        match *self {
            Self::Share(share) => (0.0001..=0.2).contains(&share),
            Self::Rate(rate) => rate > BitRate::ZERO,
        }
    }
}

/// The [`Settings`] of what was read under the same names; `most_streams` is never below `streams`.
macro_rules! settings {
    ($typed:ident, length: $length:expr, floor: $floor:expr, compression: $compression:expr $(,)?) => {
        $crate::turning::Settings {
            ip_octets: $typed.ip_octets,
            start: $typed.start,
            length: $length,
            max_packets: $typed.max_packets,
            streams: $typed.streams,
            most_streams: $typed.most_streams.max($typed.streams),
            max_rounds: $typed.max_rounds,
            resolution: $typed.resolution,
            floor: $floor,
            allowance: $typed.allowance,
            compression: $compression,
            loss: $typed.loss,
            burst_octets: $typed.burst_octets,
            load: $typed.load,
        }
    };
}
pub(super) use settings;
