//! What requests ask with.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use narrows_store::records::Target;
use narrows_watch::schedule::TargetId;
use narrows_watch::{Signal, WallTime};

use crate::app::{App, find};
use crate::model;
use crate::source::Span;
use crate::time_text;
use narrows_site::Problem;

/// The query of a request; keys that a route does not know are ignored.
pub(crate) struct Asked {
    pairs: BTreeMap<String, String>,
    now: WallTime,
}

impl FromRequestParts<App> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let read = axum::extract::Query::<BTreeMap<String, String>>::try_from_uri(&parts.uri);
        let axum::extract::Query(pairs) = read.map_err(|error| Problem::bad_request(&error.body_text()))?;
        Ok(Self { pairs, now: app.now() })
    }
}

impl Asked {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.pairs.get(key).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(crate) fn needed(&self, key: &str) -> Result<&str, Problem> {
        self.text(key).ok_or_else(|| Problem::bad_request(&format!("`{key}` is missing")))
    }

    /// `since` and `until`, the last day if nothing is said.
    pub(crate) fn span(&self) -> Result<Span, Problem> {
        self.span_of("since", "until", "24h")
    }

    pub(crate) fn span_of(&self, since: &str, until: &str, default: &str) -> Result<Span, Problem> {
        let of = |key: &str, default: &str| {
            let text = self.text(key).unwrap_or(default);
            let form = "Unix ms, RFC 3339, or an age such as 24h";
            time_text::parse(text, self.now).ok_or_else(|| Problem::bad_request(&format!("`{key}` is {form}")))
        };
        let span = Span { since: of(since, default)?, until: of(until, "now")? };
        if span.since < span.until {
            Ok(span)
        } else {
            Err(Problem::bad_request(&format!("`{since}` is not before `{until}`")))
        }
    }

    /// A count between 1 and `most`.
    pub(crate) fn count(&self, key: &str, default: usize, most: usize) -> Result<usize, Problem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let count = text.parse().ok().filter(|count| (1..=most).contains(count));
        count.ok_or_else(|| Problem::bad_request(&format!("`{key}` is between 1 and {most}")))
    }

    pub(crate) fn signal(&self) -> Result<Signal, Problem> {
        let names = || Signal::ALL.map(Signal::name).join(", ");
        let wanted = self.needed("signal")?;
        model::signal(wanted).ok_or_else(|| Problem::bad_request(&format!("`signal` is one of {}", names())))
    }

    /// The wanted target, if one is named.
    pub(crate) fn target_text(&self) -> Option<String> {
        self.text("target").map(str::to_owned)
    }
}

/// The names of targets by number.
pub(crate) struct Names(Vec<Target>);

impl Names {
    pub(crate) fn new(targets: Vec<Target>) -> Self {
        Self(targets)
    }

    pub(crate) fn find(&self, wanted: &str) -> Result<TargetId, Problem> {
        find(&self.0, wanted).map(|target| target.id)
    }

    pub(crate) fn find_if(&self, wanted: Option<&str>) -> Result<Option<TargetId>, Problem> {
        wanted.map(|wanted| self.find(wanted)).transpose()
    }

    /// What is stored of a target that is gone still has its number.
    pub(crate) fn of(&self, id: TargetId) -> String {
        let named = self.0.iter().find(|target| target.id == id);
        named.map_or_else(|| id.number().to_string(), |target| target.name.clone())
    }
}
