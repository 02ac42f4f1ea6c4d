//! What the pages and the API read from.

use std::collections::BTreeMap;

use narrows_store::records::{AlertState, Event, Incident, PathSeen, Point, Run, Target};
use narrows_watch::schedule::TargetId;
use narrows_watch::{Signal, WallTime};
use uuid::Uuid;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceError {
    /// The store cannot be read now.
    Unavailable(String),
    /// There is no such thing.
    NotFound,
}

/// A span of time: from, and up to but without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub since: WallTime,
    /// Its end.
    pub until: WallTime,
}

/// Counts of round trips: a column per time, a row per class of round trip.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    /// The beginnings of the columns.
    pub times: Vec<WallTime>,
    /// The upper ends of the classes, ns.
    pub upper_ns: Vec<u64>,
    /// Per column, how many round trips fell into each class.
    pub counts: Vec<Vec<u32>>,
    /// Per column, the share of pulses that were lost.
    pub lost: Vec<f64>,
}

/// What the pages read. Each call may take as long as a query of the store does: never call it
/// from an async task without `spawn_blocking`.
pub trait Source: Send + Sync + 'static {
    /// All targets that are followed.
    fn targets(&self) -> Result<Vec<Target>, SourceError>;
    /// The newest usable point of each signal of a target.
    fn newest(&self, target: TargetId) -> Result<BTreeMap<Signal, Point>, SourceError>;
    /// At most `points` points of a signal.
    fn series(&self, target: TargetId, signal: Signal, span: Span, points: usize) -> Result<Vec<Point>, SourceError>;
    /// Round trips by time and size, in at most `columns` columns.
    fn heatmap(&self, target: TargetId, span: Span, columns: usize) -> Result<Heatmap, SourceError>;
    /// Events of a target or of all, newest first.
    fn events(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Event>, SourceError>;
    /// Incidents of a target or of all, newest first.
    fn incidents(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Incident>, SourceError>;
    /// Runs of a target or of all, newest first, without their documents.
    fn runs(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Run>, SourceError>;
    /// One run with its document.
    fn run(&self, id: Uuid) -> Result<Run, SourceError>;
    /// The paths of a target as they were seen, newest first.
    fn paths(&self, target: TargetId, span: Span) -> Result<Vec<PathSeen>, SourceError>;
    /// The states of all rules.
    fn alerts(&self) -> Result<Vec<AlertState>, SourceError>;
}
