//! Links, and those that hold paths back.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use axum::Json;
use axum::extract::{ConnectInfo, Path, State};
use narrows_fleet::keys::Name;
use narrows_fleet::topology::{LinkIndex, Pair};
use narrows_site::Problem;
use narrows_units::{BitRate, Metric, Unit, to_u32};
use serde::Serialize;
use uuid::Uuid;

use super::App;
use super::app::who;
#[cfg(test)]
use super::open_api::Fault;
use super::query::Asked;
use crate::hub::Hub;
use crate::hub::bottlenecks::{self, Bottleneck, Ordered, hosts};
use crate::hub::groupings::GroupingRow;
use crate::hub::proofs::ProofRow;
use crate::hub::tomography::{Findings, Located};

/// A link.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct LinkRow {
    id: String,
    /// Its ends.
    from: String,
    to: String,
    /// Links of one segment cannot be told apart.
    segment: String,
    /// What the fastest path through it carried, bit/s.
    lower_bound: Option<f64>,
    /// What it carries, if paths are held back there.
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// Pairs whose route crosses it.
    pairs: usize,
}

/// All links.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Links {
    now_ms: i64,
    links: Vec<LinkRow>,
}

/// The ends of a link.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Ends {
    from: String,
    to: String,
}

/// A path that a link holds back.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct HeldPath {
    #[cfg_attr(test, schema(value_type = String))]
    source: Name,
    #[cfg_attr(test, schema(value_type = String))]
    target: Name,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    #[cfg_attr(test, schema(value_type = Option<String>))]
    run: Option<Uuid>,
}

/// A link, or several that no pair tells apart, with the paths that it holds back.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct BottleneckRow {
    id: String,
    /// Its two ends.
    name: String,
    links: Vec<Ends>,
    value: f64,
    low: f64,
    high: f64,
    /// 0 to 1.
    confidence: f64,
    paths: Vec<HeldPath>,
    /// Measured paths through it.
    of: usize,
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    sites: BTreeSet<Name>,
    proof: Option<ProofRow>,
}

/// A slow path, and the links of which one may be why.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Undecided {
    #[cfg_attr(test, schema(value_type = String))]
    source: Name,
    #[cfg_attr(test, schema(value_type = String))]
    target: Name,
    candidates: Vec<String>,
}

/// A link that may hold several paths back: fewer such links would not explain all of them.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Suspect {
    /// The number of a bottleneck, if it is one for other paths.
    id: String,
    /// Its two ends.
    name: String,
    /// Whether other paths are known to be held back there.
    located: bool,
    paths: Vec<Ordered>,
    /// Whether delays of these paths move together, if streams over them were compared.
    delays: Option<GroupingRow>,
}

/// Which links hold paths back.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct BottleneckList {
    now_ms: i64,
    /// `available` or `capacity`.
    metric: String,
    #[cfg_attr(test, schema(value_type = String))]
    unit: Unit,
    measured_pairs: usize,
    located_pairs: usize,
    bottlenecks: Vec<BottleneckRow>,
    undecided: Vec<Undecided>,
    /// The fewest links that explain all undecided paths, the one that explains most first.
    suspects: Vec<Suspect>,
    /// The pairs that would tell most.
    next: Vec<Ordered>,
}

/// A proof that began.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Begun {
    now_ms: i64,
    /// The bottleneck's number.
    id: String,
}

fn located<'a>(found: &'a Findings, asked: &Asked, default: Metric) -> Result<&'a Located, Problem> {
    let wrong = || Problem::bad_request("links have a `capacity` and something `available`");
    found.of(asked.metric(default)?).ok_or_else(wrong)
}

/// All links of the routes of the last day.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/links", tag = "read",
    params(("metric" = Option<String>, Query, description = "`capacity` (default) or `available`")),
    responses((status = 200, body = Links), (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn links(State(app): State<App>, asked: Asked) -> Result<Json<Links>, Problem> {
    let found = app.hub().tomography.found();
    let located = located(&found, &asked, Metric::IpCapacity)?;
    let network = &found.network;
    let row = |at: usize| {
        let link = LinkIndex(to_u32(at));
        let segment = network.graph.segment_of(link)?;
        let (ends, value) = (network.graph.links()[at], located.estimate.value(segment));
        let rate = |rate: Option<BitRate>| rate.map(BitRate::as_f64);
        Some(LinkRow {
            id: network.id(link).to_string(),
            from: network.place(ends.from),
            to: network.place(ends.to),
            segment: bottlenecks::id(network, segment),
            lower_bound: rate(located.estimate.lower_bound(segment)),
            value: rate(value.map(|one| one.value)),
            low: rate(value.map(|one| one.low)),
            high: rate(value.map(|one| one.high)),
            pairs: network.graph.segments()[segment.0 as usize].pairs.len(),
        })
    };
    let links = (0..network.graph.links().len()).filter_map(row).collect();
    Ok(Json(Links { now_ms: app.hub().now(), links }))
}

/// Links that hold measured paths back, those of most paths first.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/bottlenecks", tag = "read",
    params(("metric" = Option<String>, Query, description = "`available` (default) or `capacity`")),
    responses((status = 200, body = BottleneckList),
        (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn bottlenecks(State(app): State<App>, asked: Asked) -> Result<Json<BottleneckList>, Problem> {
    let found = app.hub().tomography.found();
    let metric = asked.metric(Metric::AvailableIpCapacity)?;
    let located = located(&found, &asked, Metric::AvailableIpCapacity)?;
    let network = &found.network;
    let all = bottlenecks::bottlenecks(network, located);
    let named: BTreeSet<Pair> = all.iter().flat_map(|one| one.paths.iter().copied()).collect();
    let pair = |pair: Pair| Ordered::of(network, pair);
    let undecided = bottlenecks::undecided(network, located).into_iter().map(|(waiting, candidates)| {
        let Ordered { source, target } = pair(waiting);
        Undecided { source, target, candidates }
    });
    let suspects = bottlenecks::suspects(network, located).into_iter().map(|one| {
        let id = bottlenecks::id(network, one.segment);
        let located = all.iter().any(|other| other.id == id);
        let paths: Vec<Ordered> = one.pairs.into_iter().map(pair).collect();
        Suspect {
            id,
            name: bottlenecks::name(network, one.segment),
            located,
            delays: app.hub().groupings.row(&paths),
            paths,
        }
    });
    Ok(Json(BottleneckList {
        now_ms: app.hub().now(),
        metric: asked.text("metric").unwrap_or("available").to_owned(),
        unit: metric.unit(),
        measured_pairs: located.latest.len(),
        located_pairs: named.len(),
        bottlenecks: all.iter().map(|one| row(app.hub(), &found, located, one)).collect(),
        undecided: undecided.collect(),
        suspects: suspects.collect(),
        next: bottlenecks::next(network, located, 10).into_iter().map(pair).collect(),
    }))
}

fn row(hub: &Hub, found: &Findings, located: &Located, one: &Bottleneck) -> BottleneckRow {
    let path = |pair: &Pair| {
        let (source, target) = hosts(&found.network, *pair);
        let latest = located.latest.get(pair);
        HeldPath {
            source,
            target,
            value: latest.map(|one| one.value),
            low: latest.map(|one| one.low),
            high: latest.map(|one| one.high),
            run: latest.map(|one| one.run),
        }
    };
    let both = one.paths.iter().map(|pair| hosts(&found.network, *pair)).flat_map(|(one, other)| [one, other]);
    let sites: BTreeSet<_> = both.filter_map(|host| hub.site_of(&host)).collect();
    let links = one.links.iter().map(|(from, to)| Ends { from: from.clone(), to: to.clone() });
    BottleneckRow {
        id: one.id.clone(),
        name: one.name.clone(),
        links: links.collect(),
        value: one.value.value.as_f64(),
        low: one.value.low.as_f64(),
        high: one.value.high.as_f64(),
        confidence: one.confidence,
        paths: one.paths.iter().map(path).collect(),
        of: one.counts.1,
        sites,
        proof: hub.proofs.row(&one.id),
    }
}

/// Begins a proof by load that paths share a bottleneck.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/bottlenecks/{id}/prove", tag = "write",
    params(("id" = String, Path, description = "The bottleneck's number")),
    responses((status = 200, body = Begun), (status = 404, body = Fault, content_type = "application/problem+json"),
        (status = 409, body = Fault, content_type = "application/problem+json",
            description = "A proof runs over one of these paths, no two paths are there, or a budget has too little left"))))]
pub(crate) async fn prove(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Path(id): Path<String>,
) -> Result<Json<Begun>, Problem> {
    app.hub().prove(&id, &who(from)).await?;
    Ok(Json(Begun { now_ms: app.hub().now(), id }))
}
