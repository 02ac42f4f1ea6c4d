//! The search for the turning point: which gap comes next, and what each said.

use std::time::Duration;

use narrows_units::BitRate;

use super::params::{MOST_LEVELS, Params};
use crate::gaps::{Account, Narrow, Reading, Spacing, gaps, rounding, spacing};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Train, TrainId, TrainReport};
use narrows_probe::{PathFacts, Refusal, StampSource};
use narrows_train::train_method::{Next, TrainMethod, refusal_reason};

/// Which formula answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Formula {
    /// Cross traffic from the gaps that grew.
    Igi,
    /// The rate of the train that came as it left.
    Ptr,
}

/// All trains at one gap.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    /// As planned, ns; zero: back to back.
    pub(super) gap_ns: f64,
    pub(super) readings: Vec<Reading>,
    pub(super) gaps: Vec<Vec<Spacing>>,
    /// The mean gap grew on the way.
    pub(super) larger: bool,
}

impl Level {
    fn at(gap_ns: f64) -> Self {
        Self { gap_ns, ..Self::default() }
    }

    /// Sums of the trains' mean gaps at sender and receiver, ns.
    pub(super) fn sums(&self, bits: f64) -> (f64, f64) {
        let sum = |of: fn(&Reading) -> f64| self.readings.iter().map(|reading| bits * 1e9 / of(reading)).sum();
        (sum(|reading| reading.rate_in), sum(|reading| reading.rate_out))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Capacity,
    Search,
    Close,
    Over,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) formula: Formula,
    pub(super) params: Params,
    pub(super) account: Account,
    pub(super) levels: Vec<Level>,
    pub(super) narrow: Option<Narrow>,
    /// Levels by index: the last that grew before the turning point, and the first that did not.
    pub(super) over: Option<usize>,
    pub(super) under: Option<usize>,
    pub(super) failed: Option<Reason>,
    phase: Phase,
    equal_in_a_row: u32,
    step_ns: f64,
    source: StampSource,
    resized: u32,
}

impl MethodRun {
    pub(crate) fn new(formula: Formula, params: Params) -> Self {
        Self {
            formula,
            params,
            account: Account::default(),
            levels: vec![Level::at(0.0)],
            narrow: None,
            over: None,
            under: None,
            failed: None,
            phase: Phase::Capacity,
            equal_in_a_row: 0,
            step_ns: 0.0,
            source: StampSource::User,
            resized: 0,
        }
    }

    /// All trains of a level are there.
    fn judge(&mut self) {
        match self.phase {
            Phase::Capacity => self.judge_first(),
            Phase::Search => self.judge_search(),
            Phase::Close => self.judge_close(),
            Phase::Over => {}
        }
        if self.levels.len() > MOST_LEVELS && self.phase != Phase::Over {
            self.failed = Some(Reason::NotConverged);
            self.phase = Phase::Over;
        }
    }

    /// Back to back: the narrow link's gap, and where to begin.
    fn judge_first(&mut self) {
        let Some(first) = self.levels.first() else { return };
        let all: Vec<Spacing> = first.gaps.iter().flatten().copied().collect();
        let facts = self.account.facts.clone();
        let binning = self.params.binning();
        self.narrow = facts.and_then(|facts| Narrow::of(&all, binning, &facts, self.source));
        let bits = self.account.bits();
        let (_, sum) = first.sums(bits);
        let out_ns = sum / first.readings.len().max(1) as f64;
        if self.refuses() || !out_ns.is_finite() || out_ns <= 0.0 {
            self.phase = Phase::Over;
            return;
        }
        self.step_ns = out_ns * self.params.step;
        let begin = if self.params.faithful() { 0.5 * out_ns + self.step_ns } else { 0.75 * out_ns };
        self.phase = Phase::Search;
        self.levels.push(Level::at(begin));
    }

    /// What rules the method out at once.
    fn refuses(&mut self) -> bool {
        if self.params.faithful() {
            return false;
        }
        let first = self.levels.first().map_or(&[][..], |level| &level.readings);
        let host = first.iter().all(|reading| reading.receiver_bound);
        // Single gaps count for IGI alone.
        if self.formula == Formula::Igi {
            let batching = self.narrow.is_some_and(|narrow| narrow.batching()) || self.account.batch.is_some();
            let all: Vec<Spacing> = self.levels.iter().flat_map(|level| level.gaps.iter().flatten()).copied().collect();
            self.failed = match self.narrow {
                _ if batching => Some(Reason::ReceiveBatching),
                None => Some(Narrow::missing(&all)),
                Some(narrow) if narrow.coarse => Some(Reason::StampsTooCoarse),
                Some(narrow) => self.own_pace(&narrow),
            };
        }
        // The sender cannot go faster than what comes through; the receiver cannot tell more.
        self.unspaced() || host || self.failed.is_some()
    }

    /// The sender's pace passes for no capacity.
    fn own_pace(&self, narrow: &Narrow) -> Option<Reason> {
        let sent = self.account.bits() * 1e9 / narrow.sent_ns;
        let own =
            self.params.capacity.is_none() && narrow.sender() && !self.unspaced() && !self.account.at_interface(sent);
        own.then(|| Reason::SenderTooSlow { reached: BitRate::from_bps_f64(sent).unwrap_or(BitRate::ZERO) })
    }

    /// The sender's fastest trains came as they left.
    pub(super) fn unspaced(&self) -> bool {
        let first = self.levels.first().map_or(&[][..], |level| &level.readings);
        stretch(first).is_some_and(|stretch| stretch <= UNSPACED)
    }

    fn judge_search(&mut self) {
        let larger = self.grew();
        let at = self.levels.len() - 1;
        let Some(level) = self.levels.last() else { return };
        let gap_ns = level.gap_ns;
        if larger {
            self.over = Some(at);
            self.under = None;
            self.equal_in_a_row = 0;
            let jump = if self.params.faithful() { 0.0 } else { self.jump(at) };
            self.levels.push(Level::at((gap_ns + self.step_ns).max(jump)));
            return;
        }
        self.equal_in_a_row += 1;
        self.under.get_or_insert(at);
        if self.equal_in_a_row < 2 {
            self.levels.push(Level::at(gap_ns + self.step_ns));
        } else if self.params.faithful() {
            self.phase = Phase::Over;
        } else {
            self.phase = Phase::Close;
            self.close_in();
        }
    }

    /// How far the next gap may jump, ns: half-way between mean gap in and mean gap out, or nine
    /// tenths of the way to where the line through the last two levels that grew meets
    /// `g_out = g_in`, but no more than twice the gap. In a fluid neither passes the turning point.
    fn jump(&self, at: usize) -> f64 {
        let bits = self.account.bits();
        let means = |at: usize| {
            let level = self.levels.get(at)?;
            let count = level.readings.len() as f64;
            let (sent, came) = level.sums(bits);
            Some((sent / count, came / count)).filter(|(sent, came)| sent.is_finite() && came.is_finite())
        };
        let Some((sent, came)) = means(at) else { return 0.0 };
        let middle = f64::midpoint(sent, came);
        let before = at.checked_sub(1).filter(|before| *before > 0).and_then(means);
        let fixed = before.and_then(|(x, y)| {
            let gradient = (came - y) / (sent - x);
            let own = came - gradient * sent;
            (gradient.is_finite() && gradient < 1.0 && own > 0.0).then(|| own / (1.0 - gradient))
        });
        let nearly = fixed.map_or(0.0, |fixed| sent + NEARLY * (fixed - sent));
        middle.max(nearly.min(2.0 * sent))
    }

    fn judge_close(&mut self) {
        let at = self.levels.len() - 1;
        if self.grew() {
            self.over = Some(at);
        } else {
            self.under = Some(at);
        }
        self.close_in();
    }

    /// Halves what lies between the last gap that grew and the first that did not (ours).
    fn close_in(&mut self) {
        let gap = |at: Option<usize>| at.and_then(|at| self.levels.get(at)).map(|level| level.gap_ns);
        let under = gap(self.under).unwrap_or(0.0);
        // Where even the first gap did not grow, the back-to-back trains did.
        let over = gap(self.over).unwrap_or(0.5 * under);
        if under - over <= CLOSE * under {
            self.phase = Phase::Over;
        } else {
            self.levels.push(Level::at(f64::midpoint(over, under)));
        }
    }

    /// Whether the gaps of the latest level grew on the mean.
    fn grew(&mut self) -> bool {
        let bits = self.account.bits();
        let (faithful, tolerance) = (self.params.faithful(), self.params.tolerance);
        let ends = self.ends_ns();
        let packets = self.params.packets as f64;
        let Some(level) = self.levels.last_mut() else {
            return false;
        };
        let (sent, came) = level.sums(bits);
        let count = level.readings.len() as f64;
        let tolerance = tolerance + rounding(&level.readings);
        level.larger = if faithful {
            came > sent + 5000.0 * count
        } else {
            // The ends of a train are known to within their stamps' errors.
            came > sent * (1.0 + tolerance) + count * ends / packets
        };
        level.larger
    }

    /// What the two ends of a train may be off by, ns.
    fn ends_ns(&self) -> f64 {
        let Some(facts) = &self.account.facts else { return 0.0 };
        let of = |host: &narrows_probe::HostFacts| host.clock_resolution.max(host.stamp_error).as_secs_f64() * 1e9;
        of(&facts.sender) + of(&facts.receiver)
    }

    /// Packets of a train: as many as batches ask for.
    fn packets(&self) -> usize {
        if self.params.faithful() {
            self.params.packets
        } else {
            self.account.length(self.params.packets, MOST_PACKETS)
        }
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) =
        ("igi and ptr", "trains of eight packets or more of one size to the receiver");

    fn begin(&mut self, facts: &PathFacts) {
        self.account.begin(facts, self.params.ip_octets);
    }

    fn next(&mut self) -> Option<Next> {
        self.failed = self.failed.take().or_else(|| self.account.gives_up());
        if self.failed.is_some() || self.phase == Phase::Over {
            return None;
        }
        let level = self.levels.last()?;
        let packets = self.packets();
        let rate = if level.gap_ns > 0.0 {
            BitRate::from_bps_f64(self.account.bits() * 1e9 / level.gap_ns)?
        } else {
            BitRate::ZERO
        };
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
        self.source = report.arrived_by;
        let Some(reading) = self.account.take(report) else {
            return;
        };
        let few = self.account.too_few_batches(report.arrivals.len());
        let Some(level) = self.levels.last_mut() else { return };
        if few && !self.params.faithful() && report.arrivals.len() < MOST_PACKETS {
            return;
        }
        if level.gap_ns > 0.0 && !reading.rate_in.is_finite() {
            return;
        }
        level.readings.push(reading);
        level.gaps.push(gaps(report));
        if level.readings.len() >= self.params.trains {
            self.judge();
        }
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
        // Gaps of another size say nothing of these.
        self.levels = vec![Level::at(0.0)];
        (self.over, self.under, self.narrow) = (None, None, None);
        (self.phase, self.equal_in_a_row) = (Phase::Capacity, 0);
        self.account.fastest = None;
        Ok(())
    }

    /// Trains of another run stand for those at the level's gap if they were sent so.
    fn reads(&self, asked: &Train) -> bool {
        let Some(first) = asked.packets.first() else {
            return false;
        };
        let alike = asked.packets.iter().all(|packet| packet.ip_octets == first.ip_octets);
        let wanted = self.levels.last().map_or(0.0, |level| level.gap_ns);
        let planned =
            asked.planned_rate().map_or(0.0, |rate| f64::from(first.ip_octets) * 8e9 / rate.as_f64().max(1.0));
        let near = (planned - wanted).abs() <= 0.02 * wanted;
        alike
            && first.ip_octets == self.account.octets
            && asked.packets.len() >= 8
            && near
            && asked.peer_kind == PeerKind::Receiver
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        super::answer::conclude(self, stopped)
    }
}

/// How much longer trains came than they left, on the median.
fn stretch(readings: &[Reading]) -> Option<f64> {
    let all: Vec<f64> = readings.iter().map(|reading| reading.rate_in / reading.rate_out).collect();
    narrows_stat::median(&all)
}

/// Trains that come no longer than this times how they left were spaced by the sender (ours).
const UNSPACED: f64 = 1.05;
/// Share of the way to the presumed turning point (ours).
const NEARLY: f64 = 0.9;
/// The turning point is known well enough when it lies between two gaps that differ by this share
/// (ours).
const CLOSE: f64 = 0.02;
/// Packets of a train at most, whatever batches ask for (ours).
const MOST_PACKETS: usize = 2000;
