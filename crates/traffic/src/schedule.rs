//! When which flow sends what. Pure: a heap of flows, each with its next packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_sim::{Arrival, ArrivalStream};

use crate::replay::ReplayStream;

/// Where a flow's packets come from.
pub(crate) enum Packets {
    /// One of the models.
    Model(Box<ArrivalStream>),
    /// A capture, begun so long after the start.
    Replay { stream: Box<ReplayStream>, from_ns: u64 },
}

impl Packets {
    fn next(&mut self) -> Option<Arrival> {
        match self {
            Self::Model(stream) => stream.next(),
            Self::Replay { stream, from_ns } => {
                stream.next().map(|arrival| Arrival { at_ns: arrival.at_ns.saturating_add(*from_ns), ..arrival })
            }
        }
    }
}

/// The sizes that can be sent: what a capture has beyond is raised, or cut into packets that leave
/// together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) least: u16,
    pub(crate) most: u16,
}

/// A flow within the schedule.
struct Row {
    packets: Packets,
    sizes: Sizes,
    /// No packet from then on.
    until_ns: u64,
    next: Arrival,
    /// What is left of a packet that was cut.
    left: u16,
    raised: u64,
    cut: u64,
}

/// A packet that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// When, since the start.
    pub(crate) at_ns: u64,
    /// Index of its flow.
    pub(crate) flow: usize,
    pub(crate) ip_octets: u16,
}

/// All flows' packets in order of time; at one time in order of the flows.
#[derive(Default)]
pub(crate) struct Schedule {
    rows: Vec<Row>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Schedule {
    /// One more flow; its index.
    pub(crate) fn add(&mut self, packets: Packets, sizes: Sizes, until_ns: u64) -> usize {
        let flow = self.rows.len();
        self.rows.push(Row {
            packets,
            sizes,
            until_ns,
            next: Arrival { at_ns: 0, ip_octets: 0 },
            left: 0,
            raised: 0,
            cut: 0,
        });
        self.draw(flow);
        flow
    }

    /// The next packet's time and flow.
    pub(crate) fn peek(&self) -> Option<(u64, usize)> {
        self.heap.peek().map(|Reverse(next)| *next)
    }

    /// Takes the next packet.
    pub(crate) fn pop(&mut self) -> Option<Due> {
        let Reverse((at_ns, flow)) = self.heap.pop()?;
        let row = &mut self.rows[flow];
        let wanted = row.next.ip_octets;
        let ip_octets = wanted.clamp(row.sizes.least, row.sizes.most);
        row.raised += u64::from(wanted < row.sizes.least);
        row.left = wanted.saturating_sub(row.sizes.most);
        if row.left > 0 {
            row.cut += 1;
            row.next.ip_octets = row.left;
            self.heap.push(Reverse((at_ns, flow)));
        } else {
            self.draw(flow);
        }
        Some(Due { at_ns, flow, ip_octets })
    }

    /// Packets of a flow that were raised to the smallest that can be sent, and packets more than
    /// there were because some were cut.
    pub(crate) fn fitted(&self, flow: usize) -> (u64, u64) {
        self.rows.get(flow).map_or((0, 0), |row| (row.raised, row.cut))
    }

    /// Flows whose packets have not all been taken.
    pub(crate) fn unfinished(&self) -> usize {
        self.heap.len()
    }

    fn draw(&mut self, flow: usize) {
        let row = &mut self.rows[flow];
        if let Some(next) = row.packets.next().filter(|next| next.at_ns < row.until_ns) {
            row.next = next;
            self.heap.push(Reverse((next.at_ns, flow)));
        }
    }
}

#[cfg(test)]
mod tests;
