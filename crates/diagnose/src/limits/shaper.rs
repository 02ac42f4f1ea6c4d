//! A shaper whose bucket is empty: a rate that falls once and for all while a queue stands.

use std::time::Duration;

use super::{TransferSamples, samples};
use narrows_train::bulk::series;
use narrows_train::bulk::series::Slot;

/// A rate that falls by this factor for good, after so many slots and for so many (the constants of
/// ShaperProbe, `[ShaperProbe11]`).
const LEVEL_SHIFT: f64 = 1.10;
const BEFORE_SHIFT: usize = 3;
const AFTER_SHIFT: usize = 8;
/// Round trips, and slots, that a recovery may take, its leaps included; slots before the fall
/// among which the longest round trip is looked for (ours).
const RECOVERY: f64 = 4.0;
/// See [`RECOVERY`].
const RECOVERY_SLOTS: usize = 8;
/// See [`RECOVERY`].
const RECOVERY_WINDOW: usize = 10;
/// Behind a shaper the rate is the tokens': it varies by less than this.
const SHAPED_VARIATION: f64 = 0.05;
/// The same of delivery rates: each is one sample, and those of several connections are not of one
/// moment (ours, of drawn paths).
const DELIVERY_SHIFT: f64 = 1.25;
const DELIVERY_VARIATION: f64 = 0.10;
/// Behind a shaper so much of the time is at the tokens' rate, and next to none above it (ours:
/// what is sent again after a loss comes in leaps).
const AT_TOKENS: f64 = 0.7;
const ABOVE_TOKENS: f64 = 0.1;

/// What a rate that falls for good must look like.
#[derive(Debug, Clone, Copy)]
struct Fall {
    /// By this factor at least.
    by: f64,
    /// Behind it the rate varies by no more than this share of it,
    within: f64,
    /// or by no more than this, bit/s.
    step: f64,
}

/// The least mean of these rates of slots over stretches that end before this slot, from
/// [`BEFORE_SHIFT`] slots to as many round trips as a recovery takes. What is acknowledged stands
/// still while losses are mended and leaps when they are: a stretch with the leap has the stall in
/// it, too, unless it is too short.
fn sustained(slots: &[Slot], rates: &[f64], shift: usize) -> Option<f64> {
    let before = &slots[..shift];
    let near = &before[before.len().saturating_sub(RECOVERY_WINDOW)..];
    let longest = near.iter().map(|slot| slot.rtt).max()?.as_secs_f64() * RECOVERY;
    let (mut octets, mut seconds) = (0.0, 0.0);
    let mut least: Option<f64> = None;
    for (count, (slot, rate)) in before.iter().zip(rates).rev().enumerate() {
        octets += rate * slot.seconds;
        seconds += slot.seconds;
        if count + 1 < BEFORE_SHIFT || seconds <= 0.0 {
            continue;
        }
        let mean = octets / seconds;
        least = Some(least.map_or(mean, |least| least.min(mean)));
        if seconds >= longest && count + 1 >= RECOVERY_SLOTS {
            break;
        }
    }
    least
}

/// A rate that falls once and for all while a queue stands: the bucket of a shaper is empty. Behind
/// a link the rate of a standing queue is the highest there is. What is acknowledged tells, and
/// what is delivered, which neither recoveries nor BBR's phases move about as much.
pub(super) fn shaped(seen: &TransferSamples<'_>, inflated: Duration) -> bool {
    let slots = seen.slots;
    let acked: Vec<f64> = slots.iter().map(|slot| slot.bps).collect();
    // Acknowledgements come for two segments at a time.
    let mss = samples(seen.reports).map(|sample| sample.mss_octets).max().unwrap_or(0);
    let shortest = slots.iter().map(|slot| slot.seconds).fold(f64::INFINITY, f64::min);
    let fall =
        Fall { by: LEVEL_SHIFT, within: SHAPED_VARIATION, step: 2.0 * 8.0 * f64::from(mss) / shortest.max(1e-3) };
    if falls(slots, &acked, fall, inflated) {
        return true;
    }
    let delivered: Vec<f64> = slots.iter().map(|slot| slot.delivery_bps).collect();
    let fall = Fall { by: DELIVERY_SHIFT, within: DELIVERY_VARIATION, step: 0.0 };
    falls(slots, &delivered, fall, inflated)
}

/// Whether these rates of slots fall for good at one of them.
fn falls(slots: &[Slot], rates: &[f64], fall: Fall, inflated: Duration) -> bool {
    (BEFORE_SHIFT..(rates.len() + 1).saturating_sub(AFTER_SHIFT)).any(|shift| {
        // The slot of the change itself belongs to neither side.
        let (settled, after) = (&rates[shift + 1..], &slots[shift + 1..]);
        let (Some(high), Some(low)) = (sustained(slots, rates, shift), narrows_stat::median(settled)) else {
            return false;
        };
        let share = |count: usize| count as f64 / settled.len() as f64;
        let at_tokens = settled.iter().filter(|rate| (*rate - low).abs() < (fall.within * low).max(fall.step)).count();
        let above = settled.iter().filter(|rate| **rate * LEVEL_SHIFT.sqrt() > high).count();
        let queued = after.iter().filter(|slot| slot.rtt >= inflated).count();
        // Nothing goes at even rates, too, and the last round trip that was seen stands.
        let moving = after.iter().filter(|slot| slot.bps > 0.0).count();
        low > 0.0
            && high >= fall.by * low
            && share(at_tokens) > AT_TOKENS
            && share(above) < ABOVE_TOKENS
            && share(queued) > 0.5
            && share(moving) > 0.5
            && delivered(&slots[..shift]) >= LEVEL_SHIFT * low
    })
}

/// The most that was acknowledged over as many slots in a row as a recovery takes, bit/s: samples
/// of a delivery rate may overshoot, a second of acknowledgements does not.
fn delivered(slots: &[Slot]) -> f64 {
    let stretches = slots.windows(RECOVERY_SLOTS.min(slots.len()).max(1));
    stretches.filter_map(series::mean_bps).fold(0.0, f64::max)
}
