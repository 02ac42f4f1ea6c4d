//! The fewest segments that explain all slow paths.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::topology::{Graph, Pair, SegmentIndex};

/// A segment, and the slow pairs that it explains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The segment.
    pub segment: SegmentIndex,
    /// The pairs that no segment named before explains.
    pub pairs: Vec<Pair>,
}

/// Names segments of slow pairs that no fast pair crosses, the one that explains most pairs first,
/// until every pair that can be explained is.
///
/// Few shared causes are likelier than many separate ones (`[Duffield06]`); the greedy choice needs
/// at most `ln n` times the fewest segments, for `n` pairs (`[Chvatal79]`). Of segments that
/// explain equally many pairs the one with fewer pairs in all is named: it is the more specific.
pub fn explain(graph: &Graph, slow: &BTreeSet<Pair>, fast: &BTreeSet<Pair>) -> Vec<Explanation> {
    let crossed = |pairs: &BTreeSet<Pair>| -> BTreeSet<SegmentIndex> {
        pairs.iter().filter_map(|pair| graph.route(*pair)).flat_map(|route| &route.segments).copied().collect()
    };
    let exonerated = crossed(fast);
    let mut explains: BTreeMap<SegmentIndex, BTreeSet<Pair>> = BTreeMap::new();
    for pair in slow {
        for segment in graph.route(*pair).map_or(&[][..], |route| &route.segments) {
            if !exonerated.contains(segment) {
                explains.entry(*segment).or_default().insert(*pair);
            }
        }
    }
    greedy(graph, explains)
}

/// The same where more is known than which paths are fast: of each slow pair, the segments that may
/// hold it back.
pub fn explain_candidates<'a>(
    graph: &Graph,
    slow: impl IntoIterator<Item = (Pair, &'a [SegmentIndex])>,
) -> Vec<Explanation> {
    let mut explains: BTreeMap<SegmentIndex, BTreeSet<Pair>> = BTreeMap::new();
    for (pair, candidates) in slow {
        for segment in candidates {
            explains.entry(*segment).or_default().insert(pair);
        }
    }
    greedy(graph, explains)
}

fn greedy(graph: &Graph, mut explains: BTreeMap<SegmentIndex, BTreeSet<Pair>>) -> Vec<Explanation> {
    let mut named = Vec::new();
    loop {
        let specific = |segment: SegmentIndex| usize::MAX - graph.segments()[segment.0 as usize].pairs.len();
        let best = explains.iter().max_by_key(|(segment, pairs)| (pairs.len(), specific(**segment)));
        let Some((segment, pairs)) = best.filter(|(_, pairs)| !pairs.is_empty()) else {
            return named;
        };
        let (segment, pairs) = (*segment, pairs.clone());
        for others in explains.values_mut() {
            others.retain(|pair| !pairs.contains(pair));
        }
        named.push(Explanation { segment, pairs: pairs.into_iter().collect() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Aliases, HostIndex, Trace};

    fn pair(source: u32, target: u32) -> Pair {
        Pair { source: HostIndex(source), target: HostIndex(target) }
    }

    /// Hosts 0 to 2 behind router 10.0.0.1, hosts 3 to 5 behind 10.0.0.2.
    fn graph() -> Graph {
        let routers = ["10.0.0.1", "10.0.0.2"].map(|text| Some(text.parse().unwrap())).to_vec();
        let traces: Vec<Trace> = (0..3)
            .flat_map(|source| (3..6).map(move |target| pair(source, target)))
            .map(|pair| Trace { pair, responders: routers.clone() })
            .collect();
        Graph::new(&traces, &Aliases::default())
    }

    fn segment(graph: &Graph, pair: Pair, hop: usize) -> SegmentIndex {
        graph.route(pair).unwrap().segments[hop]
    }

    #[test]
    fn one_link_explains_what_it_can() {
        let graph = graph();
        let slow = BTreeSet::from([pair(0, 3), pair(0, 4), pair(1, 3), pair(2, 3)]);
        let fast = BTreeSet::from([pair(1, 4), pair(2, 5)]);
        let named = explain(&graph, &slow, &fast);
        // Down 3 explains three; up 0 what is left. The core is fast.
        assert_eq!(named.len(), 2);
        assert_eq!((named[0].segment, named[0].pairs.len()), (segment(&graph, pair(0, 3), 2), 3));
        assert_eq!((named[1].segment, &named[1].pairs[..]), (segment(&graph, pair(0, 4), 0), &[pair(0, 4)][..]));
    }

    #[test]
    fn a_core_link_explains_everything_unless_a_fast_pair_crosses_it() {
        let graph = graph();
        let slow: BTreeSet<Pair> = graph.routes().map(|(pair, _)| pair).collect();
        let named = explain(&graph, &slow, &BTreeSet::new());
        assert_eq!((named.len(), named[0].segment), (1, segment(&graph, pair(0, 3), 1)));
        let fast = BTreeSet::from([pair(0, 3)]);
        let slow: BTreeSet<Pair> = slow.difference(&fast).copied().collect();
        let named = explain(&graph, &slow, &fast);
        let explained: usize = named.iter().map(|one| one.pairs.len()).sum();
        assert_eq!((named.len(), explained), (4, 8));
    }

    #[test]
    fn candidates_are_explained_by_as_few_as_possible() {
        let graph = graph();
        let of = |pair, hop| segment(&graph, pair, hop);
        let (core, down) = (of(pair(0, 3), 1), of(pair(0, 3), 2));
        let slow = [
            (pair(0, 3), vec![of(pair(0, 3), 0), core, down]),
            (pair(1, 3), vec![core, down]),
            (pair(2, 3), vec![down]),
            (pair(1, 4), vec![core]),
        ];
        let named = explain_candidates(&graph, slow.iter().map(|(pair, all)| (*pair, &all[..])));
        let shown: Vec<_> = named.iter().map(|one| (one.segment, one.pairs.len())).collect();
        // Core and the last hop explain three each: the last hop has fewer pairs in all.
        assert_eq!(shown, [(down, 3), (core, 1)]);
    }

    #[test]
    fn what_contradicts_itself_stays_unexplained() {
        let graph = graph();
        let one = BTreeSet::from([pair(0, 3)]);
        assert_eq!(explain(&graph, &one, &one), []);
    }
}
