use narrows_stat::SplitMix64;

use super::*;
use crate::time::WallTime;

const fn at(second: i64) -> WallTime {
    WallTime::from_millis(second * 1000)
}

const fn times(low: i64, high: i64) -> Interval {
    Interval { low: at(low), high: at(high) }
}

/// A queue in microseconds, as a pulse finds it.
trait Queue: FnMut(&mut SplitMix64) -> f64 {}
impl<F: FnMut(&mut SplitMix64) -> f64> Queue for F {}

/// An exponential wait with this mean.
fn exponential(mean: f64) -> impl Queue {
    move |random| -mean * (1.0 - random.next_unit()).ln()
}

/// A packet of constant cross traffic at this load is being sent, in this share of cases, for 120
/// us in all.
fn constant(load: f64) -> impl Queue {
    move |random| if random.next_unit() < load { 120.0 * random.next_unit() } else { 0.0 }
}

/// Blocks of ten seconds with eight pulses each, from `from` to `until`.
fn pulses(all: &mut RoundTrips, random: &mut SplitMix64, (from, until): (i64, i64), mut queue: impl Queue) {
    for second in (from..until).step_by(10) {
        let round_trips: Vec<Duration> = (0..8)
            .map(|_| Duration::from_secs_f64(1e-6 * (10_000.0 + 15.0 * random.next_unit() + queue(random))))
            .collect();
        all.take(times(second, second + 10), round_trips);
    }
}

/// How many of `runs` starts say that pulses wait longer, that they do not, and nothing: `before`
/// until second 130, `since` from there to `until`. The change is known to lie between two slices.
fn looks(
    runs: u64,
    until: i64,
    before: impl Fn() -> Box<dyn FnMut(&mut SplitMix64) -> f64>,
    since: impl Fn() -> Box<dyn FnMut(&mut SplitMix64) -> f64>,
) -> [usize; 3] {
    let mut said = [0; 3];
    for seed in 0..runs {
        let (mut all, mut random) = (RoundTrips::default(), SplitMix64::new(seed));
        pulses(&mut all, &mut random, (10, 130), before());
        pulses(&mut all, &mut random, (130, until), since());
        let verdict = all.wait_longer_since(times(120, 140));
        said[match verdict {
            Some(true) => 0,
            Some(false) => 1,
            None => 2,
        }] += 1;
    }
    said
}

fn boxed(queue: impl Queue + 'static) -> Box<dyn FnMut(&mut SplitMix64) -> f64> {
    Box::new(queue)
}

/// Noise with memory over minutes, of half a wait: what is in a block is in the next one, too.
fn slow(seed_mean: f64) -> impl Queue {
    let (mut level, mut count) = (0.0, 0_u32);
    move |random| {
        if count.is_multiple_of(8) {
            level = 0.6 * level + 0.8 * (random.next_unit() + random.next_unit() - 1.0);
        }
        count += 1;
        seed_mean * (1.0 + level).max(0.0) * -(1.0 - random.next_unit()).ln()
    }
}

mod incidents;
mod places;

/// Worked by hand for six blocks with correlations of 0.6 to the power of the distance: the
/// correlations sum up to 2.81 a block, and their squares to 1.833.
#[test]
fn blocks_in_a_row_count_less_than_blocks_that_are_far_apart() {
    let memory = |apart: i64| {
        let mut all = RoundTrips::default();
        for block in 0..6 {
            all.take(times(block * apart, block * apart + 1), [Duration::from_millis(1)]);
        }
        Memory::of(&all.groups.iter().map(|group| vec![group]).collect::<Vec<_>>())
    };
    let (row, apart) = (memory(10), memory(600));
    assert!((row.factor - 4.40).abs() < 0.02 && (row.freedom - 3.50).abs() < 0.02, "{} {}", row.factor, row.freedom);
    assert!((apart.factor - 1.0).abs() < 1e-6 && (apart.freedom - 5.0).abs() < 1e-6);
}

/// Two minutes after a start, eighty seconds after the change: five or six blocks.
#[test]
fn a_queue_is_seen_as_soon_as_the_rate_is() {
    // Random arrivals of 1500 octets at 100 Mbit/s: 15 us at 20 % of load, 140 us at 70 %.
    let random = looks(500, 200, || boxed(exponential(15.0)), || boxed(exponential(140.0)));
    assert!(random[0] >= 495 && random[1] == 0, "{random:?}");
    // Packets at even gaps hardly queue: that nobody waits is never said, and minutes later it is
    // seen.
    let even = looks(500, 200, || boxed(constant(0.2)), || boxed(constant(0.7)));
    assert!(even[1] <= 5, "{even:?}");
    let later = looks(500, 400, || boxed(constant(0.2)), || boxed(constant(0.7)));
    assert!(later[0] >= 440 && later[1] <= 2, "{even:?} {later:?}");
    // On a path whose round trips wander by milliseconds.
    let wide = looks(500, 200, || boxed(exponential(1000.0)), || boxed(exponential(8000.0)));
    assert!(wide[0] >= 470 && wide[1] == 0, "{wide:?}");
}

#[test]
fn noise_is_no_queue() {
    for mean in [15.0, 140.0, 1000.0, 8000.0] {
        for until in [180, 200, 300, 700] {
            let white = looks(2000, until, || boxed(exponential(mean)), || boxed(exponential(mean)));
            assert!(white[0] <= 4, "{mean} us, {until}: {white:?}");
            let memory = looks(2000, until, || boxed(slow(mean)), || boxed(slow(mean)));
            assert!(memory[0] <= 20, "{mean} us, {until}: {memory:?}");
        }
    }
}

/// Six traces before, one a second for 90 s since: a hop whose queue comes in bursts, as seven
/// in ten packets of a busy link make it, and the hop before it, which has none.
#[test]
fn ninety_seconds_of_traces_place_most_queues() {
    let mut placed = [0, 0];
    for seed in 0..500 {
        let (mut near, mut far) = (RoundTrips::default(), RoundTrips::default());
        let mut random = SplitMix64::new(seed);
        let seconds = (0..120).step_by(20).map(|second| (second, false)).chain((200..290).map(|second| (second, true)));
        for (second, is_busy) in seconds {
            let burst = if is_busy && random.next_unit() < 0.4 { 800.0 } else { 0.0 };
            let base = if is_busy { 60.0 } else { 15.0 };
            let mut probes = |mean: f64| -> Vec<Duration> {
                let wait = |_| -mean * (1.0 - random.next_unit()).ln();
                (0..3).map(wait).map(|wait| Duration::from_secs_f64(1e-6 * (40.0 + wait))).collect()
            };
            near.take(times(second, second + 1), probes(15.0));
            far.take(times(second, second + 1), probes(base + burst));
        }
        let change = times(110, 130);
        // Pulses to the end wait as probes to the far hop do.
        let added = far.added_since(change).unwrap();
        placed[0] += usize::from(near.queue_is_here_since(change, &added) == Some(false));
        placed[1] += usize::from(far.queue_is_here_since(change, &added) == Some(true));
    }
    assert!(placed[0] >= 490 && placed[1] >= 450, "{placed:?}");
}

/// That nobody waits longer is said where enough was seen, and nothing before.
#[test]
fn what_cannot_be_told_is_not_said() {
    let quiet = looks(500, 200, || boxed(exponential(15.0)), || boxed(exponential(15.0)));
    assert!(quiet[1] >= 490, "{quiet:?}");
    let few = looks(50, 170, || boxed(exponential(15.0)), || boxed(exponential(140.0)));
    assert_eq!(few, [0, 0, 50], "three blocks since the change");
    let mut all = RoundTrips::default();
    pulses(&mut all, &mut SplitMix64::new(1), (130, 400), constant(0.5));
    assert_eq!(all.wait_longer_since(times(120, 140)), None, "nothing is known from before");
}

/// A way that is longer, without a queue.
#[test]
fn a_longer_path_is_no_queue() {
    let detour = || boxed(|random: &mut SplitMix64| 5000.0 + 15.0 * random.next_unit());
    assert_eq!(looks(200, 200, || boxed(constant(0.0)), detour), [0, 200, 0]);
}

#[test]
fn what_is_without_scatter_differs_if_it_differs() {
    for (queue_us, longer) in [(300, true), (0, false)] {
        let mut all = RoundTrips::default();
        for second in (0..400).step_by(10) {
            let more = if second < 200 { 0 } else { queue_us };
            // All of one side wait alike: that would be the path, so one in four waits for nothing.
            let round_trips = [0, more, more, more].map(|more| Duration::from_micros(10_000 + more));
            all.take(times(second, second + 10), round_trips);
        }
        assert_eq!(all.wait_longer_since(times(200, 210)), Some(longer), "{queue_us} us");
    }
}

#[test]
fn old_probes_go_and_a_clock_that_is_set_changes_nothing() {
    let (mut all, mut random) = (RoundTrips::default(), SplitMix64::new(3));
    pulses(&mut all, &mut random, (0, 20_000), constant(0.2));
    assert!(all.groups.len() <= 901, "{}", all.groups.len());
    pulses(&mut all, &mut random, (20_000, 20_100), exponential(400.0));
    assert_eq!(all.wait_longer_since(times(19_990, 20_000)), Some(true));
    all.clock_stepped(ClockStep { from: at(20_100), to: at(500) });
    assert_eq!(all.wait_longer_since(times(390, 400)), Some(true));
}
