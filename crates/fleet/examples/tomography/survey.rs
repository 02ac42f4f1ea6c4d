//! One fleet over one network: traces, the mesh, directed runs, runs of `hops`, and how all that
//! compares with the truth.

use std::collections::{BTreeMap, BTreeSet};

use narrows_fleet::tomography::{Claim, Estimate, Finding, HopsFinding, Reading, next_hops, next_runs};
use narrows_fleet::topology::{Aliases, Graph, HostIndex, LinkIndex, Pair, SegmentIndex, Trace};
use narrows_units::BitRate;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use super::network::{KINDS, Kind, Network, log_uniform};

/// How single runs err.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Errors {
    /// Standard deviation of `ln` of a value.
    pub(crate) spread: f64,
    /// What intervals claim, as a share of that.
    pub(crate) claimed: f64,
    /// Share of runs that give a lower bound only.
    pub(crate) bounds: f64,
    /// Share of runs without an answer.
    pub(crate) none: f64,
    /// Share of values that are off by more than 5 %, in either direction.
    pub(crate) wrong: f64,
}

/// Errors of 1.2 %.
pub(crate) const WIDE: Errors = Errors { spread: 0.012, claimed: 1.0, bounds: 0.0, none: 0.0, wrong: 0.0 };
/// Intervals of 90 % that are 1.2 % wide.
pub(crate) const NARROW: Errors = Errors { spread: 0.003_65, ..WIDE };
/// The same with the shares of senders that can fill the link in docs/results/capacity-grid.md: of
/// 28 452 runs 3 787 bounds and 621 without answer; of 24 044 values 31 off by more than 5 %.
pub(crate) const AS_RECORDED: Errors =
    Errors { spread: 0.003_65, claimed: 1.0, bounds: 0.133, none: 0.022, wrong: 0.0013 };

/// Surveys `graphs` networks of 20 to 150 hosts or of `hosts`, half of them plain, the other kinds
/// in turn.
pub(crate) fn surveys(graphs: u64, seed: u64, hosts: Option<usize>, errors: Errors) -> BTreeMap<Kind, Vec<Score>> {
    let mut scores: BTreeMap<Kind, Vec<Score>> = BTreeMap::new();
    for at in 0..graphs {
        let kind = if at % 2 == 0 { Kind::Plain } else { KINDS[1 + (at / 2 % 5) as usize] };
        let hosts = hosts.unwrap_or([20, 30, 40, 50, 60, 80, 100, 150][(at / 10 % 8) as usize]);
        let network = Network::draw(seed + at, kind, hosts);
        scores.entry(kind).or_default().push(Survey::new(network, seed + at + 1_000_000, errors).score());
    }
    scores
}

/// Of all pairs of one network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Score {
    pub(crate) hosts: u64,
    pub(crate) pairs: u64,
    pub(crate) runs: u64,
    /// Measured pairs with a value.
    pub(crate) valued: u64,
    pub(crate) hops_runs: u64,
    /// After steps 4 and 5.
    pub(crate) located: [u64; 2],
    pub(crate) right: [u64; 2],
    /// Right, or a link that is at most 5 % faster was named.
    pub(crate) near: [u64; 2],
    pub(crate) contradicted: u64,
    /// Pairs without a run that gave a value: those to infer.
    pub(crate) rest: u64,
    pub(crate) inferred: [u64; 2],
    /// Relative errors of what is located or inferred in the end.
    pub(crate) errors: Vec<f64>,
    /// Located segments with a value, and those whose interval holds the truth.
    pub(crate) segments: u64,
    pub(crate) covered: u64,
    /// The same of inferred pairs.
    pub(crate) inferred_covered: u64,
    /// Sum of the confidences of located pairs.
    pub(crate) confidence: f64,
}

/// A network with what the fleet knows of it.
pub(crate) struct Survey {
    network: Network,
    paths: BTreeMap<Pair, Vec<usize>>,
    graph: Graph,
    errors: Errors,
    rng: Pcg64,
    readings: BTreeMap<Pair, Reading>,
    runs: u64,
}

impl Survey {
    pub(crate) fn new(network: Network, seed: u64, errors: Errors) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut paths = BTreeMap::new();
        for source in 0..network.hosts {
            for (target, path) in network.paths_from(source, 0) {
                paths.insert(pair(source, target), path);
            }
        }
        let traces: Vec<Trace> =
            paths.iter().map(|(pair, path)| Trace { pair: *pair, responders: network.responders(path) }).collect();
        let mut aliases = Aliases::default();
        for router in network.known_aliases(&mut rng) {
            for address in &router[1..] {
                aliases.same_router(router[0], *address);
            }
        }
        aliases.join_subnet_mates(&traces);
        let graph = Graph::new(&traces, &aliases);
        Self { network, paths, graph, errors, rng, readings: BTreeMap::new(), runs: 0 }
    }

    /// Runs `2 n ln n` measurements, 70 % by rotation and 30 % directed, then `hops` where needed.
    pub(crate) fn score(mut self) -> Score {
        let hosts = self.network.hosts;
        let budget = (2.0 * hosts as f64 * (hosts as f64).ln()).ceil() as u64;
        self.mesh(budget * 7 / 10);
        for round in 0..ROUNDS {
            let left = budget.saturating_sub(self.runs);
            let limit = left.div_ceil(ROUNDS - round) as usize;
            let chosen = next_runs(&self.graph, &self.estimate(&[]), |_| 1.0, limit);
            for pair in chosen {
                self.measure(pair);
            }
        }
        let mut score =
            Score { hosts: hosts as u64, pairs: self.paths.len() as u64, runs: self.runs, ..Score::default() };
        let before = self.estimate(&[]);
        self.count(&before, &mut score, 0);
        let (hops, hops_runs) = self.locate_by_hops();
        score.hops_runs = hops_runs;
        let after = self.estimate(&hops);
        self.count(&after, &mut score, 1);
        self.judge_values(&after, &mut score);
        score
    }

    fn estimate(&self, hops: &[HopsFinding]) -> Estimate {
        let readings: Vec<Reading> = self.readings.values().copied().collect();
        Estimate::new(&self.graph, &readings, hops)
    }

    /// All pairs, by distance in the list: each host measures the hosts at the same distances from
    /// it.
    fn rotation_of(&mut self, runs: u64) -> Vec<Pair> {
        let hosts = self.network.hosts;
        let mut offsets: Vec<usize> = (1..hosts).collect();
        offsets.shuffle(&mut self.rng);
        let by_distance =
            offsets.iter().flat_map(|offset| (0..hosts).map(move |host| pair(host, (host + offset) % hosts)));
        by_distance.take(runs as usize).collect()
    }

    fn mesh(&mut self, runs: u64) {
        for pair in self.rotation_of(runs) {
            self.measure(pair);
        }
    }

    /// The pairs of a mesh of `2 n ln n` runs.
    pub(crate) fn rotation(&mut self) -> Vec<Pair> {
        let hosts = self.network.hosts as f64;
        self.rotation_of((2.0 * hosts * hosts.ln()).ceil() as u64)
    }

    /// Measures pairs while links carry what `network` says, and names the first link of the
    /// segment that limits each located pair.
    pub(crate) fn window(&mut self, network: Network, seed: u64, pairs: &[Pair]) -> BTreeMap<Pair, LinkIndex> {
        self.set_rates(network);
        self.rng = Pcg64::seed_from_u64(seed);
        self.readings.clear();
        for pair in pairs {
            self.measure(*pair);
        }
        let named = |(pair, finding): (&Pair, &Finding)| match finding {
            Finding::Located { segment, .. } => Some((*pair, self.graph.segments()[segment.0 as usize].links[0])),
            Finding::Several(_) | Finding::Contradicted => None,
        };
        self.estimate(&[]).findings().iter().filter_map(named).collect()
    }

    /// The same network with links of other rates.
    pub(crate) fn set_rates(&mut self, network: Network) {
        self.network = network;
    }

    /// Whether the segment of a link holds a link that limits the pair now, or one that is faster
    /// by less than this factor.
    pub(crate) fn is_limited_by(&self, pair: Pair, link: LinkIndex, factor: f64) -> bool {
        let segment = self.graph.segment_of(link).map(|segment| &self.graph.segments()[segment.0 as usize].links);
        let covered = segment.map(|links| self.covered_by(pair, links)).unwrap_or_default();
        self.limiting(pair, factor).iter().any(|one| covered.contains(one))
    }

    fn measure(&mut self, pair: Pair) {
        self.runs += 1;
        let source = pair.source.0 as usize;
        let mut path = self.paths[&pair].clone();
        if self.network.kind == Kind::RouteChanges && self.rng.random_bool(0.03) {
            if self.rng.random_bool(0.9) {
                // The traces before and after differ: the run is void.
                return;
            }
            path = self.network.path(source, pair.target.0 as usize, self.rng.random_range(1..5));
        }
        let truth = self.network.slowest(&path, source);
        let noise: f64 = StandardNormal.sample(&mut self.rng);
        let mut value = truth * (self.errors.spread * noise).exp();
        let mut claim = Claim::Estimate;
        let drawn: f64 = self.rng.random();
        if drawn < self.errors.none {
            return;
        } else if drawn < self.errors.none + self.errors.bounds {
            claim = Claim::AtLeast;
            value = truth * log_uniform(&mut self.rng, 0.5, 1.0);
        } else if drawn > 1.0 - self.errors.wrong {
            let off = log_uniform(&mut self.rng, 1.05, 1.5);
            value = truth * if self.rng.random_bool(0.5) { off } else { 1.0 / off };
        }
        let rate = |factor: f64| BitRate::from_bps_f64(value * factor).unwrap_or(BitRate::from_bps(0));
        let half = (1.645 * self.errors.spread * self.errors.claimed).exp();
        let reading = Reading { pair, claim, value: rate(1.0), low: rate(1.0 / half), high: rate(half) };
        self.readings.insert(pair, reading);
    }

    /// Runs `hops` until nothing waits. It answers in nine of ten runs; one answer in a hundred is
    /// wrong: it calls a link before or behind the slowest too slow, or misses the slowest.
    fn locate_by_hops(&mut self) -> (Vec<HopsFinding>, u64) {
        let mut findings = Vec::new();
        let mut tried = BTreeSet::new();
        loop {
            let runs = next_hops(&self.graph, &self.estimate(&findings), &tried, HOPS_A_ROUND);
            if runs.is_empty() {
                return (findings, tried.len() as u64);
            }
            for run in runs {
                tried.insert(run.pair);
                if self.rng.random_bool(0.9) {
                    findings.extend(self.run_hops(run.pair));
                }
            }
        }
    }

    fn run_hops(&mut self, pair: Pair) -> Option<HopsFinding> {
        let source = pair.source.0 as usize;
        let links = self.graph.route(pair)?.links.clone();
        let rates: Vec<f64> =
            links.iter().map(|link| self.network.slowest(&self.covered_by(pair, &[*link]), source)).collect();
        let slowest = (0..rates.len()).min_by(|one, other| rates[*one].total_cmp(&rates[*other]))?;
        let (mut named, mut bps) = (slowest, rates[slowest]);
        if self.rng.random_bool(0.01) && rates.len() > 1 {
            let others = (0..rates.len()).filter(|at| *at != slowest);
            let second = others.min_by(|one, other| rates[*one].total_cmp(&rates[*other]))?;
            if self.rng.random_bool(0.5) {
                (named, bps) = (second, rates[second]);
            } else {
                named = if slowest > 0 { slowest - 1 } else { slowest + 1 };
                bps *= log_uniform(&mut self.rng, 0.3, 1.0);
            }
        }
        Some(HopsFinding { pair, link: links[named], rate: BitRate::from_bps_f64(bps)? })
    }

    fn count(&self, estimate: &Estimate, score: &mut Score, step: usize) {
        score.valued = estimate.findings().len() as u64;
        score.contradicted = 0;
        score.confidence = 0.0;
        for (pair, finding) in estimate.findings() {
            match finding {
                Finding::Located { segment, confidence, .. } => {
                    score.located[step] += 1;
                    score.confidence += confidence;
                    let link = self.graph.segments()[segment.0 as usize].links[0];
                    score.right[step] += u64::from(self.is_limited_by(*pair, link, SAME));
                    score.near[step] += u64::from(self.is_limited_by(*pair, link, 1.05));
                }
                Finding::Several(_) => {}
                Finding::Contradicted => score.contradicted += 1,
            }
        }
        let rest = || self.paths.keys().filter(|pair| !estimate.findings().contains_key(pair));
        score.rest = rest().count() as u64;
        score.inferred[step] = rest().filter(|pair| estimate.infer(&self.graph, **pair).is_some()).count() as u64;
    }

    fn judge_values(&self, estimate: &Estimate, score: &mut Score) {
        let truth = |pair: &Pair| self.network.slowest(&self.paths[pair], pair.source.0 as usize);
        let mut judged: BTreeSet<SegmentIndex> = BTreeSet::new();
        for (pair, finding) in estimate.findings() {
            let Finding::Located { segment, .. } = finding else { continue };
            let Some(value) = estimate.value(*segment) else { continue };
            score.errors.push((value.value.as_f64() / truth(pair) - 1.0).abs());
            // One draw a segment: its pairs share one value.
            if judged.insert(*segment) {
                score.segments += 1;
                let held = value.low.as_f64() <= truth(pair) && truth(pair) <= value.high.as_f64();
                score.covered += u64::from(held);
            }
        }
        for pair in self.paths.keys().filter(|pair| !estimate.findings().contains_key(pair)) {
            if let Some(inferred) = estimate.infer(&self.graph, *pair) {
                score.errors.push((inferred.value.as_f64() / truth(pair) - 1.0).abs());
                let held = inferred.low.as_f64() <= truth(pair) && truth(pair) <= inferred.high.as_f64();
                score.inferred_covered += u64::from(held);
            }
        }
    }

    /// The slowest links of a pair, and those faster by less than this factor.
    fn limiting(&self, pair: Pair, factor: f64) -> Vec<usize> {
        let (path, source) = (&self.paths[&pair], pair.source.0 as usize);
        let slowest = self.network.slowest(path, source);
        path.iter().copied().filter(|link| self.network.rate(*link, source) <= slowest * factor).collect()
    }

    /// The links of a pair's path that links of its trace stand for.
    fn covered_by(&self, pair: Pair, links: &[LinkIndex]) -> Vec<usize> {
        let path = &self.paths[&pair];
        let mut at = 0;
        let mut covered = Vec::new();
        for link in self.graph.route(pair).map_or(&[][..], |route| &route.links) {
            let next = at + 1 + self.graph.links()[link.0 as usize].silent as usize;
            if links.contains(link) {
                covered.extend(&path[at..next]);
            }
            at = next;
        }
        covered
    }
}

fn pair(source: usize, target: usize) -> Pair {
    Pair { source: HostIndex(source as u32), target: HostIndex(target as u32) }
}

/// Links whose rates differ by less are equally slow.
const SAME: f64 = 1.005;
const ROUNDS: u64 = 6;
const HOPS_A_ROUND: usize = 16;
