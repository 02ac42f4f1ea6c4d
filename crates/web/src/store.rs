//! Pages from the store. Its reader answers the same questions; only spans, heat maps and errors
//! have types of their own there.

use std::collections::BTreeMap;

use narrows_store::records::{self, AlertState, Event, Incident, PathSeen, Point, Run, Target};
use narrows_store::{Error, Reader};
use narrows_watch::Signal;
use narrows_watch::schedule::TargetId;
use uuid::Uuid;

use crate::{Heatmap, Source, SourceError, Span};

impl From<Error> for SourceError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::NotFound,
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<Span> for records::Span {
    fn from(Span { since, until }: Span) -> Self {
        Self { since, until }
    }
}

impl From<records::Heatmap> for Heatmap {
    fn from(records::Heatmap { times, upper_ns, counts, lost }: records::Heatmap) -> Self {
        Self { times, upper_ns, counts, lost }
    }
}

impl Source for Reader {
    fn targets(&self) -> Result<Vec<Target>, SourceError> {
        Ok(Self::targets(self)?)
    }

    fn newest(&self, target: TargetId) -> Result<BTreeMap<Signal, Point>, SourceError> {
        Ok(Self::newest(self, target)?)
    }

    fn series(&self, target: TargetId, signal: Signal, span: Span, points: usize) -> Result<Vec<Point>, SourceError> {
        Ok(Self::series(self, target, signal, span.into(), points)?)
    }

    fn heatmap(&self, target: TargetId, span: Span, columns: usize) -> Result<Heatmap, SourceError> {
        Ok(Self::heatmap(self, target, span.into(), columns)?.into())
    }

    fn events(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Event>, SourceError> {
        Ok(Self::events(self, target, span.into(), limit)?)
    }

    fn incidents(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Incident>, SourceError> {
        Ok(Self::incidents(self, target, span.into(), limit)?)
    }

    fn runs(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Run>, SourceError> {
        Ok(Self::runs(self, target, span.into(), limit)?)
    }

    fn run(&self, id: Uuid) -> Result<Run, SourceError> {
        Ok(Self::run(self, id)?)
    }

    fn paths(&self, target: TargetId, span: Span) -> Result<Vec<PathSeen>, SourceError> {
        Ok(Self::paths(self, target, span.into())?)
    }

    fn alerts(&self) -> Result<Vec<AlertState>, SourceError> {
        Ok(Self::alerts(self)?)
    }
}
