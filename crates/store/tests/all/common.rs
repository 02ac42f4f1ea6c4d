//! A store in a folder of its own, and records for it.

use std::path::PathBuf;

use narrows_store::records::{Event, PulseMinute, Run, RunOutcome, Sample, Span};
use narrows_store::{Options, Store};
use narrows_watch::schedule::{JobKind, TargetId, Why};
use narrows_watch::{Claim, WallTime};
use tempfile::TempDir;
use uuid::Uuid;

/// Monday, 23 November 2026, 00:00 UTC, in ms.
pub(crate) const MONDAY: i64 = 1_795_392_000_000;
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

#[derive(Debug)]
pub(crate) struct Folder(pub(crate) TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("watch.db")
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.path(), Options::new(at(0))).unwrap()
    }

    /// For questions that the store has no method for.
    pub(crate) fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

/// So many ms after Monday.
pub(crate) fn at(millis: i64) -> WallTime {
    WallTime::from_millis(MONDAY + millis)
}

pub(crate) fn span(since: i64, until: i64) -> Span {
    Span { since: at(since), until: at(until) }
}

pub(crate) fn sample(millis: i64, value: f64) -> Sample {
    Sample {
        at: at(millis),
        value: Some(value),
        low: Some(value * 0.9),
        high: Some(value * 1.1),
        claim: Claim::Estimate,
        loaded: false,
        host_busy: false,
        run: None,
    }
}

/// Sixty pulses, of which some are lost; the others take from 20 ms on, 0.1 ms more each.
pub(crate) fn pulses(minute: i64, lost: u32) -> PulseMinute {
    let round_trips_ns = (0..u64::from(60 - lost)).map(|number| 20_000_000 + number * 100_000).collect();
    PulseMinute { minute: at(minute), sent: 60, lost, loaded: false, round_trips_ns }
}

pub(crate) fn run(number: u128, target: TargetId, began: i64) -> Run {
    Run {
        id: Uuid::from_u128(number),
        target,
        kind: JobKind::Slice,
        why: Why::Cadence,
        began: at(began),
        ended: None,
        outcome: RunOutcome::Running,
        reason: None,
        octets: None,
        document: None,
    }
}

pub(crate) fn event(target: Option<TargetId>, millis: i64, text: &str) -> Event {
    Event {
        id: 0,
        target,
        kind: "change".to_owned(),
        signal: Some(narrows_watch::Signal::AvailableForward),
        at: at(millis),
        at_low: at(millis - 1_000),
        at_high: at(millis + 1_000),
        found: at(millis + 5_000),
        before: Some("61 Mbit/s".to_owned()),
        after: Some("22 Mbit/s".to_owned()),
        cause: None,
        text: text.to_owned(),
        evidence: Some(serde_json::json!({"hop": 4})),
        incident: None,
    }
}
