//! A bucket that long trains agree on by how they went on, where others' bursts bend them anywhere.

use narrows_units::{BitRate, rounded};

use super::bend::{Course, Later};
use super::{TurningPoint, UNEVEN_DEPTH};

/// The bucket of long trains that went on at one rate, and none faster, though some began faster
/// by half and left so. A FIFO link that others load slows a train from its first packet on, and a
/// burst of others slows each train to another rate.
pub(super) fn agree(courses: &[Course]) -> Option<TurningPoint> {
    let longest = courses.iter().map(|course| course.octets).fold(0.0, f64::max);
    let long: Vec<(&Course, Later)> = courses
        .iter()
        .filter(|course| course.octets * 2.0 >= longest)
        .filter_map(|course| Some((course, course.later?)))
        .collect();
    let mut rates: Vec<f64> = long.iter().map(|(_, later)| later.rate_bps).collect();
    rates.sort_by(|a, b| b.total_cmp(a));
    let rate = narrows_stat::median(rates.get(..ALIKE)?)?;
    let alike = |later: &Later| (later.rate_bps - rate).abs() <= NEAR * rate;
    let went_on: Vec<&(&Course, Later)> = long.iter().filter(|(_, later)| alike(later)).collect();
    let began: Vec<&(&Course, Later)> = long.iter().filter(|(_, later)| later.began_bps >= FASTER * rate).collect();
    let faster = rates.first().is_some_and(|most| *most > (1.0 + NEAR) * rate);
    let steady = went_on.iter().filter(|(_, later)| later.steady).count();
    if faster || went_on.len() < ALIKE || began.len() < BEGAN || steady * 2 <= went_on.len() {
        return None;
    }
    let packet = went_on.iter().map(|(course, _)| course.packet_octets).fold(0.0, f64::max);
    let peak = narrows_stat::median(&began.iter().map(|(_, later)| later.began_bps).collect::<Vec<_>>())?;
    let sent: Vec<f64> = began.iter().map(|(course, _)| course.departure_bps.min(peak)).collect();
    let ours = narrows_stat::median(&went_on.iter().map(|(_, later)| later.ours).collect::<Vec<_>>())?;
    Some(TurningPoint {
        peak: BitRate::from_bps_f64(peak)?,
        sustained: BitRate::from_bps_f64(rate)?,
        sustained_range: (BitRate::from_bps_f64(rate * (1.0 - NEAR))?, BitRate::from_bps_f64(rate * (1.0 + NEAR))?),
        sent: BitRate::from_bps_f64(narrows_stat::median(&sent)?)?,
        depth_octets: rounded(packet),
        depth_range: (0, rounded(packet * (1.0 + UNEVEN_DEPTH))),
        sender_limited: false,
        ours,
        uneven: true,
        steady: true,
        lost_share: 0.0,
        queued_octets: 0,
        trains: went_on.len(),
    })
}

// Ours, all of them.
/// Trains that went on at one rate: three may do so by chance.
const ALIKE: usize = 4;
/// How near: a packet of a quarter of eighty.
const NEAR: f64 = 0.0125;
/// Times the rate at which they went on, and so many of them: one may have met the end of a burst.
const FASTER: f64 = 1.5;
const BEGAN: usize = 2;
