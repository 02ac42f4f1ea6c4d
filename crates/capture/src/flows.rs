//! Connections: a bounded table of those that live, and what becomes of each direction when one
//! ends.
//!
//! Shapes: `Flows::see` sorts a packet into its connection, which begins with the first packet
//! between two endpoints (of one VLAN), and again with a SYN after it has ended or with another
//! sequence number. A connection ends with the capture, after ten silent minutes, or when the table
//! or the memory of their logs is full: then the one that was silent longest goes first. Only
//! connections that carry data cost more than a few hundred octets.

mod connection;
mod order;
mod response;
mod vantage;

use std::collections::HashMap;

use narrows_diagnose::passive::{FlowLog, PassiveMethod, Sight, Vantage};
use narrows_probe::{Caveat, Outcome, ParamError, RawParams};

use self::connection::{Connection, Direction, Host};
use crate::decode::{Endpoint, TcpPacket};
use crate::findings::{Answer, FlowCounts, FlowFinding};

/// A connection that was silent for so long has ended.
const SILENT_NS: i64 = 600_000_000_000;
/// No place.
const NOBODY: usize = usize::MAX;

/// What bounds the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowLimits {
    /// Connections at a time.
    pub live: usize,
    /// Octets of memory of all connections and their logs together.
    pub held_octets: usize,
    /// A direction with fewer packets that carry data is counted, not shown.
    pub min_packets: u64,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self { live: 65_536, held_octets: 110 << 20, min_packets: 20 }
    }
}

/// Two endpoints on one VLAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    pub(crate) low: Endpoint,
    pub(crate) high: Endpoint,
    pub(crate) vlan: u32,
}

/// The methods that read every direction's log.
pub(crate) struct Watchers {
    methods: Vec<(&'static dyn PassiveMethod, RawParams)>,
}

/// The table.
pub(crate) struct Flows {
    watchers: Watchers,
    limits: FlowLimits,
    places: HashMap<FlowKey, usize>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// The one that was silent longest, and the one that spoke last.
    oldest: usize,
    newest: usize,
    held_octets: usize,
    /// Where the last packet went: most come in runs.
    last: usize,
    counts: FlowCounts,
}

struct Slot {
    connection: Option<Box<Connection>>,
    older: usize,
    newer: usize,
}

impl Watchers {
    /// These methods, with these parameters; refuses parameters that any of them cannot read.
    pub(crate) fn new(methods: Vec<(&'static dyn PassiveMethod, RawParams)>) -> Result<Self, ParamError> {
        let (nothing, nowhere) = (FlowLog::new(), unseen());
        for (method, params) in &methods {
            method.conclude(&nothing, &nowhere, params)?;
        }
        Ok(Self { methods })
    }
}

impl FlowKey {
    #[inline]
    fn of(packet: &TcpPacket) -> (Self, Host) {
        let (source, destination, vlan) = (packet.source, packet.destination, packet.vlan);
        if source <= destination {
            let (low, high) = (source, destination);
            (Self { low, high, vlan }, Host::Low)
        } else {
            let (low, high) = (destination, source);
            (Self { low, high, vlan }, Host::High)
        }
    }
}

impl Flows {
    pub(crate) fn new(watchers: Watchers, limits: FlowLimits) -> Self {
        Self {
            watchers,
            limits,
            places: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NOBODY,
            newest: NOBODY,
            held_octets: 0,
            last: NOBODY,
            counts: FlowCounts::default(),
        }
    }

    pub(crate) fn counts(&self) -> FlowCounts {
        self.counts
    }

    /// One more packet. `ended` is told of connections that end with it.
    #[inline]
    pub(crate) fn see(&mut self, packet: &TcpPacket, context: Context, ended: &mut impl FnMut(FlowFinding)) {
        let (key, from) = FlowKey::of(packet);
        let mut place = self.find(&key);
        if place != NOBODY
            && let Some(connection) = &self.slots[place].connection
        {
            let silent = packet.seen.at_ns.saturating_sub(connection.last_ns) > SILENT_NS;
            if silent || connection.is_over(from, packet) {
                self.remove(place, context, ended);
                place = NOBODY;
            }
        }
        if place == NOBODY {
            place = self.admit(key, packet.seen.at_ns, context, ended);
        }
        self.touch(place);
        self.last = place;
        let Some(connection) = &mut self.slots[place].connection else {
            return;
        };
        let before = connection.held_octets;
        connection.see(from, packet);
        let after = connection.held_octets;
        if before != after {
            self.held_octets = self.held_octets + after - before;
        }
        if self.held_octets > self.limits.held_octets {
            while self.held_octets > self.limits.held_octets && self.oldest != self.newest {
                self.counts.evicted += 1;
                self.remove(self.oldest, context, ended);
            }
        }
    }

    /// Ends all of them.
    pub(crate) fn finish(&mut self, context: Context, ended: &mut impl FnMut(FlowFinding)) {
        while self.oldest != NOBODY {
            self.remove(self.oldest, context, ended);
        }
    }

    #[inline]
    fn find(&self, key: &FlowKey) -> usize {
        if let Some(slot) = self.slots.get(self.last)
            && let Some(connection) = &slot.connection
            && connection.key == *key
        {
            return self.last;
        }
        self.places.get(key).copied().unwrap_or(NOBODY)
    }

    fn admit(&mut self, key: FlowKey, at_ns: i64, context: Context, ended: &mut impl FnMut(FlowFinding)) -> usize {
        if let Some(slot) = self.slots.get(self.oldest) {
            let last_ns = slot.connection.as_ref().map_or(at_ns, |connection| connection.last_ns);
            let is_full = self.places.len() >= self.limits.live.max(1);
            self.counts.evicted += u64::from(is_full);
            if is_full || at_ns.saturating_sub(last_ns) > SILENT_NS {
                self.remove(self.oldest, context, ended);
            }
        }
        self.counts.connections += 1;
        let connection = Some(Box::new(Connection::new(key, self.counts.connections, at_ns)));
        let place = self.free.pop().unwrap_or(self.slots.len());
        let slot = Slot { connection, older: NOBODY, newer: NOBODY };
        if place == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.slots[place] = slot;
        }
        self.held_octets += self.slots[place].connection.as_ref().map_or(0, |connection| connection.held_octets);
        self.places.insert(key, place);
        self.link(place);
        place
    }

    /// Makes it the one that spoke last.
    #[inline]
    fn touch(&mut self, place: usize) {
        if place != self.newest {
            self.unlink(place);
            self.link(place);
        }
    }

    fn link(&mut self, place: usize) {
        let newest = self.newest;
        self.slots[place].older = newest;
        self.slots[place].newer = NOBODY;
        match self.slots.get_mut(newest) {
            Some(slot) => slot.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: usize) {
        let (older, newer) = (self.slots[place].older, self.slots[place].newer);
        match self.slots.get_mut(older) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
    }

    fn remove(&mut self, place: usize, context: Context, ended: &mut impl FnMut(FlowFinding)) {
        self.unlink(place);
        self.free.push(place);
        let Some(mut connection) = self.slots[place].connection.take() else {
            return;
        };
        self.places.remove(&connection.key);
        self.held_octets -= connection.held_octets.min(self.held_octets);
        let number = connection.number;
        let (began_ns, lasted_ns) = (connection.first_ns, connection.last_ns.saturating_sub(connection.first_ns));
        let vlan = connection.key.vlan;
        for direction in connection.end(context.resolution_ns, context.missed) {
            if direction.data_packets < self.limits.min_packets.max(1) {
                self.counts.small += u64::from(direction.data_packets > 0);
                continue;
            }
            let finding = self.watchers.conclude(direction, (number, vlan), (began_ns, lasted_ns));
            ended(finding);
        }
    }
}

/// What is known of the whole capture so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) resolution_ns: i64,
    pub(crate) missed: u64,
}

impl Watchers {
    fn conclude(
        &self,
        direction: Direction,
        (number, vlan): (u64, u32),
        (began_ns, lasted_ns): (i64, i64),
    ) -> FlowFinding {
        let caveats = caveats(&direction);
        let log = direction.log.unwrap_or_default();
        let answers = self.methods.iter().filter_map(|(method, params)| {
            // Every one of them took its parameters before.
            let conclusion = method.conclude(&log, &direction.sight, params).ok()?;
            let mut outcome = conclusion.outcome;
            add(&mut outcome, &caveats);
            Some(Answer { method: method.info(), samples: conclusion.samples, outcome })
        });
        FlowFinding {
            number,
            vlan,
            source: direction.source,
            destination: direction.destination,
            opened_by_source: direction.opened_by_source,
            began_ns,
            lasted_ns,
            data_packets: direction.data_packets,
            payload_octets: direction.payload_octets,
            sight: direction.sight,
            answers: answers.collect(),
        }
    }
}

/// Of no flow at all.
const fn unseen() -> Sight {
    Sight {
        vantage: Vantage::Unknown,
        ahead_ns: None,
        behind_ns: None,
        resolution_ns: 1,
        missed: 0,
        began: false,
        window_shift: None,
        announced_mss: None,
    }
}

/// What the reading itself has to say about a direction.
fn caveats(direction: &Direction) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if direction.merged > 0 {
        let ratio = direction.merged as f64 / direction.data_packets.max(1) as f64;
        caveats.push(Caveat::MergedPackets { ratio });
    }
    let Sight { missed, .. } = direction.sight;
    if missed > 0 {
        caveats.push(Caveat::CaptureMissed { packets: missed });
    }
    caveats
}

/// Adds those that the method does not name itself.
fn add(outcome: &mut Outcome, caveats: &[Caveat]) {
    let own = match outcome {
        Outcome::Estimated(estimate) => &mut estimate.caveats,
        Outcome::Inconclusive { caveats, .. } => caveats,
    };
    for caveat in caveats {
        if !own.iter().any(|known| known.id() == caveat.id()) {
            own.push(caveat.clone());
        }
    }
}
