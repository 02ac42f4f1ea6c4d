//! *Prove*: whether two paths share a link, by what one has available while the other is loaded.

use std::collections::{BTreeMap, BTreeSet};

use narrows_fleet::keys::{Key, Name};
use narrows_fleet::message::{Claim, Direction, Flag, Run, Value};
use narrows_fleet::sharing::{Available, Proof, prove};
use narrows_fleet::topology::Pair;
use narrows_units::{BitRate, Metric};
use uuid::Uuid;

use crate::directory::{Presence, presence};
use crate::error::{Error, Result};
use crate::hub::bottlenecks::{Bottleneck, bottlenecks, hosts};
use crate::hub::comparisons::{BEGIN_MS, NEVER_BEGAN};
use crate::hub::give::Terms;
use crate::hub::proofs::{ProofRow, ProofState, Trial, TrialOrders};
use crate::hub::tomography::Findings;
use crate::hub::{HUB, Hub};
use crate::network::Network;

type Ends = (Name, Name);

impl Hub {
    /// Begins a proof of a bottleneck: loads one path over it, and looks at another one.
    pub async fn prove(&self, id: &str, who: &str) -> Result<()> {
        let found = self.tomography.found();
        let all = [&found.available, &found.capacity].map(|located| bottlenecks(&found.network, located));
        let mut named = all.iter().flatten().filter(|one| one.id == id);
        let one = named.next().ok_or_else(|| Error::Missing(format!("bottleneck \"{id}\"")))?;
        let least = named.map(|other| other.value.value).fold(one.value.value, BitRate::min);
        let load = LOAD_SHARE * least.as_f64();
        let [a, b] = self.two_paths(&found, one, load)?;
        let row = ProofRow { state: ProofState::Running, ratio: None, why: None, at_ms: self.now() };
        let keys = self.keys_of(&found.network, [&a, &b]);
        let mut trial = Trial { row, keys, b: b.clone(), orders: None };
        // From here on no other proof begins over these paths, whichever hub is asked.
        self.record.begin_proof(&trial.kept(id)).await?;
        self.proofs.put(id, trial.clone());
        match self.order_proof(&a, &b, load, who).await {
            Ok(orders) => {
                trial.orders = Some(orders);
                self.record.set_proof(&trial.kept(id)).await?;
                self.proofs.put(id, trial);
                Ok(())
            }
            Err(error) => {
                self.end_proof(id, trial, None, Some(error.to_string())).await?;
                Err(error)
            }
        }
    }

    /// Gives the orders of a proof: loads on one path, and looks at the other one.
    async fn order_proof(&self, a: &Ends, b: &Ends, load: f64, who: &str) -> Result<TrialOrders> {
        let begin = self.now() + STEP_MS;
        // One lease over both paths: no other load than ours is on the one that is looked at.
        let both = |at| Terms { earliest: Some(at), also: Some(b), ..Terms::default() };
        let command = command_of(load);
        let load = |at| self.order_at(&a.0, &a.1, &command, who, both(at));
        let first = load(begin).await?;
        let second = load(first.at_ms + 2 * STEP_MS).await?;
        let mut looks = [[Uuid::nil(); 2]; 4];
        let times = [first.at_ms - STEP_MS, first.at_ms, second.at_ms - STEP_MS, second.at_ms];
        for ((look, at), beside) in looks.iter_mut().zip(times).zip([None, Some(&a.0), None, Some(&a.0)]) {
            for (id, into) in look.iter_mut().zip(INTO_MS) {
                let terms = Terms { earliest: Some(at + into), beside, ..Terms::default() };
                *id = self.order_at(&b.0, &b.1, "available", who, terms).await?.id;
            }
        }
        Ok(TrialOrders { loads: [first.id, second.id], looks })
    }

    /// What both paths cross. Of a link one slot stands for all.
    fn keys_of(&self, network: &Network, paths: [&Ends; 2]) -> Vec<Key> {
        let all = paths.into_iter().flat_map(|(source, target)| self.resources_of(network, source, target));
        all.map(|resource| resource.key(0)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// A path to load and one to look at, over a bottleneck and without a common host.
    ///
    /// The one that is looked at is held back by it. The other one needs only cross it: of few
    /// paths it is known what holds them back, of most that ever were traced where they go.
    fn two_paths(&self, found: &Findings, one: &Bottleneck, load: f64) -> Result<[(Name, Name); 2]> {
        let named = |pairs: &[Pair]| -> Vec<(Pair, (Name, Name))> {
            let all = pairs.iter().map(|pair| (*pair, hosts(&found.network, *pair)));
            all.filter(|(_, (source, target))| self.is_there(source) && self.is_there(target)).collect()
        };
        let held = named(&one.paths);
        let mut others = named(&found.network.graph.segments()[one.segment.0 as usize].pairs);
        others.retain(|(pair, _)| !one.paths.contains(pair));
        // What another link keeps below the load is the last choice.
        let is_narrow = |pair: &Pair| {
            let latest = found.available.latest.get(pair);
            latest.is_some_and(|one| matches!(one.claim, Claim::Estimate | Claim::AtMost) && one.high < load)
        };
        others.sort_by_key(|(pair, _)| is_narrow(pair));
        let apart =
            |a: &(Name, Name), b: &(Name, Name)| ![&b.0, &b.1].iter().any(|host| **host == a.0 || **host == a.1);
        let two = held.iter().chain(&others).find_map(|(_, a)| {
            let b = held.iter().map(|(_, b)| b).find(|b| apart(a, b))?;
            Some([a.clone(), b.clone()])
        });
        two.ok_or_else(|| Error::Conflict(NEEDS_TWO.to_owned()))
    }

    /// Reads proofs of hubs before this one and beside it.
    pub(crate) async fn recall_proofs(&self) -> Result<()> {
        self.proofs.learn(self.record.proofs().await?);
        Ok(())
    }

    /// Ends those of these proofs whose runs are all there, or lost.
    pub(super) async fn judge_proofs(&self, running: Vec<(String, Trial)>) -> Result<()> {
        for (id, trial) in running {
            let Some(orders) = trial.orders else {
                if self.now() > trial.row.at_ms + BEGIN_MS {
                    self.end_proof(&id, trial, None, Some(NEVER_BEGAN.to_owned())).await?;
                }
                continue;
            };
            let Some(runs) = self.runs_of(&orders.all().collect::<Vec<_>>()).await? else { continue };
            let (ratio, why) = match proof(&orders, &runs, self.variation(&trial.b).await?) {
                Ok(proof) => (prove(&proof), None),
                Err(why) => (None, Some(why)),
            };
            self.end_proof(&id, trial, ratio, why).await?;
        }
        Ok(())
    }

    /// Whether a host's agent has been heard of lately.
    pub(super) fn is_there(&self, host: &Name) -> bool {
        let agent = self.directory.get(host);
        agent.is_some_and(|agent| matches!(presence(&agent, self.now()), Presence::Online | Presence::Late))
    }

    /// Ends a proof, unless another hub did.
    async fn end_proof(&self, id: &str, mut trial: Trial, ratio: Option<f64>, why: Option<String>) -> Result<()> {
        let (state, now) = (ProofState::of(ratio), self.now());
        let text = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        trial.row = ProofRow { state, ratio, why, at_ms: now };
        if self.record.set_proof(&trial.kept(id)).await? {
            self.record.audit(HUB, "proof.ended", &format!("{id}: {}{text}", state.as_str()), now).await?;
            self.proofs.put(id, trial);
            Ok(())
        } else {
            self.recall_proofs().await
        }
    }

    /// How much a pair's available rate differs from one look to the next, as a share of it.
    async fn variation(&self, (source, target): &(Name, Name)) -> Result<f64> {
        let range = narrows_record::Range { since_ms: self.now() - 86_400_000, until_ms: self.now() };
        let points = self.record.series(source, target, Metric::AvailableIpCapacity, range, 200).await?;
        // Looks beside a load are not among them: that is no variation of the path.
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
fn command_of(load: f64) -> String {
    let rate = BitRate::from_bps_f64(load).unwrap_or(BitRate::ZERO);
    format!("throughput -u -b {} -t {LOAD_SECONDS}", rate.bps())
}

/// What the runs say, by their orders; or what is missing.
fn proof(orders: &TrialOrders, runs: &BTreeMap<Uuid, Run>, variation: f64) -> std::result::Result<Proof, String> {
    let of = |order: &Uuid, metrics: &[Metric]| -> Option<Value> {
        let fits = |value: &&Value| metrics.contains(&value.metric) && value.direction == Direction::Forward;
        runs.get(order)?.values.iter().find(fits).copied()
    };
    let lacks = |what: &str, missing: &[Uuid]| {
        let reason = missing.iter().rev().find_map(|order| runs.get(order)?.reason.clone());
        format!("{what}: {}", reason.as_deref().unwrap_or("its run was lost"))
    };
    // What a load sent it sent, even if the path carries more.
    let sent = [Metric::TcpAchievableParallel, Metric::TcpAchievableSingle, Metric::UdpAchievable];
    let load = |order: &Uuid| {
        let value = of(order, &sent).filter(|value| matches!(value.claim, Claim::Estimate | Claim::AtLeast));
        value.map(|value| value.value).ok_or_else(|| lacks("a load was not sent", &[*order]))
    };
    let load = load(&orders.loads[0])?.min(load(&orders.loads[1])?);
    let look = |at: usize| {
        let beside_load = at % 2 == 1;
        // A load of somebody else crossed it: it shows neither the one nor the other.
        let crossed = |run: &Run| !beside_load && run.flags.contains(&Flag::OwnLoad);
        let looks = orders.looks[at].iter().filter(|order| !runs.get(*order).is_some_and(crossed));
        let found: Vec<Available> =
            looks.filter_map(|order| available(&of(order, &[Metric::AvailableIpCapacity])?)).collect();
        // A number says more than a bound.
        let best = found.iter().find(|one| matches!(one, Available::Estimate { .. })).or_else(|| found.first());
        let beside = if beside_load { "beside the load" } else { "without the load" };
        best.copied().ok_or_else(|| lacks(&format!("nothing was read {beside}"), &orders.looks[at]))
    };
    let available = [look(0)?, look(1)?, look(2)?, look(3)?];
    let load = BitRate::from_bps_f64(load).ok_or("a load that is no rate")?;
    Ok(Proof { available, load, variation })
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

const NEEDS_TWO: &str = "a proof needs two paths over this link whose four hosts differ and are there: one that it holds \
                         back, and another one that was traced over it";
/// Looks are so far apart.
const STEP_MS: i64 = 60_000;
/// A look begins when the load is steady; the second one is over before the load.
const INTO_MS: [i64; 2] = [8_000, 17_000];
/// Of what the link has available: enough to be missed by who looks, and room for what others send.
const LOAD_SHARE: f64 = 0.7;
/// Longer than two looks take.
const LOAD_SECONDS: u32 = 30;
/// Looks from which the variation of a path is known.
const FEWEST: usize = 6;
const UNKNOWN: f64 = 0.1;
const LEAST: f64 = 0.01;
