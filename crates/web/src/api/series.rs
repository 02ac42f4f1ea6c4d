//! Values and round trips over time: at most 2000 points, whatever the span.

use axum::Json;
use axum::extract::State;
use narrows_watch::WallTime;

use super::answers::{Heat, Series};
use super::listings::MOST;
#[cfg(test)]
use super::open_api::Fault;
use super::query::{Asked, Names};
use crate::app::App;
use crate::model::Measured;
use narrows_site::Problem;

/// Values of one signal over time.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/series", tag = "read",
    params(
        ("target" = String, Query, description = "A target's name or number"),
        ("signal" = String, Query, description = "available, available_reverse, capacity, least_round_trip, queueing or loss"),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("points" = Option<u32>, Query, description = "At most 2000; 2000 if missing"),
    ),
    responses((status = 200, body = Series), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn series(State(app): State<App>, asked: Asked) -> Result<Json<Series>, Problem> {
    let (span, points, signal) = (asked.span()?, asked.count("points", MOST, MOST)?, asked.signal()?);
    let wanted = asked.needed("target")?.to_owned();
    let question = app.ask(move |source| {
        let names = Names::new(source.targets()?);
        let target = names.find(&wanted)?;
        let mut found = source.series(target, signal, span, points)?;
        // Whatever the source says: no answer is larger than was asked for.
        found.truncate(points);
        Ok((names.of(target), found.iter().map(Measured::new).collect()))
    });
    let (target, points) = question.await?;
    Ok(Json(Series {
        schema: "narrows.series/1",
        target,
        signal: signal.name(),
        unit: signal.unit(),
        since_ms: span.since.millis(),
        until_ms: span.until.millis(),
        points,
    }))
}

/// How many round trips fell into which class, over time.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/heatmap", tag = "read",
    params(
        ("target" = String, Query, description = "A target's name or number"),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("columns" = Option<u32>, Query, description = "At most 400; 200 if missing"),
    ),
    responses((status = 200, body = Heat), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn heatmap(State(app): State<App>, asked: Asked) -> Result<Json<Heat>, Problem> {
    let (span, columns) = (asked.span()?, asked.count("columns", 200, 400)?);
    let wanted = asked.needed("target")?.to_owned();
    let question = app.ask(move |source| {
        let names = Names::new(source.targets()?);
        let target = names.find(&wanted)?;
        Ok((names.of(target), source.heatmap(target, span, columns)?))
    });
    let (target, heat) = question.await?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is between 0 and 1")]
    let lost_ppm = heat.lost.iter().map(|share| (share.clamp(0.0, 1.0) * 1e6).round() as u32);
    Ok(Json(Heat {
        schema: "narrows.heatmap/1",
        target,
        since_ms: span.since.millis(),
        until_ms: span.until.millis(),
        times_ms: heat.times.iter().copied().map(WallTime::millis).collect(),
        lost_ppm: lost_ppm.collect(),
        upper_ns: heat.upper_ns,
        counts: heat.counts,
    }))
}
