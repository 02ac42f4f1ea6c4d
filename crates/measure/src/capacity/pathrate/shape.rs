//! The signature of a token bucket: trains that begin fast and end slow, all at the same two rates.

use super::sample::{Phase, Sample};
use super::session::MethodRun;

/// The rate at which long trains end, wire bit/s, if they all begin at a clearly higher one.
pub(super) fn sustained(session: &MethodRun) -> Option<f64> {
    let of_phases = || [Phase::Preliminary, Phase::Trains].into_iter().flat_map(|phase| session.of(phase));
    let longest = of_phases().map(Sample::packets).max()?;
    let least = (longest * 3 / 4).max(LEAST_PACKETS);
    let trains: Vec<&Sample> = of_phases().filter(|sample| sample.packets() >= least).collect();
    let ends: Vec<f64> = trains.iter().filter_map(|sample| slow_end(sample)).collect();
    if ends.len() < LEAST_TRAINS || ends.len() * 4 < trains.len() * 3 {
        return None;
    }
    let gap = narrows_stat::median(&ends)?;
    let octets = session.framing().wire_octets(u32::from(session.full_size()));
    (gap > 0.0).then(|| 8e9 * f64::from(octets) / gap)
}

/// Median gap of the last third, if it is regular and well above both of the first two gaps. Cross
/// traffic slows a train anywhere.
fn slow_end(sample: &Sample) -> Option<f64> {
    let third = sample.gaps_ns.len() / 3;
    let first = sample.gaps_ns.get(..2)?.iter().copied().fold(0.0, f64::max);
    let last = sample.gaps_ns.get(sample.gaps_ns.len() - third..)?;
    let end = narrows_stat::median(last)?;
    let regular = narrows_stat::mad(last)? < 0.1 * end;
    (regular && end > TURNING_POINT * first).then_some(end)
}

const LEAST_PACKETS: usize = 8;
const LEAST_TRAINS: usize = 3;
/// Ours: a bucket whose rate is within a third of the link's is hard to tell from cross traffic.
const TURNING_POINT: f64 = 1.5;
