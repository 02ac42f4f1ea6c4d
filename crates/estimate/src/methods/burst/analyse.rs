//! What the rows of one burst say, and what many bursts say together. Pure.

use std::time::Duration;

use stat::Sorted;
use units::{BitRate, Delta};

use crate::probe::{Fate, TrainReport};

/// One burst.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// Packets sent.
    pub(super) packets: usize,
    /// Packets that arrived.
    pub(super) arrived: usize,
    /// Packets ahead of the first one that the path lost; `None` if it lost none.
    pub(super) first_loss: Option<usize>,
    /// The receiving host dropped some: which rows are the path's losses is not known.
    pub(super) spoilt_by_receiver: bool,
    /// Packets that the receiving host dropped.
    pub(super) local_drops: u32,
    /// Rate at which the burst left; `None` if faster than the stamps resolve.
    pub(super) departure: Option<BitRate>,
    /// Rate at which it arrived.
    pub(super) arrival: Option<BitRate>,
    /// Largest growth of the one-way delay inside the burst.
    pub(super) delay_growth: Duration,
    /// See [`queueing`].
    pub(super) queueing: Option<f64>,
}

/// Reads one burst.
pub(super) fn seen(report: &TrainReport) -> Seen {
    let spoilt = report.local_drops > 0;
    let first_loss = report.arrivals.iter().position(|row| row.fate == Fate::Lost);
    let delays: Vec<i64> = report
        .received()
        .map(|(row, stamp)| stamp.relative_to(row.departed).nanos())
        .collect();
    let growth = match (delays.iter().min(), delays.iter().max()) {
        (Some(low), Some(high)) => Delta::from_nanos(high.saturating_sub(*low)),
        _ => Delta::ZERO,
    };
    let first_loss = first_loss.filter(|_| report.lost_on_path() > 0);
    Seen {
        packets: report.arrivals.len(),
        arrived: report.received().count(),
        first_loss,
        spoilt_by_receiver: spoilt,
        local_drops: report.local_drops,
        departure: report.departure_rate(),
        arrival: report.arrival_rate(),
        delay_growth: growth.to_duration().unwrap_or_default(),
        queueing: first_loss.filter(|_| !spoilt).and_then(|cut| queueing(report, cut)),
    }
}

/// Fewest packets ahead of the first loss, and arrived ones behind it, with which [`queueing`] speaks (ours). A queue lets
/// packets out at its rate however few they are, so that two suffice to tell it from a policer.
const FEWEST_AHEAD: usize = 8;
const FEWEST_BEHIND: usize = 2;
/// Delay below which stamps decide, not queues (ours: a few times the error of a kernel stamp).
const LEAST_DELAY_NS: f64 = 20_000.0;

/// How much of the delay that a queue would have built is there: 1 for a queue, 0 for a policer.
///
/// Behind the first loss packets arrive at the rate `r` at which the element that drops lets them through. A queue served at
/// `r` that holds the `m` octets in front of the loss has delayed the last of them by `8 m / r` less the time they took to
/// leave; a policer has delayed it by nothing. Too few packets behind the loss still tell a policer, if the packets ahead of it
/// were not delayed at all. `None` if neither can be told.
fn queueing(report: &TrainReport, cut: usize) -> Option<f64> {
    let (ahead, behind) = report.arrivals.split_at_checked(cut)?;
    let behind: Vec<_> = behind
        .iter()
        .filter_map(|row| match row.fate {
            Fate::Received(stamp) => Some((u64::from(row.ip_octets), stamp)),
            Fate::Lost | Fate::Echoed { .. } | Fate::Answered(_) => None,
        })
        .collect();
    let (Fate::Received(first), Fate::Received(last)) = (ahead.first()?.fate, ahead.last()?.fate) else {
        return None;
    };
    let leaving = ahead.last()?.departed.since(ahead.first()?.departed).as_secs_f64() * 1e9;
    let grown = (last - first).as_f64() - leaving;
    if ahead.len() < FEWEST_AHEAD || behind.len() < FEWEST_BEHIND {
        let flat = grown < LEAST_DELAY_NS.max(0.02 * leaving) && leaving > LEAST_DELAY_NS;
        return (flat && ahead.len() >= FEWEST_AHEAD).then_some(0.0);
    }
    let end = behind.iter().map(|(_, stamp)| *stamp).max()?;
    let through = BitRate::over(behind.iter().map(|(octets, _)| octets).sum(), end.since(last))?;
    let held: u64 = ahead.iter().map(|row| u64::from(row.ip_octets)).sum();
    let expected = held as f64 * 8e9 / through.as_f64() - leaving;
    (expected >= LEAST_DELAY_NS).then_some(grown / expected)
}

/// Bursts of one size, together. Counts are packets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Together {
    /// A tenth of the bursts was cut earlier.
    pub(super) p10: u64,
    /// Half of them was.
    pub(super) median: u64,
    /// The best one.
    pub(super) max: u64,
    /// The worst one.
    pub(super) min: u64,
    /// Bursts.
    pub(super) bursts: usize,
    /// Bursts that were not cut at all.
    pub(super) whole: usize,
    /// The median is a size that survived, so that the truth lies above it.
    pub(super) median_is_bound: bool,
    /// Loss-free bursts of the smallest size, of as many tries, bound its loss probability by this, at 95 %.
    pub(super) loss_probability: f64,
}

/// Summary of bursts of `size` packets: packets ahead of each first loss, `None` where all survived.
///
/// `None` without any burst. With no loss in `n` bursts the probability of one is at most `1 - 0.05^(1/n)` (exact binomial).
pub(super) fn together(first_losses: &[Option<usize>], size: usize) -> Option<Together> {
    let through: Vec<f64> = first_losses.iter().map(|cut| cut.unwrap_or(size) as f64).collect();
    let whole = first_losses.iter().filter(|cut| cut.is_none()).count();
    let sorted = Sorted::new(through).ok()?;
    // Packets are whole: half a packet through is none.
    let at = |p: f64| super::super::bulk::whole(sorted.quantile(p).unwrap_or(0.0).floor());
    Some(Together {
        p10: at(0.1),
        median: at(0.5),
        max: at(1.0),
        min: at(0.0),
        bursts: first_losses.len(),
        whole,
        median_is_bound: whole * 2 > first_losses.len(),
        loss_probability: stat::zero_failures_bound(first_losses.len() as u64, 0.95).unwrap_or(1.0),
    })
}

/// Queue and available rate behind bursts at several rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effective {
    /// Effective queue `Q'`, octets.
    pub(super) queue_octets: f64,
    /// Available rate `A`, bit/s.
    pub(super) available_bps: f64,
}

/// Least squares of `1/m = (1/Q') (1 - A/R)` over `(R in bit/s, m in octets)`, at least three of them. The error of `m` is one
/// packet whatever `m` is, so `1/m` weighs `m^4`. `None` where the line makes no sense.
pub(super) fn effective(points: &[(f64, f64)]) -> Option<Effective> {
    let inverse_rates: Vec<f64> = points.iter().map(|(rate, _)| 1e6 / rate).collect();
    let inverse_bursts: Vec<f64> = points.iter().map(|(_, burst)| 1e3 / burst).collect();
    let weights: Vec<f64> = points.iter().map(|(_, burst)| (burst / 1e3).powi(4)).collect();
    let line = stat::weighted_ols(&inverse_rates, &inverse_bursts, &weights).ok()?.line;
    let fit = Effective {
        queue_octets: 1e3 / line.intercept,
        available_bps: -line.slope / line.intercept * 1e6,
    };
    (line.intercept > 0.0 && fit.queue_octets.is_finite() && fit.available_bps.is_finite()).then_some(fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 bursts without loss: at most 13.9 % at 95 %; 29: 9.8 %; 59: 5 % (published tables of the exact binomial bound).
    #[test]
    fn binomial_statement() {
        for (bursts, bound) in [(20, 0.139), (29, 0.0981), (59, 0.0495)] {
            let all = together(&vec![None; bursts], 10).unwrap();
            assert!((all.loss_probability - bound).abs() < 5e-4, "{}", all.loss_probability);
            assert!(all.median_is_bound);
        }
        assert_eq!(together(&[], 10), None);
    }

    #[test]
    fn quantiles_count_survivors_as_the_size_sent() {
        let cuts: Vec<_> = (1..=9).map(Some).chain([None, None]).collect();
        let all = together(&cuts, 20).unwrap();
        assert_eq!((all.min, all.p10, all.median, all.max), (1, 2, 6, 20));
        assert_eq!((all.whole, all.median_is_bound), (2, false));
    }

    /// MBS(R) = Q R / (R - A) with Q = 100 kB, A = 60 Mbit/s: at 90, 120, 240 Mbit/s 300, 200, 133.3 kB.
    #[test]
    fn queue_and_available_rate_from_three_rates() {
        let fit = effective(&[(90e6, 300e3), (120e6, 200e3), (240e6, 400e3 / 3.0)]).unwrap();
        assert!((fit.queue_octets - 100e3).abs() < 1.0, "{fit:?}");
        assert!((fit.available_bps - 60e6).abs() < 1e3, "{fit:?}");
        assert_eq!(effective(&[(90e6, 300e3), (120e6, 200e3)]), None);
    }
}
