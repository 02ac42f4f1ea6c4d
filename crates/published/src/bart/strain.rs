//! The strain of one train.

use narrows_units::Delta;

use narrows_probe::probes::TrainReport;

/// What one train says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Strain {
    /// Its rate, bit/s, by departures.
    pub(super) rate: f64,
    /// Mean of `(gap out - gap in)/gap in`.
    pub(super) mean: f64,
    /// Variance of that mean.
    pub(super) variance: f64,
    /// Gaps behind it.
    pub(super) gaps: usize,
    /// Mean time between burst ends at the receiver, seconds, if packets came in batches.
    pub(super) batch: Option<f64>,
}

/// Share of gaps that betray batches, as in `fac2`.
const BATCHING_SHARE: f64 = 0.25;
/// A gap below this share of what was sent has no time of its own (§0.4's rule for fast links,
/// relative).
const SHORT_GAP: f64 = 0.4;

/// `None` with fewer than two gaps that tell, or without a rate. Gaps beside a lost packet are left
/// out; with batches, gaps run from burst end to burst end, each weighted by its time.
pub(super) fn strain(report: &TrainReport, burst_ends: bool) -> Option<Strain> {
    let rate = report.departure_rate()?.as_f64();
    let seen: Vec<(u32, f64, f64)> = {
        let (first, arrived) = report.received().next().map(|(row, stamp)| (row.departed, stamp))?;
        let of = |delta: Delta| delta.as_f64();
        report.received().map(|(row, stamp)| (row.seq, of(row.departed - first), of(stamp - arrived))).collect()
    };
    let gap_in = seen.last()?.1 / (seen.len() as f64 - 1.0);
    let short = |pair: &[(u32, f64, f64)]| pair[1].2 - pair[0].2 < SHORT_GAP * gap_in;
    let shorts = seen.windows(2).filter(|pair| short(pair)).count();
    let batching = shorts as f64 >= BATCHING_SHARE * seen.len() as f64;
    let kept: Vec<(u32, f64, f64)> = if batching || burst_ends {
        let ends = seen.windows(2).filter(|pair| !short(pair)).map(|pair| pair[0]);
        ends.chain(seen.last().copied()).collect()
    } else {
        seen
    };
    let whole = batching || burst_ends;
    let gaps: Vec<(f64, f64)> = kept
        .windows(2)
        .filter(|pair| whole || pair[1].0 == pair[0].0.wrapping_add(1))
        .map(|pair| (pair[1].1 - pair[0].1, pair[1].2 - pair[0].2))
        .filter(|(sent, _)| *sent > 0.0)
        .collect();
    let time: f64 = gaps.iter().map(|(sent, _)| sent).sum();
    if gaps.len() < 2 || time <= 0.0 || !rate.is_finite() {
        return None;
    }
    let mean = gaps.iter().map(|(sent, seen)| seen - sent).sum::<f64>() / time;
    // Of a mean weighted by time: the sum of squared weighted residuals over the squared sum of
    // weights.
    let count = gaps.len() as f64;
    let squares: f64 = gaps.iter().map(|(sent, seen)| (seen - sent - mean * sent).powi(2)).sum();
    let variance = squares / (time * time) * count / (count - 1.0);
    let span = kept.last()?.2 - kept.first()?.2;
    (mean.is_finite() && variance.is_finite()).then_some(Strain {
        rate,
        mean,
        variance,
        gaps: gaps.len(),
        batch: batching.then_some(span * 1e-9 / (kept.len() as f64 - 1.0)),
    })
}
