//! What a node shows of itself in its answers: an address, and how much it quotes.

use std::net::{IpAddr, Ipv4Addr};

use narrows_scenario::{PathDirection, Router, Scenario};
use narrows_units::nanos;

use crate::rng::{Purpose, Stream};

/// A router, or the host at the end of a way.
#[derive(Debug)]
pub(super) struct Face {
    way: PathDirection,
    node: u16,
    router: Router,
    rng: Stream,
}

const ICMP_HEADERS: u16 = 28;
/// The least that an ICMP error quotes: IP header and eight octets (RFC 792).
const LEAST_QUOTED: u16 = 28;
/// Siblings, and the router of a new route, have the node's number and this many times their own.
const NEXT: u16 = 0x100;

impl Face {
    /// Those of a way, by node: the host at its beginning, routers, the host at its end.
    pub(super) fn of_way(scenario: &Scenario, way: PathDirection, seed: u64) -> Vec<Self> {
        let end = match way {
            PathDirection::Forward => &scenario.receiver,
            PathDirection::Reverse => &scenario.sender,
        };
        let hops = scenario.hops(way);
        let routers = hops.iter().take(hops.len().saturating_sub(1)).map(|hop| hop.router);
        let nodes = std::iter::once(Router::default()).chain(routers).chain(std::iter::once(end.answers));
        (0u16..)
            .zip(nodes)
            .map(|(node, router)| Self {
                way,
                node,
                router,
                rng: Stream::new(seed, Purpose::Face(way, usize::from(node))),
            })
            .collect()
    }

    /// The address in an answer that leaves at `at`.
    pub(super) fn address(&mut self, at: u64) -> IpAddr {
        let odd = self.router.oddities;
        let node = odd.answers_as.unwrap_or(self.node);
        let moved = odd.rerouted.is_some_and(|(from, _)| nanos(from) <= at);
        let other = if moved {
            u16::from(odd.siblings.max(1))
        } else if odd.siblings > 1 {
            u16::try_from(self.rng.below(u64::from(odd.siblings))).unwrap_or(0)
        } else {
            0
        };
        address(self.way, node.wrapping_add(other.wrapping_mul(NEXT)))
    }

    /// Length of an ICMP error's IP packet about a packet of `ip_octets`: it quotes as much of it
    /// as fits, but at least IP header and eight octets (RFC 792; RFC 1812 §4.3.2.3).
    pub(super) fn reply_octets(&mut self, ip_octets: u16) -> u16 {
        let most = self.router.icmp_max_octets.saturating_sub(ICMP_HEADERS).max(LEAST_QUOTED);
        let quoted = most.min(ip_octets);
        let quoted = if self.router.oddities.quotes_at_random && quoted > LEAST_QUOTED {
            let more = self.rng.below(u64::from(quoted - LEAST_QUOTED) + 1);
            LEAST_QUOTED + u16::try_from(more).unwrap_or(0)
        } else {
            quoted
        };
        ICMP_HEADERS + quoted
    }
}

/// Simulated routers have addresses from the block for benchmarks (RFC 2544 appendix C.2.2):
/// 198.18/16 on the forward way, 198.19/16 on the reverse direction, with the node in the last two
/// octets.
fn address(way: PathDirection, node: u16) -> IpAddr {
    let [high, low] = node.to_be_bytes();
    let second = match way {
        PathDirection::Forward => 18,
        PathDirection::Reverse => 19,
    };
    IpAddr::V4(Ipv4Addr::new(198, second, high, low))
}
