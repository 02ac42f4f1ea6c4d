//! A year of twenty targets, written as `narrows watch` writes.

use std::path::Path;

use narrows_store::records::{Basis, Event, PulseMinute, Sample};
use narrows_store::{Options, Store, Writer};
use narrows_watch::schedule::TargetId;
use narrows_watch::{Claim, Signal, WallTime};

use crate::{Failure, clock, say};

pub(crate) const TARGETS: u32 = 20;
pub(crate) const SIGNALS: [Signal; 4] =
    [Signal::AvailableForward, Signal::AvailableReverse, Signal::Capacity, Signal::Queueing];
pub(crate) const DAY: i64 = 86_400_000;
const MINUTE: i64 = 60_000;
/// Days of which a year has so many.
const YEAR: i64 = 365;
/// Days of which each round trip is kept.
const PULSES: i64 = 7;
const EVENTS: i64 = 2000;
/// Tuesday 24 November 2026, 20:24 UTC.
const NOW_MS: i64 = 1_795_551_840_000;

pub(crate) fn now() -> WallTime {
    WallTime::from_millis(NOW_MS)
}

/// Nine tenths of the rows are a value each minute, up to now; the rest is spread over the year
/// before.
pub(crate) fn fill(file: &Path, rows: u64) -> Result<(), Failure> {
    let series = i64::from(TARGETS) * i64::try_from(SIGNALS.len())?;
    let rows = i64::try_from(rows)?;
    let dense = (rows * 9 / 10 / (series * 1440)).clamp(1, 89);
    let a_day = (rows / 10 / (series * YEAR)).clamp(1, 48);
    let began = clock();
    let store = Store::open(file, Options::new(now()))?;
    let writer = store.writer();
    let mut written = 0u64;
    for n in 1..=TARGETS {
        let target = writer.target(
            &format!("t{n}"),
            &format!("t{n}.example"),
            None,
            WallTime::from_millis(NOW_MS - YEAR * DAY),
        )?;
        for day in 0..YEAR {
            let step = if day >= YEAR - dense { MINUTE } else { DAY / a_day };
            let midnight = NOW_MS - (YEAR - day) * DAY;
            written += samples(&writer, target, midnight, step);
            written += pulses(&writer, target, midnight, if day >= YEAR - PULSES { MINUTE } else { 60 * MINUTE });
            writer.flush()?;
        }
    }
    let took = began.elapsed();
    for n in 0..EVENTS {
        writer.event(&mut event(n))?;
    }
    say(
        "rows written",
        "",
        &format!("{written} in {:.0} s, {:.0} a second", took.as_secs_f64(), written as f64 / took.as_secs_f64()),
    );
    let began = clock();
    writer.maintain(now()).recv()?;
    say("roll-ups of the year, and deletion", "", &format!("{:.0} s", began.elapsed().as_secs_f64()));
    let health = writer.health();
    assert_eq!((health.dropped_rows, health.degraded), (0, None), "the store took all of it");
    drop(store);
    let began = clock();
    drop(Store::open(file, Options::new(now()))?);
    let size = std::fs::metadata(file)?.len() as f64 / 1e6;
    say(
        "a store opened and closed",
        "first pulse within 300 ms of the start, with 1 GB",
        &format!("{:.0} ms, with {size:.0} MB", began.elapsed().as_secs_f64() * 1e3),
    );
    Ok(())
}

/// Between 0 and 1, always the same for the same numbers.
fn noise(of: i64) -> f64 {
    let mut mixed = of.unsigned_abs();
    for _ in 0..2 {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

fn samples(writer: &Writer, target: TargetId, midnight: i64, step: i64) -> u64 {
    let mut count = 0;
    for (n, signal) in (0..).zip(SIGNALS) {
        let middle = if signal == Signal::Queueing { 5e6 } else { 6e7 };
        for at in (midnight..midnight + DAY).step_by(usize::try_from(step).unwrap_or(1)) {
            let value = middle * (0.8 + 0.4 * noise(at + n));
            let sample = Sample {
                at: WallTime::from_millis(at),
                value: Some(value),
                low: Some(value * 0.9),
                high: Some(value * 1.1),
                claim: Claim::Estimate,
                loaded: false,
                host_busy: false,
                run: None,
            };
            writer.sample(target, signal, Basis::Server, sample);
            count += 1;
        }
    }
    count
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "round trips of some ms")]
fn pulses(writer: &Writer, target: TargetId, midnight: i64, step: i64) -> u64 {
    let mut count = 0;
    for at in (midnight..midnight + DAY).step_by(usize::try_from(step).unwrap_or(1)) {
        let at = at / MINUTE * MINUTE;
        let trip = |n: i64| (18e6 * (1.0 + 0.4 * noise(at + n).powi(4))) as u64;
        writer.pulses(
            target,
            PulseMinute {
                minute: WallTime::from_millis(at),
                sent: 60,
                lost: 1,
                loaded: false,
                round_trips_ns: (0..59).map(trip).collect(),
            },
        );
        count += 1;
    }
    count
}

fn event(n: i64) -> Event {
    let at = WallTime::from_millis(NOW_MS - YEAR * DAY + n * (YEAR * DAY / EVENTS));
    Event {
        id: 0,
        target: Some(TargetId::new(1 + u32::try_from(n).unwrap_or_default() % TARGETS)),
        kind: "change".to_owned(),
        signal: Some(Signal::AvailableForward),
        at,
        at_low: at,
        at_high: at,
        found: at,
        before: Some("61 Mbit/s".to_owned()),
        after: Some("22 Mbit/s".to_owned()),
        cause: Some("cross traffic in the queue at hop 4".to_owned()),
        text: "available 22 Mbit/s (19 to 25), usual Tue 20:00: 61".to_owned(),
        evidence: None,
        incident: None,
    }
}
