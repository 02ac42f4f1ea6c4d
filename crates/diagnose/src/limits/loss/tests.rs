//! Parts of the verdict on slots made by hand.

use super::*;

fn slot(bps: f64, rtt_ms: u64, retransmitted: u64) -> Slot {
    let rtt = Duration::from_millis(rtt_ms);
    Slot { seconds: 0.1, bps, rtt, cwnd_segments: 100, retransmitted, delivery_bps: bps }
}

/// A path of 20 ms on which round trips of 24 ms went through a queue, unless hosts made them.
fn settled(slots: &[Slot], by_hosts_ms: u64) -> Settled<'_> {
    let (inflated, floor) = (Duration::from_millis(24), Duration::from_millis(20));
    Settled {
        hit: hit(slots),
        slots,
        inflated,
        by_hosts: Duration::from_millis(by_hosts_ms),
        needless: false,
        mss: 1448.0,
        floor,
        doubtful: inflated,
        ramp: &[],
    }
}

/// What is left of 350 Mbit/s when the ramp's overflow is over, as between two kernels.
fn left(bps: f64, rtt_ms: u64) -> bool {
    let ramp = [slot(100e6, 21, 0), slot(350e6, 33, 170), slot(250e6, 30, 40)];
    let slots: Vec<Slot> = ramp.into_iter().chain((0..17).map(|_| slot(bps, rtt_ms, 0))).collect();
    settled(&slots, 20).left_queue()
}

#[test]
fn a_queue_that_was_left_far_below_is_no_limit() {
    assert!(left(60e6, 21));
    assert!(!left(260e6, 21), "Reno's half");
    assert!(!left(60e6, 30), "the queue stands");
}

/// Every tenth slot of a hundred loses something, at this round trip; the others take from 21 to 40
/// ms in turn, as hosts that stand still make them.
fn losing_at(rtt_ms: u64) -> Vec<Slot> {
    (0..100).map(|at| if at % 10 == 9 { slot(20e6, rtt_ms, 1) } else { slot(20e6, 21 + at * 7 % 20, 0) }).collect()
}

#[test]
fn what_hosts_may_add_is_no_queue() {
    let typical = losing_at(30);
    assert!(settled(&typical, 24).beyond_hosts(), "hosts add nothing that counts");
    assert!(!settled(&typical, 60).beyond_hosts(), "losses come at any round trip");
    assert!(settled(&losing_at(45), 60).beyond_hosts(), "losses come at the longest");
    assert!(settled(&losing_at(61), 60).beyond_hosts(), "longer than hosts make them");
}
