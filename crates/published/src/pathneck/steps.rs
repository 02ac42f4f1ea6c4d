//! From the gaps of one run to steps: cleaning up, fitting, confidence.

/// A rise of the gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Choke {
    /// Position in the series.
    pub(super) at: usize,
    /// Relative fall of the rate, 0..1.
    pub(super) confidence: f64,
}

/// The choke points of a series of gaps, ns, in the order of hops. Steps differ by more than
/// `step_ns`.
pub(super) fn chokes(gaps: &[f64], step_ns: f64, as_tool: bool) -> Vec<Choke> {
    let gaps = cleaned(gaps, as_tool);
    let segments = segments(&gaps, step_ns);
    let means: Vec<f64> = segments.iter().map(|&(from, to)| mean(&gaps[from..to])).collect();
    let mut cuts: Vec<(usize, f64, f64)> =
        (1..segments.len()).map(|index| (segments[index].0, means[index - 1], means[index])).collect();
    cuts.sort_by(|one, other| (other.2 - other.1).abs().total_cmp(&(one.2 - one.1).abs()));
    cuts.truncate(MOST_CUTS);
    cuts.sort_by_key(|cut| cut.0);
    cuts.iter()
        .filter(|(_, before, after)| after > before)
        .map(|&(at, before, after)| Choke { at, confidence: confidence(before, after) })
        .collect()
}

/// `|1/before - 1/after| before`: by how much the rate falls.
pub(super) fn confidence(before: f64, after: f64) -> f64 {
    if before <= 0.0 || after <= 0.0 {
        return if after > 0.0 { 1.0 } else { 0.0 };
    }
    (1.0 / before - 1.0 / after).abs() * before
}

fn cleaned(gaps: &[f64], as_tool: bool) -> Vec<f64> {
    let mut gaps = gaps.to_vec();
    if gaps.len() < LEAST_HOPS {
        return gaps;
    }
    let small = narrows_stat::median(&gaps).unwrap_or(0.0) / SMALL;
    let leading = gaps.iter().position(|&gap| gap >= small).unwrap_or(0);
    if as_tool {
        let first = gaps[leading];
        gaps[..leading].fill(first);
    }
    for at in leading + 1..gaps.len() {
        if gaps[at] < small {
            gaps[at] = gaps[at - 1];
        }
    }
    let before = gaps.clone();
    for (at, around) in before.windows(3).enumerate() {
        let (low, high) = (around[0].min(around[2]), around[0].max(around[2]));
        // Between its neighbours it stays as it is.
        gaps[at + 1] = around[1].clamp(low, high);
    }
    gaps
}

/// Begins and ends of segments.
fn segments(gaps: &[f64], step_ns: f64) -> Vec<(usize, usize)> {
    let count = gaps.len();
    if count == 0 {
        return Vec::new();
    }
    // The best way to cover everything up to `to` whose last segment begins at `from`: its error,
    // its segments, and where the one before begins.
    let mut best = vec![vec![(f64::INFINITY, usize::MAX, 0); count + 1]; count];
    for to in 1..=count {
        for from in 0..to {
            let own = &gaps[from..to];
            let centre = mean(own);
            let error: f64 = own.iter().map(|gap| (gap - centre).abs()).sum();
            if from == 0 {
                best[0][to] = (error, 1, 0);
                continue;
            }
            let mut found = (f64::INFINITY, usize::MAX, 0);
            for (before, row) in best.iter().enumerate().take(from) {
                let (theirs, segments, _) = row[from];
                let apart = (mean(&gaps[before..from]) - centre).abs() > step_ns;
                let sum = theirs + error;
                if apart && sum.is_finite() && (sum, segments + 1) < (found.0, found.1) {
                    found = (sum, segments + 1, before);
                }
            }
            best[from][to] = found;
        }
    }
    let last = (0..count).min_by(|&one, &other| {
        let (one, other) = (best[one][count], best[other][count]);
        one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
    });
    let mut segments = Vec::new();
    let (mut from, mut to) = (last.unwrap_or(0), count);
    loop {
        segments.push((from, to));
        if from == 0 {
            break;
        }
        (from, to) = (best[from][to].2, from);
    }
    segments.reverse();
    segments
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Cuts that count (tool).
const MOST_CUTS: usize = 3;
/// Hops below which nothing is cleaned up (tool).
const LEAST_HOPS: usize = 4;
/// Gaps below this part of the median are not believed (tool).
const SMALL: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(gaps: &[f64]) -> Vec<f64> {
        gaps.iter().map(|gap| gap * 1e6).collect()
    }

    fn found(gaps: &[f64], as_tool: bool) -> Vec<(usize, f64)> {
        let chokes = chokes(&ms(gaps), 100e3, as_tool);
        chokes.iter().map(|choke| (choke.at, (choke.confidence * 1e3).round() / 1e3)).collect()
    }

    #[test]
    fn steps_are_found_with_the_part_of_the_rate_that_they_take() {
        // From 3 to 6 ms the rate halves; from 6 to 8 it falls by a quarter.
        assert_eq!(found(&[3.0, 3.0, 3.05, 6.0, 6.0, 8.0, 8.02], false), [(3, 0.497), (5, 0.251)]);
        // Differences of less than 100 us are none.
        assert_eq!(found(&[3.0, 3.05, 3.09, 3.02], false), []);
        // Falls are no choke points.
        assert_eq!(found(&[8.0, 8.0, 3.0, 3.0], false), []);
        assert_eq!(found(&[], false), []);
    }

    #[test]
    fn hills_valleys_and_small_gaps_are_cleaned_up() {
        assert_eq!(found(&[3.0, 3.0, 9.0, 3.0, 3.0], false), []);
        assert_eq!(found(&[3.0, 3.0, 0.1, 3.0, 3.0], false), []);
        let clean = cleaned(&ms(&[3.0, 4.0, 2.0, 5.0]), false);
        // A hill to 3, a valley to 4.
        assert_eq!(clean, ms(&[3.0, 3.0, 4.0, 5.0]));
    }

    #[test]
    fn fast_first_links_stay_where_the_tool_moves_the_choke_point() {
        let gaps = [0.03, 0.03, 26.0, 26.0, 26.0];
        assert_eq!(found(&gaps, false), [(2, 0.999)]);
        assert_eq!(found(&gaps, true), []);
    }

    #[test]
    fn of_many_cuts_three_count() {
        let found = found(&[1.0, 1.0, 2.0, 2.0, 8.0, 8.0, 20.0, 20.0, 60.0, 60.0], false);
        let at: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
        assert_eq!(at, [4, 6, 8]);
    }
}
