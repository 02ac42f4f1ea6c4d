//! All connections of a path, driven by whoever drives the path.

use narrows_probe::probes::{Congestion, TcpSample};
use narrows_scenario::PathDirection;
use narrows_units::{Sender, Stamp};

use super::flow::{Flow, FlowConfig, Route};
use super::segment::{Ack, Data, Kind, Segment};
use crate::NEVER;
use crate::path::{Packet, Path};

/// A packet that leaves now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Departure {
    /// Which way.
    pub(crate) way: PathDirection,
    /// First and last hop; `None`: from host to host.
    pub(crate) hops: Option<(usize, usize)>,
    /// Length of the IP packet.
    pub(crate) ip_octets: u16,
    /// What it carries.
    pub(crate) segment: Segment,
}

/// The connections. Time is an argument; packets that leave are put into a list for the caller to
/// send.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    flows: Vec<Slot>,
    opened: u32,
}

#[derive(Debug)]
struct Slot {
    id: u32,
    next_at: u64,
    flow: Flow,
}

/// Hop limit of their packets (RFC 1700; Linux).
const HOP_LIMIT: u8 = 64;
/// Flows below are those of probes.
const FIRST_CONNECTION: u32 = 1 << 16;

impl Stack {
    /// Opens a connection and returns its number.
    pub(crate) fn open(&mut self, config: &FlowConfig) -> u32 {
        self.opened += 1;
        let flow = Flow::new(config);
        self.flows.push(Slot { id: self.opened, next_at: flow.next_at(), flow });
        self.opened
    }

    /// Forgets a connection; what is under way is ignored when it comes.
    pub(crate) fn close(&mut self, id: u32) {
        self.flows.retain(|slot| slot.id != id);
    }

    /// The application of this connection writes nothing more.
    pub(crate) fn finish(&mut self, id: u32) {
        if let Some(slot) = self.slot(id) {
            slot.flow.sender.finish();
            slot.next_at = slot.flow.next_at();
        }
    }

    /// Everything that the application wrote has been acknowledged (also true of connections that
    /// are closed).
    pub(crate) fn is_done(&self, id: u32) -> bool {
        self.find(id).is_none_or(|place| self.flows[place].flow.sender.is_done())
    }

    /// It goes from host to host, and not over some hops of a way.
    pub(crate) fn is_between_hosts(&self, id: u32) -> bool {
        self.find(id).is_some_and(|place| matches!(self.flows[place].flow.route, Route::Hosts { .. }))
    }

    /// There is no connection.
    pub(crate) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// When something happens here by itself; [`NEVER`] if nothing does.
    pub(crate) fn next_at(&self) -> u64 {
        self.flows.iter().map(|slot| slot.next_at).fold(NEVER, u64::min)
    }

    /// A segment has reached the other end.
    pub(crate) fn deliver(&mut self, now: u64, segment: &Segment, out: &mut Vec<Departure>) {
        let Some(slot) = self.slot(segment.flow) else {
            return;
        };
        match &segment.kind {
            Kind::Data(data) => {
                if let Some(ack) = slot.flow.on_data(now, data) {
                    out.extend(slot.acknowledgement(ack));
                }
            }
            Kind::Ack(ack) => {
                slot.flow.on_ack(now, ack);
                slot.transmit(now, out);
            }
        }
        slot.next_at = slot.flow.next_at();
    }

    /// Does what is due by now.
    pub(crate) fn run_timers(&mut self, now: u64, out: &mut Vec<Departure>) {
        for slot in &mut self.flows {
            if slot.next_at <= now {
                if let Some(ack) = slot.flow.on_timers(now) {
                    out.extend(slot.acknowledgement(ack));
                }
                slot.transmit(now, out);
                slot.next_at = slot.flow.next_at();
            }
        }
    }

    /// What `TCP_INFO` of this connection would say now.
    pub(crate) fn sample(&mut self, id: u32, now: u64, at: Stamp<Sender>) -> Option<TcpSample> {
        self.slot(id).map(|slot| slot.flow.sample(now, at))
    }

    /// The congestion control of this connection.
    pub(crate) fn congestion(&self, id: u32) -> Option<Congestion> {
        self.find(id).map(|place| self.flows[place].flow.congestion())
    }

    /// Processor time that the sending and the receiving thread of this connection have taken;
    /// `None` where it costs nothing.
    pub(crate) fn cpu(&self, id: u32) -> Option<(Option<u64>, Option<u64>)> {
        self.find(id).map(|place| self.flows[place].flow.cpu())
    }

    /// Payload octets that the far application of this connection has read, and when the first
    /// since the last [`Stack::mark_read`] and the last of them came.
    pub(crate) fn read(&self, id: u32) -> Option<(u64, Option<(u64, u64)>)> {
        self.find(id).map(|place| self.flows[place].flow.read())
    }

    /// The next octet that the far application of this connection reads is the first.
    pub(crate) fn mark_read(&mut self, id: u32) {
        if let Some(slot) = self.slot(id) {
            slot.flow.receiver.mark_read();
        }
    }

    fn find(&self, id: u32) -> Option<usize> {
        self.flows.binary_search_by_key(&id, |slot| slot.id).ok()
    }

    fn slot(&mut self, id: u32) -> Option<&mut Slot> {
        let place = self.find(id)?;
        self.flows.get_mut(place)
    }
}

impl Slot {
    fn transmit(&mut self, now: u64, out: &mut Vec<Departure>) {
        while let Some(data) = self.flow.transmit(now) {
            out.push(self.data(data));
        }
    }

    fn data(&self, data: Data) -> Departure {
        let (way, hops) = match self.flow.route {
            Route::Hosts { way, .. } => (way, None),
            Route::Hops { way, first, last, .. } => (way, Some((first, last))),
        };
        Departure {
            way,
            hops,
            ip_octets: self.flow.ip_octets(),
            segment: Segment { flow: self.id, kind: Kind::Data(data) },
        }
    }

    fn acknowledgement(&self, ack: Ack) -> Option<Departure> {
        let Route::Hosts { way, .. } = self.flow.route else {
            return None;
        };
        Some(Departure {
            way: way.opposite(),
            hops: None,
            ip_octets: ack.ip_octets(),
            segment: Segment { flow: self.id, kind: Kind::Ack(Box::new(ack)) },
        })
    }
}

impl Departure {
    /// Puts the packet on the path at `at`. From host to host it is delivered at node `stop` of its
    /// way, if there is one to stop at.
    pub(crate) fn enter<T>(self, path: &mut Path<T>, at: u64, stop: Option<usize>, wrap: impl FnOnce(Segment) -> T) {
        let packet = Packet {
            ip_octets: self.ip_octets,
            hop_limit: HOP_LIMIT,
            flow: FIRST_CONNECTION.wrapping_add(self.segment.flow),
            payload: wrap(self.segment),
        };
        let before = stop.and_then(|node| node.checked_sub(1));
        match (self.hops, before) {
            (None, None) => path.send(at, self.way, packet),
            (None, Some(hop)) => path.send_up_to(at, self.way, hop, packet),
            (Some((first, last)), _) => path.cross(at, self.way, first, last, packet),
        }
    }
}
