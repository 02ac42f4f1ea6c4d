//! Which train comes next, and what the filter makes of it.

use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_units::{BitRate, Metric, Sender, Stamp};

use super::filter::{Filter, Took};
use super::strain::{Strain, strain};
use super::{MAX_PACKETS, Params};
use narrows_probe::contract::Latest;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::SampleCounts;
use narrows_probe::probes::{PacingCheck, Probe, Train, TrainId, TrainReport};
use narrows_probe::{Caveat, Confidence, Estimate, Estimator, Event, Limit, Outcome, PathFacts, Reason, Refusal, Step};
use narrows_train::token_pool::TokenPool;

/// Strain from which a train is congested while there is no line yet ("ours").
const CONGESTED: f64 = 0.05;
/// Rejected states in a row, and trains at the highest rates in a row without strain, that start
/// the filter anew.
const REJECTED: u32 = 8;
const UNSTRAINED: u32 = 12;
/// From this rate of the path on, gaps run from burst end to burst end.
const FAST: f64 = 9e9;
/// Least variance of a strain: no stamp is that good.
const LEAST_VARIANCE: f64 = 1e-6;
/// Trains that a filter should have seen for an estimate of medium confidence.
const MIN_TRAINS: u32 = 10;
/// Trains in a row without any answer after which, with `timeout`, there is nobody.
const SILENT_TRAINS: u32 = 5;

/// The state machine.
#[derive(Debug)]
pub(crate) struct Machine {
    params: Params,
    facts: Option<PathFacts>,
    filter: Option<Filter>,
    /// The first congested train, until there are two.
    first: Option<Strain>,
    random: SplitMix64,
    token_pool: TokenPool,
    /// Highest rate of a train, bit/s.
    max_rate: f64,
    /// It is the host's: there is no higher one.
    host_max: bool,
    /// What the highest rates came out at, at most, bit/s.
    through: f64,
    packet_octets: u16,
    packets: usize,
    rate: Option<f64>,
    next_id: u32,
    rejected: u32,
    unstrained: u32,
    learnt: u32,
    skipped: u32,
    trains: u32,
    broken: u32,
    sent: u64,
    lost: u64,
    batch: Option<f64>,
    silent: u32,
    heard: Stamp<Sender>,
    began: Stamp<Sender>,
    train_began: Stamp<Sender>,
    level_began: Stamp<Sender>,
    /// When the last train that was reported began: what is told is of then.
    looked: Option<Stamp<Sender>>,
}

impl Machine {
    pub(crate) fn new(params: Params) -> Self {
        let never = Stamp::from_nanos(0);
        Self {
            random: SplitMix64::new(params.seed),
            packets: params.packets,
            params,
            facts: None,
            filter: None,
            first: None,
            token_pool: TokenPool::empty(),
            max_rate: 0.0,
            host_max: false,
            through: 0.0,
            packet_octets: 0,
            rate: None,
            next_id: 0,
            rejected: 0,
            unstrained: 0,
            learnt: 0,
            skipped: 0,
            trains: 0,
            broken: 0,
            sent: 0,
            lost: 0,
            batch: None,
            silent: 0,
            heard: never,
            began: never,
            train_began: never,
            level_began: never,
            looked: None,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        (self.began, self.heard, self.level_began) = (now, now, now);
        self.packet_octets = self.params.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        let host = facts.max_paced_rate(self.packet_octets);
        let max = [self.params.max_rate, host].into_iter().flatten().min();
        self.max_rate = max.map_or(0.0, BitRate::as_f64);
        self.host_max = max.is_some();
        self.rate = max.map(BitRate::as_f64);
        self.facts = Some(facts);
        self.send(now)
    }

    fn send(&mut self, now: Stamp<Sender>) -> Step {
        let rate = self.rate.and_then(BitRate::from_bps_f64).unwrap_or(BitRate::ZERO);
        let train = Train::at_rate(TrainId(self.next_id), self.packets, self.packet_octets, rate);
        self.next_id = self.next_id.wrapping_add(1);
        self.train_began = now;
        Step::Send(Probe::Train(train))
    }

    fn train(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        let octets = report.arrivals.iter().map(|row| u64::from(row.ip_octets)).sum();
        self.token_pool.spend(self.train_began, octets);
        self.trains = self.trains.saturating_add(1);
        self.sent += report.arrivals.len() as u64;
        self.lost += report.lost_on_path() as u64;
        if report.received().next().is_some() {
            (self.silent, self.heard) = (0, now);
        } else {
            self.silent = self.silent.saturating_add(1);
        }
        if self.silent >= SILENT_TRAINS && now.since(self.heard) >= self.params.timeout {
            return Step::Done(self.finish(Some(Reason::NoAnswer)));
        }
        if matches!(report.pacing, PacingCheck::Broken { .. }) {
            self.broken = self.broken.saturating_add(1);
        }
        if let Some(out) = report.arrival_rate() {
            self.through = self.through.max(out.as_f64());
        }
        // Jumbo frames at 10 Gbit/s carry a hundredth less than that.
        let burst_ends = self.max_rate >= FAST || self.batch.is_some();
        if let Some(seen) = strain(report, burst_ends) {
            self.batch = seen.batch.or(self.batch);
            self.learn(now, seen);
        }
        if self.max_rate <= 0.0 {
            self.max_rate = 1.5 * self.through;
        }
        self.looked = Some(self.train_began);
        if now.since(self.began) >= self.params.duration {
            return Step::Done(self.finish(None));
        }
        self.draw();
        self.pause(now)
    }

    /// Takes a train into the filter, or begins one.
    fn learn(&mut self, now: Stamp<Sender>, seen: Strain) {
        if self.max_rate <= 0.0 {
            return;
        }
        let u = seen.rate / self.max_rate;
        let deviation = seen.variance.max(LEAST_VARIANCE).sqrt();
        let strained = seen.mean > CONGESTED.max(3.0 * deviation);
        self.unstrained = if strained { 0 } else { self.unstrained.saturating_add(u32::from(u > 0.8)) };
        let Some(filter) = &mut self.filter else {
            if strained {
                self.begin(now, seen);
            }
            return;
        };
        if u <= filter.crossing() && !strained {
            self.skipped = self.skipped.saturating_add(1);
            return;
        }
        match filter.take(u, seen.mean, deviation * deviation) {
            Took::Yes => {
                self.rejected = 0;
                self.learnt = self.learnt.saturating_add(1);
            }
            Took::No => self.rejected += 1,
        }
        if self.rejected >= REJECTED || self.unstrained >= UNSTRAINED {
            (self.filter, self.first, self.rejected, self.learnt) = (None, None, 0, 0);
            self.through = 0.0;
            self.level_began = now;
        }
    }

    /// The line through the first two congested trains, if their rates differ.
    fn begin(&mut self, now: Stamp<Sender>, seen: Strain) {
        let Some(first) = self.first else {
            self.first = Some(seen);
            return;
        };
        let at = |strain: &Strain| (strain.rate / self.max_rate, strain.mean);
        if (first.rate - seen.rate).abs() < 0.05 * self.max_rate {
            return;
        }
        self.filter = Filter::through(at(&first), at(&seen), self.params.q);
        // Two that give no line: the later one stays.
        self.first = Some(seen);
        (self.learnt, self.rejected) = (2, 0);
        self.level_began = now;
    }

    /// Rate and length of the next train.
    fn draw(&mut self) {
        if !self.host_max && self.unstrained >= UNSTRAINED / 2 {
            // What is available is above the highest rate so far.
            self.max_rate *= 1.5;
            self.unstrained = 0;
            if let Some(filter) = &mut self.filter {
                filter.rescale(1.5);
            }
        }
        let unit = |word: u64| (word >> 11) as f64 / (1u64 << 53) as f64;
        let (which, where_to) = (unit(self.random.next_u64()), unit(self.random.next_u64()));
        let estimate = self.filter.as_ref().map_or(0.5, Filter::crossing);
        let u = if self.filter.is_none() {
            // Two congested trains are wanted: the upper half.
            0.5 + 0.5 * where_to
        } else if which < 0.2 {
            estimate * (0.7 + 0.3 * where_to)
        } else {
            estimate + (1.0 - estimate) * where_to
        };
        self.rate = (self.max_rate > 0.0).then_some(u * self.max_rate);
        self.packets = self.length(u * self.max_rate);
    }

    /// §0.2: long enough that 2 % of overload stretches it by twice the error of the end stamps.
    fn length(&self, rate: f64) -> usize {
        let Some(facts) = &self.facts else {
            return self.params.packets;
        };
        let stamps = (facts.receiver.stamp_error + facts.receiver.clock_resolution).as_secs_f64();
        let sigma = stamps + self.batch.unwrap_or(0.0) / 2.0;
        let idle = self.filter.as_ref().map_or(0.5, |filter| filter.crossing() / filter.capacity());
        let bits = 8.0 * f64::from(self.packet_octets.max(1));
        let wanted = 2.0 * sigma * rate / (bits * 0.02 * idle.clamp(0.1, 1.0));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a range that fits")]
        let wanted = wanted.clamp(0.0, MAX_PACKETS as f64) as usize;
        wanted.max(self.params.packets)
    }

    fn pause(&mut self, now: Stamp<Sender>) -> Step {
        let cost = self.packets as f64 * f64::from(self.packet_octets);
        self.token_pool.earn(now, self.params.load * self.scale() / 8.0);
        let paid = self.token_pool.wait_for(now, cost).unwrap_or(Duration::from_millis(300));
        let end = self.began + self.params.duration;
        let until = (now + paid.min(Duration::from_secs(60))).min(end.max(now));
        if until > now { Step::Wait { until } } else { self.send(now) }
    }

    /// What the income is a share of: the capacity where the filter has it, else what came through.
    fn scale(&self) -> f64 {
        let fitted = self.filter.as_ref().map(|filter| filter.capacity() * self.max_rate);
        fitted.map_or(self.through, |fitted| fitted.min(self.through.max(1.0)))
    }

    fn estimate(&self) -> Option<Estimate> {
        let rate = |bps: f64| BitRate::from_bps_f64(bps.max(0.0));
        let estimate = match &self.filter {
            Some(filter) => {
                let value = filter.crossing() * self.max_rate;
                let half = (1.65 * filter.error() * self.max_rate).max(0.02 * filter.capacity() * self.max_rate);
                let mut estimate = Estimate::ip_rate(
                    Metric::AvailableIpCapacity,
                    rate(value)?,
                    rate(value - half)?,
                    rate(value + half)?,
                )
                .with("tight_capacity_bps", filter.capacity() * self.max_rate)
                .with("standard_error_bps", filter.error() * self.max_rate);
                if self.learnt < MIN_TRAINS {
                    estimate = estimate.caveat(Caveat::FewSamples { samples: self.learnt });
                    estimate.confidence = Confidence::Low;
                }
                estimate
            }
            None if self.host_max && self.unstrained >= 3 => {
                let value = rate(self.through.min(self.max_rate))?;
                let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value);
                bound.at_least(Limit::Sender).caveat(Caveat::SenderLimited)
            }
            None => return None,
        };
        let share = self.lost as f64 / self.sent.max(1) as f64;
        let seen = [
            (share > 0.001).then_some(Caveat::Loss { ratio: share }),
            self.batch.and_then(|batch| {
                let period = Duration::try_from_secs_f64(batch).ok()?;
                Some(Caveat::ReceiveBatching { period })
            }),
            (self.broken > 0).then_some(Caveat::PacingBroken { trains: self.broken }),
        ];
        let mut estimate = seen.into_iter().flatten().fold(estimate, Estimate::caveat);
        estimate.interval = self.looked.map(|began| began.since(self.level_began));
        Some(
            estimate
                .with("trains", self.trains)
                .counted(SampleCounts::default().kept("trains", self.learnt))
                .with("skipped_trains", self.skipped)
                .with("max_rate_bps", self.max_rate),
        )
    }

    fn finish(&self, stopped: Option<Reason>) -> Outcome {
        let silent = stopped == Some(Reason::NoAnswer);
        match self.estimate() {
            Some(estimate) if !silent => match stopped {
                Some(_) => estimate.caveat(Caveat::StoppedEarly).into(),
                None => estimate.into(),
            },
            _ => Outcome::inconclusive(stopped.unwrap_or(Reason::NotConverged)),
        }
    }
}

impl Estimator for Machine {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => self.start(now, facts),
            Event::Train(report) => self.train(now, &report),
            Event::TimerFired if now.since(self.began) >= self.params.duration => Step::Done(self.finish(None)),
            Event::TimerFired => self.send(now),
            Event::Refused(Refusal::TooLarge { max_ip_octets }) if (1..self.packet_octets).contains(&max_ip_octets) => {
                self.packet_octets = max_ip_octets;
                self.send(now)
            }
            Event::Refused(Refusal::ForbiddenByPeer) => Step::Done(self.finish(Some(Reason::ForbiddenByPeer))),
            Event::Refused(_) => Step::Done(
                self.finish(Some(Reason::NotOffered { what: "trains of UDP packets towards a receiver".to_owned() })),
            ),
            Event::Stop(reason) => Step::Done(self.finish(Some(reason))),
            Event::Load(_) | Event::Transfer(_) | Event::Capture(_) => {
                Step::Done(self.finish(Some(Reason::UnexpectedEvent)))
            }
        }
    }

    fn latest(&self) -> Option<Latest> {
        let at = self.looked?;
        self.estimate().map(|estimate| Latest { at, estimate })
    }
}

impl Replayable for Machine {
    const READS: (&'static str, &'static str) = ("bart", "trains towards the receiver");

    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Train(train) = asked else { return false };
        if train.packets.len() < 3 {
            return false;
        }
        self.packets = train.packets.len();
        self.rate = train.planned_rate().map(BitRate::as_f64);
        self.packet_octets = train.packets.iter().map(|packet| packet.ip_octets).max().unwrap_or(1);
        true
    }
}
