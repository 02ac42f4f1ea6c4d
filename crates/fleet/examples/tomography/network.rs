//! Networks like those of the Topology Zoo, drawn from seeds: a tree of routers with shortcuts, and
//! hosts behind access links. The truth about every path is read off the network itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr};

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// What a network has beside links of fixed rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Nothing. Rates are all different.
    Plain,
    /// Access links of 100, 200, 500 Mbit/s, 1 and 10 Gbit/s, so that many are equally fast.
    RateClasses,
    /// 15 % of the links between routers are doubled.
    Parallel,
    /// A router limits the flows of every other source.
    Policers,
    /// 3 % of the runs take another route than the one traced; traces show that of nine in ten.
    RouteChanges,
    /// No router tells its addresses; subnets alone do.
    MissedAliases,
}

pub(crate) const KINDS: [Kind; 6] =
    [Kind::Plain, Kind::RateClasses, Kind::Parallel, Kind::Policers, Kind::RouteChanges, Kind::MissedAliases];

/// A directed link between routers, or between a host and its router.
#[derive(Debug, Clone)]
pub(crate) struct TrueLink {
    to: usize,
    bps: f64,
    weight: u32,
    /// The interface that answers to packets that came this way.
    address: IpAddr,
    /// The limit of flows from hosts with odd numbers.
    policed_bps: Option<f64>,
}

/// Places 0 to `routers - 1` are routers, the others hosts.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) kind: Kind,
    pub(crate) hosts: usize,
    routers: usize,
    links: Vec<TrueLink>,
    leaving: Vec<Vec<usize>>,
    silent: BTreeSet<usize>,
    addresses: BTreeMap<usize, Vec<IpAddr>>,
    aliases_known: f64,
}

impl Network {
    pub(crate) fn draw(seed: u64, kind: Kind, hosts: usize) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let routers = (hosts * 2 / 3).max(6);
        let mut network = Self {
            kind,
            hosts,
            routers,
            links: Vec::new(),
            leaving: vec![Vec::new(); routers + hosts],
            silent: BTreeSet::new(),
            addresses: BTreeMap::new(),
            aliases_known: if kind == Kind::MissedAliases { 0.0 } else { 0.9 },
        };
        for router in 1..routers {
            let other = rng.random_range(0..router);
            network.join_routers(&mut rng, router, other);
        }
        for _ in 0..routers * 45 / 100 {
            let (one, other) = (rng.random_range(0..routers), rng.random_range(0..routers));
            if one != other {
                network.join_routers(&mut rng, one, other);
            }
        }
        for host in 0..hosts {
            let router = rng.random_range(0..routers);
            network.join_host(&mut rng, routers + host, router);
        }
        network.silent = (0..routers).filter(|_| rng.random_bool(0.1)).collect();
        network
    }

    /// Links that the packets of a flow cross, by number. `change` above 0 is another state of the
    /// network's routing.
    pub(crate) fn path(&self, source: usize, target: usize, change: u32) -> Vec<usize> {
        self.paths_from(source, change)[&target].clone()
    }

    /// The paths to all hosts.
    pub(crate) fn paths_from(&self, source: usize, change: u32) -> BTreeMap<usize, Vec<usize>> {
        let weight = |link: usize| {
            let moved = change > 0 && (link as u32).wrapping_mul(2_654_435_761).wrapping_add(change).is_multiple_of(5);
            u64::from(self.links[link].weight) * if moved { 20 } else { 1 }
        };
        let mut best: BTreeMap<usize, (u64, Option<usize>)> = BTreeMap::from([(self.routers + source, (0, None))]);
        let mut from = BTreeMap::new();
        let mut heap = BinaryHeap::from([Reverse((0, self.routers + source))]);
        while let Some(Reverse((cost, place))) = heap.pop() {
            if best[&place].0 < cost || (place >= self.routers && place != self.routers + source) {
                continue;
            }
            for link in &self.leaving[place] {
                let (next, cost) = (self.links[*link].to, cost + weight(*link));
                if best.get(&next).is_none_or(|known| cost < known.0) {
                    best.insert(next, (cost, Some(*link)));
                    from.insert(next, place);
                    heap.push(Reverse((cost, next)));
                }
            }
        }
        let mut paths = BTreeMap::new();
        for target in (0..self.hosts).filter(|target| *target != source) {
            let mut path = Vec::new();
            let mut place = self.routers + target;
            while let Some(link) = best[&place].1 {
                path.push(self.of_parallel(from[&place], link, source, target));
                place = from[&place];
            }
            path.reverse();
            paths.insert(target, path);
        }
        paths
    }

    /// What answers along a path, without the target.
    pub(crate) fn responders(&self, path: &[usize]) -> Vec<Option<IpAddr>> {
        let routers = path.iter().map(|link| &self.links[*link]).filter(|link| link.to < self.routers);
        routers.map(|link| (!self.silent.contains(&link.to)).then_some(link.address)).collect()
    }

    /// Addresses of each router that tells them.
    pub(crate) fn known_aliases(&self, rng: &mut impl Rng) -> Vec<Vec<IpAddr>> {
        self.addresses.values().filter(|_| rng.random_bool(self.aliases_known)).cloned().collect()
    }

    /// What a link carries of the flows of a source, in bit/s.
    pub(crate) fn rate(&self, link: usize, source: usize) -> f64 {
        let link = &self.links[link];
        link.policed_bps.filter(|_| source % 2 == 1).unwrap_or(f64::INFINITY).min(link.bps)
    }

    /// What a path carries, in bit/s.
    pub(crate) fn slowest(&self, path: &[usize], source: usize) -> f64 {
        path.iter().map(|link| self.rate(*link, source)).fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn link_count(&self) -> usize {
        self.links.len()
    }

    /// The same network with each link's rate multiplied.
    pub(crate) fn with_rates(&self, mut factor: impl FnMut(usize) -> f64) -> Self {
        let mut network = self.clone();
        for (at, link) in network.links.iter_mut().enumerate() {
            link.bps *= factor(at);
        }
        network
    }

    fn join_routers(&mut self, rng: &mut Pcg64, one: usize, other: usize) {
        let rate = if rng.random_bool(0.2) {
            log_uniform(rng, 50e6, 2e9)
        } else {
            [1e9, 10e9, 40e9, 100e9][rng.random_range(0..4)] * log_uniform(rng, 0.8, 1.0)
        };
        let doubled = self.kind == Kind::Parallel && rng.random_bool(0.15);
        let weights = [rng.random_range(1..20), rng.random_range(1..20)];
        for _ in 0..=usize::from(doubled) {
            // One subnet of four addresses: .1 answers at the one end, .2 at the other.
            let subnet = 0x0a00_0000 + 4 * self.links.len() as u32;
            for (from, to, weight, low) in [(one, other, weights[0], 2), (other, one, weights[1], 1)] {
                let address = Ipv4Addr::from_bits(subnet + low).into();
                let bps = if rng.random_bool(0.1) { rate * log_uniform(rng, 0.3, 1.0) } else { rate };
                let policed = self.kind == Kind::Policers && rng.random_bool(0.05);
                let policed_bps = policed.then(|| bps * log_uniform(rng, 0.05, 0.8));
                self.add(from, TrueLink { to, bps, weight, address, policed_bps });
            }
        }
    }

    fn join_host(&mut self, rng: &mut Pcg64, host: usize, router: usize) {
        let rate = |rng: &mut Pcg64| {
            if self.kind == Kind::RateClasses {
                [100e6, 200e6, 500e6, 1e9, 1e9, 1e9, 10e9][rng.random_range(0..7)]
            } else {
                log_uniform(rng, 50e6, 10e9)
            }
        };
        let up = rate(rng);
        let down = if rng.random_bool(0.4) {
            rate(rng)
        } else {
            up * if self.kind == Kind::RateClasses { 1.0 } else { log_uniform(rng, 0.7, 1.4) }
        };
        // All hosts of a router share one subnet, and the router has one address in it.
        let address = Ipv4Addr::from_bits(0xac10_0000 + 256 * router as u32 + 1).into();
        self.add(host, TrueLink { to: router, bps: up, weight: 1, address, policed_bps: None });
        self.add(router, TrueLink { to: host, bps: down, weight: 1, address, policed_bps: None });
    }

    fn add(&mut self, from: usize, link: TrueLink) {
        if link.to < self.routers {
            let addresses = self.addresses.entry(link.to).or_default();
            if !addresses.contains(&link.address) {
                addresses.push(link.address);
            }
        }
        self.leaving[from].push(self.links.len());
        self.links.push(link);
    }

    /// Which of several links between two routers a flow takes.
    fn of_parallel(&self, from: usize, link: usize, source: usize, target: usize) -> usize {
        let to = self.links[link].to;
        let same: Vec<usize> = self.leaving[from]
            .iter()
            .copied()
            .filter(|one| self.links[*one].to == to && self.links[*one].weight == self.links[link].weight)
            .collect();
        same[(source * 7 + target * 13 + link) / 3 % same.len()]
    }
}

pub(crate) fn log_uniform(rng: &mut impl Rng, low: f64, high: f64) -> f64 {
    (low.ln() + rng.random::<f64>() * (high / low).ln()).exp()
}
