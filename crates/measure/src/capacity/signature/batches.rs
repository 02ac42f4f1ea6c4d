//! Batches within trains: where they begin, how large and how far apart they are, and the rate from
//! one to the next.

use std::ops::RangeInclusive;

use narrows_units::{rounded, to_usize};

use super::trains::{Kind, TrainLog, quantile};

/// The batches of one train.
#[derive(Debug, Clone)]
pub(super) struct Split {
    /// Places in `TrainLog::came`.
    pub(super) batches: Vec<RangeInclusive<usize>>,
    /// Median gap within batches.
    pub(super) inner_ns: f64,
    /// Longer gaps at regular distances are all that shows them.
    pub(super) spaced: bool,
}

/// What the batches of several like trains have in common. Without the first and the last of each
/// train, which the train cuts.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    pub(super) ip_octets: u16,
    /// Packets of most batches.
    pub(super) usual: usize,
    /// Share of batches that have just as many.
    pub(super) alike: f64,
    /// Mean packets.
    pub(super) packets: f64,
    /// Median time from batch to batch.
    pub(super) period_ns: f64,
    /// Median gap within batches.
    pub(super) inner_ns: f64,
    /// In most trains longer gaps at regular distances are all that shows them.
    pub(super) spaced: bool,
}

/// Cuts a train into batches; `None` if its packets came evenly, or irregularly, or as a single
/// batch. `noise_ns` is the error of stamps.
///
/// Batches show in one of two ways. Gaps below a third of the mean cannot come from one link that
/// serves the train at its own rate: where they are many, what lies between them is the period
/// (`capacity` §11.1 asks for half of the gaps below a tenth of the mean, which two or three
/// channels behind a link that is not ten times faster never have). Or the gaps within batches are
/// alike, and longer ones come at regular distances: bursts whose packets are spaced as they are
/// sent.
pub(super) fn split(train: &TrainLog, noise_ns: f64) -> Option<Split> {
    let gaps = train.gaps_ns();
    let span = train.span_ns();
    if train.came.len() < LEAST_PACKETS || span <= 4.0 * noise_ns {
        return None;
    }
    let mean = span / gaps.len() as f64;
    let short = gaps.iter().filter(|gap| **gap < SHORT * mean).count();
    if short as f64 >= MANY * gaps.len() as f64 {
        return Some(cut(&gaps, BETWEEN * mean, false)).filter(|split| is_regular(train, split));
    }
    let median = quantile(&gaps, 0.5)?;
    let threshold = (LONGER * median).max(median + 6.0 * noise_ns);
    Some(cut(&gaps, threshold, true)).filter(|split| is_regular(train, split))
}

fn cut(gaps: &[f64], threshold: f64, spaced: bool) -> Split {
    let (mut batches, mut begin) = (Vec::new(), 0);
    let mut inner = Vec::new();
    for (place, gap) in gaps.iter().enumerate() {
        if *gap >= threshold {
            batches.push(begin..=place);
            begin = place + 1;
        } else {
            inner.push(*gap);
        }
    }
    batches.push(begin..=gaps.len());
    Split { inner_ns: quantile(&inner, 0.5).unwrap_or(0.0), batches, spaced }
}

/// At least one whole batch, and the batches of one period; where the cut rests on nothing but
/// longer gaps, three and of one size too.
fn is_regular(train: &TrainLog, split: &Split) -> bool {
    let (sizes, periods) = (split.sizes(), split.periods_ns(train));
    let steady = |values: &[f64], most: f64| narrows_stat::coefficient_of_variation(values).is_none_or(|cv| cv < most);
    if split.spaced {
        let mean = narrows_stat::mean(&sizes).unwrap_or(0.0);
        return sizes.len() >= 3 && mean >= 3.0 && steady(&sizes, REGULAR) && steady(&periods, REGULAR);
    }
    // A first batch and single packets behind it are a train that was slowed.
    narrows_stat::mean(&sizes).is_some_and(|mean| mean >= MORE_THAN_ONE) && steady(&periods, PERIODIC)
}

impl Split {
    /// Packets of the whole batches.
    fn sizes(&self) -> Vec<f64> {
        self.whole().map(|batch| (batch.end() + 1 - batch.start()) as f64).collect()
    }

    fn whole(&self) -> impl Iterator<Item = &RangeInclusive<usize>> {
        let count = self.batches.len().saturating_sub(2);
        self.batches.iter().skip(1).take(count)
    }

    /// From the last packet of a batch to that of the next, up to the last whole one.
    fn periods_ns(&self, train: &TrainLog) -> Vec<f64> {
        let ends: Vec<f64> = self.ends(train).map(|(at, _)| at).collect();
        ends.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// When each batch but the last ended, and the IP octets that had come behind the first batch
    /// by then.
    fn ends<'a>(&'a self, train: &'a TrainLog) -> impl Iterator<Item = (f64, f64)> + 'a {
        let all = self.batches.len().saturating_sub(1);
        let mut octets = 0.0;
        self.batches.iter().take(all).enumerate().filter_map(move |(index, batch)| {
            let packets = train.came.get(batch.clone())?;
            if index > 0 {
                octets += packets.iter().map(|packet| f64::from(packet.ip_octets)).sum::<f64>();
            }
            Some((packets.last()?.at_ns, octets))
        })
    }

    /// IP-layer rate from the last packet of the first batch to that of the last whole one
    /// (`capacity` §11.1); `None` without a whole batch.
    pub(super) fn rate_bps(&self, train: &TrainLog) -> Option<f64> {
        let (begin, _) = self.ends(train).next()?;
        let (end, octets) = self.ends(train).last()?;
        (octets > 0.0 && end > begin).then(|| octets * 8e9 / (end - begin))
    }

    /// The same as the slope of a line through the ends of batches (`capacity` §11.2): slots end
    /// exactly, what they hold is whole packets.
    pub(super) fn slope_bps(&self, train: &TrainLog) -> Option<f64> {
        let (times, octets): (Vec<f64>, Vec<f64>) = self.ends(train).unzip();
        let fit = narrows_stat::ols(&times, &octets).ok()?;
        let bps = fit.line.slope * 8e9;
        (bps > 0.0 && times.len() >= 3).then_some(bps)
    }

    /// Batches that are whole.
    pub(super) fn count(&self) -> usize {
        self.whole().count()
    }
}

/// What the batches of trains of one kind and size have in common; `None` unless most of them have
/// batches.
pub(super) fn profile(trains: &[TrainLog], kind: Kind, ip_octets: u16, noise_ns: f64) -> Option<Profile> {
    let like = || {
        trains
            .iter()
            .filter(|train| train.kind == kind && train.uniform && train.ip_octets == ip_octets)
            .filter(|train| train.came.len() >= LEAST_PACKETS)
    };
    // Short trains may lie within one batch; the longest tell.
    let longest = like().map(|train| train.sent).max()?;
    let long: Vec<&TrainLog> = like().filter(|train| 2 * train.sent > longest).collect();
    let splits: Vec<(&TrainLog, Split)> =
        long.iter().filter_map(|train| Some((*train, split(train, noise_ns)?))).collect();
    if 2 * splits.len() <= long.len() {
        return None;
    }
    let (mut sizes, mut periods, mut inner) = (Vec::new(), Vec::new(), Vec::new());
    for (train, split) in &splits {
        sizes.extend(split.sizes());
        periods.extend(split.periods_ns(train));
        inner.push(split.inner_ns);
    }
    sizes.sort_by(f64::total_cmp);
    let runs = sizes.chunk_by(|a, b| a.total_cmp(b).is_eq());
    let most = runs.max_by_key(|run| run.len())?;
    Some(Profile {
        ip_octets,
        usual: to_usize(rounded(most[0])),
        alike: most.len() as f64 / sizes.len() as f64,
        packets: narrows_stat::mean(&sizes)?,
        period_ns: quantile(&periods, 0.5)?,
        inner_ns: quantile(&inner, 0.5)?,
        spaced: 2 * splits.iter().filter(|(_, split)| split.spaced).count() > splits.len(),
    })
}

/// The least number of gaps after which a train's gaps repeat, if they differ from one to the next:
/// the channels of a saw-tooth.
pub(super) fn tooth(train: &TrainLog) -> Option<usize> {
    let gaps = train.gaps_ns();
    let mean = narrows_stat::mean(&gaps)?;
    // Of most gaps, for those that others' packets lengthen come once in a while.
    let differ = |lag: usize| {
        let steps: Vec<f64> = gaps.iter().zip(gaps.get(lag..)?).map(|(a, b)| (a - b).abs()).collect();
        quantile(&steps, 0.75)
    };
    let uneven = quantile(&gaps, 0.9)? - quantile(&gaps, 0.1)? > UNEVEN * mean;
    let repeats = |lag: usize| differ(lag).is_some_and(|step| step < REPEATS * mean);
    (2..=MOST_CHANNELS.min(gaps.len() / 3)).find(|lag| uneven && repeats(*lag))
}

/// Fewer packets tell nothing of batches (ours).
const LEAST_PACKETS: usize = 12;
/// A gap this much below the mean is no packet time of a link that is as slow as the train (ours).
const SHORT: f64 = 0.35;
/// Share of such gaps from which there are batches: two channels make every other gap one (ours).
const MANY: f64 = 0.4;
/// Gaps above this many times the mean lie between batches (ours).
const BETWEEN: f64 = 0.7;
/// Mean packets of a batch (ours).
const MORE_THAN_ONE: f64 = 1.4;
/// Gaps this many times the usual are longer (ours).
const LONGER: f64 = 1.35;
/// Coefficients of variation: of what bursts of a saturated link have in common, and of the periods
/// of any batches (ours; batches that queueing makes are about as irregular as an exponential, 1).
const REGULAR: f64 = 0.3;
const PERIODIC: f64 = 0.4;
/// Gaps of a saw-tooth differ by more than this share of the mean, and repeat to within the second
/// (ours).
const UNEVEN: f64 = 0.25;
const REPEATS: f64 = 0.1;
const MOST_CHANNELS: usize = 16;
