//! Which addresses belong to one router.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::graph::Trace;

/// Sets of addresses that belong to one router each; an address that was never named is a router of
/// its own.
#[derive(Debug, Clone, Default)]
pub struct Aliases {
    /// The next smaller known address of the same router. The smallest one has no entry.
    smaller: BTreeMap<IpAddr, IpAddr>,
}

impl Aliases {
    /// Both addresses belong to one router: somebody declared it, or a packet to the one was
    /// answered from the other (the common source address of Mercator, `[Mercator00]`).
    pub fn same_router(&mut self, one: IpAddr, other: IpAddr) {
        let (one, other) = (self.router(one), self.router(other));
        if one != other {
            self.smaller.insert(one.max(other), one.min(other));
        }
    }

    /// The smallest known address of the router of `address`.
    pub fn router(&self, address: IpAddr) -> IpAddr {
        let mut router = address;
        while let Some(smaller) = self.smaller.get(&router) {
            router = *smaller;
        }
        router
    }

    /// Joins what the subnets of links show (`[APAR06]`): if `y` follows `x` in a trace, the other
    /// end of the /30 or /31 of `y` is an interface of the router of `x`.
    ///
    /// No join where a trace holds both addresses, since packets do not pass one router twice.
    pub fn join_subnet_mates(&mut self, traces: &[Trace]) {
        let mut held_by: BTreeMap<IpAddr, BTreeSet<usize>> = BTreeMap::new();
        let mut candidates = BTreeSet::new();
        for (at, trace) in traces.iter().enumerate() {
            for address in trace.responders.iter().flatten() {
                held_by.entry(*address).or_default().insert(at);
            }
        }
        for trace in traces {
            for pair in trace.responders.windows(2) {
                if let [Some(before), Some(after)] = pair
                    && let Some(mate) = subnet_mate(*after, |address| held_by.contains_key(&address))
                    && mate != *before
                {
                    candidates.insert((*before, mate));
                }
            }
        }
        for (before, mate) in candidates {
            if held_by[&before].is_disjoint(&held_by[&mate]) {
                self.same_router(before, mate);
            }
        }
    }
}

/// The other end of a link between two routers, if an address in use is one: of the /30 unless its
/// first or last address is in use, else of the /31 (RFC 3021; /127 of IPv6, RFC 6164).
pub(super) fn subnet_mate(address: IpAddr, in_use: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    let (middle, outer) = (with_low_bits(address, 3), [with_low_bits(address, 1), with_low_bits(address, 2)]);
    let in_the_middle = matches!(low_bits(address), 1 | 2);
    if in_the_middle && in_use(middle) && !outer.into_iter().any(&in_use) {
        return Some(middle);
    }
    Some(with_low_bits(address, 1)).filter(|mate| in_use(*mate))
}

fn low_bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(four) => four.octets()[3] & 3,
        IpAddr::V6(six) => six.octets()[15] & 3,
    }
}

/// The address with these of its lowest bits inverted.
fn with_low_bits(address: IpAddr, inverted: u8) -> IpAddr {
    match address {
        IpAddr::V4(four) => Ipv4Addr::from_bits(four.to_bits() ^ u32::from(inverted)).into(),
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() ^ u128::from(inverted)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{HostIndex, Pair};

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn trace(source: u32, target: u32, routers: &[&str]) -> Trace {
        Trace {
            pair: Pair { source: HostIndex(source), target: HostIndex(target) },
            responders: routers.iter().map(|text| Some(address(text))).collect(),
        }
    }

    #[test]
    fn what_is_declared_in_a_chain_is_one_router() {
        let mut aliases = Aliases::default();
        aliases.same_router(address("10.0.0.9"), address("10.0.0.5"));
        aliases.same_router(address("10.0.0.1"), address("10.0.0.9"));
        for one in ["10.0.0.1", "10.0.0.5", "10.0.0.9"] {
            assert_eq!(aliases.router(address(one)), address("10.0.0.1"));
        }
        assert_eq!(aliases.router(address("10.0.0.2")), address("10.0.0.2"));
    }

    #[test]
    fn a_mate_is_the_middle_of_a_30_or_the_other_of_a_31() {
        let in_use = |used: &'static [&str]| move |one: IpAddr| used.iter().any(|text| address(text) == one);
        assert_eq!(subnet_mate(address("10.0.0.1"), in_use(&["10.0.0.2"])), Some(address("10.0.0.2")));
        // 10.0.0.0 is in use, so that no /30 has these four addresses.
        assert_eq!(subnet_mate(address("10.0.0.1"), in_use(&["10.0.0.0", "10.0.0.2"])), Some(address("10.0.0.0")));
        assert_eq!(subnet_mate(address("10.0.0.3"), in_use(&["10.0.0.2"])), Some(address("10.0.0.2")));
        assert_eq!(subnet_mate(address("2001:db8::a"), in_use(&["2001:db8::b"])), Some(address("2001:db8::b")));
        assert_eq!(subnet_mate(address("10.0.0.1"), in_use(&["10.0.0.3"])), None);
    }

    #[test]
    fn subnets_join_the_two_directions_of_a_route() {
        // Router A has 10.1.0.1 towards host 0 and 10.0.0.1 towards B; B has 10.0.0.2 towards A.
        let traces = [trace(0, 1, &["10.1.0.1", "10.0.0.2"]), trace(1, 0, &["10.2.0.1", "10.0.0.1"])];
        let mut aliases = Aliases::default();
        aliases.join_subnet_mates(&traces);
        assert_eq!(aliases.router(address("10.1.0.1")), aliases.router(address("10.0.0.1")));
        assert_eq!(aliases.router(address("10.2.0.1")), aliases.router(address("10.0.0.2")));
        assert_ne!(aliases.router(address("10.1.0.1")), aliases.router(address("10.2.0.1")));
    }

    #[test]
    fn addresses_of_one_trace_are_not_joined() {
        let traces = [trace(0, 1, &["10.1.0.1", "10.0.0.2"]), trace(2, 1, &["10.0.0.1", "10.1.0.1"])];
        let mut aliases = Aliases::default();
        aliases.join_subnet_mates(&traces);
        assert_ne!(aliases.router(address("10.1.0.1")), aliases.router(address("10.0.0.1")));
    }
}
