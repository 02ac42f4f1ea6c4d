//! Which links hold paths back, from the newest values and routes; made again when results came,
//! at most every 30 s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use narrows_fleet::keys::Name;
use narrows_fleet::message::Claim as Said;
use narrows_fleet::tomography::{Claim, Estimate, HopsFinding, Inferred, Reading};
use narrows_fleet::topology::{LinkIndex, Pair};
use narrows_record::Latest;
use narrows_units::{BitRate, Metric, to_u32};

use crate::error::Result;
use crate::hub::Hub;
use crate::hub::bottlenecks::{Bottleneck, bottlenecks, name, suspects};
use crate::network::{Bounds, Network};

/// The newest findings, of each metric that has any.
#[derive(Debug, Default)]
pub(crate) struct Tomography {
    now: RwLock<Arc<Findings>>,
    ready: AtomicBool,
}

/// What the newest values say.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) network: Network,
    pub(crate) capacity: Located,
    pub(crate) available: Located,
}

/// What the values of one metric say.
#[derive(Debug, Default)]
pub(crate) struct Located {
    pub(crate) estimate: Estimate,
    pub(crate) latest: BTreeMap<Pair, Latest>,
}

impl Tomography {
    pub(crate) fn found(&self) -> Arc<Findings> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether anything was looked at yet.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }
}

impl Findings {
    /// The least that each link carries, by its number.
    pub(crate) fn bounds(&self) -> Bounds {
        let all = (0..self.network.graph.links().len()).map(|at| LinkIndex(to_u32(at)));
        let bound = |link| {
            let segment = self.network.graph.segment_of(link)?;
            Some((self.network.id(link), self.capacity.estimate.lower_bound(segment)?))
        };
        all.filter_map(bound).collect()
    }

    /// Of a metric that links have.
    pub(crate) fn of(&self, metric: Metric) -> Option<&Located> {
        match metric {
            Metric::IpCapacity => Some(&self.capacity),
            Metric::AvailableIpCapacity => Some(&self.available),
            _ => None,
        }
    }

    /// The values of all pairs that were traced and not measured.
    pub(crate) fn inferred(&self, metric: Metric) -> Vec<(&Name, &Name, Inferred)> {
        let Some(located) = self.of(metric) else { return Vec::new() };
        let (network, pairs) = (&self.network, self.network.graph.routes().map(|(pair, _)| pair));
        let unmeasured = pairs.filter(|pair| !located.latest.contains_key(pair));
        let value = |pair: Pair| {
            let inferred = located.estimate.infer(&network.graph, pair)?;
            Some((network.name(pair.source), network.name(pair.target), inferred))
        };
        unmeasured.filter_map(value).collect()
    }

    /// The value of a pair that nobody measured.
    pub(crate) fn infer(&self, metric: Metric, source: &Name, target: &Name) -> Option<Inferred> {
        let pair = self.network.pair(source, target)?;
        let located = self.of(metric)?;
        if located.latest.contains_key(&pair) { None } else { located.estimate.infer(&self.network.graph, pair) }
    }
}

impl Hub {
    /// Locates whenever results came, until the future is dropped.
    pub(crate) async fn locate_always(&self) {
        loop {
            if let Err(error) = self.locate().await {
                tracing::warn!(%error, "no link could be located");
            }
            tokio::time::sleep(AT_MOST_EVERY).await;
            // Time passes for alerts, also where no result comes.
            while tokio::time::timeout(AT_MOST_EVERY, self.news.notified()).await.is_err() {
                self.tell_alerts_or_say().await;
            }
        }
    }

    /// Locates now, and orders what is needed where links cannot be told apart.
    pub async fn locate(&self) -> Result<()> {
        let walked = self.locate_only().await?;
        self.tell_alerts_or_say().await;
        if let Err(error) = self.walk_if_needed(walked).await {
            tracing::debug!(%error, "no run of hops was ordered");
        }
        if let Err(error) = self.group_if_suspected().await {
            tracing::debug!(%error, "no grouping by delays was ordered");
        }
        Ok(())
    }

    /// The pairs that had a run of `hops` are returned.
    pub(super) async fn locate_only(&self) -> Result<BTreeSet<Pair>> {
        let now = self.now();
        let network = self.network(now).await?;
        let (hops, walked) = self.walks(&network, now - CAPACITY_MS).await?;
        let capacity = self.located(&network, Metric::IpCapacity, now - CAPACITY_MS, &hops).await?;
        // A link's rate says little of what it has free.
        let available = self.located(&network, Metric::AvailableIpCapacity, now - AVAILABLE_MS, &[]).await?;
        let found = Arc::new(Findings { network, capacity, available });
        *self.tomography.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&found);
        self.tomography.ready.store(true, Ordering::Relaxed);
        self.changed();
        self.judge_alerts(&found, now);
        Ok(walked)
    }

    /// The links that hold paths back, by the newest findings; none of a metric that links do not
    /// have.
    pub fn bottlenecks(&self, metric: Metric) -> Vec<Bottleneck> {
        let found = self.tomography.found();
        found.of(metric).map_or_else(Vec::new, |located| bottlenecks(&found.network, located))
    }

    /// The fewest links that explain the paths of which several may be why, and how many paths each
    /// explains.
    pub fn suspects(&self, metric: Metric) -> Vec<(String, usize)> {
        let found = self.tomography.found();
        let Some(located) = found.of(metric) else { return Vec::new() };
        let all = suspects(&found.network, located).into_iter();
        all.map(|one| (name(&found.network, one.segment), one.pairs.len())).collect()
    }

    async fn located(&self, network: &Network, metric: Metric, since_ms: i64, hops: &[HopsFinding]) -> Result<Located> {
        let mut latest = BTreeMap::new();
        for one in self.record.latest(metric, since_ms).await? {
            if let Some(pair) = network.pair(&one.source, &one.target) {
                latest.insert(pair, one);
            }
        }
        let readings: Vec<Reading> = latest.iter().filter_map(|(pair, one)| reading(*pair, one)).collect();
        Ok(Located { estimate: Estimate::new(&network.graph, &readings, hops), latest })
    }
}

fn reading(pair: Pair, one: &Latest) -> Option<Reading> {
    let claim = match one.claim {
        Said::Estimate => Claim::Estimate,
        Said::AtLeast => Claim::AtLeast,
        Said::AtMost | Said::Inconclusive => return None,
    };
    let rate = BitRate::from_bps_f64;
    Some(Reading { pair, claim, value: rate(one.value)?, low: rate(one.low)?, high: rate(one.high)? })
}

/// How long a capacity counts: links seldom change, and each path is measured daily.
const CAPACITY_MS: i64 = 3 * 86_400_000;
/// How long an available rate counts. Ours: two epochs of the mesh.
const AVAILABLE_MS: i64 = 2 * 3_600_000;
const AT_MOST_EVERY: Duration = Duration::from_secs(30);
