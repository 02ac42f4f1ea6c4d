//! Whether packets come in batches: of the capturing host, or of a link that lets them go so
//! (slots, aggregation, stalls).
//!
//! # How a batch is told from cross traffic
//! Both leave runs of packets as close as a fast link sends them, and long gaps between the runs;
//! the mode is the fast link's after batches, the narrow link's beside cross traffic. Two things
//! differ:
//!
//! - **Shape**: few long gaps, each as long as the run behind it has packets.
//! - **Evenness**: a link that serves one queue is behind its long-run rate after a long gap, and
//!   the run makes up for it: time over `k` packets varies no more than over a few. What others put
//!   between varies anew each time, so its variance grows with `k`. The ratio of the variance over
//!   `k` gaps to `k` times that of one (a variance ratio test, `[LoMacKinlay88]`) is near one
//!   beside cross traffic and near zero after batches.
//!
//! Over a round trip a window makes everything even, so `k` gaps last no longer than the queue that
//! stood: within it, no acknowledgement of what it holds has come back. Cross traffic of full
//! packets shows by gaps of whole packets and is let through however even. Even cross traffic of
//! other sizes cannot be told from batches: it passes for them, which leaves a lower bound.

use super::density::{LogDensity, WIDTH};
use super::series::{Sample, Series, Source};

/// Gaps below this part of the mean are inside a batch (pathload's quarter).
const SMALL: f64 = 0.25;
const LEAST_BATCHES: usize = 10;

/// Packets came in batches.
pub(super) fn are(series: &Series) -> bool {
    shaped(series) || matches!(evenness(series), Evenness::Ratio(ratio) if ratio < MOST_EVEN)
}

/// Few long gaps, each as long as the batch behind it has packets.
fn shaped(series: &Series) -> bool {
    let backlogged = |sample: &&Sample| sample.backlogged() || !series.judged;
    let gaps: Vec<f64> = series.samples.iter().filter(backlogged).map(|sample| sample.gap).collect();
    if series.source == Source::Acks || gaps.len() < 4 * LEAST_BATCHES {
        return false;
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let Ok(profile) = narrows_stat::gap_profile(&gaps, SMALL * mean) else {
        return false;
    };
    if profile.small_share < 0.4 {
        return false;
    }
    if profile.is_coalesced() {
        return true;
    }
    let mut batches: Vec<(f64, f64)> = Vec::new();
    for gap in &gaps {
        match batches.last_mut() {
            Some(batch) if *gap < SMALL * mean => batch.1 += 1.0,
            _ => batches.push((*gap, 1.0)),
        }
    }
    batches.len() >= LEAST_BATCHES && correlation(&batches) > 0.8
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let (a, b) = pairs.iter().fold((0.0, 0.0), |(a, b), pair| (a + pair.0, b + pair.1));
    let (a, b) = (a / count, b / count);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for pair in pairs {
        aa += (pair.0 - a).powi(2);
        bb += (pair.1 - b).powi(2);
        ab += (pair.0 - a) * (pair.1 - b);
    }
    if aa > 0.0 && bb > 0.0 { ab / (aa * bb).sqrt() } else { 0.0 }
}

/// Below this ratio what came between was no cross traffic (ours: whole batches at random phases
/// leave `b / 6k` for batches of `b` packets, so 0.11 at the least `k`; independent gaps leave 1,
/// give or take 0.5 over the fewest spans).
const MOST_EVEN: f64 = 0.25;
/// A mode so near what was carried needs no explanation.
const NEAR: f64 = 0.97;
/// Gaps beyond this many of the mode's are long.
const LONG: f64 = 1.2;
/// Spans of at least so many batches and gaps, and at most so many gaps; fewest spans.
const SPAN_BATCHES: f64 = 1.5;
const SPAN_GAPS: usize = 6;
const LONGEST_SPAN: usize = 120;
const FEWEST_SPANS: usize = 8;
/// Steps per span.
const OVERLAP: usize = 4;
/// Part of the queue that a span may last.
const OF_QUEUE: f64 = 0.7;

/// What can be said of the time between the packets that waited.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Evenness {
    /// The mode is what was carried, or the packets of others show, or there is no queue: nothing
    /// is to be explained.
    Clear,
    /// So long are the runs that they may be batches, and no queue that could tell stood long
    /// enough.
    Doubtful,
    /// The variance ratio.
    Ratio(f64),
}

/// Long runs that nothing tells from batches.
pub(super) fn doubtful(series: &Series) -> bool {
    evenness(series) == Evenness::Doubtful
}

/// Runs so many times as long as packets of others leave that come one by one are a burst's doing,
/// or a link's that takes several packets for each of its pauses (ours).
const UNUSUAL: f64 = 2.5;
/// Runs of fewer packets come beside cross traffic all the time (ours).
const LONG_RUN: f64 = 4.0;

fn evenness(series: &Series) -> Evenness {
    let runs = runs(series);
    let count = runs.iter().map(Vec::len).sum::<usize>();
    if !series.judged || count < 4 * LEAST_BATCHES {
        return Evenness::Clear;
    }
    let all = || runs.iter().flatten().copied();
    let (octets, time) = all().fold((0.0, 0.0), |sum, one| (sum.0 + one.octets, sum.1 + one.gap));
    let rates: Vec<f64> = all().map(Sample::rate).collect();
    let mode = LogDensity::new(&rates, WIDTH).map_or(0.0, |density| density.peak().at);
    let delivered = octets * 8e9 / time.max(1.0);
    if delivered >= NEAR * mode || in_whole_packets(all(), mode) {
        return Evenness::Clear;
    }
    let long = all().filter(|one| one.gap * mode > LONG * one.octets * 8e9).count();
    let waits: Vec<f64> = all().map(|one| one.queue).collect();
    let queue = narrows_stat::quantile(&sorted(waits), 0.5).unwrap_or(0.0);
    let span = super::math::size(OF_QUEUE * queue * count as f64 / time.max(1.0)).min(LONGEST_SPAN);
    let batch = count as f64 / long.max(1) as f64;
    let enough = span >= SPAN_GAPS && span as f64 >= SPAN_BATCHES * batch;
    // Packets of others that come one by one leave runs of this length.
    let others = mode / delivered.max(1.0) - 1.0;
    let usual = 1.0 / (1.0 - (-others).exp()).max(f64::MIN_POSITIVE);
    match variance_ratio(&runs, span, delivered).filter(|_| enough) {
        Some(ratio) if ratio >= MOST_EVEN && batch > UNUSUAL * usual => Evenness::Doubtful,
        Some(ratio) => Evenness::Ratio(ratio),
        None if batch >= LONG_RUN => Evenness::Doubtful,
        None => Evenness::Clear,
    }
}

/// Rows of backlogged neighbours.
fn runs(series: &Series) -> Vec<Vec<&Sample>> {
    let mut runs: Vec<Vec<&Sample>> = Vec::new();
    let mut open = false;
    for sample in &series.samples {
        if sample.backlogged() {
            match runs.last_mut() {
                Some(run) if open && sample.follows => run.push(sample),
                _ => runs.push(vec![sample]),
            }
        }
        open = sample.backlogged();
    }
    runs
}

/// Variance of the time over `span` gaps, beyond what their octets take at the rate carried, over
/// `span` times that of one.
fn variance_ratio(runs: &[Vec<&Sample>], span: usize, delivered: f64) -> Option<f64> {
    let beyond = |one: &&Sample| one.gap - one.octets * 8e9 / delivered;
    let squares: Vec<f64> = runs.iter().flatten().map(|one| beyond(one).powi(2)).collect();
    let one = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
    let (mut spans, mut apart) = (Vec::new(), 0);
    let span = span.max(1);
    for run in runs {
        // They overlap, for rows are short.
        let sums = run.windows(span).step_by((span / OVERLAP).max(1));
        spans.extend(sums.map(|part| part.iter().map(beyond).sum::<f64>()));
        apart += run.len() / span;
    }
    if apart < FEWEST_SPANS || one <= 0.0 {
        return None;
    }
    let count = spans.len() as f64;
    let mean = spans.iter().sum::<f64>() / count;
    let several = spans.iter().map(|span| (span - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(several / (span as f64 * one))
}

/// Gaps of two and more of the mode's lie at whole multiples of it, and at several of them: packets
/// of others, as long, stood between.
fn in_whole_packets<'a>(samples: impl Iterator<Item = &'a Sample>, mode: f64) -> bool {
    const MOST: f64 = 12.0;
    const COHERENT: f64 = 0.7;
    let times = samples.map(|one| one.gap * mode / (one.octets * 8e9)).filter(|times| (LONG..MOST).contains(times));
    let (mut count, mut along, mut across, mut most, mut least) = (0.0_f64, 0.0, 0.0, 0.0_f64, MOST);
    for times in times {
        let turn = std::f64::consts::TAU * times;
        count += 1.0;
        along += turn.cos();
        across += turn.sin();
        (most, least) = (most.max(times), least.min(times));
    }
    count >= LEAST_BATCHES as f64 && most - least > 1.5 && along > 0.0 && along.hypot(across) > COHERENT * count
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}
