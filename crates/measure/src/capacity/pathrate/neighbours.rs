//! Distances of packets that came, in trains some of whose packets were lost (ours).

use narrows_probe::probes::{Arrival, TrainReport};
use narrows_units::{Framing, Receiver, Stamp};

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
        let head = report.arrivals.first().map(|row| row.seq);
        let came: Vec<(&Arrival, Stamp<Receiver>)> =
            report.received().filter(|(row, _)| Some(row.seq) != head).collect();
        for two in came.windows(2) {
            let [(one, first), (next, second)] = two else { continue };
            let came_ns = (*second - *first).as_f64();
            let large = f64::from(next.ip_octets) >= LEAST_SIZE * f64::from(full_size);
            if !large || came_ns <= 0.0 {
                continue;
            }
            let apart = came_ns / f64::from(framing.wire_octets(u32::from(next.ip_octets)));
            match next.seq.saturating_sub(one.seq) {
                1 if (next.departed - one.departed).as_f64() < CLOSED * came_ns => self.distances.push(apart),
                0 | 1 => {}
                steps if report.arrivals.len() <= SHORT => self.around_losses.push(apart / f64::from(steps)),
                _ => {}
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
