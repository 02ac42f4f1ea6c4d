//! Receivers that hand packets over in batches (host and timing: interrupt moderation, NAPI, GRO).

use std::time::Duration;

use narrows_units::{BitRate, Stamp};

use super::{Faults, measure, sound, subjects};
use narrows_probe::probes::{Fate, TrainReport};
use narrows_probe::testing::fluid_path::{Fault, Fluid};

/// Packets wait for an interrupt that comes `timer` after the first of them, or with the last of
/// `frames`; the host then stamps them one after the other.
pub(super) fn moderate(report: &mut TrainReport, timer: Duration, frames: usize, step_ns: i64) {
    let timer_ns = i64::try_from(timer.as_nanos()).unwrap();
    let mut rows: Vec<_> = report
        .arrivals
        .iter_mut()
        .filter_map(|row| match row.fate {
            Fate::Received(at) => Some((at.nanos(), row)),
            _ => None,
        })
        .collect();
    rows.sort_by_key(|(at, _)| *at);
    let (mut from, mut free) = (0, i64::MIN);
    while from < rows.len() {
        let first = rows[from].0;
        let together = rows[from..].iter().take(frames).take_while(|(at, _)| *at <= first + timer_ns).count();
        let fires = if together == frames { rows[from + together - 1].0 } else { first + timer_ns };
        let mut at = fires.max(free);
        for (_, row) in &mut rows[from..from + together] {
            row.fate = Fate::Received(Stamp::from_nanos(at));
            at += step_ns;
        }
        free = at;
        from += together;
    }
}

/// The host stamps packets of a batch three times as fast as the link brings them, and 300 ns apart
/// at most: a host that could not keep up would be what is measured.
fn fault(timer_us: u64, frames: usize, capacity: BitRate) -> Fault {
    let packet = capacity.time_for(1500).unwrap_or_default();
    let step_ns = i64::try_from(packet.as_nanos() / 3).unwrap().min(300);
    Box::new(move |report| moderate(report, Duration::from_micros(timer_us), frames, step_ns))
}

/// A batch of four takes what it is said to take.
#[test]
fn batches_by_hand() {
    let mut world = Fluid::new(BitRate::from_mbps(1000), BitRate::ZERO);
    let train =
        narrows_probe::probes::Train::uniform(narrows_probe::probes::TrainId(0), 6, 1500, Duration::from_micros(20));
    let mut report = world.report(&train);
    let first = report.received().next().unwrap().1;
    moderate(&mut report, Duration::from_micros(50), 64, 300);
    let at: Vec<i64> = report.received().map(|(_, at)| (at - first).nanos()).collect();
    // Three within 50 us of the first, handed over then; the next three likewise.
    assert_eq!(at, [50_000, 50_300, 50_600, 110_000, 110_300, 110_600]);
    let mut report = world.report(&train);
    let first = report.received().next().unwrap().1;
    moderate(&mut report, Duration::from_micros(500), 2, 300);
    let at: Vec<i64> = report.received().map(|(_, at)| (at - first).nanos()).collect();
    assert_eq!(at, [20_000, 20_300, 60_000, 60_300, 100_000, 100_300]);
}

/// 20 to 200 us, 16 to 128 frames, 1 to 100 Gbit/s: right, or a bound, or no answer.
#[test]
fn batches_make_no_method_lie() {
    let mut faults = Faults::default();
    for (method, law) in subjects() {
        for gbps in [1, 10, 25, 100] {
            for timer_us in [20, 50, 100, 200] {
                for frames in [16, 64, 128] {
                    let capacity = BitRate::from_gbps(gbps);
                    let cross = BitRate::from_mbps(400 * gbps);
                    let mut world = Fluid::new(capacity, cross);
                    world.fault = Some(fault(timer_us, frames, capacity));
                    // A card no faster than the link, as it would be.
                    world.sender_rate = Some(capacity);
                    world.facts.sender.max_send_rate = world.sender_rate;
                    let outcome = measure(method, law, &mut world);
                    let case = format!("{capacity} {timer_us} us {frames} frames");
                    let truth = (capacity.bps() - cross.bps()) as f64;
                    if !law.blind.contains(&"batching") {
                        faults.note(law.method, &case, sound(&outcome, truth, capacity.as_f64()));
                    }
                }
            }
        }
    }
    faults.none();
}
