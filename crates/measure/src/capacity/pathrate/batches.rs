//! Receivers that see packets in batches (interrupt coalescence, NAPI polls, aggregation):
//! detection, and the rate from batch to batch.

use narrows_stat::Sorted;

use super::params::Preset;
use super::sample::{Phase, Sample};
use super::session::{CHECK_TOLERANCE, MethodRun};

/// Whether the samples so far show batches.
pub(super) fn seen(session: &MethodRun) -> bool {
    match session.params.preset {
        Preset::Faithful => session.of(Phase::BatchTest).last().is_some_and(|sample| test(session, sample)),
        Preset::Adaptive => adaptive_test(session),
    }
}

/// [pathrate]: more than 0.6 N gaps of at most 2.5 receive costs.
fn test(session: &MethodRun, sample: &Sample) -> bool {
    let short = 2.5 * session.receive_cost_ns();
    let inner = sample.gaps_ns.get(..sample.gaps_ns.len().saturating_sub(1)).unwrap_or_default();
    let count = inner.iter().filter(|gap| **gap <= short).count();
    count as f64 > 0.6 * sample.packets() as f64
}

/// Gaps below a quarter of their train's mean gap cannot come from a narrow link that serves the
/// train at its own rate. On an idle path there are none; cross traffic makes gaps longer, not
/// shorter; batches of two make one in two (`host timing` §6.4 asks for 0.6, which batches of two
/// never reach; the limit here is ours).
fn adaptive_test(session: &MethodRun) -> bool {
    short_share(session).is_some_and(|share| share > SHORT_SHARE)
}

/// The share of gaps that no narrow link made; `None` before enough packets came.
pub(super) fn short_share(session: &MethodRun) -> Option<f64> {
    let (mut short, mut all) = (0usize, 0usize);
    for sample in session.samples.iter().filter(|sample| sample.packets() >= LEAST_PACKETS) {
        all += sample.gaps_ns.len();
        short += sample.gaps_ns.iter().filter(|gap| is_short(sample, **gap)).count();
    }
    (all >= LEAST_PACKETS).then(|| short as f64 / all as f64)
}

const LEAST_PACKETS: usize = 6;
const SHORT_SHARE: f64 = 0.35;

fn is_short(sample: &Sample, gap_ns: f64) -> bool {
    // A train within one batch has no span at all: all its gaps are short.
    gap_ns <= 0.25 * sample.span_ns() / sample.gaps_ns.len() as f64
}

/// Batches that begin within the train.
pub(super) fn count(sample: &Sample) -> usize {
    sample.gaps_ns.iter().filter(|gap| !is_short(sample, **gap)).count()
}

/// What the trains of the batch branch say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BatchRates {
    /// Per train: wire rate between the first batch that begins in it and the last, bit/s, sorted.
    pub(super) trains: Sorted,
    /// Per batch: wire rate to the next, bit/s, sorted.
    pub(super) batches: Sorted,
    /// Typical time between batches, ns.
    pub(super) period_ns: f64,
    /// Mean time between the first and the last batch of a train, ns.
    pub(super) span_ns: f64,
    /// Mean number of packets that passed in that time.
    pub(super) packets: f64,
    /// Departure time of those packets over that time, the median of the trains.
    pub(super) sent_share: f64,
}

/// Reads the batch branch; `None` without a train of at least three batches.
pub(super) fn rates(session: &MethodRun) -> Option<BatchRates> {
    let (mut trains, mut batches, mut periods, mut spans) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut counts, mut shares) = (Vec::new(), Vec::new());
    for sample in session.of(Phase::Batches) {
        let begins = begins(session, sample);
        let Some(whole) = whole(session, sample, &begins) else {
            continue;
        };
        trains.push(whole.rate);
        spans.push(whole.span_ns);
        counts.push(whole.packets);
        shares.push(whole.sent_ns / whole.span_ns);
        periods.push(whole.span_ns / (begins.len() - 1) as f64);
        let less = usize::from(session.params.batch_minus_one);
        for two in begins.windows(2) {
            let burst = rate_between(session, sample, two[0], two[1], less).map(|(burst, _)| burst);
            batches.extend(burst.filter(|burst| *burst >= KEPT_ABOVE_ADR * whole.rate));
        }
    }
    Some(BatchRates {
        trains: Sorted::new(trains).ok()?,
        batches: Sorted::new(batches).ok()?,
        period_ns: narrows_stat::median(&periods)?,
        span_ns: narrows_stat::mean(&spans)?,
        packets: narrows_stat::mean(&counts)?,
        sent_share: narrows_stat::median(&shares)?,
    })
}

/// A train from the begin of its second batch to the begin of its last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    /// Wire rate, bit/s.
    pub(super) rate: f64,
    pub(super) span_ns: f64,
    packets: f64,
    pub(super) sent_ns: f64,
}

/// The trains of a phase that hold several batches.
pub(super) fn wholes(session: &MethodRun, phase: Phase) -> Vec<Whole> {
    session.of(phase).filter_map(|sample| whole(session, sample, &begins(session, sample))).collect()
}

fn whole(session: &MethodRun, sample: &Sample, begins: &[usize]) -> Option<Whole> {
    let (first, last) = (*begins.first()?, *begins.last()?);
    let (rate, span_ns) = rate_between(session, sample, first, last, 0)?;
    let packets = (last - first) as f64;
    Some(Whole { rate, span_ns, packets, sent_ns: sample.sent_ns * packets / sample.gaps_ns.len() as f64 })
}

/// Whether paced trains came slower than they left, by more than the packet that a batch may hold
/// more or less; `None` without such a train. What [`MethodRun::narrow_is_loaded`] asks where
/// single stamps mean something.
pub(super) fn loaded(session: &MethodRun) -> Option<bool> {
    let slowed = wholes(session, Phase::Check).into_iter().map(|whole| {
        let tolerance = CHECK_TOLERANCE.max(1.5 / whole.packets);
        1.0 - whole.sent_ns / whole.span_ns - tolerance
    });
    narrows_stat::median(&slowed.collect::<Vec<_>>()).map(|slowed| slowed > 0.0)
}

/// [pathrate]: bursts below 0.9 of their train's rate are not used.
const KEPT_ABOVE_ADR: f64 = 0.9;

/// Indices of the packets that begin a batch, without the first batch (its begin is the train's).
fn begins(session: &MethodRun, sample: &Sample) -> Vec<usize> {
    match session.params.preset {
        Preset::Adaptive => {
            let gaps = sample.gaps_ns.iter().enumerate();
            gaps.filter(|(_, gap)| !is_short(sample, **gap)).map(|(index, _)| index + 1).collect()
        }
        Preset::Faithful => faithful_begins(session, sample),
    }
}

/// [pathrate]: a burst goes on while it has at most five packets or the gap is below 1.5 receive
/// costs per packet of it.
fn faithful_begins(session: &MethodRun, sample: &Sample) -> Vec<usize> {
    let (mut begins, mut length) = (Vec::new(), 1usize);
    for (index, gap) in sample.gaps_ns.iter().enumerate() {
        if length <= 5 || *gap < 1.5 * session.receive_cost_ns() * length as f64 {
            length += 1;
        } else {
            begins.push(index + 1);
            length = 1;
        }
    }
    begins
}

/// Wire rate and time from packet `a` to packet `b`, both the first of a batch. Both stamps are
/// interrupts of the same kind, so `b - a` packets' time passed between them; the tool takes one
/// less, which reads low by one over the batch length.
fn rate_between(session: &MethodRun, sample: &Sample, a: usize, b: usize, less: usize) -> Option<(f64, f64)> {
    let span: f64 = sample.gaps_ns.get(a..b)?.iter().sum();
    let packets = (b - a).checked_sub(less)?;
    let octets = session.framing().wire_octets(u32::from(sample.ip_octets));
    (span > 0.0 && packets > 0).then(|| (8.0 * f64::from(octets) * packets as f64 / span * 1e9, span))
}
