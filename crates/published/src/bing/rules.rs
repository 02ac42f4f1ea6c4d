//! Which least round trips count, and which are worth another try.

use narrows_stat::ols;

use crate::vps::answer::{Drawing, Drawn};
use crate::vps::fit::{Assumed, LEAST_SIZES, Point, Slope};
use crate::vps::settings::Regress;
use crate::vps::table::{Half, HopTable};

/// A least round trip, ns, and the length of its answer.
fn least(hop: &HopTable, size: usize) -> Option<(i64, u16)> {
    let cell = hop.cells.get(size)?;
    Some((cell.least_ns(Half::Both)?, cell.reply_octets))
}

/// By hop and size: whether the least round trip may have met no queue, by rules (a) and (b).
/// `slack_ns`: what two of them may be off by.
pub(super) fn clean(hops: &[HopTable], slack_ns: f64) -> Vec<Vec<bool>> {
    let of_hop = |(at, hop): (usize, &HopTable)| {
        let sizes = hop.cells.len();
        let own = |size: usize| least(hop, size);
        let sooner_further_on = |size: usize| {
            let Some((mine, reply)) = own(size) else { return false };
            hops.iter()
                .skip(at + 1)
                .filter_map(|other| least(other, size))
                .any(|(theirs, other)| other == reply && theirs as f64 + slack_ns < mine as f64)
        };
        let sooner_though_larger = |size: usize| {
            let Some((mine, _)) = own(size) else { return false };
            (size + 1..sizes).filter_map(own).any(|(larger, _)| larger as f64 + slack_ns < mine as f64)
        };
        let further: Vec<bool> = (0..sizes).map(sooner_further_on).collect();
        let answered = (0..sizes).filter(|&size| own(size).is_some()).count();
        let slow_router = further.iter().filter(|&&sooner| sooner).count() == answered;
        (0..sizes)
            .map(|size| own(size).is_some() && (slow_router || !further[size]) && !sooner_though_larger(size))
            .collect()
    };
    hops.iter().enumerate().map(of_hop).collect()
}

/// The line of each hop through the sizes that count; through two to four of them from the first to
/// the last.
pub(super) fn lines(hops: &[HopTable], drawing: Drawing<'_>) -> Vec<Option<Drawn>> {
    let clean = clean(hops, slack(drawing));
    let of_hop = |(hop, clean): (&HopTable, &Vec<bool>)| {
        let left_out = clean.iter().filter(|clean| !**clean).count();
        if left_out > 1 && MOST_LEFT_OUT * left_out > clean.len() {
            return None;
        }
        let counted = hop.cells.iter().zip(clean).filter(|(_, clean)| **clean);
        let points: Vec<Point> = counted.filter_map(|(cell, _)| drawing.point(cell, Half::Both)).collect();
        let all = if points.len() < LEAST_SIZES {
            two_sizes(&points, drawing.floor_ns())?
        } else {
            drawing.through(&points).filter(|sum| !contradicted(sum, &points, drawing))?
        };
        Some(Drawn { all, halves: None })
    };
    hops.iter().zip(&clean).map(of_hop).collect()
}

/// Whether probes and answers cost differently per octet, where that can be told: a reverse
/// direction of another rate, or a router that copies.
fn contradicted(sum: &Slope, points: &[Point], drawing: Drawing<'_>) -> bool {
    let apart = Drawing { regress: Regress::Both, ..drawing };
    let both = apart.through(points).filter(|both| both.assumed == Assumed::Nothing);
    sum.assumed == Assumed::Alike
        && both.is_some_and(|both| {
            let differs = (both.forward - sum.forward).abs();
            differs > 3.0 * both.se.hypot(sum.se) && differs > ALIKE * sum.forward.abs()
        })
}

fn slack(drawing: Drawing<'_>) -> f64 {
    2.0 * drawing.floor_ns()
}

/// The tool's first formula.
fn two_sizes(points: &[Point], floor_ns: f64) -> Option<Slope> {
    let (first, last) = (points.first()?, points.last()?);
    let varies = (last.reverse - first.reverse).abs() > 0.5;
    let octets = (last.forward - first.forward) + if varies { last.reverse - first.reverse } else { 0.0 };
    if octets <= 0.0 {
        return None;
    }
    let forward = (last.least_ns - first.least_ns) / octets;
    let reverse = if varies { forward } else { 0.0 };
    Some(Slope {
        forward,
        se: std::f64::consts::SQRT_2 * floor_ns / octets,
        reverse,
        intercept_ns: first.least_ns - forward * first.forward - reverse * first.reverse,
        assumed: if varies { Assumed::Alike } else { Assumed::Nothing },
    })
}

/// What is to be probed again, as hop and size, counted from zero: what does not count, what breaks
/// rule (c), and the worst half.
pub(super) fn worst(hops: &[HopTable], drawing: Drawing<'_>) -> Vec<(usize, usize)> {
    let clean = clean(hops, slack(drawing));
    let answering = |at: usize| hops.get(at).is_some_and(|hop| hop.answered() > 0);
    let mut again = Vec::new();
    for (at, sizes) in clean.iter().enumerate().filter(|(at, _)| answering(*at)) {
        again.extend(sizes.iter().enumerate().filter(|(_, clean)| !**clean).map(|(size, _)| (at, size)));
    }
    let mut links: Vec<Link> =
        (0..hops.len()).filter(|&at| answering(at)).filter_map(|at| link(hops, at, &clean, drawing)).collect();
    links.sort_by(|one, other| one.correlation.total_cmp(&other.correlation));
    let half = links.len().div_ceil(2);
    for link in links.iter().take(half).filter(|link| link.correlation < CLEAN) {
        for &size in &link.worst {
            again.push((link.remote, size));
            if link.correlation < BOTH_ENDS
                && let Some(near) = link.near
            {
                again.push((near, size));
            }
        }
    }
    again.sort_unstable();
    again.dedup();
    again
}

/// One link, as the difference of its two ends.
#[derive(Debug, Clone, PartialEq)]
struct Link {
    near: Option<usize>,
    remote: usize,
    /// Of difference and octets.
    correlation: f64,
    /// Sizes: those that break rule (c), and the half furthest from the line.
    worst: Vec<usize>,
}

fn link(hops: &[HopTable], remote: usize, clean: &[Vec<bool>], drawing: Drawing<'_>) -> Option<Link> {
    let near = remote.checked_sub(1);
    if near.is_some_and(|near| hops.get(near).is_none_or(|hop| hop.answered() == 0)) {
        return None;
    }
    let counted = |at: usize, size: usize| clean.get(at).and_then(|sizes| sizes.get(size)) == Some(&true);
    let difference = |size: usize| {
        let (later, _) = least(&hops[remote], size).filter(|_| counted(remote, size))?;
        let sooner = match near {
            Some(near) => least(&hops[near], size).filter(|_| counted(near, size))?.0,
            None => 0,
        };
        let point = drawing.point(hops[remote].cells.get(size)?, Half::Both)?;
        Some((size, point.forward + point.reverse, later.saturating_sub(sooner) as f64))
    };
    let points: Vec<(usize, f64, f64)> = (0..hops[remote].cells.len()).filter_map(difference).collect();
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().map(|point| (point.1, point.2)).unzip();
    let fit = ols(&xs, &ys).ok()?;
    let mut off: Vec<(usize, f64)> = points.iter().map(|(size, x, y)| (*size, (y - fit.line.at(*x)).abs())).collect();
    off.sort_by(|one, other| other.1.total_cmp(&one.1));
    let half = off.len().div_ceil(2);
    let mut worst: Vec<usize> = off.iter().take(half).map(|(size, _)| *size).collect();
    let falls = points.windows(2).filter(|pair| pair[1].2 < pair[0].2);
    worst.extend(falls.map(|pair| pair[0].0));
    Some(Link { near, remote, correlation: correlation(&xs, &ys), worst })
}

/// Pearson's; zero where one of them does not vary.
fn correlation(xs: &[f64], ys: &[f64]) -> f64 {
    let (Some(x), Some(y)) = (narrows_stat::mean(xs), narrows_stat::mean(ys)) else {
        return 0.0;
    };
    let sum = |of: &dyn Fn(f64, f64) -> f64| xs.iter().zip(ys).map(|(a, b)| of(a - x, b - y)).sum::<f64>();
    let scale = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    let found = sum(&|a, b| a * b) / scale;
    if found.is_finite() { found } else { 0.0 }
}

/// Slopes that differ by less are alike (ours).
const ALIKE: f64 = 0.05;
/// A hop of whose sizes more than one in so many do not count has no line: its router takes longer
/// the more it copies, or queues hardly ever empty (ours).
const MOST_LEFT_OUT: usize = 4;
/// Links below it are probed again at both ends (tool).
const BOTH_ENDS: f64 = 0.8;
/// Links above it are left alone (ours).
const CLEAN: f64 = 0.9999;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vps::settings::Draw;
    use narrows_units::Framing;

    fn hop(leasts: &[i64], reply: u16) -> HopTable {
        let sizes = [100, 500, 900, 1300];
        let mut hop = HopTable::new(&sizes[..leasts.len()]);
        for (cell, &least) in hop.cells.iter_mut().zip(leasts) {
            cell.take(least, reply);
        }
        hop
    }

    #[test]
    fn what_a_later_hop_or_a_larger_size_beats_does_not_count() {
        let hops = [hop(&[10, 20, 90, 40], 56), hop(&[50, 60, 70, 80], 56)];
        // 90 is beaten by the next hop's 70, and by its own 40.
        assert_eq!(clean(&hops, 2.0), [[true, true, false, true], [true; 4]]);
        let hops = [hop(&[10, 60, 50, 55], 56), hop(&[20, 70, 80, 90], 56)];
        assert_eq!(clean(&hops, 2.0)[0], [true, false, true, true]);
        assert_eq!(clean(&hops, 20.0)[0], [true; 4]);
    }

    #[test]
    fn a_slow_router_and_longer_answers_are_no_queue() {
        let hops = [hop(&[100, 110, 120, 130], 56), hop(&[50, 60, 70, 80], 56)];
        assert_eq!(clean(&hops, 2.0), [[true; 4], [true; 4]]);
        let hops = [hop(&[10, 20, 75, 78], 576), hop(&[50, 60, 70, 80], 56)];
        assert_eq!(clean(&hops, 2.0)[0], [true; 4]);
    }

    #[test]
    fn correlation_of_known_points() {
        assert!((correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]) - 0.5).abs() < 1e-12);
        assert!(correlation(&[1.0, 2.0], &[5.0, 5.0]).abs() < 1e-12);
    }

    #[test]
    fn the_worst_half_is_probed_again_and_clean_links_are_not() {
        let drawing =
            Drawing { facts: None, framing: Framing::BARE, regress: Regress::Sum, draw: Draw::Lsq, halves: false };
        let straight = hop(&[1_000, 5_000, 9_000, 13_000], 0);
        // The second link's differences are 1000, 6500, 5000, 8000 around a line, and fall once.
        let bent = hop(&[2_000, 11_500, 14_000, 21_000], 0);
        let again = worst(&[straight.clone(), bent], drawing);
        assert!(again.iter().all(|(hop, _)| *hop == 1), "{again:?}");
        assert!(again.contains(&(1, 1)), "{again:?}");
        assert_eq!(worst(&[straight], drawing), []);
    }
}
