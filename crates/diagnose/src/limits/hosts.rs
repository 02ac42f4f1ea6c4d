//! What hosts that stand still add to round trips, so that it is not taken for a queue.
//!
//! # Model
//! A host that stands still, such as a virtual machine whose processor others have, holds back
//! acknowledgements at this end and segments at the other. Each waits for what is left of the
//! standstill. The program that samples the transfer waits as well, so the samples' own lateness
//! tells the mean wait, if the kernel stands still with its programs. If the kernel does, round
//! trips vary by the waits; if programs alone do, round trips hardly vary. Waits are taken to be
//! exponential, and those at the peer to be like those here: nothing tells the peer's.

use std::time::Duration;

use super::{TransferSamples, samples};
use narrows_train::bulk::series::Slot;

/// The longer one of two sums of two exponential waits exceeds so many of their means once in a
/// hundred: `(1 - exp(-x) (1 + x))^2 = 0.99`. Two sums, because the longest round trip about a loss
/// is one of two slots'.
const TAIL: f64 = 7.43;
/// The mean deviation of round trips is half of a host's mean wait at least, if its kernel waits
/// (ours: it would be 0.74 of one wait if each acknowledgement waited by itself; those that waited
/// together differ by less).
const SPREAD: f64 = 0.5;

/// What the hosts may add to a round trip.
pub(super) fn added(seen: &TransferSamples<'_>) -> Duration {
    let deviations: Vec<f64> = samples(seen.reports).map(|sample| sample.rtt_var.as_secs_f64()).collect();
    let deviation = narrows_stat::median(&deviations).unwrap_or(0.0);
    let wait = lateness(seen.slots).min(deviation / SPREAD);
    Duration::try_from_secs_f64(TAIL * wait).unwrap_or_default()
}

/// How late a sample is on average, seconds. Samples are due at even times: a slot is longer by its
/// end's lateness less its begin's, and the mean of what is longer is half of a mean difference,
/// which for exponential waits is their mean. The last slot is cut short, which is no lateness.
fn lateness(slots: &[Slot]) -> f64 {
    let lengths: Vec<f64> = slots.iter().map(|slot| slot.seconds).collect();
    let Some(due) = narrows_stat::median(&lengths) else { return 0.0 };
    let longer: Vec<f64> = lengths.iter().map(|length| (length - due).max(0.0)).collect();
    2.0 * narrows_stat::mean(&longer).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_one_in_a_hundred() {
        let sum = 1.0 - (-TAIL).exp() * (1.0 + TAIL);
        assert!((sum * sum - 0.99).abs() < 1e-4, "{}", sum * sum);
    }

    /// Of waits 0, 6, 0 and 2 ms the mean is 2 ms, and so is twice the mean of 6, 0 and 2 ms less
    /// what is lost as the median moves: slots of 100, 106, 94, 102 and a last one of 30 ms.
    #[test]
    fn samples_that_come_late_make_slots_longer() {
        let slot = |seconds| Slot {
            seconds,
            bps: 1e6,
            rtt: Duration::from_millis(20),
            cwnd_segments: 10,
            retransmitted: 0,
            delivery_bps: 1e6,
        };
        let slots: Vec<Slot> = [0.1, 0.106, 0.094, 0.102, 0.03].map(slot).into();
        assert!((lateness(&slots) - 2.0 * 0.008 / 5.0).abs() < 1e-12, "{}", lateness(&slots));
        assert!(lateness(&[]).abs() < 1e-12);
        assert!(lateness(&[slot(0.1), slot(0.1), slot(0.02)]).abs() < 1e-12);
    }
}
