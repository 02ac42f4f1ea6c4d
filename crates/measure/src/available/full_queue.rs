//! A queue that is full when a train comes, because others send more than the link carries.
//!
//! Delays cannot grow any further there; packets are lost instead, and more of them the faster a
//! train is. Losses that do not come from that queue do not grow with the train's rate; and a link
//! that is not busy yet loses more only behind a queue that fills first, which delays show.
//!
//! A drop-tail queue that never runs empty lets all flows through in proportion to what they send:
//! of a train at rate `r`, beside traffic of rate `x` on a link of capacity `C`, the share
//! `C / (r + x)` comes through. So `sent / received = x / C + r / C`, which meets the axis at the
//! load. Traffic that keeps step with the train takes more or less than its share. That does not
//! matter for the top of the interval: a link that is full beside slow trains has nothing free but
//! what these received.

use narrows_probe::probes::{Arrival, TrainReport};
use narrows_train::train_method::arrived_ns;

/// Delays of the packets that came, ns, with the clocks' unknown offset.
pub(super) fn delays_ns(report: &TrainReport) -> impl Iterator<Item = i64> + '_ {
    report.arrivals.iter().filter_map(delay_ns)
}

/// The delay of a packet, if it came, by the same measure.
pub(super) fn delay_ns(row: &Arrival) -> Option<i64> {
    Some(arrived_ns(row)?.saturating_sub(row.departed.nanos()))
}

/// Trains at one rate, together.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Through {
    /// Rate sent, bit/s.
    rate: f64,
    sent: u64,
    received: u64,
    /// The median delay of each train, ns.
    delays: Vec<f64>,
    /// The delay that three packets of four exceed, of each train, ns.
    low_delays: Vec<f64>,
    /// By how much the later half of each came later than the first, ns.
    growths: Vec<f64>,
}

impl Through {
    /// One more train, sent at `rate`.
    pub(super) fn push(&mut self, report: &TrainReport, rate: f64) {
        let (before, sent) = (self.sent as f64, report.arrivals.len() as u64);
        self.sent += sent;
        self.received += report.received().count() as u64;
        self.rate = (self.rate * before + rate * sent as f64) / self.sent.max(1) as f64;
        let delays: Vec<f64> = delays_ns(report).map(|delay| delay as f64).collect();
        self.delays.extend(narrows_stat::median(&delays));
        self.low_delays.extend(narrows_stat::quantile(&delays, 0.25));
        let (first, later) = delays.split_at(delays.len() / 2);
        let growth = narrows_stat::median(first).zip(narrows_stat::median(later));
        self.growths.extend(growth.map(|(first, later)| later - first));
    }

    fn per_train(&self) -> f64 {
        self.sent as f64 / self.delays.len().max(1) as f64
    }

    /// Packets sent for each that came, and its standard error: losses come in runs.
    fn ratio(&self) -> Option<(f64, f64)> {
        let (sent, received) = (self.sent as f64, self.received as f64);
        let enough = self.received >= LEAST_RECEIVED && self.rate.is_finite() && self.rate > 0.0;
        enough.then(|| {
            let ratio = sent / received;
            (ratio, RUNS * ratio * ((1.0 - 1.0 / ratio).max(1.0 / sent) / received).sqrt())
        })
    }
}

/// What trains of two rates say of a path that loses packets of slow ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Queue {
    /// Others keep it full.
    Full(Leftover),
    /// Fast trains fill it, or slow ones lose nothing that counts: losses have another cause.
    HasRoom,
    /// Neither shows: it is short, or others fill it time and again.
    Unclear,
}

/// What a full queue leaves, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Leftover {
    /// What a load of the link's capacity or more leaves is nothing.
    pub(super) available: f64,
    pub(super) high: f64,
    /// Load as a share of the capacity.
    pub(super) load: f64,
}

impl Queue {
    /// The queue in front of a link of that capacity; `packet` in bits, `least_ns` the least delay
    /// of all trains.
    pub(super) fn of(slow: &Through, fast: &Through, (capacity, packet): (f64, f64), least_ns: f64) -> Option<Self> {
        let (low, low_error) = slow.ratio()?;
        let (high, high_error) = fast.ratio()?;
        let packet_ns = packet * 1e9 / capacity;
        let lost = low - SURE * low_error > 1.0;
        // What half of a fast train's packets add to a queue that holds them.
        let adds = fast.per_train() / 2.0 * (1.0 - capacity / fast.rate).max(0.0) * packet_ns;
        if !lost || narrows_stat::median(&fast.growths)? >= ADDED * adds {
            return Some(Self::HasRoom);
        }
        let grows = high - low > SURE * low_error.hypot(high_error);
        let beside_slow = narrows_stat::median(&slow.delays)?;
        let fills = narrows_stat::median(&fast.delays)? - beside_slow;
        let short = fills <= FILLED * packet_ns;
        if !grows || low < LEAST_LOST || !(short || stands(slow, fast, least_ns)?) {
            return Some(Self::Unclear);
        }
        let load = low - slow.rate / capacity;
        let high = slow.rate / low;
        Some(Self::Full(Leftover { available: (capacity * (1.0 - load)).clamp(0.0, high), high, load }))
    }
}

/// The queue that fast trains find full stands beside slow trains too, nearly always.
fn stands(slow: &Through, fast: &Through, least_ns: f64) -> Option<bool> {
    let full = narrows_stat::median(&fast.delays)? - least_ns;
    let middle = narrows_stat::median(&slow.delays)? - least_ns;
    let low = narrows_stat::median(&slow.low_delays)? - least_ns;
    Some(full > 0.0 && middle >= STANDS * full && low >= STANDS_LOW * full)
}

// Ours, all of them.
/// Standard errors.
const SURE: f64 = 1.645;
/// A full queue loses more than this of slow trains.
const LEAST_LOST: f64 = 1.03;
/// Packets by which the queue of a link that is not busy yet grows before it loses any.
const FILLED: f64 = 2.0;
/// Share of a full queue that stands beside slow trains where transfers keep it: CUBIC gives back
/// three tenths of what it had (RFC 9438 §4.6), so that in the middle more than this is left.
const STANDS: f64 = 0.7;
/// The same for three packets of four: more than once our own fast trains made transfers give way.
/// Bursts of others let a queue run empty between them, if a quarter of the time is left to them.
const STANDS_LOW: f64 = 0.5;
/// Share of what a fast train adds to a queue that must show in its delays where there is room.
const ADDED: f64 = 0.5;
const LEAST_RECEIVED: u64 = 20;
/// By how much runs of losses scatter more than single ones do.
const RUNS: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: f64 = 100e6;

    fn through(rate: f64, received: f64, delay: f64, growth: f64) -> Through {
        let received = narrows_units::rounded(received);
        let delays = vec![delay; 3];
        Through { rate, sent: 300, received, low_delays: delays.clone(), delays, growths: vec![growth; 3] }
    }

    fn full(rate: f64, load: f64) -> Through {
        through(rate, 300.0 / (load + rate / CAPACITY), 5e6, 0.0)
    }

    fn queue(slow: &Through, fast: &Through) -> Option<Queue> {
        Queue::of(slow, fast, (CAPACITY, 12e3), f64::INFINITY)
    }

    #[test]
    fn a_queue_that_stands_high_beside_slow_trains_is_full() {
        let (slow, fast) = (through(12.5e6, 270.0, 22e6, 0.0), through(200e6, 150.0, 23e6, 0.1e6));
        let least = |least| Queue::of(&slow, &fast, (CAPACITY, 12e3), least);
        assert!(matches!(least(6e6), Some(Queue::Full(_))), "1 of 16 ms");
        assert_eq!(least(20e6), Some(Queue::Unclear), "1 of 2 ms");
    }

    /// Four transfers over 10 Mbit/s: the queue of 21 ms sinks to 18 in the middle, and to 13.
    #[test]
    fn a_queue_that_transfers_let_sink_is_full() {
        let beside = |low: f64| {
            let slow = Through { low_delays: vec![low; 3], ..through(12.5e6, 273.0, 18e6, 0.0) };
            Queue::of(&slow, &through(200e6, 145.0, 21e6, 0.1e6), (CAPACITY, 12e3), 0.0)
        };
        assert!(matches!(beside(13e6), Some(Queue::Full(_))));
        assert_eq!(beside(5e6), Some(Queue::Unclear), "it runs empty between bursts");
    }

    #[test]
    fn a_full_queue_tells_the_load() {
        for load in [1.05, 1.2, 1.8] {
            let Some(Queue::Full(found)) = queue(&full(12.5e6, load), &full(200e6, load)) else {
                panic!("{load}: not found");
            };
            assert!((found.load - load).abs() < 0.02 && found.available == 0.0, "{load} {found:?}");
            assert!((found.high - 12.5e6 / (load + 0.125)).abs() < 0.2e6, "{load} {found:?}");
        }
    }

    #[test]
    fn losses_that_do_not_grow_with_the_rate_are_no_full_queue() {
        for lost in [30.0, 60.0, 120.0] {
            let of = |rate| through(rate, 300.0 - lost, 5e6, 0.0);
            assert_eq!(queue(&of(12.5e6), &of(200e6)), Some(Queue::Unclear), "{lost}");
        }
    }

    #[test]
    fn a_queue_that_a_fast_train_fills_has_room() {
        // 25 packets of 120 us are what half of a fast train of 100 packets adds.
        let (slow, fast) = (through(12.5e6, 270.0, 1e6, 0.0), through(200e6, 200.0, 3e6, 2.9e6));
        assert_eq!(queue(&slow, &fast), Some(Queue::HasRoom));
    }

    #[test]
    fn a_short_queue_that_is_not_always_full_stays_unclear() {
        let (slow, fast) = (through(12.5e6, 270.0, 1e6, 0.0), through(200e6, 150.0, 1.5e6, 0.1e6));
        assert_eq!(queue(&slow, &fast), Some(Queue::Unclear));
    }

    #[test]
    fn a_link_that_loses_nothing_of_slow_trains_is_not_overloaded() {
        assert_eq!(queue(&through(12.5e6, 300.0, 5e6, 0.0), &full(200e6, 0.7)), Some(Queue::HasRoom));
    }
}
