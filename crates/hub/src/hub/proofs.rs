//! *Prove*: whether two paths share a link, by what one has available while the other is loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Direction, Run, Value};
use narrows_fleet::sharing::{Available, Proof, Verdict, prove};
use narrows_units::{BitRate, Metric};
use serde::Serialize;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::hub::bottlenecks::{bottlenecks, hosts};
use crate::hub::orders::Terms;

/// Proofs since the start of the hub, by bottleneck.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    all: Mutex<BTreeMap<String, Trial>>,
    runs: Mutex<BTreeSet<Uuid>>,
}

/// Two loading runs over one path, and four looks at the other.
#[derive(Debug, Clone)]
struct Trial {
    row: ProofRow,
    b: (Name, Name),
    /// Orders in time: without, load, with, without, load, with.
    orders: [Uuid; 6],
}

/// How far a proof is.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ProofRow {
    /// `running`, `shared`, `not_shared` or `inconclusive`.
    pub(crate) state: &'static str,
    /// How much likelier the values are if the load of one takes from the other.
    pub(crate) ratio: Option<f64>,
    pub(crate) at_ms: i64,
}

impl Proofs {
    pub(crate) fn row(&self, bottleneck: &str) -> Option<ProofRow> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(bottleneck).map(|trial| trial.row.clone())
    }

    /// Whether a run belongs to a proof: what it read is not what is so without it.
    pub(crate) fn has_run(&self, run: Uuid) -> bool {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).contains(&run)
    }

    /// An order's run was stored; it may be one of ours.
    pub(crate) fn ran(&self, order: Uuid, run: Uuid) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.values().any(|trial| trial.orders.contains(&order)) {
            self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
        }
    }
}

impl Hub {
    /// Begins a proof of a bottleneck with two of its paths that have no host in common.
    pub async fn prove(&self, id: &str, who: &str) -> Result<()> {
        let found = self.tomography.found();
        let all = [&found.available, &found.capacity].map(|located| bottlenecks(&found.network, located));
        let mut named = all.iter().flatten().filter(|one| one.id == id);
        let one = named.next().ok_or_else(|| Error::Missing(format!("bottleneck \"{id}\"")))?;
        let least = named.map(|other| other.value.value).fold(one.value.value, BitRate::min);
        if self.proofs.row(id).is_some_and(|row| row.state == RUNNING) {
            return Err(Error::Request("this proof is running".to_owned()));
        }
        let paths: Vec<(Name, Name)> = one.paths.iter().map(|pair| hosts(&found.network, *pair)).collect();
        let apart =
            |a: &&(Name, Name), b: &&(Name, Name)| ![&b.0, &b.1].iter().any(|host| **host == a.0 || **host == a.1);
        let two = paths.iter().find_map(|a| Some((a, paths.iter().find(|b| apart(&a, b))?)));
        let needs = || Error::Request("a proof needs two of its paths without a common host".to_owned());
        let (a, b) = two.ok_or_else(needs)?;
        let begin = self.now() + STEP_MS;
        let look = |at, beside| Terms { earliest: Some(at), beside, ..Terms::default() };
        let observe = |at| self.order_at(&b.0, &b.1, "available", who, look(at, None));
        let beside = |at| self.order_at(&b.0, &b.1, "available", who, look(at, Some(&a.0)));
        // One lease over both paths: no other load than ours is on the one that is looked at.
        let both = |at| Terms { earliest: Some(at), also: Some(b), ..Terms::default() };
        let command = load_of(least);
        let load = |at| self.order_at(&a.0, &a.1, &command, who, both(at));
        let first = load(begin).await?;
        let second = load(first.at_ms + 2 * STEP_MS).await?;
        let orders = [
            observe(first.at_ms - STEP_MS + INTO_MS).await?.id,
            first.id,
            beside(first.at_ms + INTO_MS).await?.id,
            observe(second.at_ms - STEP_MS + INTO_MS).await?.id,
            second.id,
            beside(second.at_ms + INTO_MS).await?.id,
        ];
        let row = ProofRow { state: RUNNING, ratio: None, at_ms: self.now() };
        let trial = Trial { row, b: b.clone(), orders };
        self.proofs.all.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), trial);
        Ok(())
    }

    /// Ends the proofs whose runs are all there, or lost.
    pub(crate) async fn judge_proofs(&self) -> Result<()> {
        self.orders.expire(self.now());
        let running = |trial: &Trial| trial.row.state == RUNNING;
        let open: Vec<(String, Trial)> = {
            let all = self.proofs.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().filter(|(_, trial)| running(trial)).map(|(id, trial)| (id.clone(), trial.clone())).collect()
        };
        for (id, trial) in open {
            let rows = trial.orders.map(|order| self.orders.row(order));
            let ended = |row: &Option<crate::hub::orders::OrderRow>| {
                row.as_ref().is_none_or(|row| row.run.is_some() || row.state == "lost")
            };
            if !rows.iter().all(ended) {
                continue;
            }
            let mut runs = Vec::new();
            for row in rows.into_iter().flatten() {
                if let Some(run) = row.run {
                    runs.push(self.record.run(run).await?);
                }
            }
            let variation = self.variation(&trial.b).await?;
            let ratio = proof(&runs, variation).and_then(|proof| prove(&proof));
            let state = match ratio.map(Verdict::of) {
                Some(Verdict::Shared) => "shared",
                Some(Verdict::NotShared) => "not_shared",
                Some(Verdict::Inconclusive) | None => "inconclusive",
            };
            let now = self.now();
            self.record.audit("hub", "proof.ended", &format!("{id}: {state}"), now).await?;
            if let Some(trial) = self.proofs.all.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&id) {
                trial.row = ProofRow { state, ratio, at_ms: now };
            }
        }
        Ok(())
    }

    /// How much a pair's available rate differs from one look to the next, as a share of it.
    async fn variation(&self, (source, target): &(Name, Name)) -> Result<f64> {
        let range = narrows_record::Range { since_ms: self.now() - 86_400_000, until_ms: self.now() };
        let points = self.record.series(source, target, Metric::AvailableIpCapacity, range, 200).await?;
        let mut steps: Vec<f64> = points
            .windows(2)
            // Bounds differ by what ended each search, and not by the path.
            .filter(|two| two.iter().all(|point| point.value > 0.0 && point.claim == Claim::Estimate))
            .map(|two| (two[1].value / two[0].value).ln().abs() / std::f64::consts::SQRT_2)
            .collect();
        steps.sort_by(f64::total_cmp);
        // Steps are half-normal: their median is 0.6745 of the standard deviation.
        Ok(if steps.len() < FEWEST { UNKNOWN } else { (steps[steps.len() / 2] / 0.6745).max(LEAST) })
    }
}

/// A load of UDP packets at a steady rate. TCP would give way to the looks, by what they take.
fn load_of(available: BitRate) -> String {
    let rate = BitRate::from_bps_f64(LOAD_SHARE * available.as_f64()).unwrap_or(BitRate::ZERO);
    format!("throughput -u -b {} -t {LOAD_SECONDS}", rate.bps())
}

/// What the six runs say, in the order of their orders.
fn proof(runs: &[Run], variation: f64) -> Option<Proof> {
    let [first, load, second, third, other_load, fourth] = runs else { return None };
    let of = |run: &Run, metrics: &[Metric]| -> Option<Value> {
        let fits = |value: &&Value| metrics.contains(&value.metric) && value.direction == Direction::Forward;
        run.values.iter().find(fits).copied()
    };
    let available = |run: &Run| available(&of(run, &[Metric::AvailableIpCapacity])?);
    // What a load sent it sent, even if the path carries more.
    let sent = [Metric::TcpAchievableParallel, Metric::TcpAchievableSingle, Metric::UdpAchievable];
    let loaded = |run: &Run| of(run, &sent).filter(|value| matches!(value.claim, Claim::Estimate | Claim::AtLeast));
    let loads = [loaded(load)?.value, loaded(other_load)?.value];
    let available = [available(first)?, available(second)?, available(third)?, available(fourth)?];
    Some(Proof { available, load: BitRate::from_bps_f64(loads[0].min(loads[1]))?, variation })
}

/// A bound stays a bound: only the side on which the truth lies is known.
fn available(value: &Value) -> Option<Available> {
    let [bound, low, high] = [value.value, value.low, value.high].map(BitRate::from_bps_f64);
    match value.claim {
        Claim::Estimate => Some(Available::Estimate { value: bound?, low: low?, high: high? }),
        Claim::AtLeast => Some(Available::AtLeast { value: bound?, low: low? }),
        Claim::AtMost => Some(Available::AtMost { value: bound?, high: high? }),
        Claim::Inconclusive => None,
    }
}

const RUNNING: &str = "running";
/// Looks are so far apart.
const STEP_MS: i64 = 60_000;
/// A look begins when the load is steady.
const INTO_MS: i64 = 8_000;
/// Of what the link has available: enough to be missed by who looks, and room for what others send.
const LOAD_SHARE: f64 = 0.7;
/// Longer than a look takes.
const LOAD_SECONDS: u32 = 30;
/// Looks from which the variation of a path is known.
const FEWEST: usize = 6;
const UNKNOWN: f64 = 0.1;
const LEAST: f64 = 0.01;
