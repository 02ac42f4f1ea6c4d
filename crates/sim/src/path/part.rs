//! Which part of a path one real link plays.

use scenario::{Scenario, Way};

/// One link of one way: that of a hop, or that of a hidden device within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// The hop, from 0 in the order of its way.
    pub hop: usize,
    /// `None`: the hop's own link, with its bucket and queue. Otherwise the outgoing link of this one of its layer-2 devices, from 0.
    pub device: Option<usize>,
}

/// What one full-duplex link plays each way. A way that is `None` is a wire that takes no time, for paths whose ways differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LinkPart {
    /// From the link's first end to its second.
    pub forward: Option<Segment>,
    /// From its second end to its first.
    pub reverse: Option<Segment>,
}

impl Segment {
    /// The links of one hop, in the order of its way: its own, then one per device. Empty if there is no such hop.
    pub fn of_hop(scenario: &Scenario, way: Way, hop: usize) -> Vec<Self> {
        let Some(found) = scenario.hops(way).get(hop) else {
            return Vec::new();
        };
        let own = Self { hop, device: None };
        let devices = (0..found.layer2.len()).map(|index| Self {
            hop,
            device: Some(index),
        });
        std::iter::once(own).chain(devices).collect()
    }
}

impl LinkPart {
    /// What one way plays.
    pub fn segment(&self, way: Way) -> Option<Segment> {
        match way {
            Way::Forward => self.forward,
            Way::Reverse => self.reverse,
        }
    }

    /// The links of a forward hop in order from the sender, each with what it plays of the way back: of a path with as many hops
    /// back as forth, the hop between the same two nodes. Where only one of the two has so many devices, the other way is a wire.
    pub fn of_hop(scenario: &Scenario, hop: usize) -> Vec<Self> {
        let forward = Segment::of_hop(scenario, Way::Forward, hop);
        let opposite = scenario.reverse.len().checked_sub(hop + 1);
        let mut reverse = opposite.map_or(Vec::new(), |hop| Segment::of_hop(scenario, Way::Reverse, hop));
        // The way back meets the same devices from the other end.
        reverse.reverse();
        let links = forward.len().max(reverse.len());
        (0..links)
            .map(|index| Self {
                forward: forward.get(index).copied(),
                reverse: reverse.get(index).copied(),
            })
            .collect()
    }
}
