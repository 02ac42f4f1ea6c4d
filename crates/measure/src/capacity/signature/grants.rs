//! Slots: arrivals that keep a clock which departures do not.

use super::trains::{Kind, TrainLog, quantile};

/// Length of the resultant of the times' phases within `period_ns` (Rayleigh's statistic over its
/// count): 1 where all have one phase, near `1/sqrt(n)` where phases are even.
pub(super) fn resultant(times_ns: &[f64], period_ns: f64) -> f64 {
    let (mut cosines, mut sines) = (0.0, 0.0);
    for time in times_ns {
        let phase = (time / period_ns).fract() * std::f64::consts::TAU;
        cosines += phase.cos();
        sines += phase.sin();
    }
    (cosines * cosines + sines * sines).sqrt() / (times_ns.len() as f64).max(1.0)
}

/// The longest slot whose phase single packets keep when they arrive but did not keep when they
/// left. `others_ns` are candidates beside those of the standards. `None` if there is no such slot,
/// too few single packets, or if stamps are too coarse to tell.
pub(super) fn slot_ns(trains: &[TrainLog], others_ns: &[f64], noise_ns: f64) -> Option<f64> {
    let mut candidates: Vec<f64> = SLOTS_NS.to_vec();
    for period in others_ns {
        candidates.extend([1.0, 2.0, 3.0, 4.0].map(|part| period / part));
    }
    candidates.retain(|slot| *slot > (10.0 * noise_ns).max(SHORTEST_NS));
    candidates.sort_by(f64::total_cmp);
    candidates.into_iter().rev().find(|slot| keeps(trains, *slot))
}

fn keeps(trains: &[TrainLog], slot_ns: f64) -> bool {
    let (mut count, mut came, mut left) = (0, 0.0, 0.0);
    for train in sparse(trains) {
        let arrivals: Vec<f64> = train.came.iter().map(|packet| packet.at_ns).collect();
        let departures: Vec<f64> = train.came.iter().map(|packet| packet.left_ns).collect();
        let weight = arrivals.len() as f64;
        count += arrivals.len();
        came += weight * resultant(&arrivals, slot_ns);
        left += weight * resultant(&departures, slot_ns);
    }
    let all = count as f64;
    count >= LEAST && came >= ONE_PHASE * all && left <= MANY_PHASES * all
}

/// How far apart the delays of single packets lie, 10th to 90th percentile; `None` without enough
/// of them.
pub(super) fn spread_ns(trains: &[TrainLog]) -> Option<f64> {
    let delays: Vec<f64> = sparse(trains).flat_map(|train| train.came.iter().map(|packet| packet.delay_ns)).collect();
    if delays.len() < LEAST {
        return None;
    }
    Some(quantile(&delays, 0.9)? - quantile(&delays, 0.1)?)
}

fn sparse(trains: &[TrainLog]) -> impl Iterator<Item = &TrainLog> {
    trains.iter().filter(|train| train.kind == Kind::Sparse)
}

/// Transmission time intervals of LTE (1 ms) and NR (down to 125 us), maps of DOCSIS (about 2 ms),
/// cycles of GPON (multiples of 125 us), frames of LTE (10 ms) and of IEEE 802.16 (5 ms)
/// (`capacity` §11.2).
const SLOTS_NS: [f64; 9] = [125e3, 250e3, 500e3, 1e6, 2e6, 2.5e6, 4e6, 5e6, 10e6];
/// Shorter slots are as short as host noise (ours).
const SHORTEST_NS: f64 = 20e3;
/// Single packets below which phases prove nothing: at twelve and a resultant of 0.9 the chance is
/// `exp(-12 * 0.81)`, 1 in 16 000.
const LEAST: usize = 12;
const ONE_PHASE: f64 = 0.9;
/// Departures up to this resultant were spread over the slot (ours).
const MANY_PHASES: f64 = 0.6;
