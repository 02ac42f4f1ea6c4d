//! Worked by hand on two senders and two receivers around one link.

use super::*;
use crate::topology::{Aliases, HostIndex, Trace};

pub(crate) fn pair(source: u32, target: u32) -> Pair {
    Pair { source: HostIndex(source), target: HostIndex(target) }
}

/// Hosts 0 and 1 send to 2 and 3 through two routers and one link between them.
pub(crate) fn graph() -> Graph {
    let routers = ["10.0.0.1", "10.0.0.2"].map(|text| Some(text.parse().unwrap())).to_vec();
    let traces: Vec<Trace> = [(0, 2), (0, 3), (1, 2), (1, 3)]
        .map(|(source, target)| Trace { pair: pair(source, target), responders: routers.clone() })
        .to_vec();
    Graph::new(&traces, &Aliases::default())
}

/// A reading of so many Mbit/s with a standard deviation of 1 %.
pub(crate) fn reading(source: u32, target: u32, mbps: f64) -> Reading {
    let rate = |factor: f64| BitRate::from_bps_f64(mbps * 1e6 * factor).unwrap();
    let half = Z_90 * 0.01;
    Reading {
        pair: pair(source, target),
        claim: Claim::Estimate,
        value: rate(1.0),
        low: rate((-half).exp()),
        high: rate(half.exp()),
    }
}

fn segment(graph: &Graph, source: u32, target: u32, hop: usize) -> SegmentIndex {
    graph.route(pair(source, target)).unwrap().segments[hop]
}

#[test]
fn a_bound_allows_for_the_largest_of_several_errors() {
    let graph = graph();
    let one = Estimate::new(&graph, &[reading(0, 2, 100.0)], &[]);
    let core = segment(&graph, 0, 2, 1);
    // 100 exp(-0.01 z(0.995)) and, of two runs, z(0.9975) = 2.807.
    assert!((one.lower_bound(core).unwrap().as_f64() - 97.457e6).abs() < 1e4, "{:?}", one.lower_bound(core));
    let two = Estimate::new(&graph, &[reading(0, 2, 100.0), reading(1, 3, 100.0)], &[]);
    assert!((two.lower_bound(core).unwrap().as_f64() - 97.232e6).abs() < 1e4, "{:?}", two.lower_bound(core));
    assert_eq!(one.lower_bound(segment(&graph, 1, 3, 0)), None, "nobody crossed it");
}

#[test]
fn what_other_paths_carried_leaves_one_candidate() {
    let graph = graph();
    let readings = [reading(0, 2, 100.0), reading(0, 3, 100.4), reading(1, 2, 800.0), reading(1, 3, 800.0)];
    let estimate = Estimate::new(&graph, &readings, &[]);
    let up = segment(&graph, 0, 2, 0);
    let Finding::Located { segment: found, confidence, .. } = &estimate.findings()[&pair(0, 2)] else {
        panic!("{:?}", estimate.findings())
    };
    assert_eq!(*found, up);
    assert!((0.999..=1.0).contains(confidence), "{confidence}");
    let value = estimate.value(up).unwrap();
    // The mean of two logs; sd = hypot(0.01 / sqrt 2, 0.001) = 0.00714, times 1.645: 1.17 %.
    assert!((value.value.as_f64() - 100.2e6).abs() < 1e4 && value.pairs == 2, "{value:?}");
    assert!((value.high.as_f64() / value.value.as_f64() - 1.011_82).abs() < 1e-4, "{value:?}");
    assert!((value.value.as_f64() / value.low.as_f64() - 1.011_82).abs() < 1e-4, "{value:?}");
}

#[test]
fn a_lower_bound_excludes_and_is_never_located() {
    let graph = graph();
    let mut fast = reading(1, 3, 800.0);
    fast.claim = Claim::AtLeast;
    let estimate = Estimate::new(&graph, &[reading(0, 2, 100.0), fast], &[]);
    assert!(!estimate.findings().contains_key(&pair(1, 3)));
    let Finding::Several(list) = &estimate.findings()[&pair(0, 2)] else { panic!("{:?}", estimate.findings()) };
    assert!(!list.contains(&segment(&graph, 0, 2, 1)) && list.len() == 2, "{list:?}");
}

#[test]
fn a_known_value_explains_paths_that_others_cannot_split() {
    let graph = graph();
    // Down 2 is known from 1 to be 300; 0 reads the same, and only its own link might be as slow.
    let known = [reading(1, 2, 300.0), reading(1, 3, 900.0)];
    let explained = Estimate::new(&graph, &[known[0], known[1], reading(0, 2, 300.5)], &[]);
    let Finding::Located { segment: found, confidence, .. } = &explained.findings()[&pair(0, 2)] else {
        panic!("{:?}", explained.findings())
    };
    assert_eq!(*found, segment(&graph, 0, 2, 2));
    assert!((0.99..0.9999).contains(confidence), "a coincidence is possible: {confidence}");
}

#[test]
fn what_no_segment_explains_is_contradicted() {
    let graph = graph();
    let readings = [reading(0, 3, 500.0), reading(1, 2, 500.0), reading(0, 2, 100.0)];
    let estimate = Estimate::new(&graph, &readings, &[]);
    assert_eq!(estimate.findings()[&pair(0, 2)], Finding::Contradicted);
}

#[test]
fn unmeasured_pairs_are_inferred_only_if_nothing_else_may_be_slower() {
    let graph = graph();
    let up = graph.route(pair(0, 2)).unwrap().links[0];
    let hops = [HopsFinding { pair: pair(0, 2), link: up, rate: BitRate::from_mbps(101) }];
    let few = Estimate::new(&graph, &[reading(0, 2, 100.0)], &hops);
    assert_eq!(few.infer(&graph, pair(0, 3)), None, "nobody saw the link to 3");
    assert_eq!(few.infer(&graph, pair(1, 3)), None, "nothing of it is located");
    let more = Estimate::new(&graph, &[reading(0, 2, 100.0), reading(1, 3, 400.0)], &hops);
    let inferred = more.infer(&graph, pair(0, 3)).unwrap();
    assert_eq!(inferred.segment, segment(&graph, 0, 2, 0));
    assert_eq!((inferred.value, inferred.low), {
        let value = more.value(inferred.segment).unwrap();
        (value.value, value.low)
    });
    // The link to 3 may be up to 5 % slower: the interval says so.
    let near = Estimate::new(&graph, &[reading(0, 2, 100.0), reading(1, 3, 99.0)], &hops);
    let inferred = near.infer(&graph, pair(0, 3)).unwrap();
    assert!(inferred.low < near.value(inferred.segment).unwrap().low, "{inferred:?}");
}

#[test]
fn hops_counts_only_where_its_rate_is_that_of_the_path() {
    let graph = graph();
    let down = graph.route(pair(0, 2)).unwrap().links[2];
    let located = |mbps: u64| {
        let hops = [HopsFinding { pair: pair(0, 2), link: down, rate: BitRate::from_mbps(mbps) }];
        let estimate = Estimate::new(&graph, &[reading(0, 2, 100.0)], &hops);
        match &estimate.findings()[&pair(0, 2)] {
            // Three links were as likely; hops says a hundred times that of one: 100 / 102.
            Finding::Located { confidence, .. } => (confidence - 100.0 / 102.0).abs() < 1e-9,
            Finding::Several(_) | Finding::Contradicted => false,
        }
    };
    // 5 %, and 2.576 times the 1 % of the reading.
    assert!(located(107) && located(94) && !located(109) && !located(92) && !located(0));
}

#[test]
fn one_run_that_contradicts_several_is_left_out() {
    let graph = graph();
    // The core carries 100. One run over it reads 300: no other is possible then.
    let honest = [reading(0, 2, 100.0), reading(0, 3, 100.0), reading(1, 2, 100.0)];
    let with_wrong = [honest[0], honest[1], honest[2], reading(1, 3, 300.0)];
    let estimate = Estimate::new(&graph, &with_wrong, &[]);
    assert!(estimate.doubted().is_empty(), "down 2 and up 0 may still be slow: {:?}", estimate.findings());
    let wrong = reading(0, 2, 300.0);
    let more = [reading(0, 3, 100.0), reading(1, 2, 100.0), reading(1, 3, 300.0), wrong];
    let estimate = Estimate::new(&graph, &more, &[]);
    assert_eq!(estimate.doubted().len(), 1, "{:?}", estimate.findings());
    assert_eq!(estimate.contradicted(), 0);
}
