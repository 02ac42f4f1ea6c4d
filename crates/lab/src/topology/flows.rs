//! Cross traffic that real hosts carry.

use narrows_scenario::{Cross, GeneratedBy, Link, PathDirection, Scenario, Source};

use crate::node::Node;

/// A flow of cross traffic with hosts of its own: whoever uses the lab starts a generator in one
/// and a sink in the other.
#[derive(Debug, Clone)]
pub struct RealFlow {
    /// Which of the scenario's cross traffic it is.
    pub index: usize,
    /// Where it comes from.
    pub source: Node,
    /// Where it goes.
    pub sink: Node,
    /// What it is.
    pub cross: Cross,
}

/// Whether a lab lets real hosts carry this traffic. Virtual packets exist inside one real-time
/// link: they can neither answer, as elastic traffic must, nor go on to another link, nor be seen
/// by a kernel's shaper.
pub(crate) fn generated_by_hosts(scenario: &Scenario, cross: &Cross) -> bool {
    cross.generated_by == Some(GeneratedBy::Hosts) || cannot_be_virtual(scenario, cross)
}

pub(crate) fn cannot_be_virtual(scenario: &Scenario, cross: &Cross) -> bool {
    let several = cross.first_hop != cross.last_hop;
    let elastic = matches!(cross.source, Source::Elastic(_));
    let hops = scenario.hops(cross.way);
    let opposite = |hop: usize| hops.len() - 1 - hop;
    let other_way = match cross.way {
        PathDirection::Forward => &scenario.reverse,
        PathDirection::Reverse => &scenario.forward,
    };
    let leaves_the_link = (cross.first_hop..=cross.last_hop).any(|hop| {
        let devices = hops[hop].layer2.len().max(other_way[opposite(hop)].layer2.len());
        hops[hop].link != Link::RealTime || devices > 0
    });
    several || elastic || leaves_the_link
}
