//! Two spans of a target beside each other.

use axum::Json;
use axum::extract::State;
use narrows_units::rounded_signed;
use serde::Serialize;

use super::listings::{MOST, SIGNALS};
#[cfg(test)]
use super::open_api::Fault;
use super::query::{Asked, Names};
use crate::app::App;
use crate::model::Path;
use crate::source::{Source, Span};
use narrows_site::Problem;

/// Two spans of a target.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Comparison {
    /// `narrows.compare/1`.
    schema: &'static str,
    /// The target's name.
    target: String,
    /// The first span.
    a: Side,
    /// The second span.
    b: Side,
    /// Signals that both spans have.
    signals: Vec<Compared>,
    /// Whether both took the same way at their ends; null if one is not known.
    same_path: Option<bool>,
}

/// One span.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct Side {
    /// From when on.
    since_ms: i64,
    /// Until when.
    until_ms: i64,
    /// The path at its end.
    path: Option<Path>,
}

/// A signal in both spans.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct Compared {
    /// The signal's name.
    signal: &'static str,
    /// `bit/s`, `ns` or `ppm`.
    unit: &'static str,
    /// In the first span.
    a: Spread,
    /// In the second span.
    b: Spread,
    /// `higher` or `lower` in the second span if the middle halves do not overlap; else `unclear`.
    verdict: &'static str,
}

/// How the values of a span are spread.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct Spread {
    /// Values, or means of several.
    points: usize,
    /// A quarter of them is below.
    low: i64,
    /// Half of them is below.
    median: i64,
    /// A quarter of them is above.
    high: i64,
}

/// Two spans of a target beside each other.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/compare", tag = "read",
    params(
        ("target" = String, Query, description = "A target's name or number"),
        ("a_since" = String, Query, description = "Begin of the first span: Unix ms, RFC 3339, or an age"),
        ("a_until" = String, Query, description = "End of the first span"),
        ("b_since" = Option<String>, Query, description = "Begin of the second span; 1h if missing"),
        ("b_until" = Option<String>, Query, description = "End of the second span; now if missing"),
    ),
    responses((status = 200, body = Comparison),
        (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn compare(State(app): State<App>, asked: Asked) -> Result<Json<Comparison>, Problem> {
    asked.needed("a_since")?;
    let spans = [asked.span_of("a_since", "a_until", "25h")?, asked.span_of("b_since", "b_until", "1h")?];
    let wanted = asked.needed("target")?.to_owned();
    let question = app.ask(move |source| {
        let names = Names::new(source.targets()?);
        let target = names.find(&wanted)?;
        let mut signals = Vec::new();
        for signal in SIGNALS {
            let of = |span| Ok::<_, Problem>(narrows_store::Spread::of(&source.series(target, signal, span, MOST)?));
            let (Some(a), Some(b)) = (of(spans[0])?, of(spans[1])?) else { continue };
            let verdict = a.verdict(&b);
            let (a, b) = (a.into(), b.into());
            signals.push(Compared { signal: signal.name(), unit: signal.unit(), a, b, verdict });
        }
        let [a, b] = [side(source, target, spans[0])?, side(source, target, spans[1])?];
        let same_path = a.path.as_ref().zip(b.path.as_ref()).map(|(a, b)| a.same_way(b));
        Ok(Comparison { schema: "narrows.compare/1", target: names.of(target), a, b, signals, same_path })
    });
    Ok(Json(question.await?))
}

fn side(source: &dyn Source, target: narrows_watch::schedule::TargetId, span: Span) -> Result<Side, Problem> {
    let path = source.paths(target, span)?.first().map(Path::new);
    Ok(Side { since_ms: span.since.millis(), until_ms: span.until.millis(), path })
}

impl From<narrows_store::Spread> for Spread {
    fn from(of: narrows_store::Spread) -> Self {
        let [low, median, high] = [of.low, of.median, of.high].map(rounded_signed);
        Self { points: of.points, low, median, high }
    }
}
