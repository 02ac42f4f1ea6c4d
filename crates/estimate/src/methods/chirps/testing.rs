//! Reports of chirps for tests.

use units::Stamp;

use super::ladder;
use crate::StampSource;
use crate::probe::{Arrival, FarEnd, Fate, PacingCheck, Train, TrainId, TrainReport};

/// A train of full packets at these rates.
pub(in crate::methods) fn train(rates: &[f64]) -> Train {
    Train {
        id: TrainId(1),
        packets: ladder::plan(rates, 1, 1500, 0.0, false),
        far_end: FarEnd::Receiver,
    }
}

/// It left as planned, and packet `k` came `delay(k)` ns late, on a clock far behind.
pub(in crate::methods) fn chirp_report(train: &Train, delay: impl Fn(i64) -> i64) -> TrainReport {
    let mut at = 0i64;
    let rows = (0u32..).zip(&train.packets).map(|(seq, packet)| {
        at += i64::try_from(packet.gap.as_nanos()).unwrap();
        Arrival {
            seq,
            departed: Stamp::from_nanos(at),
            ip_octets: packet.ip_octets,
            fate: Fate::Received(Stamp::from_nanos(at - 7_000_000_000 + delay(i64::from(seq)))),
        }
    });
    TrainReport {
        id: train.id,
        arrivals: rows.collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::Simulated,
        arrived_by: StampSource::Simulated,
        pacing: PacingCheck::Kept,
    }
}

/// Delays of a fluid path, ns: one queue in front of a link of `capacity`, of which `cross` is taken.
pub(in crate::methods) fn fluid(train: &Train, capacity: f64, cross: f64) -> Vec<i64> {
    let mut queue = 0.0f64;
    let mut delays = vec![0];
    for packet in &train.packets[1..] {
        let gap = packet.gap.as_secs_f64() * 1e9;
        let service = f64::from(packet.ip_octets) * 8e9 / capacity;
        queue = (queue + service + cross / capacity * gap - gap).max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "test times are short")]
        delays.push(queue.round() as i64);
    }
    delays
}
