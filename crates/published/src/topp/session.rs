//! Which train comes next, and what each said.

use std::time::Duration;

use narrows_units::BitRate;

use super::fit::Point;
use super::params::{Kind, Params};
use crate::gaps::{Account, Reading, spacing};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Train, TrainId, TrainReport};
use narrows_probe::{PathFacts, Refusal};
use narrows_train::train_method::{Next, TrainMethod, refusal_reason};

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) kind: Kind,
    pub(super) params: Params,
    pub(super) account: Account,
    /// Of the back-to-back trains.
    pub(super) first: Vec<Reading>,
    /// Per rate.
    pub(super) levels: Vec<Vec<Reading>>,
    /// Rates to send at, bit/s.
    rates: Vec<f64>,
    pub(super) failed: Option<Reason>,
    /// Trains sent for the levels.
    sent: usize,
    at: usize,
    over: bool,
    resized: u32,
}

impl MethodRun {
    pub(crate) fn new(kind: Kind, params: Params) -> Self {
        Self {
            kind,
            params,
            account: Account::default(),
            first: Vec::new(),
            levels: Vec::new(),
            rates: Vec::new(),
            failed: None,
            sent: 0,
            at: 0,
            over: false,
            resized: 0,
        }
    }

    /// What came of the back-to-back trains, bit/s: more than is available, no more than the narrow
    /// link's rate.
    pub(super) fn proportional(&self) -> Option<f64> {
        let gaps: Vec<f64> = self.first.iter().map(|reading| 1.0 / reading.rate_out).collect();
        narrows_stat::mean(&gaps).filter(|gap| *gap > 0.0).map(|gap| 1.0 / gap)
    }

    /// The sender's fastest trains came as they left.
    pub(super) fn unspaced(&self) -> bool {
        let all: Vec<f64> = self.first.iter().map(|reading| reading.rate_in / reading.rate_out).collect();
        narrows_stat::median(&all).is_some_and(|stretch| stretch <= STRETCHED)
    }

    /// Rates from bottom to top, no faster than the sender was.
    fn plan(&mut self) {
        let Some(share) = self.proportional() else { return };
        let reached = self.first.iter().map(|reading| reading.rate_in).reduce(f64::max);
        let host = reached.unwrap_or(f64::INFINITY);
        let (bottom, top) = (self.params.bottom * share, (self.params.top * share).min(host));
        let steps = self.params.levels as f64;
        self.rates = (0..self.params.levels)
            .map(|k| match self.kind {
                // The tool's steps leave the top out.
                Kind::Diet => bottom + (top - bottom) * k as f64 / steps,
                Kind::Topp => bottom + (top - bottom) * k as f64 / (steps - 1.0),
            })
            .collect();
        self.levels = vec![Vec::new(); self.rates.len()];
        let host_bound = self.first.iter().all(|reading| reading.receiver_bound);
        self.over = top <= bottom || self.unspaced() || host_bound;
    }

    /// Packets of a train: as given, or as the tool has it by the path's rate.
    fn packets(&self) -> usize {
        let share = self.proportional().unwrap_or(0.0);
        let usual = match share {
            share if share < 11e6 => 16,
            share if share < 50e6 => 32,
            _ => 64,
        };
        self.account.length(self.params.packets.unwrap_or(usual), MOST_PACKETS)
    }

    /// The next level that lacks trains, level after level and round after round, so that what
    /// changes meanwhile meets all alike.
    fn advance(&mut self) {
        for _ in 0..self.levels.len() {
            self.at = (self.at + 1) % self.levels.len();
            if self.levels.get(self.at).is_some_and(|level| level.len() < self.params.trains) {
                return;
            }
        }
        self.over = true;
    }

    /// All trains that count, as points; `None` entries are left out.
    pub(super) fn points(readings: &[Reading]) -> Vec<Point> {
        let point = |reading: &Reading| Point {
            x: reading.rate_in,
            y: reading.rate_in / reading.rate_out,
            weight: reading.send_time,
        };
        let sound = |point: &Point| point.x.is_finite() && point.y.is_finite() && point.x > 0.0 && point.weight > 0.0;
        readings.iter().map(point).filter(sound).collect()
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) =
        ("topp and diettopp", "trains of eight packets or more of one size to the receiver");

    fn begin(&mut self, facts: &PathFacts) {
        self.account.begin(facts, self.params.ip_octets);
    }

    fn next(&mut self) -> Option<Next> {
        self.failed = self.failed.take().or_else(|| self.account.gives_up());
        let most = 2 * self.params.levels * self.params.trains + 20;
        if self.failed.is_some() || self.over || self.sent >= most {
            return None;
        }
        let rate = match self.rates.get(self.at) {
            Some(rate) => BitRate::from_bps_f64(*rate)?,
            None => BitRate::ZERO,
        };
        let packets =
            if rate == BitRate::ZERO { self.account.length(FIRST_PACKETS, MOST_PACKETS) } else { self.packets() };
        self.sent += 1;
        let train = Train::at_rate(TrainId(0), packets, self.account.octets, rate);
        let octets = train.ip_octets() as f64;
        let cap = self.account.facts.as_ref().and_then(|facts| facts.rate_cap);
        Some(Next {
            packets: train.packets,
            peer_kind: PeerKind::Receiver,
            spacing: spacing(octets, self.params.load, self.account.fastest.unwrap_or(octets * 80.0), cap),
            rest: Duration::ZERO,
        })
    }

    fn take(&mut self, _: &Train, report: &TrainReport) {
        let Some(reading) = self.account.take(report) else {
            return;
        };
        let packets = report.arrivals.len();
        if self.account.too_few_batches(packets) && packets < MOST_PACKETS {
            return;
        }
        if self.rates.is_empty() {
            self.first.push(reading);
            if self.first.len() >= self.params.first {
                self.plan();
            }
            return;
        }
        if let Some(level) = self.levels.get_mut(self.at)
            && reading.rate_in.is_finite()
        {
            level.push(reading);
        }
        self.advance();
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        self.resized += 1;
        let octets = self.account.octets;
        self.account.octets = match refusal {
            Refusal::TooLarge { max_ip_octets } if self.resized <= 8 && (68..octets).contains(&max_ip_octets) => {
                max_ip_octets
            }
            Refusal::TooSmall { min_ip_octets } if self.resized <= 8 && min_ip_octets > octets => min_ip_octets,
            other => return Err(refusal_reason(other, "paced trains towards a receiver")),
        };
        (self.first, self.levels, self.rates) = (Vec::new(), Vec::new(), Vec::new());
        self.at = 0;
        Ok(())
    }

    /// A train at any rate is a point; those in front leave back to back.
    fn reads(&self, asked: &Train) -> bool {
        let alike = asked.packets.iter().all(|packet| packet.ip_octets == self.account.octets);
        let back_to_back = asked.packets.iter().skip(1).all(|packet| packet.gap.is_zero());
        alike
            && asked.packets.len() >= 8
            && asked.peer_kind == PeerKind::Receiver
            && (back_to_back == self.rates.is_empty())
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        super::answer::conclude(self, stopped)
    }
}

/// Stretch of a train from which it counts as overloaded, and below which the sender is the limit.
pub(super) const STRETCHED: f64 = 1.05;
/// Packets of the back-to-back trains: the tool's.
const FIRST_PACKETS: usize = 48;
/// Packets of a train at most, whatever batches ask for (ours).
const MOST_PACKETS: usize = 2000;
