//! Changes of facts: the route, the MTU, an address. Two equal observations make a change.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::time::{ClockStep, WallTime};

/// A fact that became another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactChange<T> {
    /// What was so before.
    pub before: T,
    /// What is so now.
    pub after: T,
    /// The old fact was last seen then.
    pub at_low: WallTime,
    /// The new fact was first seen then.
    pub at_high: WallTime,
}

/// A fact that changes when two observations in a row agree on another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled<T> {
    current: Option<(T, WallTime)>,
    candidate: Option<(T, WallTime)>,
}

impl<T> Default for Settled<T> {
    fn default() -> Self {
        Self { current: None, candidate: None }
    }
}

impl<T> Settled<T> {
    /// The clock was set.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        step.shift(self.current.iter_mut().chain(&mut self.candidate).map(|(_, at)| at));
    }
}

impl<T: Clone + PartialEq> Settled<T> {
    /// What is so.
    pub fn current(&self) -> Option<&T> {
        self.current.as_ref().map(|(fact, _)| fact)
    }

    /// Takes an observation in. The first one is no change.
    pub fn observe(&mut self, at: WallTime, fact: T) -> Option<FactChange<T>> {
        let Some((current, last)) = &mut self.current else {
            self.current = Some((fact, at));
            return None;
        };
        if *current == fact {
            *last = at;
            self.candidate = None;
            return None;
        }
        match self.candidate.take() {
            Some((candidate, first)) if candidate == fact => {
                let (before, at_low) = self.current.replace((fact.clone(), at))?;
                Some(FactChange { before, after: fact, at_low, at_high: first })
            }
            _ => {
                self.candidate = Some((fact, at));
                None
            }
        }
    }
}

/// The routers that answered at each hop, nearest first; an empty set for a silent hop.
pub type Route = Vec<BTreeSet<IpAddr>>;

/// Follows a route. A hop is the set of all routers that ever answered there, so that load
/// balancing is no change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RouteWatch {
    current: Option<(Route, WallTime)>,
    candidate: Option<(Route, WallTime)>,
}

impl RouteWatch {
    /// The route with all routers seen on it.
    pub fn current(&self) -> Option<&Route> {
        self.current.as_ref().map(|(route, _)| route)
    }

    /// The clock was set.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        step.shift(self.current.iter_mut().chain(&mut self.candidate).map(|(_, at)| at));
    }

    /// Takes a trace in. The first one is no change.
    pub fn observe(&mut self, at: WallTime, route: Route) -> Option<FactChange<Route>> {
        let Some((current, last)) = &mut self.current else {
            self.current = Some((route, at));
            return None;
        };
        if fits(current, &route) {
            merge(current, route);
            *last = at;
            self.candidate = None;
            return None;
        }
        match self.candidate.take() {
            Some((mut candidate, first)) if fits(&candidate, &route) => {
                merge(&mut candidate, route);
                let (before, at_low) = self.current.replace((candidate.clone(), at))?;
                Some(FactChange { before, after: candidate, at_low, at_high: first })
            }
            _ => {
                self.candidate = Some((route, at));
                None
            }
        }
    }
}

/// Equal length, and no hop at which only strangers answer.
fn fits(known: &Route, seen: &Route) -> bool {
    let strangers = |(known, seen): (&BTreeSet<IpAddr>, &BTreeSet<IpAddr>)| {
        !known.is_empty() && !seen.is_empty() && known.is_disjoint(seen)
    };
    known.len() == seen.len() && !known.iter().zip(seen).any(strangers)
}

fn merge(known: &mut Route, seen: Route) {
    for (known, seen) in known.iter_mut().zip(seen) {
        known.extend(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: i64) -> WallTime {
        WallTime::from_millis(second * 1000)
    }

    fn route(hops: &[&[u8]]) -> Route {
        let router = |last: &u8| IpAddr::from([10, 0, 0, *last]);
        hops.iter().map(|hop| hop.iter().map(router).collect()).collect()
    }

    #[test]
    fn one_odd_observation_is_no_change() {
        let mut mtu = Settled::default();
        assert!(
            [1500, 1400, 1500, 1400].into_iter().zip(0..).all(|(fact, second)| mtu.observe(at(second), fact).is_none())
        );
        let change = mtu.observe(at(9), 1400).unwrap();
        assert_eq!((change.before, change.after, change.at_low, change.at_high), (1500, 1400, at(2), at(3)));
    }

    #[test]
    fn load_balancing_and_silence_are_no_change() {
        let mut watch = RouteWatch::default();
        for (second, hops) in [(0, route(&[&[1], &[2, 3]])), (1, route(&[&[1], &[3, 4]])), (2, route(&[&[], &[4]]))] {
            assert!(watch.observe(at(second), hops).is_none());
        }
        assert_eq!(watch.current(), Some(&route(&[&[1], &[2, 3, 4]])));
    }

    #[test]
    fn another_router_twice_is_a_change_between_the_observations() {
        let mut watch = RouteWatch::default();
        assert!(watch.observe(at(0), route(&[&[1], &[2]])).is_none());
        assert!(watch.observe(at(300), route(&[&[1], &[7]])).is_none());
        let change = watch.observe(at(301), route(&[&[1], &[7, 8]])).unwrap();
        assert_eq!((change.at_low, change.at_high), (at(0), at(300)));
        assert_eq!(change.after, route(&[&[1], &[7, 8]]));
    }
}
