//! Links that hold paths back, with the paths that show it.

use std::collections::{BTreeMap, BTreeSet};

use narrows_fleet::keys::Name;
use narrows_fleet::sharing::{Explanation, explain_candidates};
use narrows_fleet::tomography::{Finding, SegmentValue, next_runs};
use narrows_fleet::topology::{Pair, SegmentIndex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hub::tomography::Located;
use crate::network::Network;

/// A segment that limits measured paths.
#[derive(Debug, Clone)]
pub struct Bottleneck {
    /// Of its links' numbers, so that it stays the same.
    pub id: String,
    /// Its two ends, and the site that it leads out of or into.
    pub name: String,
    /// Its links, by their ends.
    pub links: Vec<(String, String)>,
    /// What it carries.
    pub value: SegmentValue,
    /// The mean over its paths, 0 to 1.
    pub confidence: f64,
    /// The measured paths that it limits.
    pub(crate) paths: Vec<Pair>,
    /// How many measured paths it limits, and how many cross it.
    pub counts: (usize, usize),
    pub(crate) segment: SegmentIndex,
}

/// All bottlenecks, those of most paths first.
pub(crate) fn bottlenecks(network: &Network, located: &Located) -> Vec<Bottleneck> {
    let mut limited: BTreeMap<SegmentIndex, Vec<(Pair, f64)>> = BTreeMap::new();
    for (pair, finding) in located.estimate.findings() {
        if let Finding::Located { segment, tied, confidence } = finding {
            for one in [segment].into_iter().chain(tied) {
                limited.entry(*one).or_default().push((*pair, *confidence));
            }
        }
    }
    let found = limited.into_iter().filter_map(|(segment, paths)| {
        let value = located.estimate.value(segment)?;
        let crossing = &network.graph.segments()[segment.0 as usize].pairs;
        Some(Bottleneck {
            id: id(network, segment),
            name: name(network, segment),
            links: links(network, segment),
            value,
            confidence: paths.iter().map(|(_, one)| one).sum::<f64>() / paths.len() as f64,
            counts: (paths.len(), crossing.iter().filter(|pair| located.latest.contains_key(pair)).count()),
            paths: paths.into_iter().map(|(pair, _)| pair).collect(),
            segment,
        })
    });
    let mut found: Vec<Bottleneck> = found.collect();
    found.sort_by(|one, other| (other.paths.len(), &one.id).cmp(&(one.paths.len(), &other.id)));
    found
}

/// Measured pairs that any of several segments may limit, with their names.
pub(crate) fn undecided(network: &Network, located: &Located) -> Vec<(Pair, Vec<String>)> {
    let several = |(pair, finding): (&Pair, &Finding)| match finding {
        Finding::Several(candidates) => {
            Some((*pair, candidates.iter().map(|segment| name(network, *segment)).collect()))
        }
        Finding::Located { .. } | Finding::Contradicted => None,
    };
    located.estimate.findings().iter().filter_map(several).collect()
}

/// The fewest segments that explain all pairs of [`undecided`], the one that explains most first.
pub(crate) fn suspects(network: &Network, located: &Located) -> Vec<Explanation> {
    let several = located.estimate.findings().iter().filter_map(|(pair, finding)| match finding {
        Finding::Several(candidates) => Some((*pair, &candidates[..])),
        Finding::Located { .. } | Finding::Contradicted => None,
    });
    explain_candidates(&network.graph, several)
}

/// The pairs to measure next.
pub(crate) fn next(network: &Network, located: &Located, limit: usize) -> Vec<Pair> {
    next_runs(&network.graph, &located.estimate, |_| 1.0, limit)
}

/// The number of a segment as text.
pub(crate) fn id(network: &Network, segment: SegmentIndex) -> String {
    let ids: BTreeSet<u64> =
        network.graph.segments()[segment.0 as usize].links.iter().map(|link| network.id(*link)).collect();
    let text: Vec<String> = ids.iter().map(ToString::to_string).collect();
    narrows_units::hex::to_text(&Sha256::digest(text.join(" "))[..6])
}

/// From its first end to its last, and the site that it leads out of or into.
pub(crate) fn name(network: &Network, segment: SegmentIndex) -> String {
    let links = links(network, segment);
    let role = network.role(segment).map_or_else(String::new, |role| format!(" ({role})"));
    match (links.first(), links.last()) {
        (Some((from, _)), Some((_, to))) => format!("{from} to {to}{role}"),
        _ => String::new(),
    }
}

/// Its links in the order of a route, by their ends.
fn links(network: &Network, segment: SegmentIndex) -> Vec<(String, String)> {
    let segment = &network.graph.segments()[segment.0 as usize];
    let route = segment.pairs.first().and_then(|pair| network.graph.route(*pair));
    let place = |link: &_| route.and_then(|route| route.links.iter().position(|one| one == link));
    let mut links = segment.links.clone();
    links.sort_by_key(place);
    let ends = |link: &narrows_fleet::topology::LinkIndex| {
        let link = network.graph.links()[link.0 as usize];
        (network.place(link.from), network.place(link.to))
    };
    links.iter().map(ends).collect()
}

/// A pair of hosts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Ordered {
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) source: Name,
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) target: Name,
}

impl Ordered {
    pub(crate) fn of(network: &Network, pair: Pair) -> Self {
        let (source, target) = hosts(network, pair);
        Self { source, target }
    }
}

/// The names of a pair's hosts.
pub(crate) fn hosts(network: &Network, pair: Pair) -> (Name, Name) {
    (network.name(pair.source).clone(), network.name(pair.target).clone())
}
