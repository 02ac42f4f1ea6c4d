//! Capacity behind a queue that others keep full (ours).
//!
//! Half of a train that leaves at once finds no place in such a queue, so that hardly one comes
//! whole, and no pair passes without a wait. But the link behind it never rests: what leaves it
//! leaves back to back. Two neighbours that both found a place arrive one packet's time apart, or
//! further by whole packets of others. The shortest distance that very many of them keep is the
//! link's time for a packet.
//!
//! That link is the narrow one if what was lost took no time there: the packets on both sides of a
//! loss arrive closer than if the lost ones had come between them. Behind the narrow link they
//! would keep the place of the lost ones free.

use narrows_stat::{mad, median};

use super::gaps::densest;
use super::session::{MethodRun, Pooled};

/// The narrow link's wire rate, where the path loses so much that others must keep its queue full,
/// and very many neighbours keep one distance.
pub(super) fn narrow(session: &MethodRun) -> Option<Pooled> {
    if !session.neighbours.is_of_full_queue() {
        return None;
    }
    let mut all = session.neighbours.distances.clone();
    all.sort_by(f64::total_cmp);
    let alike = densest(&all, WINDOW);
    let centre = median(alike)?;
    // Stamps scatter around a packet's time; what another link squeezed together lies below it.
    let shorter = all.iter().filter(|gap| **gap < centre * (2.0 - WINDOW)).count() as f64;
    let (count, whole) = (alike.len() as f64, all.len() as f64);
    let closer = session.neighbours.around_losses.iter().filter(|apart| **apart < CLOSER * centre).count();
    let lost_before = closer >= LEAST_CLOSER && closer as f64 >= MOST * session.neighbours.around_losses.len() as f64;
    if !lost_before || alike.len() < LEAST_ALIKE || count < SHARE * whole || shorter > SHORTER * whole {
        return None;
    }
    let half = (NORMAL * SPREAD * mad(alike)? / count.sqrt()).max(RESOLUTION * centre);
    Some(Pooled { rate: 8e9 / centre, low: 8e9 / (centre + half), high: 8e9 / (centre - half), explained: true })
}

// Ours, all of them.
/// Distances are alike within this ratio from end to end.
const WINDOW: f64 = 1.05;
const LEAST_ALIKE: usize = 16;
/// Of all distances so many are alike: with a packet of others between any two of ours, they would
/// spread over many. Those that are shorter are fewer than this.
const SHARE: f64 = 0.3;
const SHORTER: f64 = 0.25;
/// A step around a loss is closer than this share of a packet's time, where the lost one took none
/// of it; most are, and not by chance.
const CLOSER: f64 = 0.9;
const MOST: f64 = 0.6;
const LEAST_CLOSER: usize = 3;
/// Of nine tenths; and a standard deviation in median deviations.
const NORMAL: f64 = 1.645;
const SPREAD: f64 = 1.483;
/// Framing, clock rate, and stamps that a busy receiver takes late (five of nine runs beside real
/// transfers were right to 0.2 %, all to 0.4).
const RESOLUTION: f64 = 0.005;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_probe::probes::{Arrival, Fate, PacingCheck, TrainId, TrainReport};
    use narrows_probe::{PathFacts, StampSource};
    use narrows_units::{Framing, Stamp};

    use super::super::params::Params;
    use super::*;

    /// A train that left in steps of 12 us. Its packets came so many microseconds after the first,
    /// or not at all.
    fn train(came_us: &[Option<i64>]) -> TrainReport {
        let arrivals = (0u32..).zip(came_us).map(|(seq, at)| Arrival {
            seq,
            departed: Stamp::from_nanos(12_000 * i64::from(seq)),
            ip_octets: 1500,
            fate: at.map_or(Fate::Lost, |at| Fate::Received(Stamp::from_nanos(30_000_000 + 1000 * at))),
        });
        TrainReport {
            id: TrainId(0),
            arrivals: arrivals.collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Kernel,
            arrived_by: StampSource::Kernel,
            pacing: PacingCheck::Kept,
        }
    }

    /// What ten of them say, Mbit/s on the wire.
    fn found(came_us: &[Option<i64>]) -> Option<f64> {
        let facts = PathFacts::ideal(1500, Duration::from_millis(60));
        let mut session = MethodRun::new(facts, Params::default());
        for _ in 0..10 {
            session.neighbours.push(1500, Framing::ETHERNET, &train(came_us));
        }
        narrow(&session).map(|found| found.rate / 1e6)
    }

    #[test]
    fn neighbours_in_a_full_queue_tell_the_link() {
        let alone = found(&[Some(0), Some(123), Some(246), None, None, None, None, Some(369), Some(492)]).unwrap();
        assert!((alone / 100.0 - 1.0).abs() < 0.005, "{alone}");
        let between = found(&[Some(0), Some(123), Some(246), Some(492), None, None, Some(615), Some(738), Some(1107)]);
        assert!((between.unwrap() / 100.0 - 1.0).abs() < 0.005, "{between:?}");
    }

    #[test]
    fn a_full_queue_behind_the_narrow_link_does_not() {
        // 100 Mbit/s in front of 200: two came together behind a burst of others, and the place of
        // those that were lost stays free.
        let behind = found(&[Some(0), Some(61), Some(123), None, None, None, None, Some(861), Some(923)]);
        assert_eq!(behind, None);
    }

    #[test]
    fn a_path_that_loses_little_has_no_full_queue() {
        let all: Vec<Option<i64>> = (0..9).map(|index| Some(123 * index)).collect();
        assert_eq!(found(&all), None);
    }
}
