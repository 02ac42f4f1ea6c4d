//! The routes of the fleet as a graph, and links by numbers that stay the same.

use std::collections::BTreeMap;
use std::net::IpAddr;

use narrows_fleet::keys::Name;
use narrows_fleet::topology::{Aliases, Graph, HostIndex, LinkIndex, Pair, Place, Segment, SegmentIndex, Trace};
use narrows_record::RouteSeen;
use narrows_units::{BitRate, to_u32};
use sha2::{Digest as _, Sha256};

/// The graph of all routes of the last day, with the hosts' names.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) graph: Graph,
    names: Vec<Name>,
    places: BTreeMap<Name, HostIndex>,
    ids: Vec<u64>,
    /// Of each segment, which site it leads out of or into.
    roles: Vec<Option<String>>,
}

impl Network {
    /// `addresses` are those of the hosts' servers: a target that answers the trace of its own path
    /// is a host of the graph, and no router.
    pub(crate) fn new(routes: &[RouteSeen], addresses: &BTreeMap<Name, IpAddr>) -> Self {
        let mut names: Vec<Name> = routes.iter().flat_map(|one| [one.source.clone(), one.target.clone()]).collect();
        names.sort();
        names.dedup();
        let places: BTreeMap<Name, HostIndex> =
            names.iter().enumerate().map(|(at, name)| (name.clone(), HostIndex(to_u32(at)))).collect();
        let trace = |seen: &RouteSeen| {
            let mut responders: Vec<_> = seen.hops.iter().map(|hop| hop.address).collect();
            let target = addresses.get(&seen.target).copied();
            if target.is_some() && responders.last() == Some(&target) {
                responders.pop();
            }
            Trace { pair: Pair { source: places[&seen.source], target: places[&seen.target] }, responders }
        };
        let traces: Vec<Trace> = routes.iter().filter(|seen| !seen.hops.is_empty()).map(trace).collect();
        let mut aliases = Aliases::default();
        aliases.join_subnet_mates(&traces);
        let mut network =
            Self { graph: Graph::new(&traces, &aliases), names, places, ids: Vec::new(), roles: Vec::new() };
        network.ids = (0..network.graph.links().len()).map(|at| network.number(LinkIndex(to_u32(at)))).collect();
        network
    }

    /// The same with the sites of hosts, as far as they have one.
    pub(crate) fn with_sites(mut self, site_of: &BTreeMap<Name, Name>) -> Self {
        self.roles = self.graph.segments().iter().map(|segment| self.role_of(segment, site_of)).collect();
        self
    }

    /// Which site a segment leads out of or into: `ams uplink`, if all that was traced over it
    /// comes from ams, and goes to several places. The link of a host says by its end whose it is.
    fn role_of(&self, segment: &Segment, site_of: &BTreeMap<Name, Name>) -> Option<String> {
        let is_host = |place: &Place| matches!(place, Place::Host(_));
        let links = segment.links.iter().map(|link| self.graph.links()[link.0 as usize]);
        if links.flat_map(|link| [link.from, link.to]).any(|place| is_host(&place)) {
            return None;
        }
        let site = |host: HostIndex| site_of.get(self.name(host));
        let from = one_of(segment.pairs.iter().map(|pair| site(pair.source)));
        let to = one_of(segment.pairs.iter().map(|pair| site(pair.target)));
        match (from, to) {
            (Some(from), Some(to)) if from == to => Some(format!("within {from}")),
            (Some(from), Some(to)) => Some(format!("{from} to {to}")),
            (Some(from), None) => Some(format!("{from} uplink")),
            (None, Some(to)) => Some(format!("{to} downlink")),
            (None, None) => None,
        }
    }

    /// What is known of a segment beside its ends.
    pub(crate) fn role(&self, segment: SegmentIndex) -> Option<&str> {
        self.roles.get(segment.0 as usize)?.as_deref()
    }

    pub(crate) fn pair(&self, source: &Name, target: &Name) -> Option<Pair> {
        Some(Pair { source: *self.places.get(source)?, target: *self.places.get(target)? })
    }

    pub(crate) fn name(&self, host: HostIndex) -> &Name {
        &self.names[host.0 as usize]
    }

    /// An end of a link as text: the host's name, the router's address, or whose network it is.
    pub(crate) fn place(&self, place: Place) -> String {
        match place {
            Place::Host(host) => self.name(host).to_string(),
            Place::Router(address) => address.to_string(),
            Place::Lan(router) => format!("network of {router}"),
        }
    }

    /// The number of a link: of its ends, so that it is the same tomorrow.
    pub(crate) fn id(&self, link: LinkIndex) -> u64 {
        self.ids[link.0 as usize]
    }

    fn number(&self, link: LinkIndex) -> u64 {
        let link = self.graph.links()[link.0 as usize];
        let text = format!("{} {} {}", self.place(link.from), link.silent, self.place(link.to));
        let digest: [u8; 32] = Sha256::digest(text).into();
        let number = digest.first_chunk().map_or(0, |eight| u64::from_be_bytes(*eight));
        // 53 bits: a browser counts in doubles. 0 is what nobody traced.
        (number >> 11).max(1)
    }

    /// Whether the way from one to the other was traced within the last day.
    pub(crate) fn knows(&self, source: &Name, target: &Name) -> bool {
        self.pair(source, target).is_some_and(|pair| self.graph.route(pair).is_some())
    }

    /// The links on the way that end at no host: those are excluded by the host.
    pub(crate) fn shared_links(&self, source: &Name, target: &Name) -> Vec<u64> {
        let route = self.pair(source, target).and_then(|pair| self.graph.route(pair));
        let links = route.map_or(&[][..], |route| &route.links);
        let between = |link: &&LinkIndex| {
            let link = self.graph.links()[link.0 as usize];
            ![link.from, link.to].iter().any(|end| matches!(end, Place::Host(_)))
        };
        links.iter().filter(between).map(|link| self.id(*link)).collect()
    }
}

/// The site that all of these are at.
fn one_of<'a>(mut sites: impl Iterator<Item = Option<&'a Name>>) -> Option<&'a Name> {
    let first = sites.next()??;
    sites.all(|site| site == Some(first)).then_some(first)
}

/// What is known of links, by their numbers: the least that each carries.
pub(crate) type Bounds = BTreeMap<u64, BitRate>;

#[cfg(test)]
pub(crate) mod tests {
    use narrows_fleet::message::Hop;

    use super::*;

    pub(crate) fn seen(source: &str, target: &str, hops: &[&str]) -> RouteSeen {
        RouteSeen {
            source: source.parse().unwrap(),
            target: target.parse().unwrap(),
            hops: hops.iter().map(|text| Hop { address: text.parse().ok() }).collect(),
            since_ms: 0,
            seen_ms: 0,
        }
    }

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn hosts_without_a_router_in_between_share_a_network() {
        let addresses = [("a", "10.1.0.1"), ("b", "10.1.0.2"), ("c", "10.2.0.1")];
        let addresses = addresses.map(|(host, address)| (name(host), address.parse().unwrap())).into();
        let far = |source: &str, target: &str| seen(source, target, &["10.1.0.254", "10.9.0.1"]);
        let back = |target: &str| seen("c", target, &["10.2.0.254", "10.1.0.254"]);
        let routes = [far("a", "c"), far("b", "c"), back("a"), back("b"), seen("a", "b", &["10.1.0.2"])];
        let network = Network::new(&routes, &addresses);
        let ends = |source: &str, target: &str| {
            let pair = network.pair(&name(source), &name(target)).unwrap();
            let links = network.graph.route(pair).unwrap().links.iter();
            links.map(|link| network.place(network.graph.links()[link.0 as usize].to)).collect::<Vec<_>>()
        };
        assert_eq!(ends("a", "b"), ["network of 10.1.0.254", "b"]);
        assert_eq!(ends("a", "c")[..2], ["network of 10.1.0.254", "10.1.0.254"]);
        assert_eq!(ends("c", "b")[2..], ["network of 10.1.0.254", "b"]);
        // Loads of two pairs that use different links of one network may run side by side.
        assert!(network.shared_links(&name("a"), &name("b")).is_empty());
    }

    #[test]
    fn a_segment_is_called_by_the_site_that_it_leads_out_of_or_into() {
        // a and b at ams, c and d at fra, e and f nowhere: each two have a router before the core.
        let own =
            |host: &str| format!("10.{}.0.1", ["ab", "cd", "ef"].iter().position(|two| two.contains(host)).unwrap());
        let route = |source: &str, target: &str| seen(source, target, &[&own(source), "10.9.0.1", &own(target)]);
        let hosts = ["a", "b", "c", "d", "e", "f"];
        let pairs = hosts.iter().flat_map(|source| hosts.iter().map(move |target| (*source, *target)));
        let apart = pairs.filter(|(source, target)| own(source) != own(target));
        let routes: Vec<RouteSeen> = apart.map(|(source, target)| route(source, target)).collect();
        let sites = [("a", "ams"), ("b", "ams"), ("c", "fra"), ("d", "fra")];
        let network = Network::new(&routes, &BTreeMap::new())
            .with_sites(&sites.map(|(host, site)| (name(host), name(site))).into());
        let roles = |source: &str, target: &str| {
            let pair = network.pair(&name(source), &name(target)).unwrap();
            let segments = &network.graph.route(pair).unwrap().segments;
            segments.iter().map(|segment| network.role(*segment).unwrap_or("-")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(roles("a", "c"), "-, ams uplink, fra downlink, -");
        assert_eq!(roles("c", "a"), "-, fra uplink, ams downlink, -");
        // Whoever has no site gives no name.
        assert_eq!(roles("e", "d"), "-, -, fra downlink, -");
        assert_eq!(network.role(SegmentIndex(99)), None);
    }

    #[test]
    fn a_link_keeps_its_number_whoever_else_is_there() {
        let (a, b) = (name("a"), name("b"));
        let one = seen("a", "b", &["10.0.0.1", "10.0.1.1", "10.0.9.9"]);
        let addresses = BTreeMap::from([(name("b"), "10.0.9.9".parse().unwrap())]);
        let alone = Network::new(std::slice::from_ref(&one), &addresses);
        let links = alone.shared_links(&a, &b);
        assert_eq!(links.len(), 1, "of three links, two end at a host");
        let more = Network::new(&[seen("0", "c", &["10.7.0.1", "10.8.1.1", "10.8.9.9"]), one], &addresses);
        assert_eq!(more.shared_links(&a, &b), links);
        assert!(links[0] < 1 << 53 && links[0] > 0);
        assert!(more.shared_links(&b, &a).is_empty());
    }
}
