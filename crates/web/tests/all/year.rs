//! A year of three targets, made from their clocks alone: the same question has the same answer.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "made-up numbers that are small"
)]

use std::collections::BTreeMap;

use narrows_store::records::{AlertState, Basis, Event, Incident, PathSeen, Point, Run, RunOutcome, Target};
use narrows_watch::schedule::{JobKind, TargetId, Why};
use narrows_watch::{Claim, Signal, WallTime};
use narrows_web::{Heatmap, Source, SourceError, Span};
use uuid::Uuid;

/// Tuesday 24 November 2026, 20:24 UTC.
pub(crate) const NOW_MS: i64 = 1_795_551_840_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The queue that is not over.
const QUEUE_MS: i64 = NOW_MS - 42 * MINUTE;
/// Another route, and a faster line.
const ROUTE_MS: i64 = NOW_MS - 30 * DAY;
const LINE_MS: i64 = NOW_MS - 120 * DAY;
/// This host slept.
const SLEPT: (i64, i64) = (NOW_MS - 3 * DAY, NOW_MS - 3 * DAY + 6 * HOUR);
const ALONE: (i64, i64) = (NOW_MS - 9 * HOUR, NOW_MS - 7 * HOUR);
/// Since when `far` has no server.
const GONE_MS: i64 = NOW_MS - 5 * HOUR;

/// The clock of the year.
pub(crate) fn now() -> WallTime {
    WallTime::from_millis(NOW_MS)
}

/// What a store of a year would answer.
#[derive(Debug, Default)]
pub(crate) struct Year;

pub(crate) const OFFICE: TargetId = TargetId::new(1);
pub(crate) const LAB: TargetId = TargetId::new(2);
pub(crate) const FAR: TargetId = TargetId::new(3);

/// Between 0 and 1, always the same for the same numbers.
fn noise(seed: u32, at: i64) -> f64 {
    let mut mixed = (at / MINUTE) as u64 ^ (u64::from(seed) << 40);
    for _ in 0..2 {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// How busy the day is, between 0 and 1.
fn busy(at: i64) -> f64 {
    let hour = (at.rem_euclid(DAY)) as f64 / HOUR as f64;
    let weekend = matches!((at.div_euclid(DAY) + 3).rem_euclid(7), 5 | 6);
    let swing = ((hour - 20.0) / 24.0 * std::f64::consts::TAU).cos() * 0.5 + 0.5;
    swing * if weekend { 0.6 } else { 1.0 }
}

fn capacity(target: TargetId, at: i64) -> f64 {
    match target {
        OFFICE if at < LINE_MS => 48.7e6,
        OFFICE => 97.5e6,
        LAB => 957e6,
        _ => 31e6,
    }
}

/// Value, half of its interval, claim; none while nothing was measured.
fn value(target: TargetId, signal: Signal, at: i64) -> Option<(f64, f64, Claim)> {
    let seed = target.number() * 10 + signal as u32;
    let random = noise(seed, at);
    let gone = target == FAR && at >= GONE_MS;
    if (SLEPT.0..SLEPT.1).contains(&at) || at > NOW_MS || (gone && signal <= Signal::Capacity) {
        return None;
    }
    let queue = target == OFFICE && at >= QUEUE_MS;
    let whole = capacity(target, at);
    let least = match target {
        OFFICE if at < ROUTE_MS => 11.8e6,
        OFFICE => 17.9e6,
        LAB => 0.42e6,
        _ => 86e6,
    };
    Some(match signal {
        Signal::AvailableForward | Signal::AvailableReverse => {
            let load = if queue { 0.76 } else { 0.12 + 0.3 * busy(at) + 0.08 * random };
            let claim = match target {
                LAB => Claim::AtLeast,
                _ if noise(seed + 7, at) > 0.985 => Claim::Inconclusive,
                _ => Claim::Estimate,
            };
            let load = if target == LAB { 0.015 + 0.02 * random } else { load };
            (whole * (1.0 - load), whole * (0.03 + 0.03 * random), claim)
        }
        Signal::Capacity => (whole * (1.0 + 0.002 * (random - 0.5)), whole * 0.003, Claim::Estimate),
        Signal::LeastRoundTrip => (least * (1.0 + 0.01 * random), least * 0.01, Claim::Estimate),
        Signal::Queueing => {
            let most = if queue { 44e6 } else { least * (0.05 + 0.3 * busy(at)) };
            (most * (0.7 + 0.3 * random), most * 0.1, Claim::Estimate)
        }
        Signal::Loss => (if random > 0.93 { 16_667.0 } else { 0.0 }, 0.0, Claim::Estimate),
    })
}

fn point(target: TargetId, signal: Signal, at: i64, step: i64) -> Option<Point> {
    // Few values stand for many, which is all that a picture needs.
    let each = (step / 4).max(MINUTE);
    let found: Vec<_> = (0..(step / each).max(1)).filter_map(|n| value(target, signal, at + n * each)).collect();
    let known: Vec<_> = found.iter().filter(|(_, _, claim)| *claim != Claim::Inconclusive).collect();
    let claim = known.first().map_or(Claim::Inconclusive, |(_, _, claim)| *claim);
    if found.is_empty() {
        return None;
    }
    let mean = |of: fn(&(f64, f64, Claim)) -> f64| {
        (!known.is_empty()).then(|| known.iter().map(|found| of(found)).sum::<f64>() / known.len() as f64)
    };
    Some(Point {
        at: WallTime::from_millis(at),
        value: mean(|(value, _, _)| *value),
        low: mean(|(value, half, _)| value - half),
        high: if claim == Claim::AtLeast { None } else { mean(|(value, half, _)| value + half) },
        min: known.iter().map(|(value, _, _)| *value).reduce(f64::min),
        max: known.iter().map(|(value, _, _)| *value).reduce(f64::max),
        count: u32::try_from(step / MINUTE).unwrap_or(1),
        claim,
        basis: Some(basis(target, signal, at)),
    })
}

/// For two hours the capacity of `office` was measured without its server.
fn basis(target: TargetId, signal: Signal, at: i64) -> Basis {
    let alone = target == OFFICE && signal == Signal::Capacity && (ALONE.0..ALONE.1).contains(&at);
    if signal <= Signal::Capacity && !alone { Basis::Server } else { Basis::Single }
}

fn steps(span: Span, columns: usize) -> impl Iterator<Item = (i64, i64)> {
    let (since, until) = (span.since.millis().max(NOW_MS - 365 * DAY), span.until.millis().min(NOW_MS));
    let step = ((until - since).max(1) / columns as i64 + MINUTE - 1).max(MINUTE) / MINUTE * MINUTE;
    let first = since.div_euclid(step) * step;
    (0..)
        .map(move |n| (first + n * step, step))
        .skip_while(move |(at, _)| *at < since)
        .take_while(move |(at, _)| *at < until)
        .take(columns)
}

fn target(id: TargetId, name: &str, host: &str) -> Target {
    let added = WallTime::from_millis(NOW_MS - 365 * DAY);
    Target { id, name: name.to_owned(), host: host.to_owned(), port: None, added, retired: None }
}

/// The number of the run of a target that began at a time.
fn run_id(target: TargetId, kind: JobKind, at: i64) -> Uuid {
    let parts = (at as u128) << 80 | 0x7 << 76 | 0x8 << 60 | u128::from(target.number()) << 8 | kind as u128;
    Uuid::from_u128(parts)
}

/// A measurement's document, as the program writes it.
const REPORT: &str = include_str!("../../../../apps/narrows/tests/documents/report-1.json");

fn run(target: TargetId, kind: JobKind, at: i64, document: bool) -> Run {
    let (took, octets) = match kind {
        JobKind::Route => (3100, 6_930),
        JobKind::Test => (31_400, 71_200_000),
        _ => (2800, 243_800),
    };
    let busy = kind == JobKind::Slice && noise(5, at) > 0.98;
    Run {
        id: run_id(target, kind, at),
        target,
        kind,
        why: match kind {
            JobKind::Route => Why::Base,
            JobKind::Test => Why::Night,
            _ => Why::Cadence,
        },
        began: WallTime::from_millis(at),
        ended: Some(WallTime::from_millis(at + took)),
        outcome: if busy {
            RunOutcome::ServerBusy
        } else if noise(4, at) > 0.97 {
            RunOutcome::Void
        } else {
            RunOutcome::Done
        },
        reason: busy.then(|| "no slot within 5 s".to_owned()),
        octets: Some(if busy { 0 } else { octets }),
        document: (document && !busy).then(|| serde_json::from_str(REPORT).expect("the report is JSON")),
    }
}

fn event(id: i64, target: Option<TargetId>, kind: &str, at: i64, text: &str) -> Event {
    let of = WallTime::from_millis;
    Event {
        id,
        target,
        kind: kind.to_owned(),
        signal: None,
        at: of(at),
        at_low: of(at),
        at_high: of(at),
        found: of(at + 3 * MINUTE),
        before: None,
        after: None,
        cause: None,
        text: text.to_owned(),
        evidence: None,
        incident: None,
    }
}

fn all_events() -> Vec<Event> {
    let queue = Event {
        signal: Some(Signal::AvailableForward),
        at_low: WallTime::from_millis(QUEUE_MS - 40_000),
        at_high: WallTime::from_millis(QUEUE_MS + 40_000),
        before: Some("61 Mbit/s".to_owned()),
        after: Some("22 Mbit/s".to_owned()),
        cause: Some("cross traffic in the queue at one of hops 4 to 5; route and capacity unchanged".to_owned()),
        evidence: Some(serde_json::json!({ "kind": "queueing_rose", "hop": 4, "queueing_ns": 44_000_000 })),
        incident: Some(Uuid::from_u128(7)),
        ..event(9, Some(OFFICE), "change", QUEUE_MS, "office: available 22 Mbit/s (19 to 25), usual Tue 20:00: 61")
    };
    let gone = event(8, Some(FAR), "server_gone", GONE_MS, "far: narrows serve does not answer; round trips go on");
    let slept = event(7, None, "woke", SLEPT.1, "this host slept for 6 h; nothing was measured");
    let route = Event {
        before: Some("7 hops".to_owned()),
        after: Some("8 hops, from hop 3 on".to_owned()),
        ..event(6, Some(OFFICE), "route", ROUTE_MS, "office: the route changed at hop 3; round trip 11.8 to 17.9 ms")
    };
    let line = event(5, Some(OFFICE), "change", LINE_MS, "office: capacity 48.7 to 97.5 Mbit/s; route unchanged");
    vec![queue, gone, slept, route, line]
}

fn path(at: i64, hops: &[&str], least_ns: &[u64]) -> PathSeen {
    PathSeen {
        at: WallTime::from_millis(at),
        address: Some("198.51.100.7".to_owned()),
        source: Some("192.0.2.10".to_owned()),
        interface: Some("eth0".to_owned()),
        next_hop: Some("192.0.2.1".to_owned()),
        mtu: Some(1500),
        hops: hops.iter().map(|of| of.split('|').filter(|of| !of.is_empty()).map(str::to_owned).collect()).collect(),
        hop_round_trips_ns: least_ns.iter().map(|ns| (*ns > 0).then_some(*ns)).collect(),
    }
}

fn inside(at: WallTime, span: Span) -> bool {
    span.since <= at && at < span.until
}

impl Source for Year {
    fn targets(&self) -> Result<Vec<Target>, SourceError> {
        Ok(vec![
            target(OFFICE, "office", "office.example"),
            target(LAB, "lab", "lab.example"),
            target(FAR, "far", "far.example"),
        ])
    }

    fn newest(&self, target: TargetId) -> Result<BTreeMap<Signal, Point>, SourceError> {
        let last = |signal| {
            let times = (0..600).map(|n| NOW_MS - n * MINUTE);
            times.into_iter().find_map(|at| point(target, signal, at, MINUTE).filter(|point| point.value.is_some()))
        };
        Ok(Signal::ALL.into_iter().filter_map(|signal| Some((signal, last(signal)?))).collect())
    }

    fn series(&self, target: TargetId, signal: Signal, span: Span, points: usize) -> Result<Vec<Point>, SourceError> {
        Ok(steps(span, points).filter_map(|(at, step)| point(target, signal, at, step)).collect())
    }

    fn heatmap(&self, target: TargetId, span: Span, columns: usize) -> Result<Heatmap, SourceError> {
        let upper_ns: Vec<u64> = (0..56).map(|n| (1e5 * 10f64.powf(f64::from(n) / 16.0)) as u64).collect();
        let mut map = Heatmap { times: Vec::new(), upper_ns, counts: Vec::new(), lost: Vec::new() };
        for (at, step) in steps(span, columns) {
            let least = point(target, Signal::LeastRoundTrip, at, step).and_then(|point| point.value);
            let queueing = point(target, Signal::Queueing, at, step).and_then(|point| point.value);
            let mut counts = vec![0; map.upper_ns.len()];
            if let Some((least, queueing)) = least.zip(queueing) {
                for n in 0..60 {
                    let random = noise(n, at);
                    let nanos = (least + queueing * random * random * 1.2) as u64;
                    let class = map.upper_ns.partition_point(|upper| *upper < nanos).min(counts.len() - 1);
                    counts[class] += u32::try_from(step / MINUTE).unwrap_or(1);
                }
            }
            map.times.push(WallTime::from_millis(at));
            map.counts.push(counts);
            let lost = point(target, Signal::Loss, at, step).and_then(|point| point.value);
            map.lost.push(lost.unwrap_or_default() / 1e6);
        }
        Ok(map)
    }

    fn events(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Event>, SourceError> {
        let ours = |event: &Event| inside(event.at, span) && (target.is_none() || event.target == target);
        Ok(all_events().into_iter().filter(ours).take(limit).collect())
    }

    fn incidents(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Incident>, SourceError> {
        let of = WallTime::from_millis;
        let incident = |id, began, ended: Option<i64>, cause: &str, text: &str| Incident {
            id: Uuid::from_u128(id),
            target: OFFICE,
            began: of(began),
            ended: ended.map(of),
            cause: Some(cause.to_owned()),
            hops: (id == 7).then_some((4, 5)),
            text: text.to_owned(),
        };
        let queue = "cross traffic in the queue at one of hops 4 to 5; route and capacity unchanged";
        let all = vec![
            incident(7, QUEUE_MS, None, queue, "available 22 Mbit/s (19 to 25), usual Tue 20:00: 61"),
            incident(6, ROUTE_MS, Some(ROUTE_MS + HOUR), "the route changed at hop 3", "round trip 11.8 to 17.9 ms"),
        ];
        let ours = |one: &Incident| inside(one.began, span) && target.is_none_or(|target| one.target == target);
        Ok(all.into_iter().filter(ours).take(limit).collect())
    }

    fn runs(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Run>, SourceError> {
        let last = span.until.millis().min(NOW_MS) / MINUTE * MINUTE;
        let times = (0..).map(|n| last - n * MINUTE).take_while(|at| *at >= span.since.millis());
        let of = |at: i64| {
            let targets = [OFFICE, LAB, FAR].into_iter().filter(move |id| target.is_none_or(|wanted| wanted == *id));
            let kind = match at / MINUTE {
                minute if minute % 1440 == 180 => JobKind::Test,
                minute if minute % 5 == 0 => JobKind::Route,
                _ => JobKind::Slice,
            };
            targets
                .filter(move |id| *id != FAR || at < GONE_MS || kind == JobKind::Route)
                .map(move |id| run(id, kind, at, false))
        };
        Ok(times.flat_map(of).take(limit).collect())
    }

    fn run(&self, id: Uuid) -> Result<Run, SourceError> {
        let at = (id.as_u128() >> 80) as i64;
        let target = TargetId::new((id.as_u128() >> 8) as u32 & 0xff);
        let kinds = [JobKind::Route, JobKind::Slice, JobKind::Capacity, JobKind::Hops, JobKind::Test];
        let found = kinds.into_iter().find(|kind| run_id(target, *kind, at) == id);
        Ok(run(target, found.ok_or(SourceError::NotFound)?, at, true))
    }

    fn paths(&self, target: TargetId, span: Span) -> Result<Vec<PathSeen>, SourceError> {
        let old = ["192.0.2.1", "203.0.113.1", "203.0.113.9", "", "203.0.113.40", "198.51.100.1", "198.51.100.7"];
        let new = [
            "192.0.2.1",
            "203.0.113.1",
            "203.0.113.17|203.0.113.18",
            "203.0.113.66",
            "",
            "203.0.113.40",
            "198.51.100.1",
            "198.51.100.7",
        ];
        let old_ns = [400_000, 3_100_000, 4_800_000, 0, 9_200_000, 11_100_000, 11_800_000];
        let new_ns = [400_000, 3_100_000, 6_000_000, 9_700_000, 0, 15_900_000, 17_400_000, 17_900_000];
        let mut all = vec![path(NOW_MS - 365 * DAY, &old, &old_ns)];
        if target == OFFICE {
            all.insert(0, path(ROUTE_MS, &new, &new_ns));
            all.insert(1, PathSeen { mtu: Some(1492), ..path(NOW_MS - 200 * DAY, &old, &old_ns) });
        }
        // What was so when the span began was seen before it.
        let before = all.iter().position(|path| path.at < span.since).map_or(all.len(), |first| first + 1);
        all.truncate(before);
        Ok(all.into_iter().filter(|path| path.at < span.until).collect())
    }

    fn alerts(&self) -> Result<Vec<AlertState>, SourceError> {
        let state = |target, state: &str, detail: Option<&str>| AlertState {
            rule: "uplink-low".to_owned(),
            target,
            state: state.to_owned(),
            since: WallTime::from_millis(QUEUE_MS + 2 * MINUTE),
            detail: detail.map(str::to_owned),
        };
        let why = "available 22 Mbit/s (19 to 25) is below 30 Mbit/s";
        Ok(vec![state(OFFICE, "firing", Some(why)), state(LAB, "ok", None)])
    }
}
