//! What people ask for: a run, a silence, a note. The scheduler decides.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use narrows_watch::WallTime;
use narrows_watch::schedule::JobKind;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::open_api::Fault;
use super::query::Names;
use crate::app::App;
use crate::live::{Order, Refusal};
use narrows_site::{Problem, unread};

/// A run that is asked for.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RunOrder {
    /// A target's name or number.
    target: String,
    /// `route`, `slice`, `capacity`, `hops` or `test`.
    #[cfg_attr(test, schema(value_type = String))]
    kind: JobKind,
}

/// A silence that is asked for.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SilenceOrder {
    /// The rule; every rule if missing.
    rule: Option<String>,
    /// A target's name or number; every target if missing.
    target: Option<String>,
    /// How long, in minutes: at most 30 days.
    minutes: u32,
    /// Why.
    note: Option<String>,
}

/// A note to be kept beside the events.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteOrder {
    /// A target's name or number; this host if missing.
    target: Option<String>,
    /// When it happened, Unix ms; now if missing.
    at_ms: Option<i64>,
    /// What happened: at most 500 characters.
    text: String,
}

/// What came of it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Answered {
    /// In one sentence.
    text: String,
}

type Answer = Result<(StatusCode, Json<Answered>), Problem>;

/// Asks for a run, within the send budget.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/runs", tag = "write", request_body = RunOrder, responses(
    (status = 202, body = Answered), (status = 400, body = Fault, content_type = "application/problem+json"),
    (status = 409, body = Fault, content_type = "application/problem+json")
)))]
pub(crate) async fn run(State(app): State<App>, body: Result<Json<RunOrder>, JsonRejection>) -> Answer {
    let Json(order) = body.map_err(|error| unread(&error))?;
    let target = app.ask(move |source| Names::new(source.targets()?).find(&order.target)).await?;
    post(&app, Order::Run { target, kind: order.kind }).await
}

/// Tells nobody for a while.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/silences", tag = "write", request_body = SilenceOrder, responses(
    (status = 202, body = Answered), (status = 400, body = Fault, content_type = "application/problem+json")
)))]
pub(crate) async fn silence(State(app): State<App>, body: Result<Json<SilenceOrder>, JsonRejection>) -> Answer {
    let Json(order) = body.map_err(|error| unread(&error))?;
    if !(1..=MONTH_MINUTES).contains(&order.minutes) {
        return Err(Problem::bad_request("`minutes` is between 1 and 43200"));
    }
    let note = order.note.map(short).transpose()?;
    let wanted = order.target;
    let target = app.ask(move |source| Names::new(source.targets()?).find_if(wanted.as_deref())).await?;
    let began = app.now();
    let ends = WallTime::from_millis(began.millis() + i64::from(order.minutes) * 60_000);
    post(&app, Order::Silence { rule: order.rule, target, began, ends, note }).await
}

/// Keeps a note beside the events.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/notes", tag = "write", request_body = NoteOrder, responses(
    (status = 202, body = Answered), (status = 400, body = Fault, content_type = "application/problem+json")
)))]
pub(crate) async fn note(State(app): State<App>, body: Result<Json<NoteOrder>, JsonRejection>) -> Answer {
    let Json(order) = body.map_err(|error| unread(&error))?;
    let text = short(order.text)?;
    let wanted = order.target;
    let target = app.ask(move |source| Names::new(source.targets()?).find_if(wanted.as_deref())).await?;
    let at = order.at_ms.map_or_else(|| app.now(), WallTime::from_millis);
    post(&app, Order::Note { target, at, text }).await
}

async fn post(app: &App, order: Order) -> Answer {
    match app.live().post(order).await {
        Ok(accepted) => Ok((StatusCode::ACCEPTED, Json(Answered { text: accepted.text }))),
        Err(Refusal::Budget(why)) => Err(Problem::new(StatusCode::CONFLICT, &why)),
        Err(Refusal::Unfit(why)) => Err(Problem::bad_request(&why)),
        Err(Refusal::Unavailable(why)) => Err(Problem::unavailable(&why)),
    }
}

fn short(text: String) -> Result<String, Problem> {
    let fits = !text.trim().is_empty() && text.chars().count() <= 500;
    if fits { Ok(text) } else { Err(Problem::bad_request("the text has between 1 and 500 characters")) }
}

const MONTH_MINUTES: u32 = 30 * 24 * 60;
