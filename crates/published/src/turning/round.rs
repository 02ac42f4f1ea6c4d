//! The trains of one rate, what left and what came; and all rounds.

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp, nanos_f64};

use super::{Resolution, Settings};
use crate::fac2::observation::TrainObservation;
use narrows_probe::PathFacts;
use narrows_probe::StampSource;

/// Trains of one rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Round {
    /// IP octets of a packet.
    pub(crate) ip_octets: u16,
    /// The trains, in order. Never empty once judged.
    pub(super) looks: Vec<TrainObservation>,
    /// What the round was judged to be; `None` while it goes on.
    pub(crate) verdict: Option<RoundVerdict>,
}

/// What a round says of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundVerdict {
    /// It came as it left.
    Matched,
    /// It came more slowly, or with losses.
    Congested,
}

impl Round {
    pub(super) fn new(ip_octets: u16) -> Self {
        Self { ip_octets, looks: Vec::new(), verdict: None }
    }

    fn bits(&self) -> f64 {
        f64::from(self.ip_octets) * 8.0
    }

    /// Mean spacing at the sender, of the packets that arrived, ns; every packet counts alike.
    pub(crate) fn gap_in(&self) -> f64 {
        self.mean(|observation| spacing(self.bits(), observation.rate_in))
    }

    /// Mean spacing at the receiver, ns.
    pub(crate) fn gap_out(&self) -> f64 {
        self.mean(|observation| spacing(self.bits(), observation.rate_out))
    }

    fn mean(&self, of: impl Fn(&TrainObservation) -> f64) -> f64 {
        let weights: f64 = self.looks.iter().map(|observation| observation.packets as f64).sum();
        let sum: f64 = self.looks.iter().map(|observation| observation.packets as f64 * of(observation)).sum();
        sum / weights.max(1.0)
    }

    /// How much the mean spacing has grown on the way, ns; negative if it shrank.
    pub(crate) fn stretch(&self) -> f64 {
        self.gap_out() - self.gap_in()
    }

    /// Rate of the trains, bit/s; infinite if they took no time to leave.
    pub(crate) fn rate_in(&self) -> f64 {
        rate(self.bits(), self.gap_in())
    }

    /// Rate at which they came.
    pub(crate) fn rate_out(&self) -> f64 {
        rate(self.bits(), self.gap_out())
    }

    /// Rate at which the sender sent them, lost packets included.
    pub(super) fn rate_sent(&self) -> f64 {
        rate(self.bits(), self.mean(|observation| spacing(self.bits(), observation.rate_sent)))
    }

    /// Time of one train at the receiver, s, on the mean.
    pub(super) fn time(&self) -> f64 {
        self.mean(|observation| observation.packets as f64) * self.gap_out() * 1e-9
    }

    /// Rate at which they would have come had none been lost: no less than what went through a full
    /// link.
    pub(super) fn rate_through(&self) -> f64 {
        self.rate_out() / (1.0 - self.lost_share().min(0.5))
    }

    /// Share of the packets lost on the path.
    pub(super) fn lost_share(&self) -> f64 {
        let sum = |of: fn(&TrainObservation) -> usize| self.looks.iter().map(of).sum::<usize>() as f64;
        sum(|observation| observation.lost) / sum(|observation| observation.packets).max(1.0)
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.verdict == Some(RoundVerdict::Congested)
    }
}

/// Time that so many bits take at a rate, ns; zero at an infinite one.
pub(super) fn spacing(bits: f64, rate: f64) -> f64 {
    bits * 1e9 / rate
}

/// The rate at which so many bits take this time; infinite if that is none.
pub(super) fn rate(bits: f64, gap_ns: f64) -> f64 {
    if gap_ns > 0.0 { bits * 1e9 / gap_ns } else { f64::INFINITY }
}

/// All that a run saw.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundAccount {
    /// The last may still be going on.
    pub(crate) rounds: Vec<Round>,
    pub(super) facts: Option<PathFacts>,
    /// IP octets of a full-size packet here.
    pub(super) ip_octets: u16,
    /// The sender's highest rate, bit/s, as far as known.
    pub(super) max_rate: Option<f64>,
    pub(super) arrived_by: Option<StampSource>,
    /// Batches at the receiver, the longest seen.
    pub(super) batch: Option<Duration>,
    pub(super) tally: Tally,
    pub(super) began: Option<Stamp<Sender>>,
    pub(super) ended: Option<Stamp<Sender>>,
}

/// The account of all trains.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) trains: u64,
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) reordered: u64,
    pub(super) local_drops: u64,
    pub(super) broken: u32,
    pub(super) clock_steps: u32,
    pub(super) all_lost: u32,
    pub(super) few_batches: u32,
    pub(super) overflows: u32,
    pub(super) stalls: u32,
    pub(super) exceeds_burst: bool,
    pub(super) heads: Vec<f64>,
}

impl RoundAccount {
    /// Rounds that were judged.
    pub(crate) fn judged(&self) -> impl DoubleEndedIterator<Item = &Round> {
        self.rounds.iter().filter(|round| round.verdict.is_some())
    }

    /// Highest arrival rate so far: what the narrow link lets through at least.
    pub(super) fn fastest(&self) -> Option<f64> {
        let all = self.rounds.iter().flat_map(|round| &round.looks);
        all.map(|observation| observation.rate_out).reduce(f64::max)
    }

    /// Whether a round left as fast as the sender can.
    pub(super) fn at_max(&self, round: &Round) -> bool {
        self.max_rate.is_some_and(|max| round.rate_sent() >= AT_MAX * max)
    }

    /// What the two end stamps of a train may be off by, together, ns.
    pub(super) fn stamp_error_ns(&self) -> f64 {
        let error =
            |host: &narrows_probe::HostFacts| nanos_f64(host.stamp_error) + nanos_f64(host.clock_resolution) / 2.0;
        let hosts = self.facts.as_ref().map_or(0.0, |facts| error(&facts.receiver).hypot(error(&facts.sender)));
        let batch = self.batch.map_or(0.0, |batch| BURST_END * nanos_f64(batch));
        std::f64::consts::SQRT_2 * hosts.hypot(batch)
    }

    /// How far traffic spreads the trains, s: the variance of a train's relative stretch times its
    /// time at the receiver. From what trains of one round differ by; from the sub-trains of each
    /// where no round has two.
    pub(crate) fn burstiness(&self) -> f64 {
        let (mut sum, mut freedom) = (0.0, 0.0);
        for round in &self.rounds {
            let (mean, time) = (round.stretch(), round.time());
            for observation in round.looks.iter().filter(|_| round.looks.len() > 1) {
                let bits = round.bits();
                let stretch = spacing(bits, observation.rate_out) - spacing(bits, observation.rate_in);
                sum += time * ((stretch - mean) / round.gap_out()).powi(2);
            }
            freedom += round.looks.len().saturating_sub(1) as f64;
        }
        let within = self.rounds.iter().flat_map(|round| {
            let time = round.time();
            let sub_trains = round.looks.iter().filter_map(|observation| observation.sub_train_variation);
            sub_trains.map(move |variation| variation * variation * time / SUB_TRAINS)
        });
        let within: Vec<f64> = within.collect();
        let within = narrows_stat::mean(&within).unwrap_or(0.0);
        if freedom <= 0.0 {
            return within;
        }
        // Few differences say little: the sub-trains count as two more of them.
        (sum + ASSUMED * within) / (freedom + ASSUMED)
    }

    /// Standard deviation of one train's stretch in a round like this, ns.
    pub(crate) fn spread_ns(&self, round: &Round) -> f64 {
        round.gap_out() * (self.burstiness() / round.time().max(1e-9)).sqrt()
    }

    /// Standard error of a round's stretch, ns.
    pub(crate) fn error_ns(&self, round: &Round) -> f64 {
        let trains = (round.looks.len().max(1) as f64).sqrt();
        self.spread_ns(round).hypot(self.end_error_ns(round)) / trains
    }

    /// What the stamps add to the mean spacing of one train, ns.
    fn end_error_ns(&self, round: &Round) -> f64 {
        self.stamp_error_ns() / (round.mean(|observation| observation.packets as f64) - 1.0).max(1.0)
    }

    /// The difference of spacings that the settings' resolution comes to at a round's rate, ns.
    pub(crate) fn resolution_ns(settings: &Settings, round: &Round) -> f64 {
        let gap = round.gap_in();
        let share = match settings.resolution {
            Resolution::Share(share) => share,
            Resolution::Rate(rate) => rate.as_f64() / round.rate_in(),
        };
        // L/(R - w) - L/R, and no more than the spacing itself where the resolution is coarser than
        // the rate.
        let grown = if share < 0.5 { gap * share / (1.0 - share) } else { gap };
        grown.max(nanos_f64(settings.floor))
    }

    /// The stretch above which a round's rate is too high, ns.
    pub(crate) fn limit_ns(&self, settings: &Settings, round: &Round) -> f64 {
        let stamps = self.end_error_ns(round);
        Self::resolution_ns(settings, round).max(stamps) + settings.allowance * self.spread_ns(round)
    }

    /// Whether a round came more slowly than it left, whatever it lost: losses at random say
    /// nothing of the rate.
    pub(super) fn stretched(&self, settings: &Settings, round: &Round) -> bool {
        round.stretch() > self.limit_ns(settings, round)
    }

    /// What a round says, and whether it is clear.
    pub(super) fn judge(&self, settings: &Settings, round: &Round) -> (RoundVerdict, bool) {
        if round.lost_share() > settings.loss {
            return (RoundVerdict::Congested, round.looks.len() >= settings.streams.min(2));
        }
        let (stretch, limit) = (round.stretch(), self.limit_ns(settings, round));
        let stretch = if settings.compression { stretch.abs() } else { stretch };
        let verdict = if stretch > limit { RoundVerdict::Congested } else { RoundVerdict::Matched };
        (verdict, (stretch - limit).abs() > super::CLEAR * self.error_ns(round))
    }

    /// Utilisation of the tight link as the fastest and the slowest round show it, for the width of
    /// intervals alone: the growth of the spacing out per spacing in. A guess where there is one
    /// round, or none that was congested.
    pub(crate) fn utilisation(&self) -> f64 {
        let rounds: Vec<&Round> = self.judged().collect();
        let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else {
            return GUESS;
        };
        let run = last.gap_in() - first.gap_in();
        let rise = last.gap_out() - first.gap_out();
        if rounds.len() < 2 || run <= 0.0 || !first.is_congested() {
            return GUESS;
        }
        (rise / run).clamp(0.0, MOST_USED)
    }

    /// The rate at which the path's narrow link is judged to be, bit/s.
    pub(super) fn scale(&self) -> f64 {
        let start = self.rounds.last().map(Round::rate_in).filter(|rate| rate.is_finite());
        self.fastest().or(self.max_rate).or(start).unwrap_or(1e9).max(1.0)
    }

    pub(super) fn interface(&self) -> Option<BitRate> {
        self.facts.as_ref().and_then(|facts| facts.sender.interface_rate)
    }
}

/// A round at this share of the sender's highest rate counts as being there (ours).
const AT_MAX: f64 = 0.97;
/// Share of the batch period by which a burst end's stamp is off (ours: most batches end by the
/// timer, alike).
const BURST_END: f64 = 0.1;
/// Sub-trains of a train.
const SUB_TRAINS: f64 = 10.0;
/// Differences of trains that the sub-trains' count for (ours).
const ASSUMED: f64 = 2.0;
/// Utilisation where nothing shows it (ours).
const GUESS: f64 = 0.7;
/// Utilisation at most: beyond, a width is no more than a guess (ours).
const MOST_USED: f64 = 0.9;
