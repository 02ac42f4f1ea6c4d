//! Links, and those that hold paths back.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Path, State};
use narrows_fleet::topology::{LinkIndex, Pair};
use narrows_site::Problem;
use narrows_units::{BitRate, Metric, to_u32};
use serde_json::{Value, json};

use super::App;
use super::app::{Answer, who};
use super::query::Asked;
use crate::hub::Hub;
use crate::hub::bottlenecks::{self, Bottleneck, hosts};
use crate::hub::tomography::{Findings, Located};

fn located<'a>(found: &'a Findings, asked: &Asked, default: Metric) -> Result<&'a Located, Problem> {
    let wrong = || Problem::bad_request("links have a `capacity` and something `available`");
    found.of(asked.metric(default)?).ok_or_else(wrong)
}

/// All links of the routes of the last day.
#[utoipa::path(get, path = "/api/v1/links", tag = "read",
    params(("metric" = Option<String>, Query, description = "`capacity` (default) or `available`")),
    responses((status = 200, body = Object), (status = 400, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn links(State(app): State<App>, asked: Asked) -> Answer {
    let found = app.hub().tomography.found();
    let located = located(&found, &asked, Metric::IpCapacity)?;
    let network = &found.network;
    let row = |at: usize| {
        let link = LinkIndex(to_u32(at));
        let segment = network.graph.segment_of(link)?;
        let (ends, value) = (network.graph.links()[at], located.estimate.value(segment));
        let rate = |rate: Option<BitRate>| rate.map(BitRate::as_f64);
        Some(json!({
            "id": network.id(link).to_string(), "from": network.place(ends.from), "to": network.place(ends.to),
            "segment": bottlenecks::id(network, segment), "lower_bound": rate(located.estimate.lower_bound(segment)),
            "value": rate(value.map(|one| one.value)), "low": rate(value.map(|one| one.low)),
            "high": rate(value.map(|one| one.high)), "pairs": network.graph.segments()[segment.0 as usize].pairs.len(),
        }))
    };
    let links: Vec<Value> = (0..network.graph.links().len()).filter_map(row).collect();
    Ok(app.answer(json!({ "links": links })))
}

/// Links that hold measured paths back, those of most paths first.
#[utoipa::path(get, path = "/api/v1/bottlenecks", tag = "read",
    params(("metric" = Option<String>, Query, description = "`available` (default) or `capacity`")),
    responses((status = 200, body = Object), (status = 400, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn bottlenecks(State(app): State<App>, asked: Asked) -> Answer {
    let found = app.hub().tomography.found();
    let metric = asked.metric(Metric::AvailableIpCapacity)?;
    let located = located(&found, &asked, Metric::AvailableIpCapacity)?;
    let network = &found.network;
    let all = bottlenecks::bottlenecks(network, located);
    let named: BTreeSet<Pair> = all.iter().flat_map(|one| one.paths.iter().copied()).collect();
    let pair = |pair: Pair| {
        let (source, target) = hosts(network, pair);
        json!({ "source": source, "target": target })
    };
    let undecided = bottlenecks::undecided(network, located).into_iter().map(|(waiting, candidates)| {
        let mut row = pair(waiting);
        row["candidates"] = json!(candidates);
        row
    });
    Ok(app.answer(json!({
        "metric": asked.text("metric").unwrap_or("available"), "unit": metric.unit(),
        "measured_pairs": located.latest.len(), "located_pairs": named.len(),
        "bottlenecks": all.iter().map(|one| row(app.hub(), &found, located, one)).collect::<Vec<_>>(),
        "undecided": undecided.collect::<Vec<_>>(),
        "next": bottlenecks::next(network, located, 10).into_iter().map(pair).collect::<Vec<_>>(),
    })))
}

fn row(hub: &Hub, found: &Findings, located: &Located, one: &Bottleneck) -> Value {
    let path = |pair: &Pair| {
        let (source, target) = hosts(&found.network, *pair);
        let latest = located.latest.get(pair);
        json!({
            "source": source, "target": target, "value": latest.map(|one| one.value), "low": latest.map(|one| one.low),
            "high": latest.map(|one| one.high), "run": latest.map(|one| one.run),
        })
    };
    let both = one.paths.iter().map(|pair| hosts(&found.network, *pair)).flat_map(|(one, other)| [one, other]);
    let sites: BTreeSet<_> = both.filter_map(|host| hub.site_of(&host)).collect();
    let links = one.links.iter().map(|(from, to)| json!({ "from": from, "to": to }));
    json!({
        "id": one.id, "name": one.name, "links": links.collect::<Vec<_>>(), "value": one.value.value.as_f64(),
        "low": one.value.low.as_f64(), "high": one.value.high.as_f64(), "confidence": one.confidence,
        "paths": one.paths.iter().map(path).collect::<Vec<_>>(), "of": one.counts.1, "sites": sites,
        "proof": hub.proofs.row(&one.id),
    })
}

/// Begins a proof by load that paths share a bottleneck.
#[utoipa::path(post, path = "/api/v1/bottlenecks/{id}/prove", tag = "write",
    params(("id" = String, Path, description = "The bottleneck's number")),
    responses((status = 200, body = Object), (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn prove(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Path(id): Path<String>,
) -> Answer {
    app.hub().prove(&id, &who(from)).await?;
    Ok(app.answer(json!({ "id": id })))
}
