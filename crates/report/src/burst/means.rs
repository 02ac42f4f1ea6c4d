//! What a burst limit means for windows, bursts, streams and queues (`[Netest03]` §III.A; the
//! specification of each number is in its field). Arithmetic on whole numbers: the same facts give
//! the same numbers.

use narrows_units::BitRate;
use serde::Serialize;

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Nine of ten bursts of this size survive.
    pub p10_octets: u64,
    /// The maximum burst size.
    pub burst_octets: u64,
    /// The queue behind it.
    pub queue_octets: Option<u64>,
    /// Rate at which bursts come through the queue.
    pub line_bps: u64,
    /// What is available.
    pub available_bps: u64,
    /// Round trip without any queue.
    pub rtt_ns: u64,
}

/// What they mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Means {
    /// What is available times the round trip: what must be in flight to fill it.
    pub delay_product_octets: u64,
    /// What one unpaced TCP window of the burst's size carries: `8 MBS / RTT`.
    pub unpaced_tcp_bps: u64,
    /// Unpaced connections that it takes to fill what is available: `A RTT / 8 MBS`.
    pub unpaced_streams: u64,
    /// An unpaced window of the product's size is cut: less than 80 % of what is available.
    pub pace: bool,
    /// Queue that a paced sender needs: what it sends in a millisecond, as Linux sizes its
    /// segments.
    pub paced_queue_octets: u64,
    /// A UDP burst that leaves half of the room to others.
    pub safe_udp_burst_octets: u64,
    /// Time from one such burst to the next at least: that of the whole burst limit at the line's
    /// rate.
    pub safe_udp_interval_ns: u64,
    /// What both together carry.
    pub safe_udp_bps: u64,
    /// Window at which an unpaced slow start loses first: twice the queue, or product and queue if
    /// the product comes first.
    pub slow_start_loss_octets: Option<u64>,
    /// Queue with which one Reno connection loses nothing of the rate: the product.
    pub reno_queue_octets: u64,
    /// The same of CUBIC: (1 − 0.7) / 0.7 of it.
    pub cubic_queue_octets: u64,
    /// The queue beside those.
    pub queue: Option<QueueVerdict>,
}

/// A queue beside the product of rate and round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueVerdict {
    /// Below a tenth of it.
    Shallow,
    /// Between.
    Fair,
    /// Takes longer than 100 ms to drain.
    Bloated,
}

impl Means {
    /// What the facts mean.
    pub fn of(facts: Facts) -> Self {
        let product = octets_in(facts.available_bps, facts.rtt_ns);
        let burst = facts.burst_octets.max(1);
        let unpaced_tcp_bps = rate(burst, facts.rtt_ns);
        let interval = nanos(burst, facts.line_bps);
        let safe = facts.p10_octets / 2;
        let queue = facts.queue_octets;
        Self {
            delay_product_octets: product,
            unpaced_tcp_bps,
            unpaced_streams: product.div_ceil(burst).max(1),
            pace: u128::from(unpaced_tcp_bps) * 10 < u128::from(facts.available_bps) * 8,
            paced_queue_octets: octets_in(facts.available_bps, 1_000_000),
            safe_udp_burst_octets: safe,
            safe_udp_interval_ns: interval,
            safe_udp_bps: rate(safe, interval),
            slow_start_loss_octets: queue.map(|queue| {
                let twice = queue.saturating_mul(2);
                if twice < product { twice } else { product.saturating_add(queue) }
            }),
            reno_queue_octets: product,
            cubic_queue_octets: product.saturating_mul(3) / 7,
            queue: queue.map(|queue| {
                if nanos(queue, facts.line_bps) > 100_000_000 {
                    QueueVerdict::Bloated
                } else if u128::from(queue) * 10 < u128::from(product) {
                    QueueVerdict::Shallow
                } else {
                    QueueVerdict::Fair
                }
            }),
        }
    }
}

fn clipped(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn octets_in(bps: u64, ns: u64) -> u64 {
    clipped(u128::from(bps) * u128::from(ns) / 8_000_000_000)
}

fn rate(octets: u64, ns: u64) -> u64 {
    BitRate::over(octets, std::time::Duration::from_nanos(ns)).map_or(0, BitRate::bps)
}

fn nanos(octets: u64, bps: u64) -> u64 {
    clipped(u128::from(octets) * 8_000_000_000 / u128::from(bps.max(1)))
}
