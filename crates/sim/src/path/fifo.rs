//! Packets between two hops, and the payloads of those that somebody waits for.

use std::collections::VecDeque;

use super::Packet;
use crate::NEVER;

/// A packet on its way to a hop. Small, because cross traffic over several hops is made of nothing
/// else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transit {
    /// When it arrives.
    pub(super) at: u64,
    /// Where its payload is kept; for cross traffic its source, see [`Transit::cross_slot`].
    pub(super) slot: u32,
    pub(super) ip_octets: u16,
    /// The last hop it crosses.
    pub(super) exit: u16,
}

impl Transit {
    /// Slots from here on are cross traffic: nobody waits for it.
    const CROSS: u32 = u32::MAX - 0xffff;

    /// The slot of packets of this source of cross traffic.
    pub(super) fn cross_slot(source: usize) -> u32 {
        u32::MAX - u32::from(u16::try_from(source).unwrap_or(u16::MAX))
    }

    pub(super) fn is_foreground_packet(&self) -> bool {
        self.slot < Self::CROSS
    }
}

/// Packets in order of arrival.
#[derive(Debug)]
pub(super) struct Fifo {
    queue: VecDeque<Transit>,
    foreground_packets: usize,
}

impl Fifo {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::new(), foreground_packets: 0 }
    }

    /// Adds a packet behind all that arrive no later. Nearly all come in order; a few (held back by
    /// reordering, or sent ahead of time) move forward from the back.
    pub(super) fn insert(&mut self, transit: Transit) {
        self.foreground_packets += usize::from(transit.is_foreground_packet());
        self.queue.push_back(transit);
        let mut place = self.queue.len() - 1;
        while place > 0 && self.queue[place - 1].at > transit.at {
            self.queue.swap(place - 1, place);
            place -= 1;
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.queue.capacity()
    }

    /// When the first packet arrives; [`NEVER`] if there is none.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.queue.front().map_or(NEVER, |first| first.at)
    }

    /// No later than the first arrival of a packet that is not cross traffic; [`NEVER`] if there is
    /// none.
    pub(super) fn next_foreground_packet(&self) -> u64 {
        if self.foreground_packets == 0 { NEVER } else { self.next() }
    }

    #[inline]
    pub(super) fn pop_until(&mut self, until: u64) -> Option<Transit> {
        if self.next() > until {
            return None;
        }
        let first = self.queue.pop_front()?;
        self.foreground_packets -= usize::from(first.is_foreground_packet());
        Some(first)
    }
}

/// The packets that somebody waits for, by slot.
#[derive(Debug)]
pub(super) struct ForegroundPackets<T> {
    slots: Vec<Option<Packet<T>>>,
    /// Which of them are cross traffic all the same: segments of its TCP connections.
    cross_traffic: Vec<bool>,
    free: Vec<u32>,
}

impl<T> ForegroundPackets<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), cross_traffic: Vec::new(), free: Vec::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn admit(&mut self, at: u64, exit: usize, packet: Packet<T>) -> Transit {
        let ip_octets = packet.ip_octets;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.cross_traffic.push(false);
            u32::try_from(self.slots.len() - 1).expect("four thousand million packets do not fit into memory")
        });
        self.slots[slot as usize] = Some(packet);
        self.cross_traffic[slot as usize] = false;
        Transit { at, slot, ip_octets, exit: u16::try_from(exit).unwrap_or(u16::MAX) }
    }

    /// The same of a packet of cross traffic that somebody waits for.
    pub(super) fn admit_cross_traffic(&mut self, at: u64, exit: usize, packet: Packet<T>) -> Transit {
        let transit = self.admit(at, exit, packet);
        self.cross_traffic[transit.slot as usize] = true;
        transit
    }

    pub(super) fn is_cross_traffic(&self, transit: &Transit) -> bool {
        self.cross_traffic.get(transit.slot as usize).copied().unwrap_or(true)
    }

    /// The packet of a transit; `None` for cross traffic that nobody waits for.
    pub(super) fn packet(&mut self, transit: &Transit) -> Option<&mut Packet<T>> {
        self.slots.get_mut(transit.slot as usize)?.as_mut()
    }

    /// Takes the packet out; `None` for cross traffic that nobody waits for.
    pub(super) fn leave(&mut self, transit: &Transit) -> Option<Packet<T>> {
        let packet = self.slots.get_mut(transit.slot as usize)?.take()?;
        self.free.push(transit.slot);
        Some(packet)
    }
}
