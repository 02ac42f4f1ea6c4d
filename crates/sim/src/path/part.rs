//! Which part of a path one real link plays.

use std::collections::BinaryHeap;

use narrows_scenario::{GeneratedBy, Hop, PathDirection, Queue, Scenario, Source as Traffic};
use narrows_units::{BitRate, Framing};

use super::fifo::{Fifo, ForegroundPackets, Transit};
use super::hop::HopState;
use super::source::Source;
use super::{Lane, Link, Path, side};

/// One link of one way: that of a hop, or that of a hidden device within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// The hop, from 0 in the order of its way.
    pub hop: usize,
    /// `None`: the hop's own link, with its bucket and queue. Otherwise the outgoing link of this
    /// one of its layer-2 devices, from 0.
    pub device: Option<usize>,
}

/// What one full-duplex link plays each way. A way that is `None` is a wire that takes no time, for
/// paths whose ways differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LinkPart {
    /// From the link's first end to its second.
    pub forward: Option<Segment>,
    /// From its second end to its first.
    pub reverse: Option<Segment>,
}

impl Segment {
    /// The links of one hop, in the order of its way: its own, then one per device. Empty if there
    /// is no such hop.
    pub fn of_hop(scenario: &Scenario, way: PathDirection, hop: usize) -> Vec<Self> {
        let Some(found) = scenario.hops(way).get(hop) else {
            return Vec::new();
        };
        let own = Self { hop, device: None };
        let devices = (0..found.layer2.len()).map(|index| Self { hop, device: Some(index) });
        std::iter::once(own).chain(devices).collect()
    }
}

impl LinkPart {
    /// What one way plays.
    pub fn segment(&self, way: PathDirection) -> Option<Segment> {
        match way {
            PathDirection::Forward => self.forward,
            PathDirection::Reverse => self.reverse,
        }
    }

    /// The links of a forward hop in order from the sender, each with what it plays of the reverse
    /// direction: of a path with as many hops back as forth, the hop between the same two nodes.
    /// Where only one of the two has so many devices, the other way is a wire.
    pub fn of_hop(scenario: &Scenario, hop: usize) -> Vec<Self> {
        let forward = Segment::of_hop(scenario, PathDirection::Forward, hop);
        let opposite = scenario.reverse.len().checked_sub(hop + 1);
        let mut reverse = opposite.map_or(Vec::new(), |hop| Segment::of_hop(scenario, PathDirection::Reverse, hop));
        // The reverse direction meets the same devices from the other end.
        reverse.reverse();
        let links = forward.len().max(reverse.len());
        (0..links)
            .map(|index| Self { forward: forward.get(index).copied(), reverse: reverse.get(index).copied() })
            .collect()
    }
}

impl<T> Path<T> {
    /// One link of the path of this scenario as a path of its own: one hop each way, no router.
    /// Everything random on it draws from the same streams as in the whole path, and of the cross
    /// traffic it has the open-loop sources that cross this hop alone and that hosts are not said
    /// to carry.
    ///
    /// Cross traffic of a hop with hidden devices goes on to the link behind: fetch it with
    /// [`Path::take_passed`] and put it in there with [`Path::meet`].
    pub fn link(scenario: &Scenario, seed: u64, part: &LinkPart) -> Self {
        let ways = [PathDirection::Forward, PathDirection::Reverse]
            .map(|way| Lane::segment(scenario, way, part.segment(way), seed));
        Self {
            ways,
            foreground_packets: ForegroundPackets::new(),
            pending: BinaryHeap::new(),
            now: 0,
            stretch: u64::MAX,
            made: 0,
        }
    }

    /// Takes the cross traffic that went on to the link behind this one: when each packet arrives
    /// there, and its IP octets, in order of arrival. Packets that entered are listed at once, also
    /// if they have yet to arrive.
    pub fn take_passed(&mut self, way: PathDirection) -> impl Iterator<Item = (u64, u16)> + '_ {
        let outlet = &mut self.ways[side(way)].outlet;
        std::iter::from_fn(move || outlet.as_mut()?.pop_until(u64::MAX)).map(|passed| (passed.at, passed.ip_octets))
    }

    /// A packet of cross traffic comes from the link before this one. A time before the last
    /// [`Path::advance`] is taken for now.
    pub fn meet(&mut self, at: u64, way: PathDirection, ip_octets: u16) {
        let at = at.max(self.now);
        let lane = &mut self.ways[side(way)];
        let transit = Transit {
            at,
            // No hash lies behind a device.
            slot: Transit::cross_slot(0),
            ip_octets,
            exit: u16::from(lane.outlet.is_some()),
        };
        if let Some(hop) = lane.hops.first_mut() {
            hop.transit.insert(transit);
        }
    }
}

impl Lane {
    fn segment(scenario: &Scenario, way: PathDirection, segment: Option<Segment>, seed: u64) -> Self {
        let known = segment.and_then(|segment| Some((segment, scenario.hops(way).get(segment.hop)?)));
        let Some((segment, hop)) = known else {
            let wire =
                Hop::rate(BitRate::from_bps(u64::MAX)).framing(Framing::BARE).queue(Queue::Unlimited).mtu(u16::MAX);
            let none = Segment { hop: 0, device: None };
            return Self {
                interface: None,
                hops: vec![HopState::segment(&wire, way, none, seed)],
                sink: Fifo::new(),
                outlet: None,
            };
        };
        let host = match way {
            PathDirection::Forward => &scenario.sender,
            PathDirection::Reverse => &scenario.receiver,
        };
        let first = segment.hop == 0 && segment.device.is_none();
        let interface = host.interface_rate.filter(|_| first);
        let goes_on = segment.device.map_or(0, |place| place + 1) < hop.layer2.len();
        let mut state = HopState::segment(hop, way, segment, seed);
        for (index, cross) in scenario.cross.iter().enumerate() {
            let here = cross.way == way && cross.first_hop == segment.hop && cross.last_hop == segment.hop;
            if let Traffic::Open { arrivals, rate, sizes } = &cross.source
                && here
                && segment.device.is_none()
                && cross.generated_by != Some(GeneratedBy::Hosts)
            {
                let mut source = Source::new(cross, *arrivals, *rate, sizes, seed, index);
                source.exit = u16::from(goes_on);
                state.add_source(source);
            }
        }
        Self {
            interface: interface.map(|rate| (Link::interface(rate), Fifo::new())),
            hops: vec![state],
            sink: Fifo::new(),
            outlet: goes_on.then(Fifo::new),
        }
    }
}

#[cfg(test)]
mod tests;
