//! Steps 1 to 3: bounds, candidates, located segments and their values.

use std::collections::{BTreeMap, BTreeSet};

use narrows_stat::{normal_quantile, normal_upper_tail};
use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

use super::reading::{Claim, HopsFinding, LEAST_SPREAD, Reading, Z_90};
use crate::topology::{Graph, Pair, SegmentIndex};

/// What a measured pair's value says of its route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// One segment limits the pair.
    Located {
        /// It.
        segment: SegmentIndex,
        /// Segments of the route known to have the same value: they limit it as much.
        tied: Vec<SegmentIndex>,
        /// Share of the likelihood that these segments have, 0 to 1.
        confidence: f64,
    },
    /// Any of these may; slowest known bound first.
    Several(Vec<SegmentIndex>),
    /// None can: other runs say that every segment is faster. A run erred, or an assumption fails.
    Contradicted,
}

/// The value of a located segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentValue {
    /// What it carries.
    pub value: BitRate,
    /// Lower end of the interval of 90 %.
    pub low: BitRate,
    /// Upper end.
    pub high: BitRate,
    /// From how many pairs.
    pub pairs: u32,
}

/// What all runs together say.
#[derive(Debug, Clone, Default)]
pub struct Estimate {
    pub(super) findings: BTreeMap<Pair, Finding>,
    pub(super) values: BTreeMap<SegmentIndex, Pool>,
    pub(super) lower: Vec<Lower>,
    pub(super) runs: BTreeMap<Pair, Run>,
    doubted: BTreeSet<Pair>,
}

/// `ln` of a run's value in bit/s.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) log: f64,
    /// Standard deviations downwards and upwards: an interval need not be even.
    below: f64,
    above: f64,
    pub(super) claim: Claim,
}

/// The lower bound of a segment, with the run that gave it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lower {
    pub(super) bound: f64,
    top: f64,
    top_spread: f64,
    by: Option<Pair>,
}

/// Weighted sum of the runs that a segment limits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pool {
    weighted: f64,
    weight: f64,
    pairs: u32,
}

impl Estimate {
    /// From one reading a pair, and what runs of `hops` found. Readings of pairs without route say
    /// nothing; of two readings of a pair the later counts.
    pub fn new(graph: &Graph, readings: &[Reading], hops: &[HopsFinding]) -> Self {
        let mut runs: BTreeMap<Pair, Run> = readings
            .iter()
            .filter(|reading| graph.route(reading.pair).is_some())
            .filter_map(|reading| Some((reading.pair, Run::of(reading)?)))
            .collect();
        let mut estimate = Self::of_runs(graph, runs.clone(), hops);
        let mut doubted = BTreeSet::new();
        while let Some(suspect) = estimate.suspect(graph) {
            runs.remove(&suspect);
            let without = Self::of_runs(graph, runs.clone(), hops);
            if estimate.contradicted() < without.contradicted() + CONTRADICTS {
                break;
            }
            doubted.insert(suspect);
            estimate = without;
        }
        Self { doubted, ..estimate }
    }

    fn of_runs(graph: &Graph, runs: BTreeMap<Pair, Run>, hops: &[HopsFinding]) -> Self {
        let mut estimate = Self { lower: lower_bounds(graph, &runs), runs, ..Self::default() };
        let by_hops = estimate.by_hops(graph, hops);
        let mut several = Vec::new();
        let mut located = Vec::new();
        for (pair, run) in estimate.runs.iter().filter(|(_, run)| run.claim == Claim::Estimate) {
            let mut candidates = estimate.candidates(graph, *pair, *run);
            if let Some(segment) = by_hops.get(pair) {
                candidates.retain(|one| one == segment);
            }
            match candidates[..] {
                [] => drop(estimate.findings.insert(*pair, Finding::Contradicted)),
                [segment] => located.push((*pair, segment)),
                _ => several.push((*pair, candidates)),
            }
        }
        for (pair, segment) in &located {
            estimate.values.entry(*segment).or_default().add(estimate.runs[pair], 1.0);
        }
        estimate.name_known(several);
        for (pair, segment) in located {
            let mut weights = estimate.weights(graph, pair);
            if let Some(weight) = by_hops.get(&pair).and_then(|named| weights.get_mut(named)) {
                *weight *= HOPS_ODDS;
            }
            let total: f64 = weights.values().sum();
            let confidence = weights.get(&segment).map_or(0.0, |weight| weight / total);
            estimate.findings.insert(pair, Finding::Located { segment, tied: Vec::new(), confidence });
        }
        estimate
    }

    /// What runs of `hops` found, without those whose rate is not that of the whole path: they
    /// measured the named link wrongly, or missed a slower one.
    fn by_hops(&self, graph: &Graph, hops: &[HopsFinding]) -> BTreeMap<Pair, SegmentIndex> {
        let agrees = |one: &HopsFinding| {
            let run = self.runs.get(&one.pair).filter(|_| one.rate.bps() > 0);
            run.is_some_and(|run| (one.rate.as_f64().ln() - run.log).abs() <= HOPS_DIFFER + Z_MISS * run.spread())
        };
        let found = |one: &HopsFinding| graph.segment_of(one.link).map(|segment| (one.pair, segment));
        hops.iter().filter(|one| agrees(one)).filter_map(found).collect()
    }

    /// The run that makes most of the contradictions: it gives the least bound of a route that is
    /// too fast for what was read there. `None` if no run makes several.
    fn suspect(&self, graph: &Graph) -> Option<Pair> {
        let mut makes: BTreeMap<Pair, usize> = BTreeMap::new();
        for (pair, _) in self.findings.iter().filter(|(_, finding)| **finding == Finding::Contradicted) {
            let segments = graph.route(*pair).map_or(&[][..], |route| &route.segments);
            let least = segments.iter().min_by(|one, other| self.bound(**one).total_cmp(&self.bound(**other)));
            if let Some(by) = least.and_then(|segment| self.lower[segment.0 as usize].by) {
                *makes.entry(by).or_default() += 1;
            }
        }
        let (pair, count) = makes.into_iter().max_by_key(|(_, count)| *count)?;
        (count >= CONTRADICTS).then_some(pair)
    }

    fn contradicted(&self) -> usize {
        self.findings.values().filter(|finding| **finding == Finding::Contradicted).count()
    }

    /// Pairs whose reading is left out: it alone contradicts several others, so it is likely wrong.
    pub fn doubted(&self) -> &BTreeSet<Pair> {
        &self.doubted
    }

    /// What each measured pair's value says, without pairs that have a lower bound only.
    pub fn findings(&self) -> &BTreeMap<Pair, Finding> {
        &self.findings
    }

    /// The value of a segment that limits a measured pair.
    pub fn value(&self, segment: SegmentIndex) -> Option<SegmentValue> {
        self.values.get(&segment).and_then(Pool::value)
    }

    /// All segments that limit a measured pair.
    pub fn values(&self) -> impl Iterator<Item = (SegmentIndex, SegmentValue)> {
        self.values.iter().filter_map(|(segment, pool)| Some((*segment, pool.value()?)))
    }

    /// What a segment carries at least, with 99.5 %; `None` before a run crossed it.
    pub fn lower_bound(&self, segment: SegmentIndex) -> Option<BitRate> {
        let lower = self.lower.get(segment.0 as usize).filter(|lower| lower.by.is_some())?;
        BitRate::from_bps_f64(lower.bound.exp())
    }

    pub(super) fn bound(&self, segment: SegmentIndex) -> f64 {
        self.lower[segment.0 as usize].bound
    }

    fn candidates(&self, graph: &Graph, pair: Pair, log: Run) -> Vec<SegmentIndex> {
        let highest = log.log + Z_MISS * log.above;
        let segments = graph.route(pair).map_or(&[][..], |route| &route.segments);
        let mut candidates: Vec<_> =
            segments.iter().copied().filter(|segment| self.bound(*segment) <= highest).collect();
        candidates.sort_by(|one, other| self.bound(*one).total_cmp(&self.bound(*other)));
        candidates
    }

    /// Locates paths with several candidates, where some are known to have the path's value and the
    /// others would have to have it by chance.
    fn name_known(&mut self, several: Vec<(Pair, Vec<SegmentIndex>)>) {
        let known = self.values.clone();
        for (pair, candidates) in several {
            let log = self.runs[&pair];
            let densities: Vec<f64> =
                candidates.iter().map(|one| known.get(one).map_or(1.0 / RANGE, |pool| pool.density(log))).collect();
            let total: f64 = densities.iter().sum();
            let mut named: Vec<(f64, SegmentIndex)> = densities
                .iter()
                .zip(&candidates)
                .filter(|(density, one)| known.contains_key(one) && **density > (1.0 - LOCATES) * total)
                .map(|(density, one)| (*density / total, *one))
                .collect();
            named.sort_by(|one, other| other.0.total_cmp(&one.0));
            let confidence: f64 = named.iter().map(|(share, _)| share).sum();
            let finding = if confidence >= LOCATES {
                for (share, segment) in &named {
                    self.values.entry(*segment).or_default().add(log, *share);
                }
                let mut segments = named.into_iter().map(|(_, segment)| segment);
                match segments.next() {
                    Some(segment) => Finding::Located { segment, tied: segments.collect(), confidence },
                    None => Finding::Several(candidates),
                }
            } else {
                Finding::Several(candidates)
            };
            self.findings.insert(pair, finding);
        }
    }

    /// Likelihood that each segment of a route limits it, up to a common factor.
    fn weights(&self, graph: &Graph, pair: Pair) -> BTreeMap<SegmentIndex, f64> {
        let log = self.runs[&pair];
        let segments = graph.route(pair).map_or(&[][..], |route| &route.segments);
        let weight = |segment: &SegmentIndex| {
            let lower = self.lower[segment.0 as usize];
            let slower = normal_upper_tail((lower.top - log.log) / lower.top_spread.hypot(log.above));
            // Its own run must not vouch for itself.
            let others = self.values.get(segment).and_then(|pool| pool.without(log));
            slower * others.map_or(1.0 / RANGE, |pool| pool.density(log))
        };
        segments.iter().map(|segment| (*segment, weight(segment))).collect()
    }
}

impl Run {
    fn of(reading: &Reading) -> Option<Self> {
        let (log, [below, above]) = reading.log()?;
        Some(Self { log, below, above, claim: reading.claim })
    }

    /// Where the side does not matter.
    fn spread(self) -> f64 {
        f64::midpoint(self.below, self.above)
    }
}

impl Pool {
    fn add(&mut self, log: Run, share: f64) {
        let weight = share / log.spread().powi(2);
        self.weighted += weight * log.log;
        self.weight += weight;
        self.pairs += 1;
    }

    fn without(&self, log: Run) -> Option<Self> {
        let weight = 1.0 / log.spread().powi(2);
        (self.pairs > 1).then(|| Self {
            weighted: self.weighted - weight * log.log,
            weight: (self.weight - weight).max(f64::MIN_POSITIVE),
            pairs: self.pairs - 1,
        })
    }

    pub(super) fn log(&self) -> f64 {
        self.weighted / self.weight
    }

    pub(super) fn spread(&self) -> f64 {
        (1.0 / self.weight).sqrt().hypot(LEAST_SPREAD)
    }

    fn density(&self, log: Run) -> f64 {
        let spread = self.spread().hypot(log.spread());
        let z = (log.log - self.log()) / spread;
        (-0.5 * z * z).exp() / (spread * (2.0 * std::f64::consts::PI).sqrt())
    }

    fn value(&self) -> Option<SegmentValue> {
        let (log, half) = (self.log(), Z_90 * self.spread());
        let rate = |log: f64| BitRate::from_bps_f64(log.exp());
        Some(SegmentValue { value: rate(log)?, low: rate(log - half)?, high: rate(log + half)?, pairs: self.pairs })
    }
}

fn lower_bounds(graph: &Graph, runs: &BTreeMap<Pair, Run>) -> Vec<Lower> {
    let mut through: Vec<Vec<(Pair, Run)>> = vec![Vec::new(); graph.segments().len()];
    for (pair, run) in runs {
        for segment in graph.route(*pair).map_or(&[][..], |route| &route.segments) {
            through[segment.0 as usize].push((*pair, *run));
        }
    }
    let bound = |runs: Vec<(Pair, Run)>| {
        let z = normal_quantile(1.0 - MISS / runs.len().max(1) as f64).unwrap_or(Z_MISS);
        let mut lower = Lower { bound: f64::NEG_INFINITY, top: f64::NEG_INFINITY, top_spread: 1.0, by: None };
        for (pair, run) in runs {
            let bound = run.log - z * run.below;
            if bound > lower.bound {
                lower = Lower { bound, top: run.log, top_spread: run.below, by: Some(pair) };
            }
        }
        lower
    };
    through.into_iter().map(bound).collect()
}

/// Probability that a bound, or a candidate set, misses.
const MISS: f64 = 0.005;
/// The normal quantile of its complement.
const Z_MISS: f64 = 2.576;
/// A run that contradicts so many others is left out, if that resolves as many contradictions.
const CONTRADICTS: usize = 2;
/// How much likelier a run of `hops` names the right link than any other: one hop in a hundred is
/// wrong on strange paths, none on others (docs/results/hop-methods.md).
const HOPS_ODDS: f64 = 100.0;
/// By how much, in `ln`, a run of `hops` may read another rate than the run over the whole path:
/// its numbers are within 5 % (docs/results/hop-methods.md).
const HOPS_DIFFER: f64 = 0.05;
/// Width of the possible values in `ln`: what a value has by chance has a density of one over it.
const RANGE: f64 = 11.5;
/// Share of likelihood from which known segments explain a path.
const LOCATES: f64 = 0.99;

#[cfg(test)]
pub(super) mod tests;
