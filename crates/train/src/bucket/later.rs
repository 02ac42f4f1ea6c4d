//! A bucket that trains agree on by how they went on, where others' bursts bend them anywhere.
//!
//! Behind an empty bucket packets of a train that have nobody between them keep one distance, that
//! of the bucket's rate, however much others take of it. So the end of each train tells the rate by
//! itself. A train that is too short for the bucket ends as fast as it began, and is not against
//! it.

use narrows_units::{BitRate, rounded};

use super::bend::{Course, Later};
use super::ends::Pace;
use super::{TurningPoint, UNEVEN_DEPTH};

/// The bucket of the slowest trains that went on at one rate, at an even pace, where as many began
/// faster and left so. A link whose rate varies has trains that end in between.
pub(super) fn agree(courses: &[Course]) -> Option<TurningPoint> {
    let mut even: Vec<(&Course, Later)> = courses.iter().filter_map(|one| Some((one, one.later?))).collect();
    even.retain(|(_, later)| later.keeps_pace());
    even.sort_by(|(_, a), (_, b)| a.rate_bps.total_cmp(&b.rate_bps));
    let near = |slow: f64, other: f64| other <= slow * (1.0 + 2.0 * NEAR);
    let slowest = even.windows(ALIKE).find_map(|some| {
        let (first, last) = (some.first()?.1.rate_bps, some.last()?.1.rate_bps);
        near(first, last).then_some(first)
    })?;
    let alike: Vec<&(&Course, Later)> =
        even.iter().filter(|(_, later)| later.rate_bps >= slowest && near(slowest, later.rate_bps)).collect();
    let rate = narrows_stat::median(&alike.iter().map(|(_, later)| later.rate_bps).collect::<Vec<_>>())?;
    let began = began_fast(courses, FASTER * rate);
    let peak = narrows_stat::median(&began.iter().map(|(_, began)| *began).collect::<Vec<_>>())?;
    let faster: Vec<f64> = even.iter().map(|(_, later)| later.rate_bps).filter(|end| !near(slowest, *end)).collect();
    let kept_up = narrows_stat::median(&faster).unwrap_or(peak);
    let between = faster.iter().filter(|end| **end * FASTER < kept_up).count();
    // Who comes slowly and then fast met others for a while: no bucket fills while a train comes.
    let all = courses.iter().filter_map(|course| course.later);
    let sped_up = all.filter(|later| later.rate_bps * later.ours >= FASTER * later.began_bps).count();
    let against = between + sped_up + even.iter().filter(|(_, later)| later.rate_bps < slowest).count();
    // A packet of others between any two is more than half of the rate.
    let least = if rate < BELOW_HALF * kept_up { ALIKE } else { ALIKE + 1 };
    if began.len() < ALIKE || alike.len() < least.max(2 * against) {
        return None;
    }
    let exact = alike.iter().filter(|(_, later)| later.pace == Pace::Even).count();
    let packet = alike.iter().map(|(course, _)| course.packet_octets).fold(0.0, f64::max);
    let sent: Vec<f64> = began.iter().map(|(course, _)| course.departure_bps.min(peak)).collect();
    let ours = narrows_stat::median(&alike.iter().map(|(_, later)| later.ours).collect::<Vec<_>>())?;
    Some(TurningPoint {
        peak: BitRate::from_bps_f64(peak)?,
        sustained: BitRate::from_bps_f64(rate)?,
        sustained_range: (BitRate::from_bps_f64(rate * (1.0 - NEAR))?, BitRate::from_bps_f64(rate * (1.0 + NEAR))?),
        sent: BitRate::from_bps_f64(narrows_stat::median(&sent)?)?,
        depth_octets: rounded(packet),
        depth_range: (0, rounded(packet * (1.0 + UNEVEN_DEPTH))),
        sender_limited: false,
        ours,
        uneven: false,
        pace: if exact * 2 > alike.len() { Pace::Even } else { Pace::Late },
        lost_share: 0.0,
        queued_octets: 0,
        trains: alike.len(),
    })
}

/// The trains that left and began at this rate or more, and at which one they began. Where others
/// have emptied the bucket before long trains came, short ones show that it was full at times.
fn began_fast(courses: &[Course], least: f64) -> Vec<(&Course, f64)> {
    let began = |course: &Course| course.later.map_or(course.rate_bps, |later| later.began_bps);
    let left_fast = courses.iter().filter(|course| course.departure_bps >= least);
    left_fast.map(|course| (course, began(course))).filter(|(_, began)| *began >= least).collect()
}

// Ours, all of them.
/// Trains that must agree, and that must have begun faster: one may have met the end of a burst.
const ALIKE: usize = 2;
/// Half, and some for what both rates are off by.
const BELOW_HALF: f64 = 0.48;
/// How near: a packet of a quarter of eighty.
const NEAR: f64 = 0.0125;
/// Times the rate at which they went on: as much as a bucket must change.
const FASTER: f64 = 1.15;
