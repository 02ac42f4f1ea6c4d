//! One row per packet, from what both ends say.

use narrows_probe::StampSource;
use narrows_probe::probes::{Arrival, Fate, HopReply, Train, TrainReport};
use narrows_units::{Sender, Stamp};
use narrows_wire::{ArrivalRow, TrainResult};

use super::super::convert::{pacing, stamp_source};
use super::super::gather::Gathered;
use super::Left;
use crate::pace::Departures;
use crate::receive::Alignment;

/// Rows whose packets are lost unless something is known.
fn rows(train: &Train, stamps_ns: &[i64], fate: impl Fn(usize) -> Option<Fate>) -> Vec<Arrival> {
    let mut last = Stamp::<Sender>::from_nanos(0);
    train
        .packets
        .iter()
        .enumerate()
        .zip(0..)
        .map(|((k, packet), seq)| {
            // A sender that says less than one stamp per packet is believed for what it says.
            last = stamps_ns.get(k).map_or(last, |&stamp| Stamp::from_nanos(stamp));
            Arrival { seq, departed: last, ip_octets: packet.ip_octets, fate: fate(k).unwrap_or(Fate::Lost) }
        })
        .collect()
}

pub(super) fn forward(
    train: &Train,
    departures: &Departures,
    result: &TrainResult,
    arrivals: &[ArrivalRow],
    answers: &[Option<HopReply>],
) -> TrainReport {
    let mut stamps = vec![None; train.packets.len()];
    for row in arrivals {
        if let Some(place) = stamps.get_mut(row.seq as usize) {
            *place = Some(row.stamp_ns);
        }
    }
    let fate = |k: usize| {
        let received = stamps.get(k).copied().flatten().map(|stamp| Fate::Received(Stamp::from_nanos(stamp)));
        received.or_else(|| answers.get(k).copied().flatten().map(Fate::Answered))
    };
    TrainReport {
        id: train.id,
        arrivals: rows(train, &departures.stamps_ns, fate),
        reordered: result.reordered,
        duplicates: result.duplicates,
        local_drops: result.local_drops,
        departed_by: departures.source,
        arrived_by: stamp_source(result.stamps),
        pacing: departures.pacing,
    }
}

pub(super) fn echoed(
    train: &Train,
    departures: &Departures,
    came: &Gathered,
    answers: &[Option<HopReply>],
) -> TrainReport {
    let alignment = Alignment::choose(came.packets.iter().flatten().map(|packet| &packet.seen));
    let fate = |k: usize| {
        let echo = came.packets.get(k).copied().flatten().map(|packet| Fate::Echoed {
            returned: Stamp::from_nanos(alignment.stamp_ns(&packet.seen)),
            turned: packet.turned_ns.map(Stamp::from_nanos),
        });
        echo.or_else(|| answers.get(k).copied().flatten().map(Fate::Answered))
    };
    TrainReport {
        id: train.id,
        arrivals: rows(train, &departures.stamps_ns, fate),
        reordered: came.reordered,
        duplicates: came.duplicates,
        local_drops: came.local_drops,
        departed_by: departures.source,
        arrived_by: alignment.source(),
        pacing: departures.pacing,
    }
}

pub(super) fn reverse(train: &Train, left: &Left, came: &Gathered) -> TrainReport {
    let alignment = Alignment::choose(came.packets.iter().flatten().map(|packet| &packet.seen));
    let mut stamps_ns = vec![0; train.packets.len()];
    for row in &left.rows {
        if let Some(place) = stamps_ns.get_mut(row.seq as usize) {
            *place = row.stamp_ns;
        }
    }
    // A packet that never left is given its predecessor's stamp: rows are in order of departure.
    let mut last = left.rows.iter().map(|row| row.stamp_ns).min().unwrap_or(0);
    for stamp in &mut stamps_ns {
        last = if *stamp == 0 { last } else { *stamp };
        *stamp = last;
    }
    let fate = |k: usize| {
        let packet = came.packets.get(k).copied().flatten()?;
        Some(Fate::Received(Stamp::from_nanos(alignment.stamp_ns(&packet.seen))))
    };
    TrainReport {
        id: train.id,
        arrivals: rows(train, &stamps_ns, fate),
        reordered: came.reordered,
        duplicates: came.duplicates,
        local_drops: came.local_drops,
        departed_by: stamp_source(left.stamps),
        arrived_by: if came.packets.iter().any(Option::is_some) { alignment.source() } else { StampSource::Kernel },
        pacing: pacing(left.pacing),
    }
}

#[cfg(test)]
mod tests;
