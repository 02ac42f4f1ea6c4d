//! Distances of packets that came, in trains some of whose packets were lost (ours).

use narrows_probe::probes::{Arrival, Fate, TrainReport};
use narrows_units::Framing;

/// What trains that nobody paced say of a queue that others may keep full.
#[derive(Debug, Clone, Default)]
pub(super) struct Neighbours {
    /// Distances of neighbours that both came, ns per octet on the wire.
    pub(super) distances: Vec<f64>,
    /// The same of those on both sides of a loss in a short train, over the number of steps from
    /// one to the other.
    pub(super) around_losses: Vec<f64>,
    /// Packets of trains so short that hardly a queue is full because of them, and how many of
    /// these were lost.
    sent: usize,
    lost: usize,
}

impl Neighbours {
    /// One more train. Its first packet is left out, as everywhere.
    pub(super) fn push(&mut self, full_size: u16, framing: Framing, report: &TrainReport) {
        let came = report.arrivals.iter().enumerate().skip(1).filter(|(_, row)| matches!(row.fate, Fate::Received(_)));
        let came: Vec<(usize, &Arrival)> = came.collect();
        for two in came.windows(2) {
            let (steps, large) = (two[1].0 - two[0].0, is_large(two[1].1, full_size));
            if steps == 1 && large {
                self.distances.extend(distance(framing, two[0].1, two[1].1).filter(|_| !is_open(two[0].1, two[1].1)));
            } else if large && report.arrivals.len() <= SHORT {
                self.around_losses.extend(distance(framing, two[0].1, two[1].1).map(|apart| apart / steps as f64));
            }
        }
        if report.arrivals.len() <= SHORT {
            self.sent += report.arrivals.len();
            self.lost += report.lost_on_path();
        }
    }

    /// Short trains lost so much that others must keep the queue full.
    pub(super) fn is_of_full_queue(&self) -> bool {
        self.sent >= LEAST_SENT && self.lost as f64 >= LOST * self.sent as f64
    }
}

fn is_large(row: &Arrival, full_size: u16) -> bool {
    f64::from(row.ip_octets) >= LEAST_SIZE * f64::from(full_size)
}

/// Between two packets that came in their order, ns per octet of the later one on the wire.
fn distance(framing: Framing, one: &Arrival, next: &Arrival) -> Option<f64> {
    let (Fate::Received(first), Fate::Received(second)) = (one.fate, next.fate) else { return None };
    let apart = (second - first).as_f64() / f64::from(framing.wire_octets(u32::from(next.ip_octets)));
    (apart > 0.0).then_some(apart)
}

/// They left no closer than they came, which says nothing of the link.
fn is_open(one: &Arrival, next: &Arrival) -> bool {
    let (Fate::Received(first), Fate::Received(second)) = (one.fate, next.fate) else { return true };
    (next.departed - one.departed).as_f64() >= CLOSED * (second - first).as_f64()
}

// Ours, all of them.
/// Share of a short train's packets from which on it met a full queue, and of how many that
/// counts.
const LOST: f64 = 0.1;
const LEAST_SENT: usize = 60;
/// Packets of a train that a queue of a router holds beside hardly anybody.
const SHORT: usize = 17;
/// Smaller packets are nearer to what hosts take per packet.
const LEAST_SIZE: f64 = 0.35;
/// Of their distance when they came, from which on packets left no closer.
const CLOSED: f64 = 0.8;
