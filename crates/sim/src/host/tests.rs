use std::time::Duration;

use narrows_scenario::{ClockStep, Coalescing, Stalls as StallModel};
use narrows_units::{BitRate, Delta};
use proptest::prelude::*;

use super::*;

fn host(host: &Host) -> HostState {
    HostState::new(host, PathDirection::Forward, 1)
}

#[test]
fn a_clock_lies_by_its_formula() {
    let clock = ClockModel {
        offset: Delta::from_nanos(-7_000_000),
        skew_ppm: 50.0,
        granularity: Duration::from_micros(1),
        steps: vec![ClockStep { at: Duration::from_secs(2), by: Delta::from_nanos(1_500) }],
    };
    // At 1 s: 1 s − 7 ms + 50 µs; at 2 s + 999 ns: 2 s − 7 ms + 100 µs + 1.5 µs + 0.999 µs = …
    // 102.499 µs, floored.
    assert_eq!(clock_reading(&clock, 1_000_000_000), 993_050_000);
    assert_eq!(clock_reading(&clock, 1_999_999_999), 1_993_099_000);
    assert_eq!(clock_reading(&clock, 2_000_000_999), 1_993_102_000);
    let early = ClockModel { granularity: Duration::from_millis(1), ..clock };
    // Readings are floored, not cut: −7 ms + 500 ns is −7 ms, and a nanosecond less is −8 ms.
    assert_eq!(clock_reading(&early, 500), -7_000_000);
    let earlier = ClockModel { offset: Delta::from_nanos(-7_000_001), ..early };
    assert_eq!(clock_reading(&earlier, 0), -8_000_000);
}

proptest! {
    #[test]
    fn waiting_for_a_reading_ends_at_the_first_time_that_shows_it(
        offset in -1_000_000_000i64..1_000_000_000,
        skew_ppm in -500.0..500.0,
        granularity in 1u64..10_000_000,
        step in (0u64..2_000_000_000, -100_000_000i64..100_000_000),
        (from, ahead) in (0u64..1_000_000_000, 0i64..1_000_000_000),
    ) {
        let clock = ClockModel {
            offset: Delta::from_nanos(offset),
            skew_ppm,
            granularity: Duration::from_nanos(granularity),
            steps: vec![ClockStep { at: Duration::from_nanos(step.0), by: Delta::from_nanos(step.1) }],
        };
        let reading = clock_reading(&clock, from) + ahead;
        let at = time_of_reading(&clock, reading, from);
        prop_assert!(clock_reading(&clock, at) >= reading);
        // A tick before (two at the most, for the skew), the clock had not yet shown it.
        let before = at.saturating_sub(granularity + granularity / 1000 + 2);
        prop_assert!(before < from || clock_reading(&clock, before) < reading);
    }
}

#[test]
fn departures_keep_send_cost_and_order() {
    let mut state = host(&Host { send_cost: Duration::from_micros(3), ..Host::default() });
    let cost = state.send_time(1500);
    let times: Vec<u64> = [0, 0, 10_000, 11_000].map(|at| state.departure(at, cost).leaves).to_vec();
    assert_eq!(times, [0, 3000, 10_000, 13_000]);
}

#[test]
fn pacing_jitter_is_uniform_up_to_its_bound() {
    let mut state = host(&Host { pacing_jitter: Duration::from_micros(10), ..Host::default() });
    let late: Vec<u64> = (0..10_000).map(|k| state.paced_departure(k * 100_000, 0).leaves - k * 100_000).collect();
    assert!(late.iter().all(|&ns| ns <= 10_000));
    // Mean 5 µs, standard error 10/√12/100 = 0.029 µs.
    let mean = late.iter().sum::<u64>() as f64 / 1e4;
    assert!((mean - 5000.0).abs() < 4.0 * 29.0, "{mean}");
}

#[test]
fn a_stalled_host_does_nothing() {
    let mut state = host(&Host {
        stalls: Some(StallModel { every: Duration::from_millis(10), lasting: Duration::from_millis(2) }),
        ..Host::default()
    });
    let samples = 1_000_000u64;
    let stalled = (0..samples).filter(|k| state.running(k * 10_000) > k * 10_000).count();
    // A sixth of 10 s, in some 833 stalls: standard error about 0.1667 · 0.833 · sqrt(2/833) =
    // 0.0068.
    let share = stalled as f64 / samples as f64;
    assert!((share - 1.0 / 6.0).abs() < 4.0 * 0.0068, "{share}");
    // Asking for an earlier time again gives the same answer.
    let again = (0..samples).filter(|k| state.running(k * 10_000) > k * 10_000).count();
    assert_eq!(again, stalled);
}

fn read_all(coalescing: Option<Coalescing>, receive_cost: Duration, arrivals: &[u64]) -> Vec<(u64, usize)> {
    let mut state = host(&Host { receive_cost, ..Host::default() });
    let mut intake = Intake::new(coalescing);
    for (id, &at) in arrivals.iter().enumerate() {
        intake.arrive(at, 1500, id, &mut state);
    }
    std::iter::from_fn(|| intake.pop_until(NEVER - 1, &mut state))
        .map(|reading| {
            assert!(!reading.dropped);
            (reading.at, reading.payload)
        })
        .collect()
}

/// A call takes 10 µs, packets come every 5 µs: of 10 000 the buffer's 2048 and every second one of
/// those meanwhile are read.
#[test]
fn a_full_socket_drops() {
    let mut state = host(&Host { receive_cost: Duration::from_micros(10), ..Host::default() });
    let mut intake = Intake::new(None);
    for k in 0..10_000u64 {
        intake.arrive(k * 5_000, 1500, k, &mut state);
    }
    let all: Vec<intake::Reading<u64>> = std::iter::from_fn(|| intake.pop_until(NEVER - 1, &mut state)).collect();
    let dropped = all.iter().filter(|reading| reading.dropped).count();
    assert_eq!(all.len(), 10_000);
    // Packet k finds k − ⌊k/2⌋ waiting or being read: 4095 is the first to find 2048, and then
    // every other one does.
    let first = all.iter().find(|reading| reading.dropped).unwrap();
    assert_eq!((first.payload, dropped), (4095, (10_000 - 4095_usize).div_ceil(2)));
    assert!(all.is_sorted_by_key(|reading| reading.at));
}

#[test]
fn batches_share_a_stamp() {
    let coalescing = Coalescing { timer: Duration::from_micros(50), frames: 3 };
    let arrivals = [0, 10_000, 20_000, 30_000, 60_000, 80_000, 100_000];
    let read = read_all(Some(coalescing), Duration::ZERO, &arrivals);
    // Three frames at 20 µs; the timer of the fourth at 80 µs, which goes before the frame that
    // comes at that time; then its own timer at 130 µs.
    let stamps: Vec<u64> = read.iter().map(|&(at, _)| at).collect();
    assert_eq!(stamps, [20_000, 20_000, 20_000, 80_000, 80_000, 130_000, 130_000]);
    assert!(read.iter().map(|&(_, id)| id).eq(0..7));
}

#[test]
fn receive_calls_come_one_after_the_other() {
    let read = read_all(None, Duration::from_micros(4), &[0, 1000, 20_000]);
    assert_eq!(read, [(4000, 0), (8000, 1), (24_000, 2)]);
}

/// Packets of 1500 octets come every 10 µs. A call takes 2 µs, its copy at 3 Gbit/s 4 µs more, and
/// an interrupt 30 µs. One interrupt for each packet leaves the program nothing: its buffer's 2048
/// are read when all is over. One for each 100 µs leaves it 70 of them, where 60 are enough.
#[test]
fn interrupts_take_the_processor_from_the_program() {
    let dropped = |coalescing: Option<Coalescing>| {
        let mut state = host(&Host {
            receive_cost: Duration::from_micros(2),
            copy_rate: Some(BitRate::from_mbps(3000)),
            interrupt_cost: Duration::from_micros(30),
            ..Host::default()
        });
        let mut intake = Intake::new(coalescing);
        for k in 0..10_000u64 {
            intake.arrive(k * 10_000, 1500, k, &mut state);
        }
        std::iter::from_fn(|| intake.pop_until(NEVER - 1, &mut state)).filter(|reading| reading.dropped).count()
    };
    assert_eq!(dropped(None), 10_000 - 2048);
    assert_eq!(dropped(Some(Coalescing { timer: Duration::from_micros(95), frames: 256 })), 0);
}
