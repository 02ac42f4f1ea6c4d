//! Step 6: pairs that nobody measured.

use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use super::reading::Z_90;
use crate::topology::{Graph, Pair, SegmentIndex};

/// The value of an unmeasured pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inferred {
    /// Which segment limits it.
    pub segment: SegmentIndex,
    /// What it carries.
    pub value: BitRate,
    /// Lower end of the interval of 90 %.
    pub low: BitRate,
    /// Upper end.
    pub high: BitRate,
}

/// Why a pair cannot be inferred.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Blocked {
    /// Segments that may be slower than the slowest located one, ascending.
    pub(super) by: Vec<SegmentIndex>,
    /// The `ln` of the lower bound that they would need.
    pub(super) needed: f64,
}

impl Estimate {
    /// The value of a pair from its slowest located segment; `None` if there is none, or if another
    /// segment may be slower by more than a twentieth.
    pub fn infer(&self, graph: &Graph, pair: Pair) -> Option<Inferred> {
        self.inferred(graph, pair)?.ok()
    }

    /// `None` if no segment of the route is located.
    pub(super) fn inferred(&self, graph: &Graph, pair: Pair) -> Option<Result<Inferred, Blocked>> {
        let segments = &graph.route(pair)?.segments;
        let located = segments.iter().filter_map(|segment| Some((*segment, self.values.get(segment)?)));
        let (segment, slowest) = located.min_by(|one, other| one.1.log().total_cmp(&other.1.log()))?;
        let needed = slowest.log() + (1.0 - SLOWER).ln();
        let others = || segments.iter().copied().filter(|one| *one != segment && !self.values.contains_key(one));
        let mut by: Vec<SegmentIndex> = others().filter(|one| self.bound(*one) < needed).collect();
        if !by.is_empty() {
            by.sort_unstable();
            return Some(Err(Blocked { by, needed }));
        }
        let least = others().map(|one| self.bound(one)).fold(f64::INFINITY, f64::min);
        let half = Z_90 * slowest.spread();
        let rate = |log: f64| BitRate::from_bps_f64(log.exp());
        let (value, high) = (rate(slowest.log())?, rate(slowest.log() + half)?);
        let low = rate((slowest.log() - half).min(least))?;
        Some(Ok(Inferred { segment, value, low, high }))
    }
}

/// By what share another segment may be slower than the one that is said to limit.
const SLOWER: f64 = 0.05;
