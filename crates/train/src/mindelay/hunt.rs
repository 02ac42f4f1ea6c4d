//! One hunt for samples that met no queue: pairs or bulks of one kind, until the filter has settled
//! or there were enough.

use super::{Bulk, Flaw, Reading, Reads, Rule, read};
use narrows_probe::StampSource;
use narrows_probe::probes::TrainReport;

/// When a hunt ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stop {
    /// Samples without a new minimum.
    pub stable: usize,
    /// Samples at least.
    pub least: usize,
    /// Samples at most.
    pub most: usize,
    /// Samples that must be clean.
    pub clean: usize,
    /// Ends too after this many samples in a row that moved the best sample's dispersion by less
    /// than this share.
    pub still: Option<(usize, f64)>,
}

/// Where a hunt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It wants another sample.
    More,
    /// It has found what it wanted.
    Settled,
    /// It has not, and there were enough.
    Unsettled,
    /// Nothing came back at all.
    Silent,
    /// Too many were lost.
    Lossy,
}

/// What a hunt has found, or the best of what it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HuntResult {
    /// Time that one packet takes on the narrow link, ns: the mean over the samples whose delays
    /// are as low as the best one's.
    pub each_ns: f64,
    /// Least time among the clean samples, less what stamps may be wrong by.
    pub each_low_ns: f64,
    /// Largest, more what stamps may be wrong by.
    pub each_high_ns: f64,
    /// First to last arrival of the best sample, ns.
    pub span_ns: f64,
    /// The best sample.
    pub best: Bulk,
    /// Median over the clean samples of each one's median gap, ns.
    pub typical_ns: f64,
    /// What the dispersions of all samples scatter by: half of what the middle 68 % span, ns.
    pub scatter_ns: f64,
    /// Batches that begin within the best sample.
    pub batches: usize,
    /// Samples that met no queue.
    pub clean: usize,
    /// Samples.
    pub samples: usize,
    /// Excess of the best over the sum of the least delays, ns.
    pub residual_ns: f64,
    /// Samples since the last new minimum.
    pub stable: usize,
    /// What one clock gains on the other, ns per ns.
    pub slope: f64,
    /// Least delay of first packets, ns, clock offset included.
    pub least_first_ns: f64,
}

/// One hunt.
#[derive(Debug, Clone)]
pub struct Hunt {
    rule: Rule,
    stop: Stop,
    reads: Reads,
    bulks: Vec<Bulk>,
    reading: Option<Reading>,
    still: usize,
    sent: usize,
    silent: usize,
    /// Samples whose dispersion was nothing.
    pub closed: usize,
    /// Trains whose packets came out of order.
    pub disordered: usize,
    /// Trains without all their stamps.
    pub unstamped: usize,
    holed: usize,
}

impl Hunt {
    /// A search that has seen nothing yet.
    pub fn new(rule: Rule, stop: Stop, reads: Reads) -> Self {
        Self {
            rule,
            stop,
            reads,
            bulks: Vec::new(),
            reading: None,
            still: 0,
            sent: 0,
            silent: 0,
            closed: 0,
            disordered: 0,
            unstamped: 0,
            holed: 0,
        }
    }

    /// Takes a report in.
    pub fn take(&mut self, report: &TrainReport) {
        self.sent += 1;
        match Bulk::read(report, self.reads) {
            Ok(bulk) => self.add(bulk),
            Err(flaw) => {
                *match flaw {
                    Flaw::Silent => &mut self.silent,
                    Flaw::Holed => &mut self.holed,
                    Flaw::Disordered => &mut self.disordered,
                    Flaw::Closed => &mut self.closed,
                    Flaw::Unstamped => &mut self.unstamped,
                } += 1;
            }
        }
    }

    fn add(&mut self, bulk: Bulk) {
        let before = self.best_span();
        self.bulks.push(bulk);
        self.reading = read(&self.bulks, &self.rule);
        let moved = match (before, self.best_span(), self.stop.still) {
            (Some(before), Some(now), Some((_, share))) => (now / before - 1.0).abs() >= share,
            _ => true,
        };
        self.still = if moved { 0 } else { self.still + 1 };
    }

    fn best_span(&self) -> Option<f64> {
        self.reading.as_ref().map(|reading| self.bulks[reading.best].span_ns)
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        if self.settled() && (self.is_stable() || self.is_still() || self.bulks.len() >= self.stop.most) {
            return State::Settled;
        }
        if self.silent >= MOST_SILENT && self.silent == self.sent {
            return State::Silent;
        }
        if self.bulks.len() >= self.stop.most || self.is_still() {
            return State::Unsettled;
        }
        if self.sent >= MOST_PER_SAMPLE * self.stop.most {
            return if self.bulks.len() < self.stop.clean { State::Lossy } else { State::Unsettled };
        }
        State::More
    }

    /// The best sample's delays are the least of all, and it is not alone.
    fn settled(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.clean.len() >= self.stop.clean.max(1))
    }

    fn is_stable(&self) -> bool {
        let reading = self.reading.as_ref();
        reading.is_some_and(|reading| reading.stable >= self.stop.stable && self.bulks.len() >= self.stop.least)
    }

    fn is_still(&self) -> bool {
        let enough = self.bulks.len() >= self.stop.least;
        enough && self.stop.still.is_some_and(|(samples, _)| self.still >= samples)
    }

    /// Reports taken.
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// Samples among them.
    pub fn samples(&self) -> usize {
        self.bulks.len()
    }

    /// Reports with a loss.
    pub fn lost(&self) -> usize {
        self.silent + self.holed
    }

    /// Typical time from batch to batch within the samples, ns; nothing where none is long enough
    /// to show it.
    pub fn period_ns(&self) -> f64 {
        let inner = self.bulks.iter().filter_map(|bulk| bulk.inner);
        let periods: Vec<f64> = inner.map(|inner| inner.span_ns / (inner.batches - 1) as f64).collect();
        narrows_stat::median(&periods).unwrap_or(0.0)
    }

    /// Largest and least dispersion, ns.
    pub fn spread(&self) -> Option<(f64, f64)> {
        let spans = || self.bulks.iter().map(|bulk| bulk.span_ns);
        Some((spans().reduce(f64::min)?, spans().reduce(f64::max)?))
    }

    /// What it has found. With `batched`, times count from batch to batch.
    pub fn found(&self, batched: bool) -> Option<HuntResult> {
        let reading = self.reading.as_ref()?;
        let best = self.bulks[reading.best];
        let each = |bulk: &Bulk| match bulk.inner.filter(|_| batched) {
            Some(inner) => (inner.span_ns / inner.packets as f64, inner.span_ns),
            None => (bulk.span_ns / bulk.after as f64, bulk.span_ns),
        };
        let clean: Vec<f64> = reading.clean.iter().map(|index| each(&self.bulks[*index]).0).collect();
        let typical: Vec<f64> = reading.clean.iter().map(|index| self.bulks[*index].typical_ns).collect();
        let (own, span) = each(&best);
        let near: Vec<f64> = reading.near.iter().map(|index| each(&self.bulks[*index]).0).collect();
        let mean = narrows_stat::mean(&near).unwrap_or(own);
        let error = mean * self.error_ns(&near, mean, span) / span;
        let end = |pick: fn(f64, f64) -> f64| clean.iter().copied().fold(mean, pick);
        let reaction = if self.reads == Reads::Returns && best.stamped_by != StampSource::Simulated {
            REACTION_NS / best.after as f64
        } else {
            0.0
        };
        Some(HuntResult {
            each_ns: mean,
            each_low_ns: end(f64::min).min(mean - error).max(mean * LEAST_LOW),
            each_high_ns: end(f64::max).max(mean + error) + reaction,
            span_ns: best.span_ns,
            best,
            typical_ns: narrows_stat::median(&typical).unwrap_or(own),
            scatter_ns: self.scatter_ns(),
            batches: best.inner.map_or(0, |inner| inner.batches),
            clean: reading.clean.len(),
            samples: self.bulks.len(),
            residual_ns: reading.residual_ns,
            stable: reading.stable,
            slope: reading.slope,
            least_first_ns: reading.least_first_ns,
        })
    }

    fn scatter_ns(&self) -> f64 {
        let spans: Vec<f64> = self.bulks.iter().map(|bulk| bulk.span_ns).collect();
        let quantile = |p| narrows_stat::quantile(&spans, p).unwrap_or(0.0);
        (quantile(0.84) - quantile(0.16)) / 2.0
    }

    /// What the stamps may move the mean dispersion by, ns. A clock's steps are as good as noise,
    /// and shrink with the root of the count, only where the readings show them: probes that leave
    /// at a tick arrive at the same place between two ticks each time.
    fn error_ns(&self, near: &[f64], mean: f64, span: f64) -> f64 {
        let grain = self.rule.grain.arrival_ns;
        let scatter = narrows_stat::variance_sample(near).map_or(0.0, f64::sqrt) / mean * span;
        if scatter > SHOWS * grain { grain / (near.len().max(1) as f64).sqrt() } else { grain }
    }
}

/// Ours: by so much longer a host that was at rest takes over its answer to the first packet than
/// to one that follows; 5 to 9 us were seen between namespaces of one machine, by ICMP and TCP
/// alike.
const REACTION_NS: f64 = 15_000.0;
/// Ours: so many silent probes in a row from the first one on mean that nothing answers.
const MOST_SILENT: usize = 12;
/// Ours: attempts per sample wanted.
const MOST_PER_SAMPLE: usize = 4;
/// Ours: independent steps of a clock scatter differences by 0.41 of a step.
const SHOWS: f64 = 0.25;
/// Ours: stamps this bad are refused before this can matter; it keeps rates finite.
const LEAST_LOW: f64 = 0.1;
