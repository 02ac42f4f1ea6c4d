//! The phases of pathrate 2.4.1, train by train.

use std::time::Duration;

use super::batches;
use super::quick;
use super::sample::Phase;
use super::session::{Acceptance, MethodRun};
use super::{Last, Request};

/// Where the run stands.
#[derive(Debug, Clone)]
pub(super) struct Faithful {
    stage: Stage,
    /// Longest train that came through, Nmax.
    longest: usize,
    lost: u32,
    lost_in_row: u32,
    slow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Lengths { packets: usize },
    BatchTest,
    Preliminary { packets: usize, good: u32 },
    Pairs { size: u32, good: u32, ignored: u32, packets: usize, extra: u16 },
    Trains { good: u32 },
    Batches { packets: usize, good: u32 },
    Over,
}

impl Faithful {
    pub(super) fn new() -> Self {
        Self { stage: Stage::Lengths { packets: 2 }, longest: 0, lost: 0, lost_in_row: 0, slow: false }
    }

    /// Time from one begin to the next.
    pub(super) fn spacing(&self, session: &MethodRun) -> Duration {
        let least = session.params.spacing.max(session.facts.rtt * 5 / 4);
        let doubled = self.slow || matches!(self.stage, Stage::Trains { .. });
        if doubled { least * 2 } else { least }
    }

    pub(super) fn next(&mut self, session: &MethodRun, last: Option<Last>) -> Option<Request> {
        if let Some(last) = last {
            self.lost_in_row = if matches!(last.taken, Acceptance::Flawed(_)) { self.lost_in_row + 1 } else { 0 };
            self.stage = if self.lost_in_row > LOST_IN_ROW { Stage::Over } else { self.after(session, last.taken) };
        }
        self.request(session)
    }

    fn after(&mut self, session: &MethodRun, taken: Acceptance) -> Stage {
        let came = !matches!(taken, Acceptance::Flawed(_));
        match self.stage {
            Stage::Lengths { packets } => self.after_length(session, packets, taken),
            Stage::BatchTest if !came => Stage::BatchTest,
            Stage::BatchTest if batches::seen(session) => Stage::Batches { packets: BATCH_TRAIN, good: 0 },
            Stage::BatchTest => Stage::Preliminary { packets: 2, good: 0 },
            Stage::Preliminary { packets, good } if !came => Stage::Preliminary { packets, good },
            Stage::Preliminary { packets, good } if good + 1 < TRAINS_PER_LENGTH => {
                Stage::Preliminary { packets, good: good + 1 }
            }
            Stage::Preliminary { packets, .. } if packets < self.longest.min(10) => {
                Stage::Preliminary { packets: packets + 1, good: 0 }
            }
            Stage::Preliminary { .. } if quick::agreement(session).is_some() => Stage::Over,
            Stage::Preliminary { .. } => pairs_of_size(0),
            Stage::Pairs { .. } => self.after_pair(session, taken),
            Stage::Trains { good } if good + u32::from(came) < session.params.trains => {
                Stage::Trains { good: good + u32::from(came) }
            }
            Stage::Trains { .. } | Stage::Over => Stage::Over,
            Stage::Batches { packets, good } => after_batches(packets, good, came),
        }
    }

    fn after_length(&mut self, session: &MethodRun, packets: usize, taken: Acceptance) -> Stage {
        if let Acceptance::Flawed(_) = taken {
            self.lost += 1;
            // The README says three; the source compares before it counts, so the fifth loss over
            // all lengths ends it.
            return match (self.lost >= LOSSES_OVER_ALL_LENGTHS, self.longest) {
                (false, _) => Stage::Lengths { packets },
                (true, 0) => Stage::Over,
                (true, _) => Stage::BatchTest,
            };
        }
        self.longest = packets;
        let sample = if taken == Acceptance::Sample { session.samples.last() } else { session.too_fast.last() };
        let span = Duration::from_secs_f64(sample.map_or(0.0, |sample| sample.span_ns() * 1e-9));
        if span > self.spacing(session) {
            self.slow = true;
            return Stage::BatchTest;
        }
        let next = packets
            + if packets < 6 {
                1
            } else if packets < 12 {
                2
            } else {
                4
            };
        if next > LONGEST_TRAIN { Stage::BatchTest } else { Stage::Lengths { packets: next } }
    }

    /// Twenty-five good pairs per size; where too many are faster than the receiver, longer trains
    /// of larger packets.
    fn after_pair(&self, session: &MethodRun, taken: Acceptance) -> Stage {
        let Stage::Pairs { size, good, ignored, packets, extra } = self.stage else {
            return self.stage;
        };
        let stay = |good, ignored, packets, extra| Stage::Pairs { size, good, ignored, packets, extra };
        match taken {
            Acceptance::Sample if good + 1 < session.params.pairs_per_size => stay(good + 1, ignored, packets, extra),
            Acceptance::Sample if size + 1 < session.params.sizes => {
                Stage::Pairs { size: size + 1, good: 0, ignored: 0, packets, extra }
            }
            Acceptance::Sample => Stage::Trains { good: 0 },
            Acceptance::Flawed(_) => stay(good, ignored, packets, extra),
            Acceptance::TooFast if ignored < session.params.pairs_per_size / 4 => {
                stay(good, ignored + 1, packets, extra)
            }
            // Phase I is abandoned: the host is too slow for any train that is still short.
            Acceptance::TooFast if packets + 1 > (self.longest / 4).max(2) => Stage::Trains { good: 0 },
            Acceptance::TooFast => stay(0, 0, packets + 1, extra.saturating_add(275)),
        }
    }

    fn request(&self, session: &MethodRun) -> Option<Request> {
        let full = session.full_size();
        let of = |phase, packets, ip_octets| Some(Request { phase, packets, ip_octets, rate: None });
        match self.stage {
            Stage::Lengths { packets } => of(Phase::Lengths, packets, full),
            Stage::BatchTest => of(Phase::BatchTest, self.longest, full),
            Stage::Preliminary { packets, .. } => of(Phase::Preliminary, packets, full),
            Stage::Pairs { size, packets, extra, .. } => {
                let least = SMALLEST_IP_OCTETS.min(full);
                let sizes = u16::try_from(session.params.sizes).unwrap_or(u16::MAX);
                let step = (full - least) / sizes + 1;
                let octets = u16::try_from(size).unwrap_or(u16::MAX).saturating_mul(step);
                of(Phase::Pairs, packets, least.saturating_add(octets).saturating_add(extra).min(full))
            }
            Stage::Trains { .. } => of(Phase::Trains, self.longest, full),
            Stage::Batches { packets, .. } => of(Phase::Batches, packets, full),
            Stage::Over => None,
        }
    }
}

fn pairs_of_size(size: u32) -> Stage {
    Stage::Pairs { size, good: 0, ignored: 0, packets: 2, extra: 0 }
}

fn after_batches(packets: usize, good: u32, came: bool) -> Stage {
    match (came, good) {
        (true, good) if good + 1 >= BATCH_TRAINS => Stage::Over,
        (true, good) => Stage::Batches { packets, good: good + 1 },
        (false, _) if packets <= BATCH_TRAIN_LEAST => Stage::Over,
        (false, good) => Stage::Batches { packets: packets - 20, good },
    }
}

// All of [pathrate] 2.4.1.
const LONGEST_TRAIN: usize = 50;
const LOSSES_OVER_ALL_LENGTHS: u32 = 5;
const LOST_IN_ROW: u32 = 30;
const TRAINS_PER_LENGTH: u32 = 7;
const SMALLEST_IP_OCTETS: u16 = 600;
const BATCH_TRAIN: usize = 200;
const BATCH_TRAIN_LEAST: usize = 100;
const BATCH_TRAINS: u32 = 10;
