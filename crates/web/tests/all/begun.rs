//! What a store says when `narrows watch` has just begun: nothing, and then little.

use std::collections::BTreeMap;

use narrows_store::records::{AlertState, Basis, Event, Incident, PathSeen, Point, Run, Target};
use narrows_watch::schedule::TargetId;
use narrows_watch::{Claim, Signal, WallTime};
use narrows_web::{Heatmap, Source, SourceError, Span};
use uuid::Uuid;

use crate::year::{NOW_MS, OFFICE, Year};

/// So many seconds after `office` was followed for the first time; before that, no target at all.
#[derive(Debug)]
pub(crate) struct Begun(pub(crate) Option<i64>);

impl Begun {
    fn since(&self) -> i64 {
        self.0.map_or(i64::MAX, |seconds| NOW_MS - seconds * 1000)
    }

    /// Values come after a minute; until then there are pulses and the route.
    fn values(&self, signal: Signal) -> Vec<Point> {
        let seconds = self.0.unwrap_or_default();
        let basis = if signal <= Signal::Capacity { Basis::Server } else { Basis::Single };
        let (value, claim) = match signal {
            Signal::AvailableForward => (61.2e6, Claim::Estimate),
            Signal::Capacity => (97.5e6, Claim::Estimate),
            Signal::LeastRoundTrip => (17.9e6, Claim::Estimate),
            Signal::Queueing => (3.4e6, Claim::Estimate),
            Signal::AvailableReverse | Signal::Loss => return Vec::new(),
        };
        let of = |at| Point {
            at: WallTime::from_millis(at),
            value: Some(value),
            low: Some(value * 0.93),
            high: Some(value * 1.08),
            min: Some(value),
            max: Some(value),
            count: 1,
            claim,
            basis: Some(basis),
        };
        (1..=seconds / 60).map(|minute| of(self.since() + minute * 60_000)).collect()
    }
}

impl Source for Begun {
    fn targets(&self) -> Result<Vec<Target>, SourceError> {
        let of = |target: Target| Target { added: WallTime::from_millis(self.since()), ..target };
        Ok(Year.targets()?.into_iter().take(usize::from(self.0.is_some())).map(of).collect())
    }

    fn newest(&self, _: TargetId) -> Result<BTreeMap<Signal, Point>, SourceError> {
        Ok(Signal::ALL.into_iter().filter_map(|signal| Some((signal, self.values(signal).pop()?))).collect())
    }

    fn series(&self, _: TargetId, signal: Signal, _: Span, _: usize) -> Result<Vec<Point>, SourceError> {
        Ok(self.values(signal))
    }

    fn heatmap(&self, target: TargetId, span: Span, columns: usize) -> Result<Heatmap, SourceError> {
        let since = span.since.max(WallTime::from_millis(self.since()));
        Year.heatmap(target, Span { since, until: span.until }, columns)
    }

    fn events(&self, _: Option<TargetId>, _: Span, _: usize) -> Result<Vec<Event>, SourceError> {
        Ok(Vec::new())
    }

    fn incidents(&self, _: Option<TargetId>, _: Span, _: usize) -> Result<Vec<Incident>, SourceError> {
        Ok(Vec::new())
    }

    fn runs(&self, _: Option<TargetId>, _: Span, _: usize) -> Result<Vec<Run>, SourceError> {
        Ok(Vec::new())
    }

    fn run(&self, _: Uuid) -> Result<Run, SourceError> {
        Err(SourceError::NotFound)
    }

    fn paths(&self, _: TargetId, span: Span) -> Result<Vec<PathSeen>, SourceError> {
        let known = self.0.is_some_and(|seconds| seconds > 5);
        Ok(if known { Year.paths(OFFICE, span)?.into_iter().take(1).collect() } else { Vec::new() })
    }

    fn alerts(&self) -> Result<Vec<AlertState>, SourceError> {
        Ok(Vec::new())
    }
}
