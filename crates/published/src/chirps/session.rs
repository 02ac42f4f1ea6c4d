//! The order of things: a back-to-back train, coarse chirps, fine ones, and a new range when the
//! estimate leaves the old one.

mod answer;
mod search;

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp, nanos_f64, to_u64};

use super::ladder;
use super::params::{Common, MOST_GROUP, Range, Settings};
use super::points::{BATCHED, Flaw, Reader};
use super::{ChirpReading, Flavour};
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Limit, Outcome, Reason};
use narrows_probe::probes::{PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::train_method::{Next, TrainMethod, arrived_ns, refusal_reason, uneven};

/// Where the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Back-to-back trains: what arrives is no less than what is available.
    Anchor,
    /// Chirps over a wide range.
    Coarse,
    /// Chirps that count.
    Fine,
}

/// A chirp that was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    pub(super) found: ChirpReading,
    /// Highest rate that was really sent.
    pub(super) top: f64,
}

/// What was seen of packets and hosts.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) local_drops: u64,
    pub(super) reordered: u64,
    /// Chirps by what was wrong with them, and those that could be read.
    pub(super) flaws: Vec<Flaw>,
    pub(super) read: u32,
    pub(super) began: Option<Stamp<Sender>>,
    pub(super) ended: Option<Stamp<Sender>>,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun<F> {
    pub(super) flavour: F,
    pub(super) params: Common,
    pub(super) facts: Option<PathFacts>,
    pub(super) phase: Phase,
    /// Highest rate that hosts and caller allow, and whose limit it is.
    pub(super) top: (f64, Limit),
    pub(super) octets: u16,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) group: u32,
    /// Distance of the receiver's batches, ns.
    pub(super) batch_ns: Option<f64>,
    /// Highest rate at which a train arrived.
    pub(super) fastest: Option<f64>,
    /// Chirps of the range in use.
    pub(super) readings: Vec<Reading>,
    pub(super) tally: Tally,
    pub(super) abandoned: Option<Reason>,
    /// Trains sent in this phase and range; ranges so far.
    tries: usize,
    pub(super) ranges: u32,
    serial: u32,
    average: f64,
    resized: u32,
    /// Powers by which the fine range is wider than the method's own.
    wider: f64,
}

/// Lengths of back-to-back trains, tried in turn while their packets arrive in too few batches (50
/// as in pathload's; ours).
const ANCHORS: [usize; 4] = [50, 50, 200, 800];
/// The range of the first coarse chirps, below the rate at which a train arrived: that is reached
/// at nine tenths of load (ours).
const BELOW_ANCHOR: f64 = 16.0;
const ABOVE_ANCHOR: f64 = 1.25;
/// Chirps of a coarse round (ours), rates of which are this far apart (the tool's spread).
const COARSE: usize = 5;
const COARSE_SPREAD: f64 = 1.2;
/// Ranges at most (ours: the end).
const MOST_RANGES: u32 = 12;
/// After so many chirps it is looked whether the range still fits (the tool's window).
pub(super) const WINDOW: usize = 11;
/// Outputs of the tool before it answers or moves its range.
const OUTPUTS: usize = 3;
/// A chirp should see so many batches (ours).
const BATCHES: f64 = 25.0;
/// No packets are sent faster (ours).
const FASTEST: f64 = 400e9;
/// Stamps follow the wire only below the rate at which the program reads (ours, as for trains).
const OF_RECEIVER: f64 = 0.9;
/// The tool's mean rate, and its limits.
const TOOL_AVERAGE: f64 = 0.3e6;
const TOOL_AVERAGES: (f64, f64) = (0.005e6, 3e6);

impl<F: Flavour> MethodRun<F> {
    pub(crate) fn new(settings: Settings<F>) -> Self {
        let Settings { common: params, flavour } = settings;
        Self {
            flavour,
            facts: None,
            phase: Phase::Anchor,
            top: (FASTEST, Limit::Sender),
            octets: 1500,
            low: 1e6,
            high: 1e9,
            group: params.group.unwrap_or(params.least_group),
            batch_ns: None,
            fastest: None,
            readings: Vec::new(),
            tally: Tally::default(),
            abandoned: None,
            tries: 0,
            ranges: 0,
            serial: 0,
            average: TOOL_AVERAGE,
            resized: 0,
            wider: 1.0,
            params,
        }
    }

    fn limits(&self, facts: &PathFacts) -> (f64, Limit) {
        let sender = &facts.sender;
        let paced = BitRate::over(u64::from(self.octets), sender.min_gap);
        let all = [
            (paced, Limit::Sender, 1.0),
            (sender.max_send_rate, Limit::Sender, 1.0),
            (sender.interface_rate, Limit::Sender, 1.0),
            (facts.rate_cap, Limit::Budget, 1.0),
            (facts.receiver.max_stamped_rate(self.octets, facts.receiver.stamp_source), Limit::Receiver, OF_RECEIVER),
        ];
        let mut least = (FASTEST, Limit::Sender);
        for (rate, limit, share) in all {
            let rate = rate.map_or(f64::INFINITY, BitRate::as_f64) * share;
            if rate < least.0 {
                least = (rate.max(LEAST_RATE), limit);
            }
        }
        least
    }

    /// The rates of the next chirp.
    pub(super) fn rates(&self) -> Vec<f64> {
        match (self.phase, self.params.range) {
            (Phase::Coarse, _) => ladder::geometric_to(self.low, self.high, COARSE_SPREAD),
            _ => self.flavour.rates(self.low, self.high),
        }
    }

    fn chirp(&mut self) -> Next {
        let rates = self.rates();
        let packets = ladder::plan(&rates, self.group, self.octets, nanos_f64(self.params.tick), self.params.tool);
        let duration = Duration::from_secs_f64(
            (ladder::duration_ns(&rates, self.group, self.octets) * 1e-9).clamp(0.0, LONGEST_CHIRP_S),
        );
        let spacing = if let Range::Tool { .. } = self.params.range {
            let bits = packets.len() as f64 * f64::from(self.octets) * 8.0;
            let spacing = Duration::from_secs_f64((bits / self.average).min(LONGEST_CHIRP_S));
            if spacing <= duration { 2 * duration } else { spacing }
        } else {
            // The load is over what is expected, not over the chirp's own mean rate, which is
            // lower. On slow paths it grows up to a half, so that a run ends.
            let chirps = u32::try_from(self.params.chirps).unwrap_or(u32::MAX).saturating_add(10);
            let calm = duration.mul_f64((1.0 / self.params.load).min(100.0));
            calm.min(HASTE / chirps).max(2 * duration) + Duration::from_millis(1)
        };
        Next {
            packets,
            peer_kind: PeerKind::Receiver,
            spacing: uneven(spacing, self.serial),
            rest: duration.min(Duration::from_millis(100)),
        }
    }

    fn anchor(&mut self) -> Next {
        let packet = PacketPlan { gap: Duration::ZERO, ip_octets: self.octets, hop_limit: None };
        let length = ANCHORS.get(self.tries - 1).copied().unwrap_or(ANCHORS[0]);
        Next {
            packets: vec![packet; length + 1],
            peer_kind: PeerKind::Receiver,
            spacing: Duration::ZERO,
            rest: Duration::from_millis(10) + self.facts.as_ref().map_or(Duration::ZERO, |facts| facts.rtt),
        }
    }

    /// Reads a back-to-back train: how fast it arrived, and in what batches.
    fn take_anchor(&mut self, report: &TrainReport) {
        let mut stamps: Vec<i64> = report.arrivals.iter().filter_map(arrived_ns).collect();
        stamps.sort_unstable();
        let gaps: Vec<f64> = stamps.windows(2).map(|two| two[1].saturating_sub(two[0]) as f64).collect();
        let mean = narrows_stat::mean(&gaps).unwrap_or(0.0);
        let ends: Vec<usize> = (0..gaps.len()).filter(|at| gaps[*at] >= SHORT * mean).collect();
        let batched = gaps.len() - ends.len();
        let enough = stamps.len() >= 10 && mean > 0.0 && ends.len() >= LEAST_BATCHES;
        let last_try = self.tries >= ANCHORS.len();
        if !enough && !last_try {
            return;
        }
        if batched as f64 >= BATCHED * gaps.len() as f64 && !gaps.is_empty() {
            let times: Vec<f64> = ends.iter().map(|at| stamps[*at] as f64).collect();
            let spacings: Vec<f64> = times.windows(2).map(|two| two[1] - two[0]).collect();
            self.batch_ns = narrows_stat::median(&spacings).or(Some(mean * gaps.len() as f64));
        }
        let rate = match (ends.first(), ends.last()) {
            (Some(first), Some(last)) if last > first => {
                let time = stamps[*last].saturating_sub(stamps[*first]) as f64;
                (last - first) as f64 * f64::from(self.octets) * 8e9 / time.max(1.0)
            }
            _ => self.top.0.min(1e9),
        };
        let rate = rate.clamp(LEAST_RATE, FASTEST);
        self.fastest = Some(rate);
        self.enter(Phase::Coarse, rate / BELOW_ANCHOR, rate * ABOVE_ANCHOR);
    }

    /// A new range, and the packets per rate that it takes.
    pub(super) fn enter(&mut self, phase: Phase, low: f64, high: f64) {
        self.phase = phase;
        self.tries = 0;
        self.ranges += 1;
        self.readings.clear();
        let high = high.clamp(2.0 * LEAST_RATE, self.top.0.max(2.0 * LEAST_RATE));
        self.low = low.clamp(LEAST_RATE, high / 1.2);
        self.high = high;
        match self.needed_group() {
            Ok(group) => self.group = group,
            Err(reason) => self.abandoned = Some(reason),
        }
    }

    /// Packets per rate, so that neighbouring rates differ by more than a tick and a chirp sees
    /// enough batches.
    fn needed_group(&self) -> Result<u32, Reason> {
        let middle = (self.low * self.high).sqrt();
        let gap = f64::from(self.octets) * 8e9 / middle;
        let step = match self.phase {
            Phase::Coarse => COARSE_SPREAD,
            Phase::Anchor | Phase::Fine => self.flavour.step(),
        };
        let by_stamps = self.noise_ns() / ((1.0 - 1.0 / step) * gap);
        let once = ladder::duration_ns(&self.rates(), 1, self.octets);
        let by_batches = self.batch_ns.map_or(0.0, |period| BATCHES * period / once);
        let most = f64::from(self.params.group.unwrap_or(MOST_GROUP));
        if let (true, Some(group)) = (self.params.tool, self.params.group) {
            return Ok(group);
        }
        if by_batches > most {
            return Err(Reason::ReceiveBatching);
        }
        if by_stamps > most {
            return Err(Reason::StampsTooCoarse);
        }
        let least = match (self.params.group, self.phase) {
            (Some(group), _) => group,
            (None, Phase::Coarse) => self.params.least_group.div_ceil(4),
            (None, Phase::Anchor | Phase::Fine) => self.params.least_group,
        };
        let needed = by_stamps.max(by_batches).ceil().clamp(1.0, most);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 20")]
        let needed = needed as u32;
        Ok(needed.max(least))
    }

    /// What a stamp is off by: a tick of either clock, or the typical error.
    pub(super) fn noise_ns(&self) -> f64 {
        let hosts = self.facts.as_ref().map_or(0.0, |facts| {
            let ticks = facts.sender.clock_resolution.max(facts.receiver.clock_resolution);
            nanos_f64(ticks.max(facts.receiver.stamp_error))
        });
        hosts.max(nanos_f64(self.params.tick))
    }

    fn reader(&self) -> Reader {
        let fastest = self.fastest.unwrap_or(self.high);
        Reader {
            short_ns: if self.params.tool {
                TOOL_COALESCED_NS
            } else {
                (SHORT * f64::from(self.octets) * 8e9 / fastest).max(self.program_ns())
            },
            tick_ns: nanos_f64(self.params.tick),
            noise_ns: self.noise_ns(),
            loss: if self.params.tool { 0.0 } else { MOST_LOSS },
            tool: self.params.tool,
            group: usize::try_from(self.group).unwrap_or(1),
        }
    }

    /// Packets that came closer than this waited for the program that stamps them.
    fn program_ns(&self) -> f64 {
        let facts = self.facts.as_ref();
        let stamped = facts.and_then(|facts| facts.receiver.max_stamped_rate(self.octets, facts.receiver.stamp_source));
        stamped.map_or(0.0, |rate| AT_PROGRAM * f64::from(self.octets) * 8e9 / rate.as_f64().max(1.0))
    }

    fn take_chirp(&mut self, asked: &Train, report: &TrainReport) {
        let mut learnt = false;
        let read = self.reader().read(asked, report).and_then(|chirp| {
            let most = self.flavour.most_batched().unwrap_or(f64::INFINITY);
            if chirp.batched >= BATCHED && !self.params.tool {
                learnt = self.batch_ns.is_none();
                self.batch_ns.get_or_insert(chirp.period);
            }
            if 1.0 / (1.0 - chirp.batched).max(1e-9) > most {
                return Err(Flaw::Batched);
            }
            let found = self.flavour.find(&chirp).ok_or(Flaw::Unread)?;
            let top = chirp.top();
            Ok(Reading { found, top })
        });
        match read {
            Ok(reading) => {
                self.tally.read += 1;
                self.readings.push(reading);
            }
            Err(flaw) => self.tally.flaws.push(flaw),
        }
        if learnt && self.ranges < MOST_RANGES {
            // Batches that only chirps show: the same range again, with as many packets per rate as
            // they ask for.
            self.enter(self.phase, self.low, self.high);
            return;
        }
        match (self.phase, self.params.range) {
            (Phase::Coarse, _) => self.look_at_coarse(),
            (_, Range::Tool { moves, .. }) => self.look_at_outputs(moves),
            _ => self.look_at_fine(),
        }
    }

    fn count(&mut self, report: &TrainReport) {
        let tally = &mut self.tally;
        tally.sent += to_u64(report.arrivals.len());
        tally.lost += to_u64(report.lost_on_path());
        tally.local_drops += u64::from(report.local_drops);
        tally.reordered += u64::from(report.reordered);
        let (first, last) = (report.arrivals.first(), report.arrivals.last());
        tally.began = tally.began.or(first.map(|row| row.departed));
        tally.ended = last.map(|row| row.departed).or(tally.ended);
    }
}

impl<F: Flavour> TrainMethod for MethodRun<F> {
    const READS: (&'static str, &'static str) = F::READS;

    fn begin(&mut self, facts: &PathFacts) {
        self.octets = self.params.ip_octets.unwrap_or(facts.path_mtu).clamp(64, facts.path_mtu.max(64));
        self.top = self.limits(facts);
        self.facts = Some(facts.clone());
        match self.params.range {
            Range::ChirpReading => {}
            Range::Given(low, high) | Range::Tool { low, high, .. } => self.enter(Phase::Fine, low, high),
        }
    }

    fn next(&mut self) -> Option<Next> {
        if self.phase == Phase::Anchor && self.tries >= ANCHORS.len() {
            // Nothing could be made of them: begin in the middle of what there is.
            let rate = self.top.0.min(1e9);
            self.enter(Phase::Coarse, rate / 100.0, rate);
        }
        if self.over() {
            return None;
        }
        self.tries += 1;
        self.serial = self.serial.saturating_add(1);
        Some(match self.phase {
            Phase::Anchor => self.anchor(),
            Phase::Coarse | Phase::Fine => self.chirp(),
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.count(report);
        if is_burst(asked) {
            if self.phase == Phase::Anchor {
                self.take_anchor(report);
            }
            return;
        }
        if self.phase == Phase::Anchor {
            // Rows of others: their chirps are taken as they are.
            self.phase = Phase::Fine;
        }
        self.take_chirp(asked, report);
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        self.resized += 1;
        match refusal {
            Refusal::TooLarge { max_ip_octets } if self.resized <= 8 && (64..self.octets).contains(&max_ip_octets) => {
                self.octets = max_ip_octets;
                Ok(())
            }
            Refusal::TooSmall { min_ip_octets } if self.resized <= 8 && min_ip_octets > self.octets => {
                self.octets = min_ip_octets;
                Ok(())
            }
            other => Err(refusal_reason(other, "trains to a receiver that stamps every packet")),
        }
    }

    fn reads(&self, asked: &Train) -> bool {
        let gaps = || asked.packets.iter().skip(1).map(|packet| packet.gap);
        let whole = asked.packets.iter().all(|packet| packet.hop_limit.is_none());
        let spread = match (gaps().min(), gaps().max()) {
            (Some(least), Some(most)) => !least.is_zero() && most >= least.mul_f64(1.2),
            _ => false,
        };
        whole && asked.peer_kind == PeerKind::Receiver && spread && asked.packets.len() > super::points::LEAST_POINTS
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

fn is_burst(train: &Train) -> bool {
    train.packets.iter().skip(1).all(|packet| packet.gap.is_zero())
}

/// The lowest rate that is tried (ours).
pub(super) const LEAST_RATE: f64 = 10e3;
/// Arrivals closer than this share of what the path leaves come from the host (ours, as for fac2:
/// hosts that stamp a batch three times as fast as the link brings it stay below).
const SHORT: f64 = 0.4;
/// Packets this close to the program's own time per packet were waiting for it (ours).
const AT_PROGRAM: f64 = 1.05;
/// Ends of batches that a back-to-back train must show.
const LEAST_BATCHES: usize = 6;
/// Share of a chirp's packets that may be lost (ours; the tool: none).
const MOST_LOSS: f64 = 0.1;
/// The tool's limit of coalescence.
const TOOL_COALESCED_NS: f64 = 10_000.0;
/// The tool's highest rate.
const TOOL_MOST: f64 = 2000e6;
/// Chirps of one range of which none could be read, after which there is no use (ours).
const HOPELESS: usize = 12;
/// The estimate should not lie in the outer quarters of the range, as ratios go: about the tool's
/// 1.5 and 0.66 (ours).
const EDGE: f64 = 0.25;
/// A run should take no longer, if half of the load allows it (ours).
const HASTE: Duration = Duration::from_secs(30);
/// The power up to which a range that is too narrow grows (ours).
const WIDEST: f64 = 4.0;
/// Longest chirp and pause.
const LONGEST_CHIRP_S: f64 = 60.0;
