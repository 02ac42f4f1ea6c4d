//! Propagation, and what else may happen on the wire.

use narrows_scenario::{Hop, Jitter, Loss, PathDirection};
use narrows_units::nanos;

use super::service::Server;
use crate::rng::{Purpose, Stream, round_ns};

/// The wire behind a link.
#[derive(Debug)]
pub(super) struct Wire {
    delay: u64,
    loss: LossState,
    jitter: Jitter,
    /// Per channel of the link: no packet arrives before this one did.
    last: Vec<u64>,
    rng: Stream,
}

#[derive(Debug)]
enum LossState {
    None,
    Random { ratio: f64 },
    Bursty { bad: bool, to_bad: f64, to_good: f64 },
}

impl Wire {
    pub(super) fn new(hop: &Hop, way: PathDirection, index: usize, seed: u64) -> Self {
        Self {
            delay: nanos(hop.delay),
            loss: LossState::new(hop.loss),
            jitter: hop.jitter,
            last: vec![0; Server::channels(hop)],
            rng: Stream::new(seed, Purpose::Wire(way, index)),
        }
    }

    /// Propagation alone.
    pub(super) fn plain(delay: u64) -> Self {
        Self {
            delay,
            loss: LossState::None,
            jitter: Jitter::None,
            last: vec![0],
            // Never drawn from.
            rng: Stream::new(0, Purpose::Wire(PathDirection::Forward, 0)),
        }
    }

    /// Nothing random happens here.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.loss, LossState::None) && self.jitter == Jitter::None
    }

    pub(super) fn delay(&self) -> u64 {
        self.delay
    }

    /// When a packet that left this channel of the link at this time arrives; `None` if it is lost.
    pub(super) fn carry(&mut self, departure: u64, channel: usize) -> Option<u64> {
        if self.loss.strikes(&mut self.rng) {
            return None;
        }
        let jitter = match self.jitter {
            Jitter::None => 0,
            Jitter::Uniform(width) => self.rng.below(nanos(width).saturating_add(1)),
            Jitter::Exponential(mean) => round_ns(self.rng.exponential() * nanos(mean) as f64),
        };
        let arrival = departure.saturating_add(self.delay).saturating_add(jitter);
        let Some(last) = self.last.get_mut(channel) else {
            return Some(arrival);
        };
        *last = arrival.max(*last);
        Some(*last)
    }
}

impl LossState {
    /// The two-state chain of Gilbert and Elliott, one step per packet: bad to good with
    /// `1 / mean_burst`, good to bad such that the share of time in the bad state is `ratio`.
    /// Shares that bursts of this mean cannot reach (above `mean_burst / (1 + mean_burst)`) get
    /// longer bursts.
    fn new(loss: Loss) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Random { ratio } => Self::Random { ratio },
            Loss::Bursty { ratio, .. } if ratio >= 1.0 => Self::Random { ratio: 1.0 },
            Loss::Bursty { ratio, mean_burst } => {
                let odds = ratio / (1.0 - ratio);
                let to_good = (1.0 / mean_burst).min(1.0 / odds);
                Self::Bursty { bad: false, to_bad: odds * to_good, to_good }
            }
        }
    }

    fn strikes(&mut self, rng: &mut Stream) -> bool {
        match self {
            Self::None => false,
            Self::Random { ratio } => rng.chance(*ratio),
            Self::Bursty { bad, to_bad, to_good } => {
                let change = rng.chance(if *bad { *to_good } else { *to_bad });
                *bad ^= change;
                *bad
            }
        }
    }
}
