//! Cells of matrices: the newest values, and what became of the runs after them.

use std::collections::BTreeMap;

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Exit};
use narrows_record::{LastOutcome, Latest, SiteValue};
use narrows_site::Problem;
use narrows_units::Metric;
use serde::Serialize;

use crate::Error;
use crate::hub::{Hub, bottlenecks};

/// A cell of the matrix.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Cell {
    source: String,
    target: String,
    /// `value`, `at_least`, `at_most`, `inconclusive`, `inferred` or `failed`.
    state: &'static str,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// When the value was measured; of a cell of sites, the oldest of its values.
    at_ms: i64,
    run: Option<String>,
    reason: Option<String>,
    /// Of a cell of sites: how many pairs of hosts have a value.
    pairs: Option<u64>,
    /// Of a cell of sites: over how many pairs of hosts the newest run gave no value.
    failing_pairs: Option<u64>,
    /// The newest run, if it gave no value. What the cell shows is of before.
    failing: Option<Failing>,
}

/// A run that gave no value, and since when there is none.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct Failing {
    /// `inconclusive` or `failed`.
    state: &'static str,
    /// When the first run began that gave no value, without one since that did.
    since_ms: i64,
    at_ms: i64,
    run: String,
    reason: Option<String>,
}

/// Names in the order of rows and columns, and the cells of which something is known.
pub(crate) type Cells = (Vec<Name>, Vec<Cell>);

type Places = BTreeMap<(Name, Name), Cell>;

/// Of hosts. `hosts` are in order.
pub(crate) async fn of_hosts(hub: &Hub, metric: Metric, hosts: Vec<Name>) -> Result<Cells, Problem> {
    let now = hub.now();
    let known = |name: &Name| hosts.binary_search(name).is_ok();
    let mut cells = Places::new();
    for metric in metrics_of(metric) {
        for one in hub.record.latest(metric, now - age_of(metric)).await.map_err(Error::from)? {
            let place = (one.source.clone(), one.target.clone());
            let is_newest = cells.get(&place).is_none_or(|cell| cell.at_ms < one.at_ms);
            if is_newest && known(&one.source) && known(&one.target) {
                cells.insert(place, Cell::of_value(&one));
            }
        }
    }
    let failing = failing(hub, metric).await?;
    for (source, target, state) in inferred(hub, metric) {
        if known(&source) && known(&target) {
            cells.entry((source, target)).or_insert(state);
        }
    }
    for ((source, target), failing) in failing {
        if known(&source) && known(&target) {
            cells
                .entry((source.clone(), target.clone()))
                .or_insert_with(|| Cell::of_failing(&source, &target, &failing))
                .fail(failing);
        }
    }
    Ok((hosts, cells.into_values().collect()))
}

/// Of sites.
pub(crate) async fn of_sites(hub: &Hub, metric: Metric) -> Result<Cells, Problem> {
    let site_of = hub.sites();
    let since_ms = hub.now() - age_of(metric);
    let mut cells = Places::new();
    for value in hub.record.sites(&metrics_of(metric), since_ms, &site_of).await.map_err(Error::from)? {
        cells.insert((value.source.clone(), value.target.clone()), Cell::of_site(&value));
    }
    let place = |source: &Name, target: &Name| Some((site_of.get(source)?.clone(), site_of.get(target)?.clone()));
    let mut guesses: BTreeMap<(Name, Name), Vec<Cell>> = BTreeMap::new();
    for (source, target, cell) in inferred(hub, metric) {
        if let Some(place) = place(&source, &target).filter(|place| !cells.contains_key(place)) {
            guesses.entry(place).or_default().push(cell);
        }
    }
    for ((source, target), guesses) in guesses {
        let cell = Cell::of_guesses(&source, &target, guesses);
        cells.insert((source, target), cell);
    }
    for ((source, target), failing) in failing(hub, metric).await? {
        let Some((source, target)) = place(&source, &target) else { continue };
        let cell = cells
            .entry((source.clone(), target.clone()))
            .or_insert_with(|| Cell { pairs: Some(0), ..Cell::of_failing(&source, &target, &failing) });
        cell.failing_pairs = Some(cell.failing_pairs.unwrap_or(0) + 1);
        // Of several the one that has failed for longest.
        if cell.failing.as_ref().is_none_or(|other| failing.since_ms < other.since_ms) {
            cell.failing = Some(failing);
        }
    }
    let mut names: Vec<Name> = site_of.into_values().collect();
    names.sort();
    names.dedup();
    Ok((names, cells.into_values().collect()))
}

/// Pairs whose newest run gave no value.
async fn failing(hub: &Hub, metric: Metric) -> Result<BTreeMap<(Name, Name), Failing>, Problem> {
    let Some(kind) = kind_of(metric) else { return Ok(BTreeMap::new()) };
    let all = hub.record.outcomes(kind, hub.now() - age_of(metric)).await.map_err(Error::from)?;
    Ok(all.into_iter().filter_map(|one| Some(((one.agent.clone(), one.target.clone()), Failing::of(one)?))).collect())
}

/// Pairs that were not measured, with what the link carries that limits them.
fn inferred(hub: &Hub, metric: Metric) -> Vec<(Name, Name, Cell)> {
    let (found, at_ms) = (hub.tomography.found(), hub.now());
    let cell = |(source, target, inferred): (&Name, &Name, narrows_fleet::tomography::Inferred)| {
        let cell = Cell {
            source: source.to_string(),
            target: target.to_string(),
            state: INFERRED,
            value: Some(inferred.value.as_f64()),
            low: Some(inferred.low.as_f64()),
            high: Some(inferred.high.as_f64()),
            at_ms,
            reason: Some(format!("by {}", bottlenecks::name(&found.network, inferred.segment))),
            ..Cell::default()
        };
        (source.clone(), target.clone(), cell)
    };
    found.inferred(metric).into_iter().map(cell).collect()
}

impl Cell {
    fn of_value(one: &Latest) -> Self {
        Self {
            source: one.source.to_string(),
            target: one.target.to_string(),
            state: state_of(one.claim),
            value: Some(one.value),
            low: Some(one.low),
            high: Some(one.high),
            at_ms: one.at_ms,
            run: Some(one.run.to_string()),
            ..Self::default()
        }
    }

    fn of_site(value: &SiteValue) -> Self {
        Self {
            source: value.source.to_string(),
            target: value.target.to_string(),
            state: state_of(value.claim),
            value: Some(value.value),
            low: Some(value.low),
            high: Some(value.high),
            at_ms: value.oldest_ms,
            pairs: Some(value.pairs),
            ..Self::default()
        }
    }

    /// The median of several that were inferred.
    fn of_guesses(source: &Name, target: &Name, mut guesses: Vec<Self>) -> Self {
        let count = guesses.len();
        guesses.sort_by(|one, other| one.value.unwrap_or(0.0).total_cmp(&other.value.unwrap_or(0.0)));
        let of = |at: usize| guesses.get(at).and_then(|guess| guess.value);
        Self {
            source: source.to_string(),
            target: target.to_string(),
            state: INFERRED,
            value: of(count / 2),
            low: of(0),
            high: of(count.saturating_sub(1)),
            at_ms: guesses.first().map_or(0, |guess| guess.at_ms),
            pairs: Some(0),
            ..Self::default()
        }
    }

    /// Nothing else is known of the pair.
    fn of_failing(source: &Name, target: &Name, failing: &Failing) -> Self {
        Self {
            source: source.to_string(),
            target: target.to_string(),
            state: failing.state,
            at_ms: failing.at_ms,
            run: Some(failing.run.clone()),
            reason: failing.reason.clone(),
            ..Self::default()
        }
    }

    /// A run gave no value. One that is newer than the value says that the value is of before.
    fn fail(&mut self, failing: Failing) {
        if self.state == INFERRED || failing.at_ms >= self.at_ms {
            self.failing = Some(failing);
        }
    }
}

impl Failing {
    fn of(one: LastOutcome) -> Option<Self> {
        let state = match one.exit {
            Exit::Inconclusive => "inconclusive",
            Exit::PeerFailed | Exit::HostFailed => "failed",
            Exit::Done | Exit::Skipped | Exit::Stopped | Exit::Void => return None,
        };
        let since_ms = one.failing_since_ms.unwrap_or(one.at_ms);
        Some(Self { state, since_ms, at_ms: one.at_ms, run: one.run.to_string(), reason: one.reason })
    }
}

const fn state_of(claim: Claim) -> &'static str {
    match claim {
        Claim::Estimate => "value",
        Claim::AtLeast => "at_least",
        Claim::AtMost => "at_most",
        Claim::Inconclusive => "inconclusive",
    }
}

/// The metrics of which the newest value stands in a cell: TCP is TCP, by how many connections so
/// ever.
fn metrics_of(metric: Metric) -> Vec<Metric> {
    let also = (metric == Metric::TcpAchievableSingle).then_some(Metric::TcpAchievableParallel);
    [metric].into_iter().chain(also).collect()
}

/// How old a value may be that is shown: a capacity holds for weeks.
fn age_of(metric: Metric) -> i64 {
    if metric == Metric::IpCapacity { 35 * DAY_MS } else { 7 * DAY_MS }
}

/// The kind of run that measures a metric. Runs of other kinds say nothing of it.
const fn kind_of(metric: Metric) -> Option<&'static str> {
    match metric {
        Metric::AvailableIpCapacity | Metric::CrossTraffic => Some("available"),
        Metric::IpCapacity => Some("capacity"),
        Metric::RoundTripTime => Some("rtt"),
        Metric::MaximumBurstOctets => Some("burst"),
        Metric::TcpAchievableSingle | Metric::TcpAchievableParallel | Metric::UdpAchievable => Some("throughput"),
        _ => None,
    }
}

const INFERRED: &str = "inferred";
const DAY_MS: i64 = 86_400_000;
