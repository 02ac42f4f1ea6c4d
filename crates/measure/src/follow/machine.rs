//! What each train says of the level, and what has changed.

mod plan;

use std::collections::VecDeque;
use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp, rounded, to_usize};

use super::Params;
use super::account::Account;
use super::level::{Level, Point};
use narrows_probe::contract::Latest;
use narrows_probe::observations::Replayable;
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_probe::{Estimator, Event, Outcome, PathFacts, Reason, Refusal, Step};
use narrows_train::reading::{Reading, Unusable, read_with_jitter};
use narrows_train::token_pool::TokenPool;
use narrows_train::windows::Windows;

/// Packets of a train before anything is known.
const FIRST_PACKETS: usize = 24;
/// Fewest packets of a train.
const MIN_PACKETS: usize = 20;
/// By how much it is faster than what came out of an overloaded path.
const ABOVE: f64 = 1.1;
/// Deviations from which a train is suspected of another level, and those (of one, or of the mean
/// of several) that prove it.
const APART: f64 = 2.0;
const SURE: f64 = 5.0;
const MORE: f64 = 3.0;
/// Deviation of a train that is always reckoned with, as a share of capacity.
const LEAST_DEVIATION: f64 = 0.012;
/// Batches that a train is to span.
const BATCHES: f64 = 20.0;
/// A train at this share of the sender's highest rate counts as being there.
const AT_MAX: f64 = 0.97;
/// Trains in a row without any answer, and the time of silence, after which there is nobody.
const SILENT_TRAINS: u32 = 5;

/// What it is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// Looking for a rate that overloads the path, and not by far.
    Seek,
    /// Staying a little above what is available.
    Follow,
    /// The sender's highest rate does not overload the path.
    Ceiling,
}

/// The state machine.
#[derive(Debug)]
pub(crate) struct Machine {
    params: Params,
    facts: Option<PathFacts>,
    mode: Mode,
    level: Level,
    /// Trains that do not fit the level.
    suspects: Vec<Point>,
    /// They are so far off that the next train is to find out.
    certain: bool,
    token_pool: TokenPool,
    /// It has had its advance.
    advanced: bool,
    pub(super) account: Account,
    /// Means over windows, of trains.
    windows: Windows,
    packet_octets: u16,
    /// The sender's highest rate, bit/s, as far as known.
    max_rate: Option<f64>,
    /// Departure rates of trains in a row that fell short of the plan.
    short: Vec<f64>,
    /// Rate of the train under way or next; `None` is as fast as the host can.
    rate: Option<f64>,
    packets: usize,
    next_id: u32,
    /// What losses have left of the queue that a train may build, as a share.
    burst: f64,
    /// Trains are this much longer than `period` has it.
    stretch: f64,
    /// What scattered the delays of the last trains.
    scatters: VecDeque<f64>,
    /// Packets that batches ask for.
    least_packets: usize,
    /// Trains at the sender's limit in a row that did not overload the path, and what came out of
    /// them.
    quiet_at_max: VecDeque<f64>,
    receiver_bound: bool,
    step: usize,
    began: Stamp<Sender>,
    train_began: Stamp<Sender>,
    /// When the last train that told something was there.
    reported: Option<Stamp<Sender>>,
    /// When the last train that was reported began, and when it was reported: what is told is of
    /// then.
    looked: Option<(Stamp<Sender>, Stamp<Sender>)>,
    per_train: Option<f64>,
}

impl Machine {
    pub(crate) fn new(params: Params) -> Self {
        let known = params.capacity.map(BitRate::as_f64);
        Self {
            level: Level::new(known),
            windows: Windows::new(params.window),
            burst: 1.0,
            stretch: 1.0,
            params,
            facts: None,
            mode: Mode::Seek,
            suspects: Vec::new(),
            certain: false,
            token_pool: TokenPool::empty(),
            advanced: false,
            account: Account::default(),
            packet_octets: 0,
            max_rate: None,
            short: Vec::new(),
            rate: None,
            packets: FIRST_PACKETS,
            next_id: 0,
            scatters: VecDeque::new(),
            least_packets: 0,
            quiet_at_max: VecDeque::new(),
            receiver_bound: false,
            step: 0,
            began: Stamp::from_nanos(0),
            train_began: Stamp::from_nanos(0),
            reported: None,
            looked: None,
            per_train: None,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.packet_octets = self.params.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.max_rate = facts.max_paced_rate(self.packet_octets).map(BitRate::as_f64);
        self.rate = match (self.params.start_rate, self.max_rate) {
            (Some(expected), max) => Some((expected.as_f64() * ABOVE).min(max.unwrap_or(f64::INFINITY))),
            (None, max) => max,
        };
        if self.params.start_rate.is_some() {
            self.packets = self.length(None, self.level.scale());
        }
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
        let verdict = read_with_jitter(report, self.level.scale());
        self.account.count(now, report, &verdict);
        let urgent = match verdict {
            Ok(reading) => self.take(now, &reading, report),
            Err(flaw) => {
                self.discard(flaw);
                false
            }
        };
        if self.account.silent_trains >= SILENT_TRAINS && self.account.silence(now) >= self.params.timeout {
            return Step::Done(self.finish(Some(Reason::NoAnswer)));
        }
        self.looked = Some((self.train_began, now));
        let enough = self.params.trains.is_some_and(|trains| self.account.trains >= u64::from(trains));
        if enough || now.since(self.began) >= self.params.duration {
            return Step::Done(self.finish(None));
        }
        self.plan();
        self.pause(now, urgent || self.unsettled())
    }

    /// A level that few trains have told of is worth what was saved.
    fn unsettled(&self) -> bool {
        let level = self.level.now(self.params.memory);
        level.is_none_or(|now| now.trains < FEW_TRAINS && now.error > SETTLED * now.capacity)
    }

    fn discard(&mut self, flaw: Unusable) {
        match flaw {
            Unusable::AllLost => self.burst = (self.burst / 2.0).max(LEAST_SHARE),
            Unusable::FewBatches => {
                self.least_packets = (2 * self.packets).min(self.params.max_packets);
            }
            Unusable::Pacing | Unusable::ClockStep => {}
        }
    }

    /// Takes a train in, and says whether the next one is urgent.
    fn take(&mut self, now: Stamp<Sender>, reading: &Reading, report: &TrainReport) -> bool {
        self.note_host(reading, report);
        if slept(reading) {
            return false;
        }
        if !reading.rate_sent.is_finite() {
            self.level.note_asymptote(reading.rate_out);
            self.reported = Some(now);
            return true;
        }
        if self.overflowed(reading) {
            // What came out is all that is known: the queue was full for a part of the train.
            self.rate = Some(reading.rate_out * ABOVE);
            return true;
        }
        let error = self.error_of(reading);
        self.stretch(error);
        let loss = self.account.mean_loss();
        let point = Point {
            at: self.train_began + Duration::try_from_secs_f64(reading.send_time / 2.0).unwrap_or_default(),
            // Nothing tells on which side of the tight link packets were lost: half of them count.
            // Of the last trains together, since a single one loses a few or none.
            rate: reading.rate_sent * (1.0 - loss / 2.0),
            growth: reading.growth,
            error,
            time: reading.send_time,
            loss,
        };
        self.reported = Some(now);
        let urgent = self.judge(point);
        self.note_ceiling(&point, reading);
        urgent
    }

    /// Error of a train's growth: by its own delays, or by those of the last trains. What scatters
    /// the delays of packets moves the slope of a train of time `t` and rate `r` by
    /// `t^-1.5 r^-0.5`, and a train that is hardly longer than the scatter remembers does not show
    /// it.
    fn error_of(&mut self, reading: &Reading) -> f64 {
        let scale = reading.send_time.powf(1.5) * reading.rate_sent.sqrt();
        let scatter = reading.growth_error_remembered * scale;
        let error = reading.growth_error_remembered.max(self.scatter() / scale);
        if scatter.is_finite() {
            if self.scatters.len() >= REMEMBERED {
                self.scatters.pop_front();
            }
            self.scatters.push_back(scatter);
        }
        error
    }

    /// What scatters delays, as the error of the growth of a train of a second at 1 bit/s.
    fn scatter(&self) -> f64 {
        let scatters: Vec<f64> = self.scatters.iter().copied().collect();
        DETRENDED * narrows_stat::quantile(&scatters, 0.7).unwrap_or(0.0)
    }

    /// Trains get longer where their delays scatter, and shorter again where they do not.
    fn stretch(&mut self, error: f64) {
        if error > COARSE {
            self.stretch = (self.stretch * 1.5).min(MOST_STRETCH);
        } else if error < FINE {
            self.stretch = (self.stretch / 1.25).max(1.0);
        }
    }

    /// What the train says of the two hosts.
    fn note_host(&mut self, reading: &Reading, report: &TrainReport) {
        if let Some(batch) = reading.batch {
            let per_batch = batch.as_secs_f64() * reading.rate_in.min(reading.rate_out) / self.packet_bits();
            self.least_packets = count(BATCHES * per_batch).min(self.params.max_packets);
        }
        self.receiver_bound = self.facts.as_ref().is_some_and(|facts| {
            let octets = self.packet_octets;
            facts.receiver.stamps_limit(reading.rate_out, octets, report.arrived_by)
        });
        if self.rate.is_none_or(|planned| reading.rate_sent < 0.9 * planned) && reading.rate_sent.is_finite() {
            self.short.push(reading.rate_sent);
            // One late train is a busy host's; three in a row are what it can do.
            if self.short.len() >= 3 {
                self.max_rate = narrows_stat::median(&self.short);
                self.short.clear();
            }
        } else {
            self.short.clear();
        }
    }

    /// Losses late in the train, beyond those of the path, are a queue's.
    fn overflowed(&mut self, reading: &Reading) -> bool {
        let share = reading.lost as f64 / reading.packets.max(1) as f64;
        // Trains of a hundred packets lose one in a hundred by halves: all of the last ones
        // together know better, as long as it is little.
        let usual = self.account.usual_loss().max(self.account.mean_loss().min(0.02));
        let late = reading.lost_late as f64 >= 0.7 * reading.lost as f64;
        let overflowed = reading.lost >= 6 && late && share > 0.03 + 3.0 * usual && reading.growth > 0.0;
        if overflowed {
            self.account.overflows += 1;
            self.burst = (self.burst / 2.0).max(LEAST_SHARE);
        } else if reading.growth > 0.0 {
            self.burst = (self.burst * 1.05).min(1.0);
        }
        overflowed
    }

    /// Puts the train into the level, or begins another level if two in a row do not fit the one
    /// there is.
    fn judge(&mut self, point: Point) -> bool {
        let now = (self.mode == Mode::Follow).then(|| self.level.now(self.params.memory)).flatten();
        let (Some(now), Some(available)) = (now, self.level.available_by(&point)) else {
            if self.mode == Mode::Follow {
                // Nothing overloads the path any more.
                self.account.changes += 1;
                self.level = self.level.restarted(&[]);
                self.mode = Mode::Seek;
            }
            self.accept(point);
            return self.mode == Mode::Seek;
        };
        let shared = now.between.max(LEAST_DEVIATION * now.capacity).hypot(now.error);
        let by_capacity = |point: &Point| now.capacity * now.capacity_error * point.growth.clamp(0.0, 1.0);
        let deviation = |point: &Point| shared.hypot(now.capacity * point.error).hypot(by_capacity(point));
        let off = (available - now.available) / deviation(&point);
        if !self.suspects.is_empty() && point.error > 3.0 * plan::TELLING {
            return true;
        }
        // Below what is available nothing overloads the path, whatever that is.
        let silent = !point.overloaded() && point.rate < now.available;
        if silent || off.abs() <= APART {
            for suspect in std::mem::take(&mut self.suspects) {
                self.level.push(suspect);
            }
            self.accept(point);
            return false;
        }
        self.suspects.push(point);
        let off_by = |suspect: &Point| Some((self.level.available_by(suspect)? - now.available) / deviation(suspect));
        let offs: Vec<f64> = self.suspects.iter().filter_map(off_by).collect();
        let agree = offs.iter().all(|other| (*other > 0.0) == (off > 0.0));
        let together = offs.iter().sum::<f64>().abs() / (offs.len() as f64).sqrt();
        // More than was there: a train well above settles that at once, whichever it is.
        self.certain = off > MORE || off.abs() > SURE || together > SURE;
        if !agree {
            for suspect in std::mem::take(&mut self.suspects) {
                self.level.push(suspect);
            }
        } else if self.suspects.len() >= 2 && together > SURE {
            self.account.changes += 1;
            self.level = self.level.restarted(&std::mem::take(&mut self.suspects));
            self.mode = Mode::Seek;
            self.settle(&point);
        }
        true
    }

    fn accept(&mut self, point: Point) {
        self.level.push(point);
        self.settle(&point);
        if self.mode == Mode::Follow
            && let Some(value) = self.level.available_by(&point)
        {
            self.windows.add(point.at, value);
            self.per_train = Some(value);
        }
    }

    /// An overload that is not far: near enough to follow.
    fn settle(&mut self, point: &Point) {
        if self.mode != Mode::Follow && point.overloaded() && !point.far() {
            self.mode = Mode::Follow;
            self.step = 0;
        }
    }

    fn note_ceiling(&mut self, point: &Point, reading: &Reading) {
        let at_max = self.max_rate.is_some_and(|max| reading.rate_sent >= AT_MAX * max);
        if !at_max || point.overloaded() {
            self.quiet_at_max.clear();
            if self.mode == Mode::Ceiling {
                self.mode = Mode::Seek;
                self.settle(point);
            }
            return;
        }
        if self.quiet_at_max.len() >= 8 {
            self.quiet_at_max.pop_front();
        }
        self.quiet_at_max.push_back(reading.rate_out.min(reading.rate_in));
        if self.quiet_at_max.len() >= 3 {
            self.mode = Mode::Ceiling;
            self.suspects.clear();
            self.level = self.level.restarted(&[*point]);
        }
    }

    /// What there is to say once a train has been reported.
    fn say(&self) -> Option<Latest> {
        let (began, now) = self.looked?;
        let reported = self.reported?;
        if now.since(reported) > self.params.stale {
            return None;
        }
        let estimate = self.estimate()?;
        let at = self.level.now(self.params.memory).map_or(began, |now| now.at);
        Some(Latest { at, estimate })
    }

    pub(super) fn estimate(&self) -> Option<narrows_probe::Estimate> {
        let facts = self.facts.as_ref()?;
        let state = super::answer::State {
            facts,
            params: &self.params,
            account: &self.account,
            windows: &self.windows,
            per_train: self.per_train,
            max_rate: self.max_rate,
        };
        if self.mode == Mode::Ceiling {
            return state.ceiling(&self.quiet_at_max);
        }
        let changing = self.searching();
        match self.level.now(self.params.memory) {
            Some(level) if self.mode == Mode::Follow && self.receiver_bound => state.receiver_bound(&level),
            Some(level) if self.mode == Mode::Follow => state.estimated(&level, changing),
            _ => state.at_least(self.level.last()?),
        }
    }

    /// The answer at the end.
    fn finish(&mut self, stopped: Option<Reason>) -> Outcome {
        self.windows.close();
        super::answer::finish(self.estimate(), &self.account, &self.windows, stopped)
    }
}

/// A host that slept for this share of a train leaves too little of it.
const SLEPT: f64 = 0.5;

fn slept(reading: &Reading) -> bool {
    reading.stalled && reading.longest_batch > SLEPT
}

/// Errors of a train's growth above and below which trains get longer and shorter: 1 % and a
/// quarter of that.
const COARSE: f64 = 0.01;
const FINE: f64 = 0.0025;
/// Trains behind a level up to which successors do not wait, while its error is above this.
const FEW_TRAINS: usize = 5;
const SETTLED: f64 = 0.005;
/// Longest that trains get, in periods (ours: longer ones find a step of the rate too late).
const MOST_STRETCH: f64 = 1.5;
/// What was fitted to delays takes a part of their scatter along (ours).
const DETRENDED: f64 = 1.15;
/// Trains whose scatter is remembered.
const REMEMBERED: usize = 8;
const LEAST_SHARE: f64 = 0.05;

/// A whole count of packets, at least one.
fn count(value: f64) -> usize {
    to_usize(rounded(value.clamp(1.0, 1e6)))
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
        self.say()
    }
}

impl Replayable for Machine {
    const READS: (&'static str, &'static str) = ("track", "trains towards the receiver");

    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Train(train) = asked else { return false };
        self.packets = train.packets.len().max(1);
        self.rate = train.planned_rate().map(BitRate::as_f64);
        self.packet_octets = train.packets.iter().map(|packet| packet.ip_octets).max().unwrap_or(1);
        true
    }
}
