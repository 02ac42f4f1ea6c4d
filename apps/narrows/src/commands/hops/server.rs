//! A server on the remote host, if there is one: its stamps for the last hop, and the capacity of
//! both whole ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_methods as methods;
use narrows_net::client::SocketWorld;
use narrows_probe::Entry;
use narrows_probe::Progress;
use narrows_probe::probes::{PeerKind, Probe};
use narrows_probe::{Budget, Cost, Event, Observed, Order, RawParams, Refusal, World};
use narrows_report::hops::HopsDocument;
use narrows_report::{CostRow, Note};
use narrows_units::{Direction, Metric};

use crate::budget::BudgetLimits;
use crate::connect::Peer;
use crate::exit::{Exit, Failure};
use crate::progress::Progress as Console;

/// Longest wait for a server that nobody said is there (ours): what a host without one costs at
/// most, where nothing refuses at once.
const TIMEOUT: Duration = Duration::from_secs(1);
/// What one whole way may take and send (ours).
const WAY_TIME: Duration = Duration::from_secs(8);
const WAY_OCTETS: u64 = 5_000_000;

/// A server that may be there. Nobody is asked before the first packet that it should stamp, and it
/// is let go with the last one: its own threads and this session's would be in the way of what is
/// timed here.
pub(super) struct Server {
    peer: Peer,
    stop: Arc<AtomicBool>,
    progress: Console,
    world: Option<SocketWorld>,
    asked: bool,
    /// It let this host in.
    found: bool,
    /// It is there, and does not let this host in.
    refused: Option<Failure>,
}

impl Server {
    /// `found`: it is known to be there.
    pub(super) fn new(peer: Peer, found: bool, stop: &Arc<AtomicBool>, progress: &Console) -> Self {
        Self {
            peer,
            stop: Arc::clone(stop),
            progress: progress.clone(),
            world: None,
            asked: false,
            found,
            refused: None,
        }
    }

    /// Whether this is for a server to answer.
    pub(super) fn stamps(probe: &Probe) -> bool {
        matches!(probe, Probe::Train(train) if train.peer_kind == PeerKind::Receiver)
    }

    /// A server that is not there, or breaks down, offers nothing: hops are measured without it.
    pub(super) fn send(&mut self, probe: Probe) -> Event {
        if self.world.is_none() && !std::mem::replace(&mut self.asked, true) {
            self.world = self.enter(Direction::Forward);
        }
        let reported = self.world.as_mut().and_then(|world| world.send(probe).ok());
        if reported.is_none() {
            self.world = None;
        }
        reported.unwrap_or(Event::Refused(Refusal::NotOffered))
    }

    /// It is needed no more for now.
    pub(super) fn leave(&mut self) {
        self.world = None;
    }

    fn enter(&mut self, direction: Direction) -> Option<SocketWorld> {
        match self.peer.connect_within(direction, TIMEOUT, &self.stop, &self.progress) {
            Ok(world) => {
                self.found = true;
                Some(world)
            }
            Err(failure) => {
                self.refused = Some(failure).filter(|failure| failure.exit == Exit::Refused);
                None
            }
        }
    }

    /// The capacity of one whole way, if a server is there and the budget allows.
    fn way(&mut self, direction: Direction, budget: Budget) -> Option<Entry> {
        let method = methods::automatic(Metric::IpCapacity)?;
        let params = RawParams::new();
        let order = Order::new(method, &params, budget).ok()?;
        if budget.octets == 0 || budget.time.is_zero() || self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let mut world = self.enter(direction)?;
        let measured = match narrows_probe::run(&mut Observed::new(&mut world, &self.progress), order) {
            Ok(measured) => measured,
            Err(broken) => broken.measured,
        };
        Some(Entry {
            metric: Metric::IpCapacity,
            direction,
            method: method.info().name,
            outcome: measured.outcome,
            cost: measured.cost,
        })
    }

    /// Both whole ways, in the document; nothing changes where no server answered. `limits`: the
    /// user's, of which `spent` is used.
    pub(super) fn add_ways(
        &mut self,
        mut document: HopsDocument,
        limits: Option<BudgetLimits>,
        spent: &Cost,
    ) -> HopsDocument {
        self.leave();
        if let Some(failure) = &self.refused {
            document.notes.push(Note {
                id: "server_refused",
                text: format!("narrows serve runs there, and was not used: {}", failure.text),
            });
        }
        if !self.found {
            return document;
        }
        let mut spent = (spent.octets, spent.time);
        let mut entries = Vec::new();
        for (direction, name) in [(Direction::Forward, "forward"), (Direction::Reverse, "reverse")] {
            self.progress.say(format!("the whole way {name}"));
            self.progress.event(Progress::Note(format!("capacity of the whole path, {name}")));
            let entry = self.way(direction, way_budget(limits, spent));
            if let Some(entry) = &entry {
                spent = (spent.0.saturating_add(entry.cost.octets), spent.1.saturating_add(entry.cost.time));
                add_cost(&mut document.cost, &entry.cost);
            }
            entries.push(entry);
        }
        let way = |index: usize| entries.get(index).and_then(Option::as_ref);
        let mut document = document.with_ways(way(0), way(1));
        if document.is_contradicted() {
            document.notes.push(Note {
                id: "ways_disagree",
                text: "trains over the whole path and the single hops disagree on the narrow link: one of the two is wrong"
                    .to_owned(),
            });
        }
        document
    }
}

/// What is left for one way.
fn way_budget(limits: Option<BudgetLimits>, (octets, time): (u64, Duration)) -> Budget {
    let most = Budget { octets: WAY_OCTETS, time: WAY_TIME, ..Budget::default() };
    let Some(limits) = limits else { return most };
    let unlimited = Budget { octets: u64::MAX, time: Duration::MAX, ..Budget::default() };
    let all = limits.over(unlimited);
    Budget {
        octets: all.octets.saturating_sub(octets).min(most.octets),
        time: all.time.saturating_sub(time).min(most.time),
        ..all
    }
}

fn add_cost(all: &mut CostRow, more: &Cost) {
    let more = CostRow::from(*more);
    all.octets = all.octets.saturating_add(more.octets);
    all.packets = all.packets.saturating_add(more.packets);
    all.seconds += more.seconds;
    all.peak_bps = all.peak_bps.max(more.peak_bps);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_gets_what_is_left() {
        let limits = crate::budget::parse("1 MB, 10 s, 50 Mbit/s").unwrap();
        let left = way_budget(Some(limits), (900_000, Duration::from_secs(4)));
        assert_eq!((left.octets, left.time), (100_000, Duration::from_secs(6)));
        assert!(left.peak.is_some());
        let nothing = way_budget(Some(limits), (2_000_000, Duration::from_secs(20)));
        assert_eq!((nothing.octets, nothing.time), (0, Duration::ZERO));
        let usual = way_budget(None, (u64::MAX, Duration::MAX));
        assert_eq!((usual.octets, usual.time), (WAY_OCTETS, WAY_TIME));
    }
}
