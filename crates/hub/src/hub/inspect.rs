//! Sees what is written to keys, and frees those whose holder is gone or whose value nobody proved.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_bus::{Condition, Message, Subscription};
use narrows_fleet::clock::Boot;
use narrows_fleet::keys::Key;
use narrows_fleet::lease::{Abandoned, Inspector, Place, Verifier, certified};
use narrows_record::Agent;
use narrows_units::{Stamp, hex};
use tokio::time::Instant;

use crate::error::Result;
use crate::hub::{HUB, Hub};

/// The hub's eye on leases.
struct Eye {
    began: Instant,
    inspector: Inspector,
    verifier: Verifier,
    /// When each key was last in the audit, for what.
    audited: BTreeMap<(Key, &'static str), Instant>,
    bucket: String,
}

impl Hub {
    /// The hub's word that an agent's key is its own.
    pub(super) fn certificate(&self, agent: &Agent) -> String {
        hex::to_text(&self.keys.sign.sign(&certified(&self.tenant, &agent.name, &agent.public_key)))
    }

    /// Inspects leases until the future is dropped.
    pub(crate) async fn inspect_always(&self) {
        loop {
            match self.bus.subscribe("lease.>").await {
                Ok(feed) => self.inspect(feed).await,
                Err(error) => tracing::warn!(%error, "leases cannot be seen"),
            }
            tokio::time::sleep(crate::AGAIN).await;
        }
    }

    /// Until the feed ends.
    async fn inspect(&self, mut feed: Subscription) {
        let mut condition = self.bus.condition();
        let mut eye = Eye {
            began: Instant::now(),
            inspector: Inspector::new(Stamp::from_nanos(0)),
            verifier: Verifier::new(self.tenant.clone(), self.keys.sign.public(), narrows_bus::verifies),
            audited: BTreeMap::new(),
            bucket: format!("lease_{}", self.lease_generation),
        };
        let complete = |now: &Condition| (now.server.clone(), now.connections, now.missed);
        let mut feed_of = complete(&condition.borrow_and_update());
        // This hub began: so did its own bus, and nobody knows since when another one runs.
        self.bus_began_ms.store(self.now(), Ordering::Relaxed);
        let mut server = feed_of.0.clone();
        loop {
            tokio::select! {
                biased;
                // First of all: what was seen on another server says nothing.
                _ = condition.changed() => {
                    let now = complete(&condition.borrow_and_update());
                    if now != feed_of {
                        if now.0.is_some() && now.0 != server {
                            server.clone_from(&now.0);
                            self.bus_began_ms.store(self.now(), Ordering::Relaxed);
                        }
                        feed_of = now;
                        eye.inspector.begin(eye.now());
                    }
                }
                message = feed.next() => match message {
                    Ok(message) => self.saw(&mut eye, &message).await,
                    Err(_) => return,
                },
                () = tokio::time::sleep(LOOK) => {}
            }
            for abandoned in eye.inspector.to_free(eye.now()) {
                if let Err(error) = self.free_key(&mut eye, &abandoned).await {
                    // Takers overwrite it after a while by themselves.
                    tracing::warn!(%error, key = %abandoned.key, "a lease was not freed");
                }
            }
        }
    }

    async fn saw(&self, eye: &mut Eye, message: &Message) {
        let key = message.subject.strip_prefix("lease.").and_then(|key| key.parse::<Key>().ok());
        let (Some(key), Some(revision)) = (key, message.revision) else { return };
        let value = eye.verifier.read(Place { bucket: &eye.bucket, key: &key }, revision, &message.payload);
        if let Ok(proven) = &value {
            self.loads.saw(&key, proven.as_ref().map(|proven| proven.holder.run), self.now());
        }
        let now = eye.now();
        let Some(found) = eye.inspector.saw(key, revision, value, now) else { return };
        self.counters.leases_forged.fetch_add(1, Ordering::Relaxed);
        let before = found.before.map_or_else(String::new, |holder| format!("; {} had it before", holder.agent));
        let text = format!("{}, revision {}: {}{before}", found.key, found.revision, found.why);
        tracing::warn!(what = text, "a forged lease");
        self.audit_key(eye, &found.key, "lease.forged", &text).await;
    }

    async fn audit_key(&self, eye: &mut Eye, key: &Key, what: &'static str, text: &str) {
        if eye.audits(key, what)
            && let Err(error) = self.record.audit(HUB, what, text, self.now()).await
        {
            tracing::warn!(%error, text, "{what} is not in the audit");
        }
    }

    async fn free_key(&self, eye: &mut Eye, abandoned: &Abandoned) -> Result<()> {
        let Abandoned { key, revision, gone } = abandoned;
        match self.bus.write(&eye.bucket, &key.to_string(), "null".into(), *revision).await {
            Ok(_) => {}
            // Somebody took it over, or forged it again: the feed will say.
            Err(narrows_bus::Error::Conflict(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        match gone {
            // It was killed, or its host is away: that is no news for an audit.
            Some(holder) => tracing::info!(agent = %holder.agent, %key, "its lease ended, and the key is free"),
            None => self.audit_key(eye, key, "lease.freed", &format!("{key}, revision {revision}")).await,
        }
        Ok(())
    }
}

impl Eye {
    fn now(&self) -> Stamp<Boot> {
        Stamp::<Boot>::from_nanos(0) + self.began.elapsed()
    }

    /// Whether a finding of this key goes to the audit: a forger may write a thousand a second.
    fn audits(&mut self, key: &Key, what: &'static str) -> bool {
        self.audited.retain(|_, at| at.elapsed() < QUIET);
        let finding = (key.clone(), what);
        let new = !self.audited.contains_key(&finding);
        if new {
            self.audited.insert(finding, Instant::now());
        }
        new
    }
}

/// Time alone frees keys: it is looked at this often.
const LOOK: Duration = Duration::from_millis(500);
/// A key is in the audit once for the same within this time.
const QUIET: Duration = Duration::from_secs(60);
