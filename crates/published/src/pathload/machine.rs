//! The order of things: initial train, fleets of streams, idle times, the end.

mod answer;
mod replay_step;

use std::time::Duration;

use narrows_stat::Thresholds;
use narrows_units::{BitRate, Sender, Stamp};

use super::Params;
use super::fleet::{Fleet, Judgement, Rules};
use super::search::{FleetVerdict, Next, Search, Stop};
use super::shape::{Limits, Shape};
use super::stream::{Reader, Receiving, StreamReading};
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_probe::{Caveat, Estimator, Event, HostFacts, Outcome, PathFacts, Reason, Refusal, StampSource, Step};
use narrows_train::bucket_watch::BucketWatch;

/// Lengths of the initial trains, tried in turn until one arrives whole; one packet more is sent.
const INITIAL_LENGTHS: [usize; 5] = [50, 35, 20, 5, 3];
/// Pause between initial trains.
const INITIAL_PAUSE: Duration = Duration::from_millis(10);
/// A stream this long is a fleet by itself.
const SLOW_STREAM: Duration = Duration::from_millis(500);
/// Streams under interrupt coalescence may grow by this factor.
const LENGTHENING: usize = 3;
/// Fleets of one rate, all in all, before the search goes on with what it has.
const REPEATS: u32 = 2;
/// Packets of the header that the tool's 28 octets stand for are counted by the IP layer; its
/// smallest payload is 200 octets.
const LEAST_PAYLOAD: u16 = 200;

#[derive(Debug)]
enum Phase {
    Initial { tries: usize, rates: Vec<f64> },
    Fleets,
}

/// The state machine.
#[derive(Debug)]
pub struct Machine {
    params: Params,
    phase: Phase,
    facts: Option<PathFacts>,
    limits: Limits,
    reader: Reader,
    search: Option<Search>,
    initial_rate: Option<f64>,
    wanted: f64,
    shape: Shape,
    fleet: Fleet,
    lengthened: bool,
    /// What the last fleet that was judged was made of.
    judged: Option<Shape>,
    repeats: u32,
    lower_bound_only: bool,
    /// The lowest rate that counts as increasing does so for its losses alone.
    high_by_loss: bool,
    buckets: BucketWatch,
    next_id: u32,
    fleets: u32,
    /// Per fleet: rate, and -1, 0, 1 for no trend, grey, increasing.
    log: [Vec<f64>; 2],
    sent: u64,
    lost: u64,
    reordered: u64,
    local_drops: u64,
    /// Distance of the receiver's interrupts, if it coalesces them.
    bursts_every: Option<Duration>,
    sender_switches: usize,
    receiver_switches: usize,
    began: Stamp<Sender>,
    stream_began: Stamp<Sender>,
    now: Stamp<Sender>,
}

impl Machine {
    /// Ready to start.
    pub fn new(params: Params) -> Self {
        let full_size = params.full_size;
        Self {
            reader: Reader {
                receiving: Receiving { receive_cost_ns: 0.0 },
                coalescing: false,
                thresholds: Thresholds::PATHLOAD,
            },
            params,
            phase: Phase::Initial { tries: 0, rates: Vec::new() },
            facts: None,
            limits: Limits { least_octets: 228, most_octets: 1500, least_gap_ns: 0.0, full_size },
            search: None,
            initial_rate: None,
            wanted: 0.0,
            shape: Shape { ip_octets: 1500, gap_ns: 0 },
            fleet: Fleet::default(),
            lengthened: false,
            judged: None,
            repeats: 0,
            lower_bound_only: false,
            high_by_loss: false,
            buckets: BucketWatch::default(),
            next_id: 0,
            fleets: 0,
            log: [Vec::new(), Vec::new()],
            sent: 0,
            lost: 0,
            reordered: 0,
            local_drops: 0,
            bursts_every: None,
            sender_switches: 0,
            receiver_switches: 0,
            began: Stamp::from_nanos(0),
            stream_began: Stamp::from_nanos(0),
            now: Stamp::from_nanos(0),
        }
    }

    fn start(&mut self, facts: PathFacts) -> Step {
        self.began = self.now;
        let header = facts.udp_header_octets();
        // The tool leaves a call's time free at either end. A sender that keeps up is seen to
        // (departure stamps); a receiver that does not looks like a path, unless its stamps come
        // from below the program.
        let calls = facts.sender.send_cost.max(receiving_gap(&facts.receiver));
        // Within one tick of either clock, several packets leave or arrive at once.
        let tick = facts.sender.clock_resolution.max(facts.receiver.clock_resolution);
        let gap = calls.max(facts.sender.min_gap).max(tick);
        self.limits.most_octets = facts.path_mtu;
        self.limits.least_octets = (LEAST_PAYLOAD + header).min(facts.path_mtu);
        let by_rate = facts.max_paced_rate(facts.path_mtu).and_then(|rate| rate.time_for(u64::from(facts.path_mtu)));
        self.limits.least_gap_ns = gap.max(by_rate.unwrap_or_default()).as_nanos() as f64;
        self.reader.receiving.receive_cost_ns = facts.receiver.receive_cost.as_nanos() as f64;
        self.facts = Some(facts);
        self.send()
    }

    fn send(&mut self) -> Step {
        let (count, ip_octets, gap) = match &self.phase {
            Phase::Initial { tries, .. } => (INITIAL_LENGTHS[*tries] + 1, self.limits.most_octets, Duration::ZERO),
            Phase::Fleets => (self.stream_packets(), self.shape.ip_octets, self.shape.gap()),
        };
        let train = Train::uniform(TrainId(self.next_id), count, ip_octets, gap);
        self.next_id += 1;
        self.stream_began = self.now;
        Step::Send(Probe::Train(train))
    }

    fn stream_packets(&self) -> usize {
        let factor = if self.lengthened { LENGTHENING } else { 1 };
        factor * self.params.stream_packets
    }

    fn pause(&mut self, until: Stamp<Sender>) -> Step {
        if until > self.now { Step::Wait { until } } else { self.send() }
    }

    fn train(&mut self, report: &TrainReport) -> Step {
        self.buckets.take(report);
        self.sent += report.arrivals.len() as u64;
        self.lost += report.lost_on_path() as u64;
        self.reordered += u64::from(report.reordered);
        self.local_drops += u64::from(report.local_drops);
        match self.phase {
            Phase::Initial { .. } => self.initial(report),
            Phase::Fleets => self.stream(report),
        }
    }

    fn initial(&mut self, report: &TrainReport) -> Step {
        let Phase::Initial { tries, rates } = &mut self.phase else {
            return self.send();
        };
        let stamps: Vec<_> = report.received().map(|(_, stamp)| stamp).collect();
        let whole = report.lost() == 0 && report.reordered == 0;
        let rate = train_rate(report);
        rates.extend(rate);
        *tries += 1;
        if !whole && *tries < INITIAL_LENGTHS.len() {
            return self.pause(self.now + INITIAL_PAUSE);
        }
        // All bad: the mean over the tries, those without a rate counting as zero, as the tool has
        // it.
        let rate = if whole { rate } else { Some(rates.iter().sum::<f64>() / *tries as f64) };
        self.initial_rate = rate.filter(|rate| *rate > 0.0);
        if stamps.is_empty() && rates.is_empty() {
            return Step::Done(self.finish_without(Reason::NoAnswer));
        }
        self.bursts_every = self.reader.receiving.coalesces(&stamps).filter(|_| whole);
        self.reader.coalescing = self.bursts_every.is_some();
        self.phase = Phase::Fleets;
        self.begin_search()
    }

    fn begin_search(&mut self) -> Step {
        let (min, max) = (self.limits.min_rate(), self.limits.max_rate());
        let share = if self.reader.coalescing { 0.05 } else { 0.02 };
        let given = self.params.resolution.map(BitRate::as_f64);
        let resolution = given.or(self.initial_rate.map(|rate| share * rate)).unwrap_or(2e6);
        // Departs from pathload 1.3.2: its limit of 12 Mbit/s is out of reach above 1 Gbit/s, and
        // its fallback of the lowest rate out of reach anywhere.
        let grey = self.params.grey_resolution.map(BitRate::as_f64);
        let grey = grey.or(self.initial_rate.map(|rate| 0.05 * rate)).unwrap_or(resolution);
        self.search = Some(Search::new(resolution, grey, min, max));
        let start = self.initial_rate.filter(|rate| (min..=max).contains(rate));
        self.begin_fleet(start.unwrap_or_else(|| f64::midpoint(max.min(1e10), min)))
    }

    fn begin_fleet(&mut self, rate: f64) -> Step {
        self.wanted = rate;
        self.shape = self.limits.shape(rate);
        self.fleet = Fleet::default();
        // Departs from pathload 1.3.2, which begins a fleet at once: the queue that the last stream
        // built drains first.
        self.pause(self.idle_end())
    }

    /// A stream may put no more than about a tenth of its rate on the path.
    fn idle_end(&self) -> Stamp<Sender> {
        let facts_rtt = self.facts.as_ref().map_or(Duration::ZERO, |facts| facts.rtt);
        let length = match self.phase {
            Phase::Initial { .. } => Duration::ZERO,
            Phase::Fleets => Duration::from_nanos(self.shape.gap_ns.saturating_mul(self.stream_packets() as u64)),
        };
        let idle = length.saturating_mul(self.params.idle_factor()).max(facts_rtt);
        self.stream_began + length + idle
    }

    fn rules(&self) -> Rules {
        let length = Duration::from_nanos(self.shape.gap_ns.saturating_mul(self.stream_packets() as u64));
        Rules {
            streams: if length >= SLOW_STREAM { 1 } else { self.params.fleet_streams() },
            fraction: self.params.fraction,
            coalescing: self.reader.coalescing,
            lengthened: self.lengthened,
        }
    }

    fn stream(&mut self, report: &TrainReport) -> Step {
        let reading: StreamReading = self.reader.read(report, self.shape);
        self.sender_switches += reading.sender_switches;
        self.receiver_switches += reading.receiver_switches;
        let rules = self.rules();
        match self.fleet.take(&reading, rules) {
            Judgement::Open => self.pause(self.idle_end()),
            Judgement::FleetVerdict(verdict) => {
                self.high_by_loss &= verdict != FleetVerdict::Increasing;
                self.judged(verdict)
            }
            Judgement::Lost => {
                self.high_by_loss = true;
                self.lower_bound_only |= self.lengthened;
                self.lengthened = false;
                self.judged(FleetVerdict::Increasing)
            }
            Judgement::Unjudgeable => {
                self.lower_bound_only = true;
                self.lengthened = false;
                self.judged(FleetVerdict::Increasing)
            }
            Judgement::TooShort => {
                self.lengthened = true;
                self.begin_fleet(self.wanted)
            }
            Judgement::Unusable => {
                self.repeats += 1;
                if self.repeats > 1 {
                    let by_receiver = self.receiver_switches > self.sender_switches;
                    let reason = if by_receiver { Reason::StampsTooCoarse } else { Reason::SenderCannotPace };
                    return Step::Done(self.finish_unless(reason));
                }
                self.begin_fleet(self.wanted)
            }
        }
    }

    fn judged(&mut self, verdict: FleetVerdict) -> Step {
        self.fleets += 1;
        self.judged = Some(self.shape);
        let actual = self.actual_rate();
        let code = match verdict {
            FleetVerdict::NoTrend => -1.0,
            FleetVerdict::Grey => 0.0,
            FleetVerdict::Increasing => 1.0,
        };
        self.log[0].push(actual);
        self.log[1].push(code);
        let before = self.shape;
        let wanted = self.wanted;
        let Some(search) = &mut self.search else {
            return Step::Done(self.finish_without(Reason::UnexpectedEvent));
        };
        if !near(wanted, actual) {
            search.missed(wanted, actual);
        }
        let next = search.next(verdict, actual);
        if self.fleets >= self.params.max_fleets {
            return Step::Done(self.finish(None));
        }
        match next {
            Next::Stop(stop) => Step::Done(self.finish(Some(stop))),
            Next::Repeat => {
                self.repeats += 1;
                if self.repeats > REPEATS {
                    return Step::Done(self.finish(Some(Stop::Stuck)));
                }
                self.begin_fleet(wanted)
            }
            Next::Rate(rate) => {
                self.repeats = 0;
                self.lengthened = false;
                // The sender has no other stream for the new rate: it cannot move.
                if self.limits.shape(rate) == before {
                    return Step::Done(self.finish(Some(Stop::Timer)));
                }
                self.begin_fleet(rate)
            }
        }
    }

    /// Rate at which the streams of the fleet really left.
    fn actual_rate(&self) -> f64 {
        let gaps = &self.fleet.mean_gaps_ns;
        narrows_stat::mean(gaps)
            .filter(|gap| *gap > 0.0)
            .map_or(self.shape.rate(), |gap| f64::from(self.shape.ip_octets) * 8e9 / gap)
    }

    fn refused(&mut self, refusal: Refusal) -> Step {
        match refusal {
            Refusal::TooLarge { max_ip_octets } if (68..self.limits.most_octets).contains(&max_ip_octets) => {
                self.limits.most_octets = max_ip_octets;
                self.limits.least_octets = self.limits.least_octets.min(max_ip_octets);
            }
            Refusal::TooSmall { min_ip_octets }
                if (self.limits.least_octets..=self.limits.most_octets).contains(&min_ip_octets) =>
            {
                self.limits.least_octets = min_ip_octets + 1;
            }
            Refusal::ForbiddenByPeer => return Step::Done(self.finish_unless(Reason::ForbiddenByPeer)),
            Refusal::TooLarge { .. } | Refusal::TooSmall { .. } | Refusal::NotOffered => {
                let what = "periodic streams towards a receiver".to_owned();
                return Step::Done(self.finish_unless(Reason::NotOffered { what }));
            }
        }
        if matches!(self.phase, Phase::Fleets) {
            self.shape = self.limits.shape(self.wanted);
        }
        self.send()
    }
}

/// Smallest gap at which the receiver's own pace does not show.
fn receiving_gap(receiver: &HostFacts) -> Duration {
    match receiver.stamp_source {
        StampSource::Simulated | StampSource::User => 2 * receiver.receive_cost,
        StampSource::Hardware | StampSource::Kernel => Duration::ZERO,
    }
}

/// Within 2 %, and within 2.5 Mbit/s below 500 Mbit/s or 5 Mbit/s above: what the tool means by
/// "approximately equal".
///
/// Departs from pathload 1.3.2: above 1 Gbit/s only the 2 % count.
fn near(wanted: f64, actual: f64) -> bool {
    let off = (wanted - actual).abs();
    let limit = match wanted {
        rate if rate < 500e6 => 2.5e6,
        rate if rate < 1e9 => 5e6,
        _ => f64::INFINITY,
    };
    off <= 0.02 * actual && off < limit
}

/// Dispersion rate of an initial train: the first packet's distance is left out, as it may have
/// waited for the host to wake.
fn train_rate(report: &TrainReport) -> Option<f64> {
    let mut received = report.received().skip(1);
    let (_, first) = received.next()?;
    let (mut octets, mut last) = (0.0, first);
    for (row, stamp) in received {
        octets += f64::from(row.ip_octets);
        last = last.max(stamp);
    }
    let time = (last - first).as_f64();
    (time > 0.0).then(|| octets * 8e9 / time)
}

impl Estimator for Machine {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        self.now = now;
        match event {
            Event::Started(facts) => self.start(facts),
            Event::Train(report) => self.train(&report),
            Event::TimerFired => self.send(),
            Event::Refused(refusal) => self.refused(refusal),
            Event::Stop(reason) => Step::Done(match self.finish_unless(reason) {
                Outcome::Estimated(estimate) => estimate.caveat(Caveat::StoppedEarly).into(),
                other @ Outcome::Inconclusive { .. } => other,
            }),
            Event::Load(_) | Event::Transfer(_) | Event::Capture(_) => {
                Step::Done(self.finish_without(Reason::UnexpectedEvent))
            }
        }
    }
}
