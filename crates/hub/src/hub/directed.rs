//! What the hub itself wants measured: pairs that tell links apart or show them to be fast, and
//! runs of `hops` where no pair can.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use narrows_fleet::keys::Name;
use narrows_fleet::mesh::{EPOCH, fan_out};
use narrows_fleet::message::{Directed, Run};
use narrows_fleet::tomography::{HopsFinding, next_hops};
use narrows_fleet::topology::{Graph, LinkIndex, Pair};
use narrows_record::{Range, RunFilter};
use narrows_units::{BitRate, to_u32};
use serde::Deserialize;
use uuid::Uuid;

use super::bottlenecks::{hosts, next};
use super::tomography::{Findings, Located};
use crate::error::{Error, Result};
use crate::hub::{HUB, Hub};
use crate::network::Network;

/// What runs of `hops` said, by run: which hop is the narrow one, and its rate.
#[derive(Debug, Default)]
pub(crate) struct Walks {
    said: Mutex<BTreeMap<Uuid, Option<(u32, BitRate)>>>,
}

/// What is read of a document of `narrows hops`.
#[derive(Deserialize)]
struct Document {
    narrow_hop: Option<u32>,
    hops: Vec<Hop>,
}

#[derive(Deserialize)]
struct Hop {
    ttl: u32,
    capacity: Option<u64>,
    verdict: Option<String>,
}

impl Findings {
    /// Light runs beside the mesh, by source. The mesh has 70 % of what light runs may send; these
    /// have the rest, at every source and every target.
    pub(crate) fn directed(&self, members: &BTreeSet<&Name>) -> BTreeMap<Name, Vec<Directed>> {
        let most = (fan_out(to_u32(members.len())) * 3).div_ceil(7);
        let mut runs: BTreeMap<Name, Vec<Directed>> = BTreeMap::new();
        let mut at: BTreeMap<(bool, Name), u32> = BTreeMap::new();
        // In a small fleet the capacity of each pair is measured daily.
        let capacity = (members.len() > super::planner::MOST_DAILY + 1).then_some((&self.capacity, "capacity"));
        for (located, command) in capacity.into_iter().chain([(&self.available, "available")]) {
            for pair in next(&self.network, located, members.len() * WANTED_PER_HOST) {
                let (source, target) = hosts(&self.network, pair);
                let ends = [(true, source.clone()), (false, target.clone())];
                let is_full = |end| at.get(end).is_some_and(|count| *count >= most);
                if ends.iter().any(|end| is_full(end) || !members.contains(&end.1)) {
                    continue;
                }
                for end in ends {
                    *at.entry(end).or_default() += 1;
                }
                let every_ms = u64::try_from(EPOCH.as_millis()).ok();
                let run = Directed { target, command: vec![command.to_owned()], every_ms };
                runs.entry(source).or_default().push(run);
            }
        }
        runs
    }
}

impl Hub {
    /// What runs of `hops` of the last days found on today's routes, and the pairs that had one.
    pub(crate) async fn walks(&self, network: &Network, since_ms: i64) -> Result<(Vec<HopsFinding>, BTreeSet<Pair>)> {
        let range = Range { since_ms, until_ms: i64::MAX };
        let filter = RunFilter { agent: None, target: None, kind: Some(HOPS.to_owned()), range, limit: MOST };
        let rows = self.record.runs(&filter).await?;
        let known = self.walks.lock().keys().copied().collect::<BTreeSet<Uuid>>();
        for row in rows.iter().filter(|row| !known.contains(&row.id)) {
            let said = narrow(&self.record.run(row.id).await?);
            self.walks.lock().insert(row.id, said);
        }
        let mut said = self.walks.lock();
        said.retain(|id, _| rows.iter().any(|row| row.id == *id));
        let pair = |row: &narrows_record::RunRow| network.pair(&row.agent, &row.target);
        // The newest first, and the first of a pair counts.
        let found = rows.iter().filter_map(|row| {
            let (pair, (ttl, rate)) = (pair(row)?, (*said.get(&row.id)?)?);
            Some(HopsFinding { pair, link: link_at(&network.graph, pair, ttl)?, rate })
        });
        let mut seen = BTreeSet::new();
        let found = found.filter(|one| seen.insert(one.pair)).collect();
        Ok((found, rows.iter().filter_map(pair).collect()))
    }

    /// Orders a run of `hops` where no pair tells the links apart. One at a time, and only where
    /// the mesh had time to measure what else there is.
    pub(crate) async fn walk_if_needed(&self, mut tried: BTreeSet<Pair>) -> Result<()> {
        let (now, found) = (self.now(), self.tomography.found());
        let Located { estimate, latest } = &found.capacity;
        if self.orders.is_open(HOPS, now) || !next(&found.network, &found.capacity, 1).is_empty() {
            return Ok(());
        }
        tried.extend(latest.iter().filter(|(_, one)| one.at_ms + SETTLED_MS > now).map(|(pair, _)| *pair));
        for run in next_hops(&found.network.graph, estimate, &tried, TRIES) {
            let (source, target) = hosts(&found.network, run.pair);
            match self.order(&source, &target, HOPS, HUB).await {
                // A host that has left, or a link without room for it.
                Err(Error::Missing(_) | Error::Conflict(_)) => {}
                other => return other.map(|_| ()),
            }
        }
        Ok(())
    }
}

impl Walks {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Uuid, Option<(u32, BitRate)>>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The narrow hop of a run, and its rate; a bound tells no link.
fn narrow(run: &Run) -> Option<(u32, BitRate)> {
    let document = Document::deserialize(run.evidence.as_ref()?).ok()?;
    let ttl = document.narrow_hop?;
    let hop = document.hops.iter().find(|hop| hop.ttl == ttl && hop.verdict.as_deref() == Some("estimated"))?;
    Some((ttl, BitRate::from_bps(hop.capacity?)))
}

/// The link of a pair's route that a hop limit ends on; silent routers are within a link.
fn link_at(graph: &Graph, pair: Pair, ttl: u32) -> Option<LinkIndex> {
    let mut hops = 0;
    graph.route(pair)?.links.iter().copied().find(|link| {
        hops += 1 + graph.links()[link.0 as usize].silent;
        ttl <= hops
    })
}

const HOPS: &str = "hops";
/// Paths that are tried for one run.
const TRIES: usize = 3;
/// Pairs asked for at a time, a host of the fleet. Ours: what a host may do beside the mesh.
const WANTED_PER_HOST: usize = 4;
/// The newest runs of `hops` that count.
const MOST: usize = 500;
/// The mesh measures what else is on the way within this time.
const SETTLED_MS: i64 = 3_600_000;
