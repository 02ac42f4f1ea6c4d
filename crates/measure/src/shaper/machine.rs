//! The method at work: what is sent when.

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp, to_usize};

use super::params::{LONGEST_QUIET, Params, Preset, seconds};
use super::result;
use super::search::Search;
use super::series::Series;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::Reason;
use narrows_probe::probes::{Load, LoadReport, Probe, Then, Train, TrainId, TrainReport};
use narrows_train::bucket::BucketEvidence;
use narrows_train::bulk;

/// Where the method stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Trains of doubling length.
    Search,
    /// The tool's capacity phase.
    Capacity,
    /// The flow that corrects it.
    Settle,
    /// Little traffic, until the bucket is full.
    Quiet,
    /// The long probe.
    Probe,
}

/// Trains or loads of which nothing arrives before the method gives up (ours).
const SILENT: u32 = 3;
/// Intervals of the long probe per segment.
const BINS: u32 = 2;
/// The tool's quiet phase: a packet of this many octets every tenth of a second.
const QUIET_OCTETS: u16 = 64;
const QUIET_GAP: Duration = Duration::from_millis(100);
/// The tool probes at this share of its cap where the capacity is above that (195 of 200 Mbit/s).
const BELOW_CAP: f64 = 0.975;
/// Packets that leave together in the long probe: the tool's limits for gaps above and below what
/// the host can pace.
const MINI_TRAINS: [u64; 2] = [5, 30];

/// The method at work.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) params: Params,
    pub(super) facts: PathFacts,
    pub(super) began: Stamp<Sender>,
    pub(super) phase: Phase,
    pub(super) ip_octets: u16,
    pub(super) search: Search,
    /// Of the capacity phase, bit/s.
    pub(super) rates: Vec<f64>,
    pub(super) capacity: Option<BitRate>,
    pub(super) settle: Series,
    pub(super) quiet: Duration,
    pub(super) probe: Series,
    pub(super) probe_rate: BitRate,
    /// Something else than the path set the probe's rate.
    pub(super) rate_was_capped: bool,
    pub(super) sent: u64,
    pub(super) count: u32,
    pub(super) silent: u32,
    pub(super) sent_packets: u64,
    pub(super) lost_packets: u64,
    pub(super) local_drops: u64,
}

impl Run {
    pub(super) fn new(params: Params) -> Self {
        let facts = PathFacts::ideal(1500, Duration::ZERO);
        Self {
            began: Stamp::from_nanos(0),
            phase: match params.preset {
                Preset::Adaptive => Phase::Search,
                Preset::Faithful => Phase::Capacity,
            },
            ip_octets: 1500,
            search: Search::new(&params, 1500, &facts),
            rates: Vec::new(),
            capacity: None,
            settle: Series::default(),
            quiet: params.quiet,
            probe: Series::tested(&params),
            probe_rate: BitRate::ZERO,
            rate_was_capped: false,
            sent: 0,
            count: 0,
            silent: 0,
            sent_packets: 0,
            lost_packets: 0,
            local_drops: 0,
            facts,
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        let wanted = self.params.ip_octets.unwrap_or(facts.path_mtu);
        self.ip_octets = wanted.min(facts.path_mtu).max(1);
        self.facts = facts;
        self.search = Search::new(&self.params, self.ip_octets, &self.facts);
        self.fire(now)
    }

    fn id(&mut self) -> TrainId {
        self.count += 1;
        TrainId(self.count)
    }

    /// Sends what is due.
    fn fire(&mut self, now: Stamp<Sender>) -> Step {
        match self.phase {
            Phase::Search => {
                let octets = self.search.octets();
                let late = now.since(self.began) >= self.params.max_time;
                if late || self.sent.saturating_add(octets) > self.params.total_octets {
                    return self.after_search(now);
                }
                self.sent += octets;
                let id = self.id();
                Step::Send(Probe::Train(self.search.train(id, &self.facts)))
            }
            Phase::Capacity => {
                let id = self.id();
                let packets = self.params.train_packets;
                Step::Send(Probe::Train(Train::uniform(id, packets, self.ip_octets, Duration::ZERO)))
            }
            Phase::Settle => self.load(self.params.settle, Then::Finish),
            Phase::Quiet => self.hush(),
            Phase::Probe => self.load(self.params.bin * BINS, Then::Continue),
        }
    }

    /// The quiet phase: as the tool has it, a packet now and then, or a pause.
    fn hush(&mut self) -> Step {
        let packets = to_usize(u64::try_from(self.quiet.as_nanos() / QUIET_GAP.as_nanos()).unwrap_or(u64::MAX));
        let id = self.id();
        let octets = QUIET_OCTETS.min(self.ip_octets);
        Step::Send(Probe::Train(Train::uniform(id, packets.clamp(2, 1000), octets, QUIET_GAP)))
    }

    /// A constant-rate flow in mini-trains.
    fn load(&self, duration: Duration, then: Then) -> Step {
        Step::Send(Probe::Load(Load {
            rate: self.probe_rate,
            ip_octets: self.ip_octets,
            burst: self.mini_train(),
            streams: 1,
            duration,
            status_every: self.params.bin,
            then,
        }))
    }

    /// Packets that leave together, such that their time is least above a multiple of what the host
    /// can pace.
    fn mini_train(&self) -> u16 {
        let octets = u64::from(self.ip_octets);
        let gap = self.probe_rate.time_for(octets).unwrap_or_default().as_nanos();
        let pace = self.facts.sender.min_gap.as_nanos();
        if gap == 0 || pace == 0 {
            return 1;
        }
        let most = MINI_TRAINS[usize::from(gap < pace)];
        let least = u64::try_from(pace.div_ceil(gap)).unwrap_or(u64::MAX);
        let best = (least..=most).min_by_key(|&packets| (gap * u128::from(packets)) % pace);
        u16::try_from(best.unwrap_or(least).min(64)).unwrap_or(64)
    }

    fn take_train(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        let silent = report.received().next().is_none();
        self.silent = if silent { self.silent + 1 } else { 0 };
        if self.silent >= SILENT {
            return self.done(Some(Reason::NoAnswer));
        }
        if self.phase != Phase::Quiet {
            self.sent_packets += report.arrivals.len() as u64;
            self.lost_packets += report.lost_on_path() as u64;
            self.local_drops = self.local_drops.saturating_add(u64::from(report.local_drops));
        }
        match self.phase {
            Phase::Search => match self.search.note(report, self.facts.rtt) {
                Some(pause) => wait(now, pause),
                None => self.after_search(now),
            },
            Phase::Capacity => self.take_capacity(now, report),
            Phase::Quiet => self.enter(now, Phase::Probe),
            Phase::Settle | Phase::Probe => self.done(Some(Reason::UnexpectedEvent)),
        }
    }

    fn take_capacity(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        self.rates.extend(report.arrival_rate().map(BitRate::as_f64));
        self.search.keep(report);
        if self.count < self.params.trains {
            return wait(now, self.params.spacing);
        }
        let Some(rate) = narrows_stat::median(&self.rates).and_then(BitRate::from_bps_f64) else {
            return self.done(Some(Reason::NoAnswer));
        };
        self.found_capacity(rate);
        if rate < self.params.settle_below && !self.params.settle.is_zero() {
            return self.enter(now, Phase::Settle);
        }
        self.enter(now, Phase::Quiet)
    }

    fn found_capacity(&mut self, rate: BitRate) {
        self.capacity = Some(rate);
        let cap = self.params.rate_cap;
        let tool = self.params.preset == Preset::Faithful && rate >= cap;
        let wanted = if tool { cap.scaled(BELOW_CAP).unwrap_or(cap) } else { rate };
        let limits = [self.facts.rate_cap, self.facts.sender.max_send_rate];
        self.probe_rate = limits.into_iter().flatten().fold(wanted, BitRate::min);
        self.rate_was_capped = self.probe_rate < rate;
    }

    fn enter(&mut self, now: Stamp<Sender>, phase: Phase) -> Step {
        self.phase = phase;
        match phase {
            Phase::Quiet if self.params.probe_time.is_zero() => self.done(None),
            Phase::Quiet if self.quiet.is_zero() => self.enter(now, Phase::Probe),
            _ => self.fire(now),
        }
    }

    /// The trains have said what they can.
    fn after_search(&mut self, now: Stamp<Sender>) -> Step {
        let found = self.search.turning_point().is_some();
        let rate = BitRate::from_bps_f64(self.search.peak_bps()).filter(|rate| *rate > BitRate::ZERO);
        match rate {
            Some(rate) if !found && !self.params.probe_time.is_zero() => {
                self.found_capacity(rate);
                self.enter(now, Phase::Quiet)
            }
            _ => self.done((!self.answered()).then_some(Reason::OctetsSpent)),
        }
    }

    fn take_load(&mut self, now: Stamp<Sender>, report: &LoadReport) -> Step {
        match self.phase {
            Phase::Settle => self.take_settle(now, report),
            Phase::Probe => self.take_probe(now, report),
            Phase::Search | Phase::Capacity | Phase::Quiet => self.done(Some(Reason::UnexpectedEvent)),
        }
    }

    fn take_settle(&mut self, now: Stamp<Sender>, report: &LoadReport) -> Step {
        self.settle.note(report, self.params.bin);
        self.count_load(report);
        // Departs from [ShaperProbe11]: a bucket that ran empty in the middle makes the flow's mean
        // no capacity.
        if self.settle.falls_off(self.params.min_ratio) {
            let rates = self.settle.rates();
            let side = (rates.len() / 3).max(1);
            let rate = narrows_stat::median(&rates[rates.len() - side..]).unwrap_or(0.0);
            let time = 1.25 * 8.0 * self.settle.taken(rate) / rate.max(1.0);
            let fills = seconds(time, LONGEST_QUIET.as_secs_f64());
            self.quiet = self.quiet.max(fills);
        } else if let Some(rate) = self.settle.mean_bps().and_then(BitRate::from_bps_f64)
            && rate > BitRate::ZERO
        {
            self.found_capacity(rate);
        }
        self.enter(now, Phase::Quiet)
    }

    fn count_load(&mut self, report: &LoadReport) {
        let (packets, _, lost, local) = report.totals();
        self.sent_packets = self.sent_packets.saturating_add(packets).saturating_add(lost);
        self.lost_packets = self.lost_packets.saturating_add(lost.saturating_sub(local));
        self.local_drops = self.local_drops.saturating_add(local);
    }

    fn take_probe(&mut self, now: Stamp<Sender>, report: &LoadReport) -> Step {
        self.probe.note(report, self.params.bin);
        self.count_load(report);
        let spent = self.params.probe_octets.is_some_and(|most| self.probe.sent_octets >= most);
        let over = self.probe.seconds() >= self.params.probe_time.as_secs_f64();
        // Reports without intervals end it too: nothing arrives.
        self.silent = if report.statuses.is_empty() { self.silent + 1 } else { 0 };
        let dead = self.silent > SILENT * BINS + timeout(self.facts.rtt, self.params.bin);
        if self.probe.fall().is_some() || spent || over || dead || self.probe.too_lossy() {
            return self.done(None);
        }
        self.fire(now)
    }

    /// Octets that the bucket still lacked when the long probe began, if it fills at `rate`: what
    /// the correcting flow had taken, less what came back.
    pub(super) fn unfilled(&self, rate_bps: f64) -> f64 {
        (self.settle.taken(rate_bps) - rate_bps / 8.0 * self.quiet.as_secs_f64()).max(0.0)
    }

    pub(super) fn answered(&self) -> bool {
        !self.search.courses.is_empty() || !self.probe.bins.is_empty()
    }

    pub(super) fn loss(&self) -> f64 {
        self.lost_packets as f64 / self.sent_packets.max(1) as f64
    }

    /// Trains arrived as slowly as they left: what the path carries is not known.
    pub(super) fn sender_is_slower(&self, bucket_evidence: &BucketEvidence) -> bool {
        let left: Vec<f64> = self.search.courses.iter().map(|course| course.departure_bps).collect();
        left.iter().copied().fold(0.0, f64::max) < SLOWER * bucket_evidence.fastest_bps
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        if let Refusal::TooLarge { max_ip_octets } = refusal
            && max_ip_octets < self.ip_octets
            && max_ip_octets >= 64
        {
            self.ip_octets = max_ip_octets;
            self.search.shrink(max_ip_octets);
            return self.fire(now);
        }
        if let (Phase::Quiet, Refusal::TooSmall { .. }) = (self.phase, refusal) {
            self.phase = Phase::Probe;
            return wait(now, self.quiet);
        }
        self.done(Some(bulk::reason_of(refusal, "trains and loads of UDP packets")))
    }

    fn done(&self, reason: Option<Reason>) -> Step {
        Step::Done(result::outcome(self, reason))
    }
}

/// A sender at less than this multiple of what arrives may be what is measured.
const SLOWER: f64 = 1.05;

/// Segments whose status may still be under way.
fn timeout(rtt: Duration, bin: Duration) -> u32 {
    u32::try_from(rtt.as_nanos() / bin.as_nanos().max(1)).unwrap_or(u32::MAX / 2)
}

fn wait(now: Stamp<Sender>, pause: Duration) -> Step {
    Step::Wait { until: now + pause }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("shaper", "trains to the receiver, or load segments");

    /// A train of any length is one of the search; the long probe reads loads.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        match asked {
            Probe::Train(train) => {
                let Some(first) = train.packets.first() else {
                    return false;
                };
                if !matches!(self.phase, Phase::Search | Phase::Capacity) {
                    return false;
                }
                self.ip_octets = first.ip_octets;
                self.search.at(train.packets.len(), first.ip_octets);
                true
            }
            Probe::Load(load) => {
                let reads = matches!(self.phase, Phase::Settle | Phase::Probe);
                if reads {
                    self.ip_octets = load.ip_octets;
                    self.probe_rate = load.rate;
                }
                reads
            }
            Probe::Transfer(_) | Probe::Capture(_) => false,
        }
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => self.start(now, facts),
            Event::TimerFired => self.fire(now),
            Event::Train(report) => self.take_train(now, &report),
            Event::Load(report) => self.take_load(now, &report),
            Event::Refused(refusal) => self.refused(now, refusal),
            Event::Stop(reason) => self.done(Some(reason)),
            Event::Transfer(_) | Event::Capture(_) => self.done(Some(Reason::UnexpectedEvent)),
        }
    }
}
