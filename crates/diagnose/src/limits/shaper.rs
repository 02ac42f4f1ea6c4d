//! A shaper whose bucket is empty: a rate that falls once and for all while a queue stands.

use std::time::Duration;

use super::{TransferSamples, samples};
use narrows_probe::probes::Congestion;
use narrows_train::bulk::series;
use narrows_train::bulk::series::Slot;

/// A rate that falls by this factor for good, after so many slots and for so many (the constants of
/// ShaperProbe, `[ShaperProbe11]`).
const LEVEL_SHIFT: f64 = 1.10;
const BEFORE_SHIFT: usize = 3;
const AFTER_SHIFT: usize = 8;
/// What falls for good stays for this part of the test at least: what others take comes and goes
/// (ours).
const FOR_GOOD: usize = 3;
/// Round trips, and slots, that a recovery may take, its leaps included; slots before the fall
/// among which the longest round trip is looked for (ours).
const RECOVERY: f64 = 4.0;
/// See [`RECOVERY`].
const RECOVERY_SLOTS: usize = 8;
/// See [`RECOVERY`].
const RECOVERY_WINDOW: usize = 10;
/// Behind a shaper the rate is the tokens', whatever others do: it varies by less than this (ours:
/// 0.5 % of simulated shapers; beside Poisson traffic of a fifth of the link it is 3 % and more).
const SHAPED_VARIATION: f64 = 0.01;
/// Others whose packets come independently would make the rate vary: a shaper's varies by less than
/// this share of what they would make it, if they took what fell away (ours).
const SHARE_OF_POISSON: f64 = 0.5;
/// Octets of their packets.
const OTHERS_OCTETS: f64 = 1500.0;
/// A line tells only where so many times its tolerance was carried (ours).
const TELLING: f64 = 20.0;
/// What was carried behind a shaper lies on a line but for so many segments, or for what comes in
/// so many seconds (both ours: acknowledgements come for two at a time).
const AT_ONCE: f64 = 3.0;
/// See [`AT_ONCE`].
const LATE: f64 = 1e-3;
/// The same of delivery rates: each is one sample, and those of several connections are not of one
/// moment; BBR's are not of one phase (ours, of drawn paths).
const DELIVERY_SHIFT: f64 = 1.25;
const DELIVERY_VARIATION: f64 = 0.10;
/// For so many round trips slow start may run ahead of a queue that fills, and what others lose
/// meanwhile is no bucket (ours: it doubles once more before it hears of the first loss, and what
/// it sent by then is mended in two more).
const OVERSHOOT: f64 = 4.0;
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
    /// or what was carried in all is off a straight line by no more than this, bits.
    segments: f64,
    /// What is acknowledged is as even as no traffic of others would leave it.
    even: bool,
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
    let segments = AT_ONCE * 8.0 * f64::from(mss);
    let mut streams = seen.reports.iter().flat_map(|report| &report.streams);
    let alone = seen.reports.iter().all(|report| report.streams.len() == 1)
        && streams.all(|stream| stream.congestion != Congestion::Bbr);
    let fall = Fall { by: LEVEL_SHIFT, within: SHAPED_VARIATION, segments, even: alone };
    if falls(slots, &acked, fall, inflated) {
        return true;
    }
    let delivered: Vec<f64> = slots.iter().map(|slot| slot.delivery_bps).collect();
    let within = if alone { SHAPED_VARIATION } else { DELIVERY_VARIATION };
    falls(slots, &delivered, Fall { by: DELIVERY_SHIFT, within, segments: 0.0, even: alone }, inflated)
}

/// Whether these rates of slots fall for good at one of them.
fn falls(slots: &[Slot], rates: &[f64], fall: Fall, inflated: Duration) -> bool {
    let settled = AFTER_SHIFT.max(rates.len() / FOR_GOOD);
    (BEFORE_SHIFT..(rates.len() + 1).saturating_sub(settled)).any(|shift| {
        // The slot of the change itself belongs to neither side.
        let (settled, after) = (&rates[shift + 1..], &slots[shift + 1..]);
        let (Some(high), Some(low)) = (sustained(slots, rates, shift), narrows_stat::median(settled)) else {
            return false;
        };
        let share = |count: usize| count as f64 / settled.len() as f64;
        let alike = settled.iter().filter(|rate| (*rate - low).abs() < fall.within * low).count();
        let at_tokens = alike.max(on_a_line(after, settled, low, fall.segments));
        let above = settled.iter().filter(|rate| **rate * LEVEL_SHIFT.sqrt() > high).count();
        let queued = after.iter().filter(|slot| slot.rtt >= inflated).count();
        // Nothing goes at even rates, too, and the last round trip that was seen stands.
        let longest = slots[..=shift].iter().map(|slot| slot.rtt).max().unwrap_or_default().as_secs_f64();
        let moving = after.iter().filter(|slot| slot.bps > 0.0).count();
        low > 0.0
            && high >= fall.by * low
            && share(at_tokens) > AT_TOKENS
            && share(above) < ABOVE_TOKENS
            && share(queued) > 0.5
            && share(moving) > 0.5
            && (!fall.even || is_even(after, high - low))
            && ahead(&slots[..shift], &rates[..shift], low) >= (high - low) * OVERSHOOT * longest
            && delivered(&slots[..shift]) >= LEVEL_SHIFT * low
    })
}

/// Slots at whose end what was carried since the fall lies on a straight line, as tokens have it
/// whatever others send: within so many bits, or what comes in the time by which a host is late.
/// Rates of slots are whole segments, which at a few of them to a slot hides how even they are.
fn on_a_line(slots: &[Slot], rates: &[f64], low: f64, segments: f64) -> usize {
    let within = segments.max(low * LATE);
    let (mut seconds, mut bits) = (0.0, 0.0);
    let points = slots.iter().zip(rates).map(|(slot, rate)| {
        seconds += slot.seconds;
        bits += rate * slot.seconds;
        (seconds, bits)
    });
    let (times, sums): (Vec<f64>, Vec<f64>) = points.unzip();
    let Ok(fit) = narrows_stat::theil_sen(&times, &sums, 0.9) else { return 0 };
    let off: Vec<f64> = times.iter().zip(&sums).map(|(time, sum)| sum - fit.line.at(*time)).collect();
    let middle = narrows_stat::median(&off).unwrap_or(0.0);
    let telling = segments > 0.0 && bits >= TELLING * within;
    off.iter().filter(|off| telling && (*off - middle).abs() <= within).count()
}

/// Whether what is acknowledged varies less than it would if others took `taken` bit/s by packets
/// that come independently: where both fit, it is a queue that is shared.
fn is_even(slots: &[Slot], taken: f64) -> bool {
    let rates: Vec<f64> = slots.iter().map(|slot| slot.bps).collect();
    let seconds: Vec<f64> = slots.iter().map(|slot| slot.seconds).collect();
    let (Some(spread), Some(slot)) = (narrows_stat::mad(&rates), narrows_stat::median(&seconds)) else {
        return false;
    };
    let poisson = (taken * 8.0 * OTHERS_OCTETS / slot.max(1e-3)).sqrt();
    spread * narrows_stat::MAD_TO_SD <= SHARE_OF_POISSON * poisson
}

/// Bits that were carried above this rate in the stretch before the fall in which they were most:
/// what a bucket held at least.
fn ahead(slots: &[Slot], rates: &[f64], low: f64) -> f64 {
    let (mut sum, mut most) = (0.0, 0.0f64);
    for (slot, rate) in slots.iter().zip(rates).rev() {
        sum += (rate - low) * slot.seconds;
        most = most.max(sum);
    }
    most
}

/// The most that was acknowledged over as many slots in a row as a recovery takes, bit/s: samples
/// of a delivery rate may overshoot, a second of acknowledgements does not.
fn delivered(slots: &[Slot]) -> f64 {
    let stretches = slots.windows(RECOVERY_SLOTS.min(slots.len()).max(1));
    stretches.filter_map(series::mean_bps).fold(0.0, f64::max)
}
