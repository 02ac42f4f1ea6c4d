//! What the hub does about keys that nobody will give back: it frees them.
//!
//! A holder that is gone renews no more. Whoever wants its key would first have to see it stand for
//! [`TAKEN_OVER_AFTER`]; the hub hears of all keys all the time, and has seen it stand already. Its
//! write is like any taker's: it is refused if the holder renewed since.
//!
//! A value that no agent proved names nobody. A forger may have written it over a lease whose
//! holder has not heard of that yet and still sends. So such a key is freed only when
//! [`TAKEN_OVER_AFTER`] has passed since somebody had it, or since the inspector began to see it.
//!
//! What nobody wrote since then is not seen at all: there is no list of keys on a bus. Takers
//! overwrite it by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use narrows_units::Stamp;

use super::{Forgery, Holder, Proven, TAKEN_OVER_AFTER};
use crate::clock::Boot;
use crate::keys::Key;

/// A value that names nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Of this key.
    pub key: Key,
    /// Its revision.
    pub revision: u64,
    /// Why it names nobody.
    pub why: Forgery,
    /// Who had the key before.
    pub before: Option<Holder>,
}

/// A key to write null to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abandoned {
    /// The key.
    pub key: Key,
    /// The revision that must be its last one.
    pub revision: u64,
    /// Who had it and is gone; `None`: nobody proved its value.
    pub gone: Option<Holder>,
}

/// Sees all values of leases as the bus republishes them.
#[derive(Debug)]
pub struct Inspector {
    wait: Duration,
    began: Stamp<Boot>,
    keys: BTreeMap<Key, LastValue>,
    /// Keys that are not free, by when nobody sends on them any more.
    quiet: BTreeSet<(Stamp<Boot>, Key)>,
}

#[derive(Debug)]
struct LastValue {
    revision: u64,
    holder: Option<Holder>,
    /// Nobody sends on it from then on, unless somebody takes it.
    quiet_from: Stamp<Boot>,
    forged: bool,
}

impl Inspector {
    /// Begins to see.
    pub fn new(now: Stamp<Boot>) -> Self {
        Self::with_wait(TAKEN_OVER_AFTER, now)
    }

    /// The same with another wait, to show that a checker finds what a shorter one breaks.
    pub const fn with_wait(wait: Duration, now: Stamp<Boot>) -> Self {
        Self { wait, began: now, keys: BTreeMap::new(), quiet: BTreeSet::new() }
    }

    /// Another server, or some messages were lost: what was seen says nothing.
    pub fn begin(&mut self, now: Stamp<Boot>) {
        *self = Self::with_wait(self.wait, now);
    }

    /// A value was written.
    pub fn saw(
        &mut self,
        key: Key,
        revision: u64,
        value: Result<Option<Proven>, Forgery>,
        now: Stamp<Boot>,
    ) -> Option<Finding> {
        let last = self.keys.get(&key);
        if last.is_some_and(|last| last.revision >= revision) {
            return None;
        }
        let known = last.map_or(0, |last| last.revision);
        let (before, quiet_from) =
            last.map_or((None, self.began + self.wait), |last| (last.holder.clone(), last.quiet_from));
        let checked = match value {
            // What is true was written over what we saw last, or over what we missed since.
            Ok(Some(proven)) if proven.after < known => Err(Forgery::Replayed(proven.holder.agent)),
            other => other,
        };
        self.quiet.remove(&(quiet_from, key.clone()));
        let (seen, why) = match checked {
            Ok(Some(Proven { holder, .. })) => {
                (LastValue { revision, holder: Some(holder), quiet_from: now + self.wait, forged: false }, None)
            }
            Ok(None) => (LastValue { revision, holder: None, quiet_from: now, forged: false }, None),
            // Whoever had it cannot renew over this, but sends until its lease ends.
            Err(why) => (LastValue { revision, holder: before.clone(), quiet_from, forged: true }, Some(why)),
        };
        if seen.forged || seen.holder.is_some() {
            self.quiet.insert((seen.quiet_from, key.clone()));
        }
        self.keys.insert(key.clone(), seen);
        why.map(|why| Finding { key, revision, why, before })
    }

    /// Keys to write null to. Each value is said once: what is written over it comes back by the
    /// feed.
    pub fn to_free(&mut self, now: Stamp<Boot>) -> Vec<Abandoned> {
        let mut all = Vec::new();
        while self.quiet.first().is_some_and(|(from, _)| *from <= now) {
            let Some((_, key)) = self.quiet.pop_first() else { break };
            if let Some(seen) = self.keys.get(&key) {
                let gone = seen.holder.clone().filter(|_| !seen.forged);
                all.push(Abandoned { revision: seen.revision, gone, key });
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(seconds: i64) -> Stamp<Boot> {
        Stamp::from_nanos(1_000_000_000_000 + seconds * 1_000_000_000)
    }

    fn key() -> Key {
        Key::Link(1, 0)
    }

    fn holder() -> Holder {
        Holder { agent: "a".parse().unwrap(), run: Uuid::from_u128(1) }
    }

    fn lease(after: u64) -> Proven {
        Proven { holder: holder(), after }
    }

    fn forged() -> Forgery {
        Forgery::Signature("a".parse().unwrap())
    }

    fn unproven(revision: u64) -> Abandoned {
        Abandoned { key: key(), revision, gone: None }
    }

    #[test]
    fn a_holder_that_renews_no_more_loses_its_key() {
        let mut inspector = Inspector::new(at(0));
        inspector.saw(key(), 5, Ok(Some(lease(4))), at(20));
        inspector.saw(key(), 6, Ok(Some(lease(5))), at(23));
        assert_eq!(inspector.to_free(at(37)), []);
        assert_eq!(inspector.to_free(at(38)), [Abandoned { key: key(), revision: 6, gone: Some(holder()) }]);
        // It is said once, and not at all of a key that was given back.
        assert_eq!(inspector.to_free(at(60)), []);
        inspector.saw(key(), 7, Ok(Some(lease(6))), at(61));
        inspector.saw(key(), 8, Ok(None), at(62));
        assert_eq!(inspector.to_free(at(90)), []);
        // Another server gives its own revisions.
        inspector.saw(key(), 9, Ok(Some(lease(8))), at(91));
        inspector.begin(at(92));
        assert_eq!(inspector.to_free(at(120)), []);
    }

    #[test]
    fn a_key_is_freed_when_its_last_holder_surely_stopped() {
        let mut inspector = Inspector::new(at(0));
        assert_eq!(inspector.saw(key(), 5, Ok(Some(lease(4))), at(20)), None);
        let found = inspector.saw(key(), 6, Err(forged()), at(21)).unwrap();
        assert_eq!((found.revision, found.before), (6, Some(holder())));
        assert_eq!(inspector.to_free(at(34)), []);
        assert_eq!(inspector.to_free(at(35)), [unproven(6)]);
        assert_eq!(inspector.to_free(at(37)), []);
        // A free key needs no wait.
        assert_eq!(inspector.saw(key(), 7, Ok(None), at(38)), None);
        assert!(inspector.saw(key(), 8, Err(forged()), at(39)).is_some());
        assert_eq!(inspector.to_free(at(39)), [unproven(8)]);
    }

    #[test]
    fn what_was_before_the_first_look_is_waited_for() {
        let mut inspector = Inspector::new(at(0));
        assert!(inspector.saw(key(), 5, Err(forged()), at(1)).is_some());
        // What comes twice is seen once.
        assert_eq!(inspector.saw(key(), 5, Err(forged()), at(2)), None);
        assert_eq!(inspector.to_free(at(14)), []);
        assert_eq!(inspector.to_free(at(15)), [unproven(5)]);
        inspector.begin(at(16));
        assert!(inspector.saw(key(), 4, Err(forged()), at(17)).is_some(), "another server gives its own revisions");
    }

    #[test]
    fn a_lease_that_was_true_once_is_found() {
        let mut inspector = Inspector::new(at(0));
        inspector.saw(key(), 5, Ok(Some(lease(4))), at(1));
        inspector.saw(key(), 7, Ok(None), at(2));
        // A message was missed: this one was written over revision 8.
        assert_eq!(inspector.saw(key(), 9, Ok(Some(lease(8))), at(3)), None);
        let found = inspector.saw(key(), 10, Ok(Some(lease(4))), at(4)).unwrap();
        assert_eq!(found.why, Forgery::Replayed("a".parse().unwrap()));
    }
}
