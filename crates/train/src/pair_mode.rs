//! What most of many samples agree on, where some met queues: the shortest range that holds a
//! quarter of them.

/// A difference of delays, ns, and what it may be wrong by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The difference, ns.
    pub ns: f64,
    /// What it may be wrong by, ns.
    pub error_ns: f64,
    /// How far the middle half reaches: what a bound must hold against.
    pub spread_ns: f64,
}

/// The middle of the shortest range that holds a quarter, five at least, and half of its length or
/// `floor_ns`; half of the middle half's range where that quarter is not much denser than the rest.
/// `None` with fewer.
pub fn pair_mode(differences_ns: &[f64], floor_ns: f64) -> Option<Difference> {
    let mut sorted = differences_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let hold = sorted.len().div_ceil(QUARTER).max(LEAST);
    let ranges = sorted.windows(hold).map(|range| (range[0], range[hold - 1]));
    let (low, high) = ranges.min_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)))?;
    let middle = sorted[sorted.len() * 3 / 4] - sorted[sorted.len() / 4];
    let error = if high - low > middle / SHARP { middle / 2.0 } else { 0.0 };
    Some(Difference {
        ns: f64::midpoint(low, high),
        error_ns: ((high - low) / 2.0).max(error).max(floor_ns),
        spread_ns: middle,
    })
}

/// The densest quarter is this much shorter than the middle half, or no mode (ours).
const SHARP: f64 = 8.0;
/// One in so many, and so many at least (ours).
const QUARTER: usize = 4;
const LEAST: usize = 5;
