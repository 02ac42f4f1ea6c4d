//! Families of equally spaced modes, over scales (`[MultiQ04]`, after its Click element). Times are
//! nanoseconds.

use narrows_stat::DensityMode;

/// How modes and families are found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) least_scale: f64,
    pub(super) most_scale: f64,
    pub(super) step: f64,
    pub(super) no_mode_step: f64,
    pub(super) mode_significance: f64,
    pub(super) gap_significance: f64,
    pub(super) mode_points: f64,
    pub(super) gap_points: f64,
    pub(super) settle: f64,
}

/// A transmission time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TransmissionTime {
    pub(super) time: f64,
    scale: f64,
    /// It is a distance between modes: one packet of cross traffic. Else it is where a mode stands:
    /// what one sample spans.
    pub(super) is_distance: bool,
}

/// Two times are the same (`similar` of the element).
const SIMILAR: f64 = 0.05;
/// Modes below this share of the tallest are none.
const LOWEST: f64 = 0.01;
/// Each distance counts as often as its right mode has thousandths of the sample.
const REPEATS: f64 = 1000.0;
/// What covers several segments stands at several distances: under a kernel wider than the family,
/// a single mode below so many of them is the family itself (ours; the element would take it for a
/// link).
const HUMP: f64 = 6.0;
/// The kernel over distances, as a share of the smallest.
const GAP_KERNEL: f64 = 0.4;
/// No scale is finer than so many steps of the stamps (ours: below, steps are modes).
const LEAST_STEPS: f64 = 2.0;

/// Transmission times, ascending: each from a larger scale than the one before.
pub(super) fn transmission_times(gaps: &[f64], rules: &Rules, of_acks: bool, resolution: f64) -> Vec<TransmissionTime> {
    let mut found: Vec<TransmissionTime> = Vec::new();
    let mut scale = rules.least_scale.max(LEAST_STEPS * resolution);
    let mut most = None;
    // Ends: every turn multiplies the scale by at least 1.01.
    while scale < most.unwrap_or(rules.most_scale) {
        let modes = modes(gaps, scale, rules.mode_significance, rules.mode_points);
        let Some(tallest) = highest(&modes, of_acks) else {
            scale *= rules.no_mode_step;
            continue;
        };
        if most.is_none() {
            let again =
                highest(&self::modes(gaps, tallest.at / 2.0, rules.mode_significance, rules.mode_points), of_acks);
            let largest = again.map_or(tallest.at, |again| again.at.max(tallest.at));
            most = Some(largest.min(rules.most_scale));
        }
        let modes: Vec<DensityMode> =
            modes.iter().copied().filter(|mode| mode.density >= LOWEST * tallest.density).collect();
        match modes.as_slice() {
            [] => scale *= rules.no_mode_step,
            [one] => {
                if !(of_acks && found.last().is_some_and(|last| last.is_distance && one.at < HUMP * last.time)) {
                    add(&mut found, one.at, scale, false);
                }
                break;
            }
            [_, _] if scale < rules.settle => scale *= rules.step,
            [first, second] => {
                settle(&mut found, *first, *second, scale);
                break;
            }
            more => match distance(more, rules, of_acks) {
                Some(time) => {
                    add(&mut found, time, scale, true);
                    scale = scale.max(time) * rules.step;
                }
                None => scale *= rules.step,
            },
        }
    }
    filtered(found)
}

fn modes(gaps: &[f64], scale: f64, significance: f64, points: f64) -> Vec<DensityMode> {
    narrows_stat::biweight_density(gaps, scale)
        .map_or_else(|_| Vec::new(), |density| density.modes(significance, points))
}

/// The tallest; of acknowledgements' the leftmost is left out, if there are others: it is what
/// compression makes.
fn highest(modes: &[DensityMode], of_acks: bool) -> Option<DensityMode> {
    let skipped = usize::from(of_acks && modes.len() > 1);
    modes[skipped..].iter().copied().max_by(|a, b| a.density.total_cmp(&b.density))
}

fn add(found: &mut Vec<TransmissionTime>, time: f64, scale: f64, is_distance: bool) {
    let last = found.last().map_or(0.0, |last| last.time);
    if (time - last) / (time + last) > SIMILAR {
        found.push(TransmissionTime { time, scale, is_distance });
    }
}

/// Two modes and no scale left at which they might become more or one.
fn settle(found: &mut Vec<TransmissionTime>, first: DensityMode, second: DensityMode, scale: f64) {
    let (h1, h2) = (first.density, second.density);
    if h1 > 0.25 * h2 {
        add(found, first.at, scale, false);
    }
    let apart = second.at - first.at;
    let multiple = (apart / first.at - 1.0).abs() < 0.015;
    if h2 > 2.0 * h1 || (h2 > 0.7 * h1 && !multiple && apart < 3.0 * first.at) {
        add(found, second.at, scale, false);
    }
}

/// The distance that recurs between neighbouring modes, if it is the first mode of the distances.
fn distance(modes: &[DensityMode], rules: &Rules, of_acks: bool) -> Option<f64> {
    let mut left = if of_acks { None } else { Some(0.0) };
    let total: f64 = modes.iter().map(|mode| mode.mass).sum();
    let mut distances = Vec::new();
    for mode in modes {
        if let Some(left) = left {
            let repeats = super::super::math::size(REPEATS * mode.mass / total).max(1);
            distances.extend(std::iter::repeat_n(mode.at - left, repeats));
        }
        left = Some(mode.at);
    }
    let smallest = distances.iter().copied().reduce(f64::min).filter(|smallest| *smallest > 0.0)?;
    let of_distances = self::modes(&distances, GAP_KERNEL * smallest, rules.gap_significance, rules.gap_points);
    let first = of_distances.first()?;
    of_distances.iter().all(|mode| mode.density <= first.density).then_some(first.at)
}

/// Times that are not above their scale are the kernel's; between 30 and 46 us they are what
/// packets of 52 octets make of links of 10 and 100 Mbit/s.
fn filtered(found: Vec<TransmissionTime>) -> Vec<TransmissionTime> {
    let mut kept: Vec<TransmissionTime> = Vec::new();
    for one in found.into_iter().rev() {
        let small = (30_000.0..46_000.0).contains(&one.time);
        let links = [100_000.0..170_000.0, 950_000.0..1_350_000.0];
        let of_small = |kept: &TransmissionTime| links.iter().any(|link| link.contains(&kept.time));
        if one.time <= one.scale || (small && kept.iter().any(of_small)) {
            continue;
        }
        kept.push(one);
    }
    kept.reverse();
    kept
}
