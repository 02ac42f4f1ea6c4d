//! A whole path between two hosts: IP packets, and virtual routers that answer.

use narrows_packet::UDP;
use narrows_packet::ip::{IpHeader, set_hop_limit};
use narrows_scenario::PathDirection;
use narrows_sim::Path;

use super::{Admitted, Buffer, Rules};
use crate::icmp::{self, Trouble};
use crate::packet::flow;
use crate::plan::{AddressPlan, Owner, Side};

/// Hop limit of what routers send.
const ROUTER_HOP_LIMIT: u8 = 64;

/// Most octets of an ICMP answer, for the routers of both ways in order.
pub(crate) type RouterLimits = [Vec<u16>; 2];

/// Who is where on the path, and how the routers answer.
#[derive(Debug)]
pub(crate) struct Routers {
    pub(super) plan: AddressPlan,
    limits: RouterLimits,
    answer: Vec<u8>,
}

impl Routers {
    pub(crate) fn new(plan: AddressPlan, limits: RouterLimits) -> Self {
        Self { plan, limits, answer: Vec::with_capacity(2_048) }
    }

    /// With which hop limit the path carries a packet of this way, so that it ends where it should:
    /// a router that is the destination itself takes it as if it ran out there. `None` if the
    /// destination is not on the way.
    fn destination_limit(&self, path: &Path<Buffer>, way: PathDirection, header: &IpHeader) -> Option<u8> {
        match self.plan.owner(header.destination)? {
            Owner::Host(side) => (side == Side::at_end_of(way)).then_some(header.hop_limit),
            Owner::Router(there, number) => self.node(path, way, there, number).map(|node| header.hop_limit.min(node)),
        }
    }

    /// The node of this way at which a router stands that answers by its number on that way; `None`
    /// if this way has none there.
    fn node(&self, path: &Path<Buffer>, way: PathDirection, there: PathDirection, number: u8) -> Option<u8> {
        let node = if there == way { number } else { u8::try_from(path.opposite(there, usize::from(number))).ok()? };
        (1..=self.plan.routers(way)).contains(&node).then_some(node)
    }

    /// Writes the router's answer; `false` if it has none.
    fn compose(
        &mut self,
        path: &Path<Buffer>,
        way: PathDirection,
        node: usize,
        trouble: Trouble,
        buffer: &mut Buffer,
    ) -> bool {
        let Some((header, _)) = IpHeader::read_whole(buffer.packet()) else {
            return false;
        };
        let router = u8::try_from(node)
            .ok()
            .and_then(|number| self.plan.router(way, number))
            .and_then(|addresses| addresses.like(header.source));
        let Some(router) = router else {
            return false;
        };
        let limits = &self.limits[side_of(way).index()];
        let most = limits.get(node.saturating_sub(1)).copied().unwrap_or(576);
        if let Some(Owner::Router(there, number)) = self.plan.owner(header.destination)
            && trouble == Trouble::HopLimitExceeded
            && self.node(path, way, there, number).map(usize::from) == Some(node)
        {
            let (packet, own) = (buffer.packet(), header.destination);
            let unreachable = Trouble::PortUnreachable;
            return icmp::echo_reply(packet, own, &mut self.answer)
                || header.protocol == UDP && icmp::error(packet, own, unreachable, most, &mut self.answer);
        }
        // Routers quote the packet as it came to them: one less for each router before.
        let passed = u8::try_from(node.saturating_sub(1)).unwrap_or(u8::MAX);
        set_hop_limit(buffer.packet_mut(), header.hop_limit.saturating_sub(passed));
        icmp::error(buffer.packet(), router, trouble, most, &mut self.answer)
    }
}

impl Rules for Routers {
    fn admit(&self, path: &Path<Buffer>, way: PathDirection, packet: &[u8]) -> Option<Admitted> {
        let (header, ip_octets) = IpHeader::read_whole(packet)?;
        let hop_limit = self.destination_limit(path, way, &header)?;
        Some(Admitted { ip_octets, hop_limit, flow: flow(&header, packet) })
    }

    fn arrive(&self, packet: &mut [u8], hop_limit: u8) {
        set_hop_limit(packet, hop_limit);
    }

    fn answer(
        &mut self,
        path: &mut Path<Buffer>,
        at: u64,
        (way, node): (PathDirection, usize),
        trouble: Trouble,
        mut buffer: Buffer,
    ) -> Result<(), Buffer> {
        let answers = self.compose(path, way, node, trouble, &mut buffer) && buffer.fill(&self.answer);
        if !answers {
            return Err(buffer);
        }
        let packet = narrows_sim::Packet {
            // Built by `icmp`, which makes no longer ones.
            ip_octets: u16::try_from(buffer.packet().len()).unwrap_or(u16::MAX),
            hop_limit: ROUTER_HOP_LIMIT,
            flow: 0,
            payload: buffer,
        };
        path.inject(at, way.opposite(), path.opposite(way, node), packet);
        Ok(())
    }
}

fn side_of(way: PathDirection) -> Side {
    match way {
        PathDirection::Forward => Side::Sender,
        PathDirection::Reverse => Side::Receiver,
    }
}
