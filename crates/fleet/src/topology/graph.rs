//! Links, routes and segments.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use narrows_units::to_u32;
use serde::{Deserialize, Serialize};

use super::alias::{Aliases, subnet_mate};

/// A host of the fleet: its place in the caller's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostIndex(pub u32);

/// One direction between two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair {
    /// Who sends.
    pub source: HostIndex,
    /// Who receives.
    pub target: HostIndex,
}

/// What a trace of one pair showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// From where to where.
    pub pair: Pair,
    /// The routers in order, without the hosts; `None` where nobody answered.
    pub responders: Vec<Option<IpAddr>>,
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A host of the fleet.
    Host(HostIndex),
    /// A router: where a link begins its smallest known address, where a link ends the one that
    /// answered.
    Router(IpAddr),
    /// The network between hosts and their router, of which the smallest known address stands here;
    /// where hosts reach one another without it.
    Lan(IpAddr),
}

/// A link of a [`Graph`], in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Link {
    /// Who answered last.
    pub from: Place,
    /// Routers in between that did not answer.
    pub silent: u32,
    /// Who answers next.
    pub to: Place,
}

/// A link: its place in [`Graph::links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkIndex(pub u32);

/// A segment: its place in [`Graph::segments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SegmentIndex(pub u32);

/// Links that no pair separates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The links, ascending.
    pub links: Vec<LinkIndex>,
    /// The pairs whose routes cross them, ascending.
    pub pairs: Vec<Pair>,
}

/// The way of one pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The links in order.
    pub links: Vec<LinkIndex>,
    /// Their segments, in the order of their first links.
    pub segments: Vec<SegmentIndex>,
    /// Of what answered: another hash is another route.
    pub hash: u64,
}

/// All links and routes that a set of traces shows.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    links: Vec<Link>,
    segments: Vec<Segment>,
    segment_of: Vec<SegmentIndex>,
    routes: BTreeMap<Pair, Route>,
    opposite: BTreeMap<LinkIndex, LinkIndex>,
}

impl Graph {
    /// Of two traces of a pair the later counts. A trace that passes one router twice is left out:
    /// the route changed meanwhile, or loops.
    pub fn new(traces: &[Trace], aliases: &Aliases) -> Self {
        let mut indexes = BTreeMap::new();
        let mut graph = Self::default();
        let lans = lans(traces, aliases);
        for trace in traces {
            let Some(links) = links_of(trace, aliases, &lans) else {
                graph.routes.remove(&trace.pair);
                continue;
            };
            let links = links
                .into_iter()
                .map(|link| {
                    *indexes.entry(link).or_insert_with(|| {
                        graph.links.push(link);
                        LinkIndex(to_u32(graph.links.len() - 1))
                    })
                })
                .collect();
            graph.routes.insert(trace.pair, Route { links, segments: Vec::new(), hash: hash_of(trace) });
        }
        graph.find_segments();
        graph.find_opposites(&indexes, aliases);
        graph
    }

    /// The links; a [`LinkIndex`] is a place in this list.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The segments; a [`SegmentIndex`] is a place in this list.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segment that a link belongs to; `None` if only traces that were replaced showed the
    /// link.
    pub fn segment_of(&self, link: LinkIndex) -> Option<SegmentIndex> {
        self.segment_of.get(link.0 as usize).copied().filter(|segment| segment.0 != u32::MAX)
    }

    /// The route of a pair.
    pub fn route(&self, pair: Pair) -> Option<&Route> {
        self.routes.get(&pair)
    }

    /// All routes, by pair.
    pub fn routes(&self) -> impl Iterator<Item = (Pair, &Route)> {
        self.routes.iter().map(|(pair, route)| (*pair, route))
    }

    /// The same cable in the other direction, where its subnet shows which link that is.
    pub fn opposite(&self, link: LinkIndex) -> Option<LinkIndex> {
        self.opposite.get(&link).copied()
    }

    fn find_segments(&mut self) {
        let mut pairs_of = vec![Vec::new(); self.links.len()];
        for (pair, route) in &self.routes {
            for link in &route.links {
                pairs_of[link.0 as usize].push(*pair);
            }
        }
        let mut by_pairs: BTreeMap<&[Pair], Vec<LinkIndex>> = BTreeMap::new();
        for (index, pairs) in pairs_of.iter().enumerate().filter(|(_, pairs)| !pairs.is_empty()) {
            by_pairs.entry(pairs).or_default().push(LinkIndex(to_u32(index)));
        }
        let mut segments: Vec<_> =
            by_pairs.into_iter().map(|(pairs, links)| Segment { links, pairs: pairs.to_vec() }).collect();
        segments.sort_by_key(|segment| segment.links[0]);
        self.segment_of = vec![SegmentIndex(u32::MAX); self.links.len()];
        for (index, segment) in segments.iter().enumerate() {
            for link in &segment.links {
                self.segment_of[link.0 as usize] = SegmentIndex(to_u32(index));
            }
        }
        for route in self.routes.values_mut() {
            for link in &route.links {
                let segment = self.segment_of[link.0 as usize];
                if !route.segments.contains(&segment) {
                    route.segments.push(segment);
                }
            }
        }
        self.segments = segments;
    }

    fn find_opposites(&mut self, indexes: &BTreeMap<Link, LinkIndex>, aliases: &Aliases) {
        let ends: BTreeSet<IpAddr> = self.links.iter().filter_map(|link| router_address(link.to)).collect();
        for (link, index) in indexes {
            let back = match (link.from, link.to) {
                (Place::Router(from), Place::Router(to)) => subnet_mate(to, |address| ends.contains(&address))
                    .filter(|mate| aliases.router(*mate) == from)
                    .map(|mate| Link {
                        from: Place::Router(aliases.router(to)),
                        silent: link.silent,
                        to: Place::Router(mate),
                    }),
                _ => None,
            };
            if let Some(back) = back.and_then(|back| indexes.get(&back)) {
                self.opposite.insert(*index, *back);
            }
        }
    }
}

/// The routers of hosts that reach other hosts of the same router without it. Such hosts have one
/// link to the network that they share with it, whomever they speak to.
fn lans(traces: &[Trace], aliases: &Aliases) -> BTreeMap<HostIndex, IpAddr> {
    // `None` for a host whose first router is not always the same one, or does not answer.
    let mut first: BTreeMap<HostIndex, Option<IpAddr>> = BTreeMap::new();
    for trace in traces.iter().filter(|trace| !trace.responders.is_empty()) {
        let router = trace.responders[0].map(|address| aliases.router(address));
        first
            .entry(trace.pair.source)
            .and_modify(|known| *known = known.filter(|_| *known == router))
            .or_insert(router);
    }
    let router = |host: HostIndex| first.get(&host).copied().flatten();
    let direct = traces.iter().filter(|trace| trace.responders.is_empty());
    let both = |pair: Pair| router(pair.source).filter(|one| router(pair.target) == Some(*one)).map(|one| (pair, one));
    direct
        .filter_map(|trace| both(trace.pair))
        .flat_map(|(pair, router)| [(pair.source, router), (pair.target, router)])
        .collect()
}

/// The links of a trace; `None` if it passes one router twice.
fn links_of(trace: &Trace, aliases: &Aliases, lans: &BTreeMap<HostIndex, IpAddr>) -> Option<Vec<Link>> {
    let mut routers = BTreeSet::new();
    let mut links = Vec::new();
    let mut from = Place::Host(trace.pair.source);
    let mut silent = 0;
    for responder in &trace.responders {
        let Some(address) = *responder else {
            silent += 1;
            continue;
        };
        let router = aliases.router(address);
        if !routers.insert(router) {
            return None;
        }
        links.push(Link { from, silent, to: Place::Router(address) });
        (from, silent) = (Place::Router(router), 0);
    }
    links.push(Link { from, silent, to: Place::Host(trace.pair.target) });
    Some(links.into_iter().flat_map(|link| through_lan(link, aliases, lans)).collect())
}

/// A link by way of the network that it crosses, if that is known.
fn through_lan(link: Link, aliases: &Aliases, lans: &BTreeMap<HostIndex, IpAddr>) -> Vec<Link> {
    let lan = |place: Place| match place {
        Place::Host(host) => lans.get(&host).copied(),
        Place::Router(address) => Some(aliases.router(address)),
        Place::Lan(_) => None,
    };
    let routers = matches!((link.from, link.to), (Place::Router(_), Place::Router(_)));
    match lan(link.from).filter(|one| link.silent == 0 && !routers && lan(link.to) == Some(*one)) {
        Some(router) => {
            let between = Place::Lan(router);
            vec![Link { to: between, ..link }, Link { from: between, ..link }]
        }
        None => vec![link],
    }
}

fn router_address(place: Place) -> Option<IpAddr> {
    match place {
        Place::Router(address) => Some(address),
        Place::Host(_) | Place::Lan(_) => None,
    }
}

/// FNV-1a over what answered. It only tells routes of one pair apart, so 64 bits are plenty.
fn hash_of(trace: &Trace) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |octet: u8| hash = (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    for responder in &trace.responders {
        match responder {
            Some(IpAddr::V4(four)) => four.octets().into_iter().for_each(&mut add),
            Some(IpAddr::V6(six)) => six.octets().into_iter().for_each(&mut add),
            None => add(0),
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(source: u32, target: u32) -> Pair {
        Pair { source: HostIndex(source), target: HostIndex(target) }
    }

    fn trace(source: u32, target: u32, routers: &[&str]) -> Trace {
        let responders = routers.iter().map(|text| text.parse().ok()).collect();
        Trace { pair: pair(source, target), responders }
    }

    #[test]
    fn links_that_no_pair_separates_are_one_segment() {
        // Hosts 0 and 1 behind one router, 2 and 3 behind another; two routers in between.
        let core = ["10.0.0.1", "10.0.1.1", "10.0.2.1"];
        let graph = Graph::new(&[trace(0, 2, &core), trace(0, 3, &core), trace(1, 2, &core)], &Aliases::default());
        assert_eq!(graph.links().len(), 6);
        assert_eq!(graph.segments().len(), 5);
        let route = graph.route(pair(0, 2)).unwrap();
        assert_eq!((route.links.len(), route.segments.len()), (4, 3));
        let core_segment = &graph.segments()[route.segments[1].0 as usize];
        assert_eq!((core_segment.links.len(), core_segment.pairs.len()), (2, 3));
        assert_eq!(graph.segment_of(core_segment.links[1]), Some(route.segments[1]));
    }

    #[test]
    fn hosts_that_share_a_network_have_one_link_to_it() {
        let (a, b, router) = ("10.1.0.254", "10.2.0.254", "10.9.0.1");
        let mut aliases = Aliases::default();
        for (one, other) in [(a, "10.9.0.2"), (b, router)] {
            aliases.same_router(one.parse().unwrap(), other.parse().unwrap());
        }
        // Hosts 0 and 1 share a network, 2 and 3 stand alone behind another router.
        let away = [trace(0, 2, &[a, router]), trace(1, 3, &[a, router]), trace(2, 0, &[b, "10.9.0.2"])];
        let back = trace(3, 1, &[b, "10.9.0.2"]);
        let graph = Graph::new(&[&away[..], &[back.clone(), trace(0, 1, &[]), trace(1, 0, &[])]].concat(), &aliases);
        let links = |source, target| graph.route(pair(source, target)).unwrap().links.clone();
        assert_eq!(links(0, 1)[0], links(0, 2)[0], "a host's own link");
        assert_eq!(links(0, 1)[1], *links(3, 1).last().unwrap(), "the other's");
        assert_eq!((links(0, 1).len(), links(0, 2).len(), links(2, 0).len()), (2, 4, 4));
        // What leads from the network to the router and on is one segment: no pair tells its parts.
        assert_eq!(graph.segment_of(links(0, 2)[1]), graph.segment_of(links(0, 2)[2]));
        assert_ne!(graph.segment_of(links(0, 2)[0]), graph.segment_of(links(0, 2)[1]));
        // Where nobody is reached without the router, nothing is known of a network.
        let apart = Graph::new(&[&away[..], &[back]].concat(), &aliases);
        assert_eq!(apart.route(pair(0, 2)).unwrap().links.len(), 3);
    }

    #[test]
    fn silent_routers_merge_links_and_parallel_links_stay_apart() {
        let graph = Graph::new(
            &[
                trace(0, 1, &["10.0.0.1", "*", "10.0.2.1"]),
                trace(0, 2, &["10.0.0.1", "10.0.3.1"]),
                trace(0, 3, &["10.0.0.1", "10.0.3.5"]),
            ],
            &Aliases::default(),
        );
        let first = graph.route(pair(0, 1)).unwrap();
        assert_eq!(graph.links()[first.links[1].0 as usize].silent, 1);
        assert_eq!(first.links.len(), 3);
        assert_ne!(graph.route(pair(0, 2)).unwrap().links[1], graph.route(pair(0, 3)).unwrap().links[1]);
    }

    #[test]
    fn a_known_alias_makes_one_link_of_two() {
        let traces = [trace(0, 2, &["10.0.0.1", "10.0.9.1"]), trace(1, 2, &["10.0.0.5", "10.0.9.1"])];
        let mut aliases = Aliases::default();
        let split = Graph::new(&traces, &aliases);
        aliases.same_router("10.0.0.1".parse().unwrap(), "10.0.0.5".parse().unwrap());
        let joined = Graph::new(&traces, &aliases);
        assert_eq!((split.links().len(), joined.links().len()), (5, 4));
    }

    #[test]
    fn subnets_show_the_other_direction() {
        let traces = [trace(0, 1, &["10.1.0.1", "10.0.0.2"]), trace(1, 0, &["10.2.0.1", "10.0.0.1"])];
        let mut aliases = Aliases::default();
        aliases.join_subnet_mates(&traces);
        let graph = Graph::new(&traces, &aliases);
        let (there, back) = (graph.route(pair(0, 1)).unwrap().links[1], graph.route(pair(1, 0)).unwrap().links[1]);
        assert_eq!((graph.opposite(there), graph.opposite(back)), (Some(back), Some(there)));
        assert_eq!(graph.opposite(graph.route(pair(0, 1)).unwrap().links[0]), None);
    }

    #[test]
    fn a_loop_leaves_the_pair_without_route_and_a_change_shows_in_the_hash() {
        let looping = trace(0, 1, &["10.0.0.1", "10.0.0.2", "10.0.0.1"]);
        let graph = Graph::new(&[trace(0, 1, &["10.0.0.1"]), looping], &Aliases::default());
        assert!(graph.route(pair(0, 1)).is_none());
        assert_eq!(graph.segment_of(LinkIndex(0)), None);
        assert_ne!(hash_of(&trace(0, 1, &["10.0.0.1", "10.0.0.2"])), hash_of(&trace(0, 1, &["10.0.0.2", "10.0.0.1"])));
    }
}
