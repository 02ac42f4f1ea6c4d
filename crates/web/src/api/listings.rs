//! Targets, runs, paths, events, incidents and alerts.

use axum::Json;
use axum::extract::{Path as InPath, State};
use narrows_watch::{Signal, WallTime};
use uuid::Uuid;

use super::answers::{Alerts, Events, Incidents, Learning, Newest, Paths, Runs, Target, Targets};
#[cfg(test)]
use super::open_api::Fault;
use super::query::{Asked, Names};
use crate::app::App;
use crate::model::{self, Alert, Event, Incident, Path, Run};
use crate::source::Span;
use narrows_site::Problem;

/// All targets with their newest values, firing rules and open incidents.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/targets", tag = "read", responses(
    (status = 200, body = Targets), (status = 503, body = Fault, content_type = "application/problem+json")
)))]
pub(crate) async fn targets(State(app): State<App>) -> Result<Json<Targets>, Problem> {
    let now = app.now();
    let live = app.live().clone();
    let faults = live.faults();
    let targets = app
        .ask(move |source| {
            let rules = source.alerts()?;
            let span = Span { since: WallTime::from_millis(now.millis() - LOOK_BACK_MS), until: now };
            let incidents = source.incidents(None, span, MOST)?;
            let mut all = Vec::new();
            for target in source.targets()? {
                let newest = source.newest(target.id)?;
                let stale_after_ms =
                    |signal| u64::try_from(live.keep(target.id, signal).as_millis()).unwrap_or(u64::MAX);
                let newest = newest.iter().map(|(signal, point)| {
                    let (unit, stale_after_ms) = (signal.unit(), stale_after_ms(*signal));
                    (signal.name(), Newest { unit, stale_after_ms, value: model::Measured::new(point) })
                });
                let firing = rules.iter().filter(|rule| rule.target == target.id && rule.state != "ok");
                let mut open = incidents.iter().filter(|incident| incident.target == target.id);
                all.push(Target {
                    id: target.id.number(),
                    stale_after_ms: stale_after_ms(Signal::AvailableForward),
                    newest: newest.collect(),
                    learning: live.is_learning(target.id).map(|one| Learning { values: one.values, of: one.of }),
                    alerts: firing.map(|rule| Alert::new(target.name.clone(), rule)).collect(),
                    incident: open
                        .find(|incident| incident.ended.is_none())
                        .map(|incident| Incident::new(target.name.clone(), incident)),
                    host: target.host,
                    port: target.port,
                    added_ms: target.added.millis(),
                    retired_ms: target.retired.map(WallTime::millis),
                    name: target.name,
                });
            }
            Ok(all)
        })
        .await?;
    Ok(Json(Targets { schema: "narrows.targets/1", at_ms: now.millis(), faults, targets }))
}

/// Runs, newest first, without their documents.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/runs", tag = "read",
    params(
        ("target" = Option<String>, Query, description = "A target's name or number; all if missing"),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("limit" = Option<u32>, Query, description = "At most 2000; 200 if missing"),
    ),
    responses((status = 200, body = Runs), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn runs(State(app): State<App>, asked: Asked) -> Result<Json<Runs>, Problem> {
    let (span, limit, wanted) = (asked.span()?, asked.count("limit", USUAL, MOST)?, asked.target_text());
    let question = app.ask(move |source| {
        let names = Names::new(source.targets()?);
        let runs = source.runs(names.find_if(wanted.as_deref())?, span, limit)?;
        Ok(runs.iter().map(|run| Run::new(Some(names.of(run.target)), run)).collect())
    });
    Ok(Json(Runs { schema: "narrows.runs/1", runs: question.await? }))
}

/// One run with its document.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/runs/{id}", tag = "read",
    params(("id" = String, Path, description = "The run's number")),
    responses((status = 200, body = Run), (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn one_run(State(app): State<App>, InPath(id): InPath<String>) -> Result<Json<Run>, Problem> {
    let id: Uuid = id.parse().map_err(|_| Problem::not_found("a run's number is a UUID"))?;
    let question = app.ask(move |source| {
        let run = source.run(id)?;
        let names = Names::new(source.targets()?);
        Ok(Run::new(Some(names.of(run.target)), &run))
    });
    Ok(Json(question.await?))
}

/// The paths of a target as they were seen, newest first.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/paths", tag = "read",
    params(
        ("target" = String, Query, description = "A target's name or number"),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
    ),
    responses((status = 200, body = Paths), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn paths(State(app): State<App>, asked: Asked) -> Result<Json<Paths>, Problem> {
    let (span, wanted) = (asked.span()?, asked.needed("target")?.to_owned());
    let question = app.ask(move |source| {
        let names = Names::new(source.targets()?);
        let target = names.find(&wanted)?;
        let mut paths: Vec<Path> = source.paths(target, span)?.iter().map(Path::new).collect();
        paths.truncate(MOST);
        Ok((names.of(target), paths))
    });
    let (target, paths) = question.await?;
    Ok(Json(Paths { schema: "narrows.paths/1", target, paths }))
}

/// Events, newest first.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/events", tag = "read",
    params(
        ("target" = Option<String>, Query, description = "A target's name or number; all if missing"),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("limit" = Option<u32>, Query, description = "At most 2000; 200 if missing"),
    ),
    responses((status = 200, body = Events), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn events(State(app): State<App>, asked: Asked) -> Result<Json<Events>, Problem> {
    let (span, limit, wanted) = (asked.span()?, asked.count("limit", USUAL, MOST)?, asked.target_text());
    let question = app.ask(move |source| {
        let names = Names::new(source.targets()?);
        let events = source.events(names.find_if(wanted.as_deref())?, span, limit)?;
        Ok(events.iter().map(|event| Event::new(event.target.map(|id| names.of(id)), event)).collect())
    });
    Ok(Json(Events { schema: "narrows.events/1", events: question.await? }))
}

/// Incidents, newest first.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/incidents", tag = "read",
    params(
        ("target" = Option<String>, Query, description = "A target's name or number; all if missing"),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("limit" = Option<u32>, Query, description = "At most 2000; 200 if missing"),
    ),
    responses((status = 200, body = Incidents), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn incidents(State(app): State<App>, asked: Asked) -> Result<Json<Incidents>, Problem> {
    let (span, limit, wanted) = (asked.span()?, asked.count("limit", USUAL, MOST)?, asked.target_text());
    let question = app.ask(move |source| {
        let names = Names::new(source.targets()?);
        let incidents = source.incidents(names.find_if(wanted.as_deref())?, span, limit)?;
        Ok(incidents.iter().map(|incident| Incident::new(names.of(incident.target), incident)).collect())
    });
    Ok(Json(Incidents { schema: "narrows.incidents/1", incidents: question.await? }))
}

/// The states of all rules.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/alerts", tag = "read", responses(
    (status = 200, body = Alerts), (status = 503, body = Fault, content_type = "application/problem+json")
)))]
pub(crate) async fn alerts(State(app): State<App>) -> Result<Json<Alerts>, Problem> {
    let question = app.ask(|source| {
        let names = Names::new(source.targets()?);
        Ok(source.alerts()?.iter().map(|state| Alert::new(names.of(state.target), state)).collect())
    });
    Ok(Json(Alerts { schema: "narrows.alert-states/1", alerts: question.await? }))
}

/// Signals in the order of the pages.
pub(super) const SIGNALS: [Signal; 6] = Signal::ALL;
/// Rows of a listing.
const USUAL: usize = 200;
pub(super) const MOST: usize = 2000;
/// An incident that began earlier is no news.
const LOOK_BACK_MS: i64 = 400 * 86_400_000;
