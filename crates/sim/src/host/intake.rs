//! From the interface to the program: coalescing, and one receive call after the other.

use std::collections::VecDeque;

use scenario::Coalescing;

use super::HostState;
use crate::{NEVER, nanos};

/// What has arrived at a host and its program has not yet read.
#[derive(Debug)]
pub(crate) struct Intake<C> {
    timer: u64,
    frames: usize,
    /// Waiting for the interrupt.
    waiting: Vec<C>,
    /// When the interrupt comes.
    fires: u64,
    /// When the program's last receive call returns.
    free: u64,
    /// Read, or about to be.
    read: VecDeque<(u64, C)>,
}

impl<C> Intake<C> {
    pub(crate) fn new(coalescing: Option<Coalescing>) -> Self {
        let (timer, frames) = coalescing.map_or((0, 1), |coalescing| {
            (nanos(coalescing.timer), coalescing.frames as usize)
        });
        Self {
            timer,
            frames,
            waiting: Vec::new(),
            fires: NEVER,
            free: 0,
            read: VecDeque::new(),
        }
    }

    /// A packet arrives at `at`, no earlier than the one before.
    pub(crate) fn arrive(&mut self, at: u64, cargo: C, host: &mut HostState) {
        if self.fires <= at {
            self.fire(host);
        }
        if self.waiting.is_empty() {
            self.fires = at.saturating_add(self.timer);
        }
        self.waiting.push(cargo);
        if self.waiting.len() >= self.frames {
            self.fires = at;
            self.fire(host);
        }
    }

    /// When the program reads the next packet, or an interrupt tells when it will.
    pub(crate) fn next_at(&self) -> u64 {
        self.read.front().map_or(NEVER, |(at, _)| *at).min(self.fires)
    }

    /// The next packet read up to `until`, with the time of its stamp: when the receive call returned. That is the time of the
    /// interrupt if calls cost nothing, so packets of a batch then share one stamp.
    pub(crate) fn pop_until(&mut self, until: u64, host: &mut HostState) -> Option<(u64, C)> {
        if self.fires <= until {
            self.fire(host);
        }
        if self.read.front().is_some_and(|(at, _)| *at <= until) {
            self.read.pop_front()
        } else {
            None
        }
    }

    fn fire(&mut self, host: &mut HostState) {
        for cargo in self.waiting.drain(..) {
            let begin = host.running(self.fires.max(self.free));
            self.free = begin.saturating_add(host.receive_cost);
            self.read.push_back((self.free, cargo));
        }
        self.fires = NEVER;
    }
}
