//! Steps 4 and 5: what to measure next.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use narrows_units::to_u32;
use serde::{Deserialize, Serialize};

use super::estimate::{Estimate, Finding};
use crate::topology::{Graph, Pair, SegmentIndex};

/// A run of `hops` that tells candidates apart which no pair separates without being limited
/// elsewhere.
///
/// It starts at the source even if the candidates are nearer to the target: from there it would
/// measure the other direction, which may have other rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopsRun {
    /// Over which pair.
    pub pair: Pair,
    /// The hop at which the last candidate ends; the run need not look further.
    pub last_hop: u32,
}

/// Unmeasured pairs to measure next, best first, at most `limit`: by gain per octet, `octets` being
/// what a run over a pair costs.
///
/// A pair that tells candidates apart gains the bits of its answer for each path that waits for it.
/// It must hold some of the candidates and not all, and be limited by nothing else. A pair that
/// shows segments to be fast enough gains one bit for each unmeasured pair that is inferred then.
pub fn next_runs(graph: &Graph, estimate: &Estimate, octets: impl Fn(Pair) -> f64, limit: usize) -> Vec<Pair> {
    let mut questions = waiting(estimate);
    questions.extend(blocked(graph, estimate));
    questions.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    questions.truncate(QUESTIONS_PER_RUN * limit);
    let mut gains: BTreeMap<Pair, Vec<(usize, f64)>> = BTreeMap::new();
    for (at, question) in questions.iter().enumerate() {
        let pairs: BTreeSet<Pair> =
            question.segments.iter().flat_map(|one| sample(&graph.segments()[one.0 as usize].pairs)).collect();
        for pair in pairs.into_iter().filter(|pair| !estimate.runs.contains_key(pair)) {
            let gain = question.weight * question.bits(graph, estimate, pair);
            if gain > 0.0 {
                gains.entry(pair).or_default().push((at, gain / octets(pair).max(1.0)));
            }
        }
    }
    let mut answered = vec![false; questions.len()];
    let mut chosen = Vec::new();
    let open = |list: &[(usize, f64)], answered: &[bool]| -> f64 {
        list.iter().filter(|(at, _)| !answered[*at]).map(|(_, gain)| gain).sum()
    };
    // Gains only fall: a pair whose gain is what it was is still the best one (lazy greedy
    // [Minoux78]).
    let mut best: BinaryHeap<Gain> =
        gains.iter().map(|(pair, list)| Gain { gain: open(list, &answered), pair: *pair }).collect();
    while chosen.len() < limit {
        let Some(Gain { gain, pair }) = best.pop().filter(|best| best.gain > 0.0) else {
            break;
        };
        debug_assert!(gain.is_finite());
        let now = open(&gains[&pair], &answered);
        if now < gain {
            best.push(Gain { gain: now, pair });
            continue;
        }
        for (at, _) in &gains[&pair] {
            answered[*at] = true;
        }
        chosen.push(pair);
    }
    chosen
}

/// Runs of `hops` for paths that still have several candidates, those that most paths wait for
/// first, at most `limit`. Paths that share a candidate wait for one run; pairs in `tried` had
/// theirs.
pub fn next_hops(graph: &Graph, estimate: &Estimate, tried: &BTreeSet<Pair>, limit: usize) -> Vec<HopsRun> {
    let mut open: BTreeMap<Pair, &[SegmentIndex]> = estimate
        .findings
        .iter()
        .filter(|(pair, _)| !tried.contains(pair))
        .filter_map(|(pair, finding)| Some((*pair, several(finding)?)))
        .collect();
    let mut runs = Vec::new();
    while runs.len() < limit && !open.is_empty() {
        let mut waiting: BTreeMap<SegmentIndex, u32> = BTreeMap::new();
        for segment in open.values().copied().flatten() {
            *waiting.entry(*segment).or_default() += 1;
        }
        let worth = |candidates: &[SegmentIndex]| -> u32 { candidates.iter().map(|one| waiting[one]).sum() };
        let Some((pair, candidates)) = open.iter().max_by_key(|(_, candidates)| worth(candidates)) else {
            break;
        };
        let (pair, candidates) = (*pair, *candidates);
        runs.push(HopsRun { pair, last_hop: last_hop(graph, pair, candidates) });
        open.retain(|_, others| !others.iter().any(|one| candidates.contains(one)));
    }
    runs
}

/// What a run over a pair gains per octet; of equal ones the later pair is the greater.
struct Gain {
    gain: f64,
    pair: Pair,
}

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(self.pair.cmp(&other.pair))
    }
}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Gain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Gain {}

/// Something that a run over the right pair answers.
struct Question {
    segments: Vec<SegmentIndex>,
    /// Pairs that wait for the answer.
    weight: f64,
    /// `ln` of the value that segments beside these must exceed.
    level: f64,
    /// Whether the segments must be told apart, or shown to be fast.
    apart: bool,
}

impl Question {
    /// What a run over `pair` would tell, 0 to 1.
    fn bits(&self, graph: &Graph, estimate: &Estimate, pair: Pair) -> f64 {
        let Some(route) = graph.route(pair) else {
            return 0.0;
        };
        let (inside, outside): (Vec<SegmentIndex>, Vec<SegmentIndex>) =
            route.segments.iter().copied().partition(|one| self.segments.contains(one));
        let share = inside.len() as f64 / self.segments.len() as f64;
        if self.apart {
            let limited_elsewhere = outside.iter().any(|one| estimate.bound(*one) <= self.level);
            return if limited_elsewhere || inside.len() == self.segments.len() { 0.0 } else { entropy(share) };
        }
        let known_slow = |one: &SegmentIndex| estimate.values.get(one).is_some_and(|pool| pool.log() < self.level);
        if route.segments.iter().any(known_slow) { 0.0 } else { share }
    }
}

/// Paths with several candidates, joined where the candidates are the same.
fn waiting(estimate: &Estimate) -> Vec<Question> {
    let mut joined: BTreeMap<Vec<SegmentIndex>, (f64, f64)> = BTreeMap::new();
    for (pair, finding) in &estimate.findings {
        if let Some(candidates) = several(finding) {
            let mut candidates = candidates.to_vec();
            candidates.sort_unstable();
            let (weight, level) = joined.entry(candidates).or_insert((0.0, f64::NEG_INFINITY));
            *weight += 1.0;
            *level = level.max(estimate.runs[pair].log);
        }
    }
    joined.into_iter().map(|(segments, (weight, level))| Question { segments, weight, level, apart: true }).collect()
}

/// Unmeasured pairs that are not inferred because segments may be slow, joined by these segments.
fn blocked(graph: &Graph, estimate: &Estimate) -> Vec<Question> {
    let mut joined: BTreeMap<Vec<SegmentIndex>, (f64, f64)> = BTreeMap::new();
    for (pair, _) in graph.routes().filter(|(pair, _)| !estimate.runs.contains_key(pair)) {
        if let Some(Err(blocked)) = estimate.inferred(graph, pair) {
            let (weight, level) = joined.entry(blocked.by).or_insert((0.0, f64::NEG_INFINITY));
            *weight += 1.0;
            *level = level.max(blocked.needed);
        }
    }
    joined.into_iter().map(|(segments, (weight, level))| Question { segments, weight, level, apart: false }).collect()
}

fn several(finding: &Finding) -> Option<&[SegmentIndex]> {
    match finding {
        Finding::Several(candidates) => Some(candidates),
        Finding::Located { .. } | Finding::Contradicted => None,
    }
}

fn last_hop(graph: &Graph, pair: Pair, candidates: &[SegmentIndex]) -> u32 {
    let links = graph.route(pair).map_or(&[][..], |route| &route.links);
    let is_candidate = |link| graph.segment_of(link).is_some_and(|segment| candidates.contains(&segment));
    let last = links.iter().rposition(|link| is_candidate(*link)).unwrap_or(0);
    let silent: u32 = links.iter().take(last + 1).map(|link| graph.links()[link.0 as usize].silent).sum();
    to_u32(last + 1) + silent
}

/// Some pairs of a segment, spread over all of them.
fn sample(pairs: &[Pair]) -> impl Iterator<Item = Pair> {
    pairs.iter().copied().step_by(pairs.len().div_ceil(PAIRS_PER_SEGMENT).max(1))
}

/// Of an answer that has probability `share`, bits.
fn entropy(share: f64) -> f64 {
    let part = |share: f64| if share <= 0.0 { 0.0 } else { -share * share.log2() };
    part(share) + part(1.0 - share)
}

/// Pairs tried for each segment of a question. A link in the middle of a large network is on tens
/// of thousands of routes, and hundreds of them answer as well as the best.
const PAIRS_PER_SEGMENT: usize = 512;
/// Questions looked at for each run asked for: the rest wait for the next round.
const QUESTIONS_PER_RUN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::BitRate;

    use crate::tomography::HopsFinding;
    use crate::tomography::estimate::tests::{graph, pair, reading};
    use crate::topology::HostIndex;

    #[test]
    fn the_next_run_splits_the_candidates() {
        // Every route crosses up, core and down; the hosts 0 and 1 send, 2 and 3 receive.
        let graph = graph();
        let first = Estimate::new(&graph, &[reading(0, 2, 100.0)], &[]);
        assert!(matches!(&first.findings[&pair(0, 2)], Finding::Several(list) if list.len() == 3));
        // Nothing is known of what else is on the other pairs, so no run is sure to tell.
        assert_eq!(next_runs(&graph, &first, |_| 1.0, 3), []);
        let second = Estimate::new(&graph, &[reading(0, 2, 100.0), reading(1, 3, 500.0)], &[]);
        let Finding::Several(list) = &second.findings[&pair(0, 2)] else { panic!("{:?}", second.findings) };
        assert_eq!(list.len(), 2, "the core carried 500");
        // 0 to 3 holds up without down, 1 to 2 down without up; both are as good, but one is
        // dearer.
        let dear = |one: Pair| if one == pair(0, 3) { 9.0 } else { 1.0 };
        assert_eq!(next_runs(&graph, &second, dear, 1), [pair(1, 2)]);
        assert_eq!(next_runs(&graph, &second, |one| 1.0 / dear(one) * 9.0, 1), [pair(0, 3)]);
    }

    #[test]
    fn hops_runs_once_for_paths_that_share_a_candidate() {
        let graph = graph();
        let readings = [reading(0, 2, 100.0), reading(0, 3, 100.0), reading(1, 2, 40.0)];
        let estimate = Estimate::new(&graph, &readings, &[]);
        let runs = next_hops(&graph, &estimate, &BTreeSet::new(), 9);
        // The paths of 0 share its first link and the core, the last candidate is the third link.
        assert_eq!(runs.len(), 1, "{:?}", estimate.findings);
        assert_eq!((runs[0].pair.source, runs[0].last_hop), (HostIndex(0), 3));
        let up = graph.route(pair(0, 2)).unwrap().links[0];
        let located = Estimate::new(
            &graph,
            &readings,
            &[HopsFinding { pair: pair(0, 2), link: up, rate: BitRate::from_mbps(102) }],
        );
        for target in [2, 3] {
            let Finding::Located { segment, .. } = &located.findings[&pair(0, target)] else {
                panic!("{:?}", located.findings)
            };
            assert_eq!(*segment, graph.segment_of(up).unwrap());
        }
    }

    #[test]
    fn an_answer_of_half_has_one_bit() {
        assert!((entropy(0.5) - 1.0).abs() < 1e-12);
        // -0.25 log2 0.25 - 0.75 log2 0.75.
        assert!((entropy(0.25) - 0.811_278).abs() < 1e-6);
        assert!(entropy(0.0).abs() < 1e-12 && entropy(1.0).abs() < 1e-12);
    }
}
