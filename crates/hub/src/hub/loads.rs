//! Which light runs a loading run crossed. An agent hears only of its own host's key and of its
//! target's; the hub hears of all of them, and knows the routes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use narrows_fleet::keys::{Key, Name, Path, Resource};
use narrows_fleet::lease::VALID_FOR;
use narrows_fleet::message::{Flag, Origin, Run};
use uuid::Uuid;

use crate::compile::resource_of;
use crate::hub::Hub;
use crate::network::Network;

/// Who had which key when, of the last hour.
#[derive(Debug, Default)]
pub(crate) struct Loads(Mutex<BTreeMap<Resource, Slots>>);

/// By the number of the slot; of a link there may be several.
type Slots = BTreeMap<u32, Vec<Span>>;

/// A run has a key.
#[derive(Debug)]
struct Span {
    run: Uuid,
    from_ms: i64,
    /// Its last renewal, or when it gave the key back.
    until_ms: i64,
    over: bool,
}

impl Span {
    /// The last instant at which it may have sent.
    fn end_ms(&self) -> i64 {
        self.until_ms + if self.over { 0 } else { ms(VALID_FOR) }
    }

    /// Whether it is in this time, as far as agents know the hub's.
    fn meets(&self, from_ms: i64, until_ms: i64) -> bool {
        self.from_ms <= until_ms + CLOCKS_MS && self.end_ms() + CLOCKS_MS >= from_ms
    }
}

impl Loads {
    /// A key was written: by a run, or as free.
    pub(super) fn saw(&self, key: &Key, run: Option<Uuid>, now_ms: i64) {
        let slot = if let Key::Link(_, slot) = key { *slot } else { 0 };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spans = all.entry(resource_of(key)).or_default().entry(slot).or_default();
        spans.retain(|span| now_ms - span.end_ms() < KEPT_MS);
        match (spans.last_mut().filter(|last| !last.over), run) {
            (Some(last), Some(run)) if last.run == run => last.until_ms = now_ms,
            (Some(last), None) => (last.until_ms, last.over) = (now_ms, true),
            (_, Some(run)) => spans.push(Span { run, from_ms: now_ms, until_ms: now_ms, over: false }),
            (None, None) => {}
        }
    }

    /// Whether any run has one of these keys in this time.
    pub(super) fn are_held(&self, resources: &BTreeSet<Resource>, (from_ms, until_ms): (i64, i64)) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spans = resources.iter().filter_map(|resource| all.get(resource)).flat_map(BTreeMap::values).flatten();
        spans.any(|span| span.meets(from_ms, until_ms))
    }

    /// Whether another run had one of these keys meanwhile. A run that had one itself is a load,
    /// which no other one crosses.
    fn crossed(&self, run: Uuid, resources: &[Resource], (from_ms, until_ms): (i64, i64)) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spans = || resources.iter().filter_map(|resource| all.get(resource)).flat_map(BTreeMap::values).flatten();
        spans().any(|span| span.meets(from_ms, until_ms)) && spans().all(|span| span.run != run)
    }
}

impl Hub {
    /// The run, marked if a load crossed its path meanwhile. A proof has a load and looks beside it
    /// by intent: neither says what is so without it.
    pub(super) fn marked(&self, mut run: Run, network: &Network) -> Run {
        if run.flags.contains(&Flag::OwnLoad) {
            return run;
        }
        if let Origin::Order(order) = run.origin
            && (self.orders.is_beside_load(order) || self.proofs.is_load(order))
        {
            run.flags.push(Flag::OwnLoad);
            return run;
        }
        let resources = self.resources_of(network, &run.agent, &run.target);
        let until_ms = run.began_ms.saturating_add(i64::try_from(run.length_ms).unwrap_or(i64::MAX));
        if self.loads.crossed(run.id, &resources, (run.began_ms, until_ms)) {
            run.flags.push(Flag::OwnLoad);
        }
        run
    }

    /// What a path crosses in both directions, as far as it is known.
    pub(super) fn resources_of(&self, network: &Network, source: &Name, target: &Name) -> Vec<Resource> {
        let sites = [source, target].map(|host| self.site_of(host));
        let path = Path {
            source,
            target,
            source_site: sites[0].as_ref(),
            target_site: sites[1].as_ref(),
            forward: &network.shared_links(source, target),
            reverse: &network.shared_links(target, source),
            both_directions: true,
        };
        path.resources()
    }
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Ours: results come within seconds; those of a time without bus met no load.
const KEPT_MS: i64 = 3_600_000;
/// An agent whose clock is further off says so in its status, and loads nothing.
const CLOCKS_MS: i64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);

    fn crossed(loads: &Loads, key: &str, from_ms: i64, until_ms: i64) -> bool {
        let resource = resource_of(&key.parse().unwrap());
        loads.crossed(Uuid::from_u128(9), &[resource], (from_ms, until_ms))
    }

    #[test]
    fn a_lease_lasts_from_its_first_write_until_it_is_given_back() {
        let (loads, key) = (Loads::default(), "host.a".parse().unwrap());
        loads.saw(&key, Some(A), 10_000);
        loads.saw(&key, Some(A), 13_000);
        assert!(crossed(&loads, "host.a", 15_000, 17_000), "nobody gave it back");
        loads.saw(&key, None, 14_000);
        assert!(crossed(&loads, "host.a", 2_000, 9_500), "clocks differ by a second");
        assert!(!crossed(&loads, "host.a", 2_000, 8_000) && !crossed(&loads, "host.a", 15_500, 17_000));
        assert!(!crossed(&loads, "host.b", 10_000, 14_000));
        let host = [resource_of(&key)];
        assert!(
            !loads.crossed(A, &host, (10_000, 14_000)) && loads.crossed(B, &host, (10_000, 14_000)),
            "A loads itself"
        );
    }

    #[test]
    fn a_holder_that_is_gone_may_have_sent_until_its_lease_ended() {
        let (loads, key) = (Loads::default(), "access.ams.up".parse().unwrap());
        loads.saw(&key, Some(A), 10_000);
        let end = 10_000 + ms(VALID_FOR);
        assert!(
            crossed(&loads, "access.ams.up", end, end) && !crossed(&loads, "access.ams.up", end + 1_001, end + 2_000)
        );
        // Another one took the key over.
        loads.saw(&key, Some(B), end + 5_000);
        assert!(crossed(&loads, "access.ams.up", end + 4_500, end + 6_000));
    }

    #[test]
    fn two_slots_of_a_link_are_two_spans() {
        let loads = Loads::default();
        let [first, second] = ["link.7.0", "link.7.1"].map(|key| key.parse().unwrap());
        loads.saw(&first, Some(A), 10_000);
        loads.saw(&second, Some(B), 12_000);
        loads.saw(&first, None, 14_000);
        loads.saw(&second, Some(B), 40_000);
        assert!(crossed(&loads, "link.7.0", 41_000, 42_000) && crossed(&loads, "link.7.0", 10_500, 11_000));
    }
}
