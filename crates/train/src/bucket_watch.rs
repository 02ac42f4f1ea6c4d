//! Token buckets in the trains of methods that were sent for something else: what is free behind a
//! bucket is its rate, which a train that the bucket holds does not see.
//!
//! A host or a path that stands still for a moment bends trains as well. What tells them apart:
//! behind a bucket each packet waits at least as long as the one before, and arrivals are even on
//! either side of the bend; behind a standstill one gap is long among short ones, or delays fall
//! while what was held up catches up. Such trains are left out, and so are those that bend where
//! the sender itself changed its pace.

use std::time::Duration;

use narrows_units::BitRate;

use crate::bucket::{BucketEvidence, BucketSearchParams, Course, TurningPoint, course, of_courses};
use narrows_probe::Estimate;
use narrows_probe::outcome::{BoundKind, Caveat, Confidence, Limit, Ranged};
use narrows_probe::probes::TrainReport;

/// Trains that are looked at; later ones add little, and a run may have thousands ("ours").
const MOST_TRAINS: usize = 256;
/// Trains that must agree ("ours": two of a hundred bend alike by chance where a host pauses; a
/// search for buckets sends them on purpose, and two do).
const AGREE: usize = 3;
/// The depth that shapers often have ("ours", as in `capacity`'s look for one).
const USUAL_OCTETS: u64 = 64_000;
/// A gap of so many of those behind it is a pause ("ours", as in `slope`), if it is this share of
/// the train as well: a shorter one cannot bend a train by a tenth.
const PAUSE: f64 = 8.0;
const TELLING: f64 = 0.05;
/// Gaps behind one by which it is judged; at the end of a train fewer, down to three.
const NEIGHBOURS: usize = 8;
const FEWEST: usize = 3;
/// A bend within so many times the packets that left faster at the head, and this many more, may be
/// theirs ("ours").
const HEAD: usize = 2;
const HEAD_MORE: usize = 8;

/// The trains of a run so far.
#[derive(Debug, Clone, Default)]
pub struct BucketWatch {
    courses: Vec<Course>,
}

impl BucketWatch {
    /// Adds one received train.
    pub fn take(&mut self, report: &TrainReport) {
        self.take_headed(report, 0);
    }

    /// The same of a train whose first `head` packets left faster than the rest.
    pub fn take_headed(&mut self, report: &TrainReport, head: usize) {
        if self.courses.len() >= MOST_TRAINS || stood_still(report) {
            return;
        }
        let course = course(report, BucketSearchParams::default().min_ratio, Duration::ZERO);
        let own = |course: &Course| {
            let at = course.bend.map(|bend| bend.before);
            head == 0 || at.is_none_or(|at| at > HEAD * head + HEAD_MORE)
        };
        self.courses.extend(course.filter(own));
    }

    fn search(&self) -> BucketEvidence {
        let params = BucketSearchParams { min_trains: AGREE, ..BucketSearchParams::default() };
        of_courses(&self.courses, &params)
    }

    /// The trains agree on a bucket.
    pub fn is_shaped(&self) -> bool {
        self.search().turning_point.is_some()
    }

    /// The bucket that the trains agree on, if they alone emptied it: nobody else took of it while
    /// they passed.
    pub fn alone(&self) -> Option<TurningPoint> {
        self.search().turning_point.filter(|turning_point| turning_point.ours >= 1.0 && !turning_point.uneven)
    }

    /// Octets that a bucket may have let through unseen: those of a usual one, unless trains
    /// exclude it.
    pub fn unseen_octets(&self) -> u64 {
        if self.search().excluded_octets >= USUAL_OCTETS { 0 } else { USUAL_OCTETS }
    }

    /// The estimate with what the trains say of buckets: [`Caveat::Shaped`] and low confidence
    /// where they agree on one, else how deep one would have gone unseen.
    pub fn tell(&self, estimate: Estimate) -> Estimate {
        self.tell_beside_bursts(estimate, 1.0)
    }

    /// The same where bursts of others, which trains need not have met, leave this share of the
    /// time, 0..1.
    pub fn tell_beside_bursts(&self, mut estimate: Estimate, left: f64) -> Estimate {
        let search = self.search();
        if let Some(turning_point) = search.turning_point {
            estimate.confidence = Confidence::Low;
            estimate.limited_by = Limit::Shaper;
            return within(estimate, &turning_point, left).caveat(Caveat::Shaped);
        }
        estimate.caveat(Caveat::BucketNotExcluded { deeper_than_octets: search.excluded_octets })
    }
}

/// No more is available for long than what the bucket let through of the trains themselves, and
/// less where others take tokens, too.
fn within(mut estimate: Estimate, turning_point: &TurningPoint, left: f64) -> Estimate {
    let got = |rate: BitRate| rate.scaled(turning_point.ours.clamp(0.0, 1.0)).unwrap_or(rate);
    let (low, high) = (got(turning_point.sustained_range.0), got(turning_point.sustained_range.1));
    let shared = turning_point.uneven || turning_point.ours < 1.0 || left < 1.0;
    estimate.adjust(|rate: &mut Ranged<BitRate>| {
        if rate.value > high {
            rate.value = got(turning_point.sustained).scaled(left).unwrap_or(BitRate::ZERO);
            rate.low = if shared { BitRate::ZERO } else { rate.low.min(low) };
            rate.high = high.max(rate.value);
            // What was a bound of the trains is none of what lasts.
            rate.verdict = BoundKind::Estimated;
        }
    });
    estimate
}

/// A host, or the path, did not run for a while within the train.
fn stood_still(report: &TrainReport) -> bool {
    let mut rows: Vec<(f64, f64)> =
        report.received().map(|(row, stamp)| (row.departed.nanos() as f64, stamp.nanos() as f64)).collect();
    let (Some(first), Some(last)) = (rows.first().copied(), rows.last().copied()) else {
        return false;
    };
    let span = (last.1 - first.1).max(last.0 - first.0);
    let gaps = |of: fn(&(f64, f64)) -> f64, rows: &[(f64, f64)]| -> Vec<f64> {
        rows.windows(2).map(|two| of(&two[1]) - of(&two[0])).collect()
    };
    if single_ended(&gaps(|row| row.0, &rows), span) {
        return true;
    }
    let packets = rows.len() as f64;
    rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    single_ended(&gaps(|row| row.1, &rows), span) || caught_up(&rows) > (TELLING * span).max(1.5 * span / packets)
}

/// One gap is long among short ones.
fn single_ended(gaps: &[f64], span: f64) -> bool {
    gaps.iter().enumerate().any(|(index, gap)| {
        let behind = &gaps[index + 1..];
        let behind = &behind[..behind.len().min(NEIGHBOURS)];
        *gap > TELLING * span
            && behind.len() >= FEWEST
            && narrows_stat::median(behind).is_some_and(|usual| *gap > PAUSE * usual.max(0.0))
    })
}

/// By how much delays fell at most: nanoseconds.
fn caught_up(rows: &[(f64, f64)]) -> f64 {
    let (_, most) = rows.iter().fold((f64::NEG_INFINITY, 0.0f64), |(high, most), row| {
        let delay = row.1 - row.0;
        (high.max(delay), most.max(high - delay))
    });
    most
}

#[cfg(test)]
mod tests;
