//! From the interface to the program: coalescing, and one receive call after the other.

use std::collections::VecDeque;

use narrows_scenario::Coalescing;
use narrows_units::nanos;

use super::HostState;
use crate::NEVER;

/// What has arrived at a host and its program has not yet read.
#[derive(Debug)]
pub(crate) struct Intake<C> {
    timer: u64,
    frames: usize,
    /// Waiting for the interrupt.
    waiting: Vec<(u16, C)>,
    /// When the interrupt comes.
    fires: u64,
    /// When the program's last receive call returns.
    free: u64,
    /// The last stamp that was taken, where a profile is played.
    last_stamp: Option<u64>,
    /// When the packets in the socket's buffer will have been read.
    held: VecDeque<u64>,
    /// Read, or about to be, or dropped.
    read: VecDeque<Reading<C>>,
}

/// What became of a packet at the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading<C> {
    /// When the receive call returned; for a drop, the last one before it.
    pub(crate) at: u64,
    /// When it was stamped: when the receive call returned, or as the host's profile has it.
    pub(crate) stamped: u64,
    /// The socket's buffer was full.
    pub(crate) dropped: bool,
    pub(crate) payload: C,
}

/// Packets that a socket's buffer holds while the program is busy. Ours: a program that measures
/// asks for 4 MiB, and Linux accounts some 2 KiB for a packet of up to 1500 octets.
const SOCKET_PACKETS: usize = 2048;

impl<C> Intake<C> {
    pub(crate) fn new(coalescing: Option<Coalescing>) -> Self {
        let (timer, frames) =
            coalescing.map_or((0, 1), |coalescing| (nanos(coalescing.timer), coalescing.frames as usize));
        Self {
            timer,
            frames,
            waiting: Vec::new(),
            fires: NEVER,
            free: 0,
            last_stamp: None,
            held: VecDeque::new(),
            read: VecDeque::new(),
        }
    }

    /// A packet arrives at `at`, no earlier than the one before.
    pub(crate) fn arrive(&mut self, at: u64, ip_octets: u16, payload: C, host: &mut HostState) {
        if host.played.is_some() {
            self.arrive_as_measured(at, payload, host);
            return;
        }
        if self.fires <= at {
            self.fire(host);
        }
        if self.waiting.is_empty() {
            self.fires = at.saturating_add(self.timer);
        }
        self.waiting.push((ip_octets, payload));
        if self.waiting.len() >= self.frames {
            self.fires = at;
            self.fire(host);
        }
    }

    /// When the program reads the next packet, or an interrupt tells when it will.
    pub(crate) fn next_at(&self) -> u64 {
        self.read.front().map_or(NEVER, |next| next.at).min(self.fires)
    }

    /// The next packet read up to `until`. Its stamp is taken when the receive call returns. That
    /// is at the interrupt if calls cost nothing, so packets of a batch then share one stamp.
    pub(crate) fn pop_until(&mut self, until: u64, host: &mut HostState) -> Option<Reading<C>> {
        if self.fires <= until {
            self.fire(host);
        }
        if self.read.front().is_some_and(|next| next.at <= until) { self.read.pop_front() } else { None }
    }

    /// A packet at a host that plays a profile. One that comes before the last stamp was waiting
    /// beside that packet, and is stamped right behind it.
    fn arrive_as_measured(&mut self, at: u64, payload: C, host: &mut HostState) {
        let Some(played) = &mut host.played else { return };
        let rested = played.arrives_rested(at);
        let stamped = match self.last_stamp.filter(|last| at <= *last) {
            Some(last) => last.saturating_add(played.stamp_inside(at)),
            None => at.saturating_add(played.stamp_delay(at, rested)),
        };
        let stamped = host.kernel_running(stamped);
        self.last_stamp = Some(stamped);
        let dropped = self.is_full(stamped);
        if let (false, Some(played)) = (dropped, &mut host.played) {
            // A program that slept wakes; one that is awake goes on with its next call.
            let slept = stamped > self.free || self.free == 0;
            self.free = if slept {
                stamped.saturating_add(played.wake(rested))
            } else {
                self.free.saturating_add(played.receive_call())
            };
            self.held.push_back(self.free);
        }
        self.read.push_back(Reading { at: self.free, stamped, dropped, payload });
    }

    /// The socket's buffer holds as many packets at this time as it can.
    fn is_full(&mut self, at: u64) -> bool {
        while self.held.front().is_some_and(|read| *read <= at) {
            self.held.pop_front();
        }
        self.held.len() >= SOCKET_PACKETS
    }

    fn fire(&mut self, host: &mut HostState) {
        self.interrupt(host.interrupt_cost);
        // Taken and given back: its memory serves the next batch.
        let mut waiting = std::mem::take(&mut self.waiting);
        for (ip_octets, payload) in waiting.drain(..) {
            let dropped = self.is_full(self.fires);
            if !dropped {
                let begin = host.running(self.fires.max(self.free));
                self.free = begin.saturating_add(host.receive_time(ip_octets));
                self.held.push_back(self.free);
            }
            // The program reads of a drop with the packet that it has read last.
            self.read.push_back(Reading { at: self.free, stamped: self.free, dropped, payload });
        }
        self.waiting = waiting;
        self.fires = NEVER;
    }

    /// The interrupt takes the processor from the program for `cost`: all that is not yet read is
    /// read that much later.
    fn interrupt(&mut self, cost: u64) {
        if cost == 0 {
            return;
        }
        let pending = self.held.iter_mut().chain(self.read.iter_mut().map(|reading| &mut reading.at));
        for at in pending.filter(|at| **at > self.fires) {
            *at = at.saturating_add(cost);
        }
        self.free = self.free.max(self.fires).saturating_add(cost);
    }
}
