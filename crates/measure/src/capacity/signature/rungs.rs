//! The rates of pushed trains by their length: b(N).

use std::collections::BTreeMap;

use super::cause::Rung;
use super::trains::{Kind, TrainLog, rate};

/// Of the largest packets that were sent in pushed trains of one size, shortest first. Trains that
/// lost packets count only if most of them came: what a link sends under load has the same rate,
/// whatever its queue dropped.
pub(super) fn rungs(trains: &[TrainLog]) -> Vec<Rung> {
    let Some(largest) = full_size(trains) else {
        return Vec::new();
    };
    let mut by_length: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for train in pushed(trains).filter(|train| train.ip_octets == largest) {
        if let Some(bps) = train.rate_bps(0, train.came.len() - 1) {
            by_length.entry(train.sent).or_default().push(bps);
        }
    }
    by_length
        .into_iter()
        .map(|(packets, mut rates)| {
            rates.sort_by(f64::total_cmp);
            Rung {
                packets: u32::try_from(packets).unwrap_or(u32::MAX),
                trains: u32::try_from(rates.len()).unwrap_or(u32::MAX),
                low: rate(rates[0]),
                median: rate(rates[(rates.len() - 1) / 2]),
                high: rate(rates[rates.len() - 1]),
            }
        })
        .collect()
}

/// The largest packets of pushed trains of one size.
pub(super) fn full_size(trains: &[TrainLog]) -> Option<u16> {
    pushed(trains).map(|train| train.ip_octets).max()
}

fn pushed(trains: &[TrainLog]) -> impl Iterator<Item = &TrainLog> {
    trains.iter().filter(|train| train.uniform && train.kind == Kind::Pushed && 2 * train.came.len() > train.sent)
}
