//! One train: whether it counts, and what it says.

use narrows_probe::probes::{Train, TrainReport};
use narrows_train::train_method::{reply_octets, returned_ns};

/// What a train says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// Spacing of the large pair's answers.
    pub(super) span_ns: i64,
    /// Spacing of its departures.
    pub(super) sent_ns: i64,
    pub(super) ip_octets: u16,
    pub(super) reply_octets: u16,
}

/// Why a train does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Flaw {
    /// Answers are missing, or nobody knows whose they are.
    Lost,
    /// Answers changed order.
    Disordered,
    /// The large pair's answers share a stamp.
    Together,
    /// The pair did not leave closer than it came.
    Open,
    /// Small packets come back nearly as far apart as large ones: what spaces them is no link on
    /// the forward direction.
    Spread,
    /// A packet of others was between two of the train.
    Disturbed,
}

/// Reads a train: small packets around two large ones.
pub(super) fn read(asked: &Train, report: &TrainReport) -> Result<Sample, Flaw> {
    let rows = &report.arrivals;
    let pair = large_pair(asked).ok_or(Flaw::Lost)?;
    let reverse: Option<Vec<i64>> = rows.iter().map(returned_ns).collect();
    let reverse = reverse.filter(|reverse| reverse.len() == asked.packets.len()).ok_or(Flaw::Lost)?;
    let replies = rows.iter().map(|row| reply_octets(asked, row));
    let replies: Option<Vec<u16>> = replies.collect();
    let replies = replies.ok_or(Flaw::Lost)?;
    let gaps: Vec<i64> = reverse.windows(2).map(|two| two[1].saturating_sub(two[0])).collect();
    if gaps.iter().any(|gap| *gap < 0) {
        return Err(Flaw::Disordered);
    }
    let [Some(first), Some(second)] = [rows.get(pair), rows.get(pair + 1)] else {
        return Err(Flaw::Lost);
    };
    let sample = Sample {
        span_ns: gaps.get(pair).copied().unwrap_or(0),
        sent_ns: second.departed.nanos().saturating_sub(first.departed.nanos()),
        ip_octets: second.ip_octets,
        reply_octets: replies.into_iter().max().unwrap_or(u16::MAX),
    };
    judge(&gaps, pair, &sample)?;
    Ok(sample)
}

/// Index of the first large packet of a train that has exactly two, next to one another, with small
/// ones on either side.
pub(super) fn large_pair(train: &Train) -> Option<usize> {
    let sizes: Vec<u16> = train.packets.iter().map(|packet| packet.ip_octets).collect();
    let largest = sizes.iter().max()?;
    let first = sizes.iter().position(|size| size == largest)?;
    let rest = sizes.iter().enumerate().filter(|(at, _)| *at != first && *at != first + 1);
    let small = rest.map(|(_, size)| *size).max()?;
    let two = sizes.get(first + 1) == Some(largest);
    (two && first > 0 && first + 2 < sizes.len() && u32::from(small) * 2 < u32::from(*largest)).then_some(first)
}

fn judge(gaps: &[i64], pair: usize, sample: &Sample) -> Result<(), Flaw> {
    let span = sample.span_ns as f64;
    if sample.span_ns == 0 {
        return Err(Flaw::Together);
    }
    if sample.sent_ns as f64 > OPEN * span {
        return Err(Flaw::Open);
    }
    let small: Vec<f64> =
        gaps.iter().enumerate().filter(|(at, _)| *at != pair && *at + 1 != pair).map(|(_, gap)| *gap as f64).collect();
    if narrows_stat::median(&small).is_some_and(|median| median > SPREAD * span) {
        return Err(Flaw::Spread);
    }
    let largest = small.iter().copied().fold(0.0, f64::max);
    let before = pair.checked_sub(1).and_then(|at| gaps.get(at)).map_or(span, |gap| *gap as f64);
    // The first large packet falls behind the small ones on every link, by its own time there at
    // least.
    let stretched = before < (1.0 - ALIKE) * span;
    if largest >= span || stretched { Err(Flaw::Disturbed) } else { Ok(()) }
}

/// A pair that left at more than this share of the time in which it came was not closed up (ours).
const OPEN: f64 = 0.8;
/// Small packets are a tenth of the large ones or less; where they come back at two thirds of their
/// distance something else spaces them (ours).
const SPREAD: f64 = 2.0 / 3.0;
/// By what the spacing in front of the pair may be shorter (ours: stamps).
const ALIKE: f64 = 0.05;
