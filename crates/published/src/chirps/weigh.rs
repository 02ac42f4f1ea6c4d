//! From excursions to one rate per chirp, as pathchirp and ASSOLO do: rates of steps, weighted by
//! their time.

use super::excursions::{Rule, excursions};
use super::{Chirp, ChirpReading};

/// A chirp's estimate. Steps that rise within an excursion that ended count with their own rate,
/// all others with that of the step `before` steps ahead of the one at which the lasting excursion
/// begins.
pub(crate) fn weigh(chirp: &Chirp, rule: &Rule, before: usize) -> Option<ChirpReading> {
    let (delays, rates, times) = (chirp.delays(), chirp.rates(), chirp.times());
    let found = excursions(&delays, rule);
    let last = rates.len().checked_sub(1)?;
    let lasting = found.lasting.filter(|begin| taken_off(&delays, *begin, chirp.blur_ns(rates[*begin])));
    let usual = lasting.map_or(rates[last], |begin| rates[begin.saturating_sub(before)]);
    let mut each = vec![usual; rates.len()];
    for (begin, end) in found.ended {
        for step in begin..end {
            if delays[step] < delays[step + 1] {
                each[step] = rates[step];
            }
        }
    }
    let weight: f64 = times.iter().sum();
    let sum: f64 = each.iter().zip(&times).map(|(rate, time)| rate * time).sum();
    (weight > 0.0).then(|| ChirpReading {
        rate: sum / weight,
        // One that begins at the last step says no more than the highest rate.
        open: lasting.is_none_or(|begin| begin + 1 >= last),
        below: lasting.is_some_and(|begin| begin <= rule.from),
    })
}

/// It rose by more than stamps are off by (ours).
fn taken_off(delays: &[f64], begin: usize, noise: f64) -> bool {
    let highest = delays[begin..].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    highest - delays[begin] > NOISE * noise
}

/// Times the error of a stamp (ours).
const NOISE: f64 = 2.0;
