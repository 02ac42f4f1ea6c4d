//! What the rows of one burst say, and what many bursts say together. Pure.

use std::time::Duration;

use narrows_units::{BitRate, Delta};

use narrows_probe::probes::{Arrival, Fate, TrainReport};

/// One burst.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObservedBurst {
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
    /// Rate at which what lies ahead of the first loss arrived, bit/s; of a burst without loss, all
    /// of it.
    pub(super) ahead_bps: Option<f64>,
    /// How its rate changed on the way to the first loss and behind it.
    pub(super) turn: Option<Turn>,
    /// IP octets of its first packet.
    pub(super) ip_octets: u16,
    /// When its first packet left, nanoseconds, and how long packets took; `None` if none arrived.
    pub(super) delays: Option<Delays>,
    /// Largest growth of the one-way delay inside the burst.
    pub(super) delay_growth: Duration,
    /// See [`queueing`].
    pub(super) queueing: Option<f64>,
}

/// How the rate at which a burst arrives changes. A queue lets packets out at one rate however many
/// it drops; a bucket that is empty at another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turn {
    /// Of the last of what lies ahead of the first loss, over that of the first quarter of it.
    pub(super) late: f64,
    /// Of what lies behind the first loss, over the same.
    pub(super) behind: f64,
    /// Of what lies behind, bit/s.
    pub(super) behind_bps: f64,
}

/// Packets of which a [`Turn`]'s rates are taken, at least (ours).
const TURN_PACKETS: usize = 8;

fn turn(report: &TrainReport, cut: usize) -> Option<Turn> {
    let received = |from: usize, to: usize| -> Option<Vec<(f64, i64)>> {
        let rows = report.arrivals.get(from..to)?;
        let at = |row: &Arrival| match row.fate {
            Fate::Received(stamp) => Some((f64::from(row.ip_octets) * 8.0, stamp.nanos())),
            Fate::Lost | Fate::Echoed { .. } | Fate::Answered(_) => None,
        };
        Some(rows.iter().filter_map(at).collect())
    };
    let rate = |rows: &[(f64, i64)]| {
        let nanos = rows.last()?.1.checked_sub(rows.first()?.1).filter(|nanos| *nanos > 0)?;
        let bits: f64 = rows.iter().skip(1).map(|row| row.0).sum();
        Some(bits * 1e9 / nanos as f64)
    };
    let quarter = (cut / 4).max(TURN_PACKETS);
    let last = (cut / 8).max(TURN_PACKETS);
    if cut < quarter + last {
        return None;
    }
    let (early, late) = (rate(&received(0, quarter)?)?, rate(&received(cut - last, cut)?)?);
    // From the last packet ahead of the loss on: the gap that the loss left is the bucket's.
    let behind = received(cut - 1, report.arrivals.len())?;
    let behind_bps = rate(&behind).filter(|rate| behind.len() > TURN_PACKETS && *rate > 0.0)?;
    Some(Turn { late: late / early, behind: behind_bps / early, behind_bps })
}

/// How long packets of one burst took, nanoseconds with an unknown offset.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Delays {
    /// When the first packet left.
    pub(super) at_ns: i64,
    /// Of the first packet that arrived.
    pub(super) first: i64,
    /// The least and the most.
    pub(super) least: i64,
    pub(super) most: i64,
    /// Up to [`KEPT`] of all that arrived, evenly picked.
    pub(super) all: Vec<i64>,
    /// Of the packets ahead of each run of losses, up to [`KEPT`], evenly picked.
    pub(super) ahead_of_losses: Vec<i64>,
    /// Of the packet ahead of the first loss, if there is one.
    pub(super) ahead_of_first: Option<i64>,
}

/// Delays kept of one burst (ours: enough for a tenth of them to mean something).
const KEPT: usize = 64;

/// Up to [`KEPT`] of these, evenly picked.
fn picked(values: &[i64]) -> Vec<i64> {
    let step = values.len().div_ceil(KEPT).max(1);
    values.iter().copied().step_by(step).collect()
}

fn delays_of(report: &TrainReport, cut: Option<usize>) -> Option<Delays> {
    let taken = |row: &Arrival| match row.fate {
        Fate::Received(stamp) => Some(stamp.relative_to(row.departed).nanos()),
        Fate::Lost | Fate::Echoed { .. } | Fate::Answered(_) => None,
    };
    let rows = &report.arrivals;
    let all: Vec<i64> = rows.iter().filter_map(taken).collect();
    let ahead: Vec<i64> =
        rows.windows(2).filter(|pair| pair[1].fate == Fate::Lost).filter_map(|pair| taken(&pair[0])).collect();
    Some(Delays {
        at_ns: rows.first()?.departed.nanos(),
        first: *all.first()?,
        least: *all.iter().min()?,
        most: *all.iter().max()?,
        all: picked(&all),
        ahead_of_losses: cut.map(|_| picked(&ahead)).unwrap_or_default(),
        ahead_of_first: cut.and_then(|cut| rows.get(cut.checked_sub(1)?)).and_then(taken),
    })
}

/// Rate at which the packets ahead of the cut arrived, the first one's octets left out.
fn rate_ahead(report: &TrainReport, cut: Option<usize>) -> Option<f64> {
    let ahead = report.arrivals.get(..cut.unwrap_or(report.arrivals.len()))?;
    let mut received = ahead.iter().filter_map(|row| match row.fate {
        Fate::Received(stamp) => Some((u64::from(row.ip_octets), stamp)),
        Fate::Lost | Fate::Echoed { .. } | Fate::Answered(_) => None,
    });
    let (_, first) = received.next()?;
    let (octets, last) =
        received.fold((0u64, first), |(sum, last), (octets, stamp)| (sum.saturating_add(octets), last.max(stamp)));
    // Few packets make poor rates: a single gap would decide.
    (ahead.len() >= 4).then_some(())?;
    BitRate::over(octets, last.since(first)).map(BitRate::as_f64)
}

/// Reads one burst.
pub(super) fn seen(report: &TrainReport) -> ObservedBurst {
    let spoilt = report.local_drops > 0;
    let first_loss = report.arrivals.iter().position(|row| row.fate == Fate::Lost);
    let delays: Vec<i64> = report.received().map(|(row, stamp)| stamp.relative_to(row.departed).nanos()).collect();
    let growth = match (delays.iter().min(), delays.iter().max()) {
        (Some(low), Some(high)) => Delta::from_nanos(high.saturating_sub(*low)),
        _ => Delta::ZERO,
    };
    let first_loss = first_loss.filter(|_| report.lost_on_path() > 0);
    ObservedBurst {
        packets: report.arrivals.len(),
        arrived: report.received().count(),
        first_loss,
        spoilt_by_receiver: spoilt,
        local_drops: report.local_drops,
        departure: report.departure_rate(),
        arrival: report.arrival_rate(),
        ahead_bps: rate_ahead(report, first_loss),
        turn: first_loss.filter(|_| !spoilt).and_then(|cut| turn(report, cut)),
        ip_octets: report.arrivals.first().map_or(0, |row| row.ip_octets),
        delays: delays_of(report, first_loss),
        delay_growth: growth.to_duration().unwrap_or_default(),
        queueing: first_loss.filter(|_| !spoilt).and_then(|cut| queueing(report, cut)),
    }
}

/// Fewest packets ahead of the first loss, and arrived ones behind it, with which [`queueing`]
/// speaks (ours). A queue lets packets out at its rate however few they are, so that two suffice to
/// tell it from a policer.
const FEWEST_AHEAD: usize = 8;
const FEWEST_BEHIND: usize = 2;
/// Delay below which stamps decide, not queues (ours: a few times the error of a kernel stamp).
const LEAST_DELAY_NS: f64 = 20_000.0;

/// How much of the delay that a queue would have built is there: 1 for a queue, 0 for a policer.
///
/// Behind the first loss packets arrive at the rate `r` at which the element that drops lets them
/// through. A queue served at `r` that holds the `m` octets in front of the loss has delayed the
/// last of them by `8 m / r` less the time they took to leave; a policer has delayed it by nothing.
/// Too few packets behind the loss still tell a policer, if the packets ahead of it were not
/// delayed at all. `None` if neither can be told.
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

/// What became of one burst of the sample. Counts are packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cut {
    /// Packets ahead of the first loss; of a burst without loss, all.
    pub(super) through: u64,
    /// It lost none: more might have come through.
    pub(super) whole: bool,
}

/// Bursts together. Counts are packets.
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
    /// The same of the maximum.
    pub(super) max_is_bound: bool,
    /// Loss-free bursts of the smallest size, of as many tries, bound its loss probability by this,
    /// at 95 %.
    pub(super) loss_probability: f64,
}

/// Summary of bursts of any sizes. A burst that survived says only that it would have been cut
/// later: quantiles are those of the product-limit estimate (`[KM58]`), which for bursts that were
/// all cut are the usual ones.
///
/// `None` without any burst. With no loss in `n` bursts the probability of one is at most
/// `1 - 0.05^(1/n)` (exact binomial).
pub(super) fn together(cuts: &[Cut]) -> Option<Together> {
    let mut sorted = cuts.to_vec();
    // At one size those that were cut come first: the others were cut later, if at all.
    sorted.sort_unstable();
    let (worst, best) = (*sorted.first()?, *sorted.last()?);
    let quantile = |p: f64| {
        let mut surviving = 1.0;
        for (index, cut) in sorted.iter().enumerate() {
            let left = (sorted.len() - index) as f64;
            if !cut.whole {
                surviving *= (left - 1.0) / left;
            }
            // A share that is exact in figures must not be missed by its rounding.
            if !cut.whole && 1.0 - surviving >= p - 1e-9 {
                return Some(cut.through);
            }
        }
        None
    };
    let (tenth, half) = (quantile(0.1), quantile(0.5));
    Some(Together {
        p10: tenth.unwrap_or(best.through),
        median: half.unwrap_or(best.through),
        max: best.through,
        min: worst.through,
        bursts: cuts.len(),
        whole: cuts.iter().filter(|cut| cut.whole).count(),
        median_is_bound: half.is_none(),
        max_is_bound: best.whole,
        loss_probability: narrows_stat::zero_failures_bound(cuts.len() as u64, 0.95).unwrap_or(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(through: u64) -> Cut {
        Cut { through, whole: false }
    }

    fn survived(size: u64) -> Cut {
        Cut { through: size, whole: true }
    }

    /// 20 bursts without loss: at most 13.9 % at 95 %; 29: 9.8 %; 59: 5 % (published tables of the
    /// exact binomial bound).
    #[test]
    fn binomial_statement() {
        for (bursts, bound) in [(20, 0.139), (29, 0.0981), (59, 0.0495)] {
            let all = together(&vec![survived(10); bursts]).unwrap();
            assert!((all.loss_probability - bound).abs() < 5e-4, "{}", all.loss_probability);
            assert!(all.median_is_bound);
        }
        assert_eq!(together(&[]), None);
    }

    #[test]
    fn quantiles_count_survivors_as_at_least_their_size() {
        let cuts: Vec<_> = (1..=9).map(cut).chain([survived(20), survived(20)]).collect();
        let all = together(&cuts).unwrap();
        assert_eq!((all.min, all.p10, all.median, all.max), (1, 2, 6, 20));
        assert_eq!((all.whole, all.median_is_bound, all.max_is_bound), (2, false, true));
        // Those that survived small sizes are no evidence for small sizes: of ten bursts four
        // survived 5, and the six larger ones were cut at 10 to 15. The product-limit estimate
        // leaves them out once 5 is passed: the median of 10..15 is 12.
        let grown: Vec<_> = (0..4).map(|_| survived(5)).chain((10..=15).map(cut)).collect();
        let all = together(&grown).unwrap();
        assert_eq!((all.p10, all.median, all.max, all.max_is_bound), (10, 12, 15, false));
    }
}
