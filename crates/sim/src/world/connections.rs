//! TCP connections on the path: elastic cross traffic, and those of transfers.

use narrows_scenario::Scenario;

use super::capture::Tap;
use super::payload::Payload;
use super::segments::{SegmentHosts, side};
use crate::NEVER;
use crate::path::Path;
use crate::tcp::{Departure, Segment, Stack, Transfers, elastic_flows, transfers};

#[derive(Debug)]
pub(super) struct Connections {
    pub(super) stack: Stack,
    departures: Vec<Departure>,
    /// Cross traffic that ends: when, and which connection.
    ends: Vec<(u64, u32)>,
    /// Cross traffic that opens connections as time passes.
    transfers: Vec<Transfers>,
    /// Their connections, which close when everything has arrived: which, and when at the latest.
    short: Vec<(u32, u64)>,
    /// Somebody listens.
    pub(super) tap: Option<Tap>,
}

impl Connections {
    /// The elastic cross traffic of this scenario.
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut stack = Stack::default();
        let flows = elastic_flows(scenario, seed);
        let ends = flows.iter().map(|(flow, until)| (*until, stack.open(flow)));
        let mut ends: Vec<(u64, u32)> = ends.filter(|(until, _)| *until < NEVER).collect();
        ends.sort_unstable();
        ends.reverse();
        Self { stack, departures: Vec::new(), ends, transfers: transfers(scenario, seed), short: Vec::new(), tap: None }
    }

    /// When something happens here by itself; [`NEVER`] if nothing does.
    pub(super) fn next_at(&self) -> u64 {
        let end = self.ends.last().map_or(NEVER, |(at, _)| *at);
        self.transfers.iter().map(Transfers::next_at).fold(self.stack.next_at().min(end), u64::min)
    }

    /// Nothing happens here, now or later.
    pub(super) fn is_idle(&self) -> bool {
        self.stack.is_empty() && self.transfers.iter().all(|transfers| transfers.next_at() == NEVER)
    }

    /// A segment has reached the other end.
    pub(super) fn deliver(&mut self, now: u64, segment: &Segment) {
        if let Some(tap) = &mut self.tap {
            tap.arrives(now, segment);
        }
        self.stack.deliver(now, segment, &mut self.departures);
    }

    /// Does what is due now, and sends what may leave.
    pub(super) fn run(&mut self, path: &mut Path<Payload>, hosts: &mut SegmentHosts) {
        let now = path.now();
        while let Some((_, id)) = self.ends.pop_if(|(at, _)| *at <= now) {
            self.stack.close(id);
        }
        self.open_and_close(now);
        if self.stack.next_at() <= now {
            self.stack.run_timers(now, &mut self.departures);
        }
        for departure in self.departures.drain(..) {
            let mut stop = None;
            let at = if departure.hops.is_none() { hosts.leaves(now, side(departure.way)) } else { now };
            if let Some(tap) = &mut self.tap {
                tap.leaves(at, departure.way, &departure.segment);
                stop = tap.stop(departure.way, &departure.segment);
            }
            departure.enter(path, at, stop, Payload::Tcp);
        }
    }

    /// Opens the short transfers that begin by now, and forgets those that are over.
    fn open_and_close(&mut self, now: u64) {
        let Self { stack, transfers, short, .. } = self;
        for source in transfers {
            while source.next_at() <= now {
                let (flow, until) = source.open();
                short.push((stack.open(&flow), until));
            }
        }
        short.retain(|(id, until)| {
            let over = *until <= now || stack.is_done(*id);
            if over {
                stack.close(*id);
            }
            !over
        });
    }
}
