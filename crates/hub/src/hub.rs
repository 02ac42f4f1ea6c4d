//! The hub: what all its parts share, and the parts.

pub(crate) mod alerts;
mod allowances;
mod assemble;
pub(crate) mod bottlenecks;
mod comparisons;
mod directed;
pub(crate) mod give;
mod ground;
mod group;
pub(crate) mod groupings;
mod hear;
mod ingest;
mod inspect;
mod join;
mod loads;
pub(crate) mod orders;
pub(crate) mod planner;
pub(crate) mod proofs;
mod prove;
mod publish;
pub(crate) mod rules;
mod serials;
pub(crate) mod telling;
pub(crate) mod tomography;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use narrows_bus::{Bus, Settings as BusSettings};
use narrows_fleet::keys::Name;
use narrows_fleet::message::BusAddress;
use narrows_record::{Agent, AgentState, Record, Token};
use narrows_watch::Zone;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

use crate::channels::Channels;
use crate::counters::Counters;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::hub::alerts::Alerts;
use crate::hub::allowances::Wider;
use crate::hub::directed::Walks;
use crate::hub::groupings::Groupings;
use crate::hub::loads::Loads;
use crate::hub::orders::Orders;
pub use crate::hub::planner::Accepted;
use crate::hub::planner::Planner;
use crate::hub::proofs::Proofs;
use crate::hub::rules::Rules;
use crate::hub::telling::Telling;
use crate::hub::tomography::Tomography;
use crate::keys::Keys;
use crate::token::JoinToken;
use crate::tokens::Tokens;

/// Unix time in ms; tests have their own.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Tells whoever reads the stream: what kind of news, and the news as JSON.
pub type Tell = Arc<dyn Fn(&'static str, String) + Send + Sync>;

/// Disconnects whoever has this public key.
pub type Cut = Arc<dyn Fn(&str) + Send + Sync>;

/// What a hub is made from.
pub struct Parts {
    /// Its secrets.
    pub keys: Keys,
    /// What it keeps.
    pub record: Arc<dyn Record>,
    /// How it talks, with the right to do everything.
    pub bus: Arc<dyn Bus>,
    /// The bus that it left, where agents learn of the new one.
    pub left: Option<Arc<dyn Bus>>,
    /// Who belongs to it; the bus may ask it too.
    pub directory: Directory,
    /// Where agents find the bus.
    pub bus_address: BusAddress,
    /// The bucket of leases is `lease_<generation>`.
    pub lease_generation: u32,
    /// Octets of results that the bus keeps at most.
    pub bus_octets: u64,
    /// Whose fleet.
    pub tenant: Name,
    /// This host, as others reach it: the address of agents that join from this very host.
    pub own_host: IpAddr,
    /// Where people reach it: `https://10.0.0.1:8622`.
    pub url: String,
    /// By what people are told.
    pub channels: Channels,
    /// The zone of the times in what they are told.
    pub zone: Zone,
    /// What time it is.
    pub clock: Clock,
    /// What it signs for NATS in operator mode.
    pub tokens: Option<Arc<Tokens>>,
    /// Where news go.
    pub tell: Tell,
    /// What revoking does on the bus.
    pub cut: Cut,
}

/// The hub of a fleet.
pub struct Hub {
    pub(crate) keys: Keys,
    pub(crate) record: Arc<dyn Record>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) left: Option<Arc<dyn Bus>>,
    pub(crate) directory: Directory,
    pub(crate) bus_address: BusAddress,
    pub(crate) lease_generation: u32,
    pub(crate) tenant: Name,
    pub(crate) own_host: IpAddr,
    pub(crate) url: String,
    pub(crate) zone: Zone,
    pub(crate) planner: Mutex<Planner>,
    /// Plans are made one after the other, each to its end.
    planning: Mutex<()>,
    /// The serial that the next plan has, if somebody was told it.
    promised: std::sync::Mutex<Option<u64>>,
    /// The serial of each agent's newest plan.
    serials: std::sync::Mutex<BTreeMap<Name, u64>>,
    /// The record has given every serial up to this one.
    serial_known: AtomicU64,
    pub(crate) tomography: Tomography,
    pub(crate) proofs: Proofs,
    pub(crate) groupings: Groupings,
    loads: Loads,
    walks: Walks,
    wider: Wider,
    pub(crate) alerts: Alerts,
    pub(crate) rules: Rules,
    pub(crate) telling: Telling,
    /// Of the newest configuration that means something.
    sites: std::sync::Mutex<BTreeMap<Name, Name>>,
    pub(crate) orders: Orders,
    pub(crate) counters: Counters,
    refusals: ingest::Refusals,
    /// Somebody joined or left, or the configuration changed: plan again.
    pub(crate) plan_wanted: Notify,
    /// When the bus last began anew, as far as this hub saw.
    pub(crate) bus_began_ms: AtomicI64,
    /// Results came: locate again.
    pub(crate) news: Notify,
    /// Counts whatever changes what pages show of paths.
    changes: AtomicU64,
    pub(crate) clock: Clock,
    tokens: Option<Arc<Tokens>>,
    tell: Tell,
    cut: Cut,
}

impl Hub {
    /// Makes what is missing on the bus, and reads who belongs to the fleet.
    pub async fn open(parts: Parts) -> Result<Arc<Self>> {
        let settings = BusSettings::fleet(parts.lease_generation).within(parts.bus_octets);
        parts.directory.replace(parts.record.agents().await?);
        if let Some(tokens) = &parts.tokens {
            tokens.tell_room((parts.clock)()).await;
        }
        parts.bus.provide(&settings).await?;
        let states = parts.record.alert_states().await?;
        let orders = Orders::default();
        orders.learn(parts.record.orders(orders::MOST).await?);
        let proofs = Proofs::default();
        proofs.learn(parts.record.proofs().await?);
        let groupings = Groupings::default();
        groupings.learn(parts.record.groupings().await?);
        let hub = Self {
            keys: parts.keys,
            record: parts.record,
            bus: parts.bus,
            left: parts.left,
            directory: parts.directory,
            bus_address: parts.bus_address,
            lease_generation: parts.lease_generation,
            tenant: parts.tenant,
            own_host: parts.own_host,
            url: parts.url,
            zone: parts.zone,
            planner: Mutex::default(),
            planning: Mutex::default(),
            promised: std::sync::Mutex::default(),
            serials: std::sync::Mutex::default(),
            serial_known: AtomicU64::new(0),
            tomography: Tomography::default(),
            proofs,
            groupings,
            loads: Loads::default(),
            walks: Walks::default(),
            wider: Wider::default(),
            alerts: Alerts::restored(&states),
            rules: Rules::new(narrows_fleet::alert::Alerts::restored(&states)),
            telling: Telling::new(parts.channels),
            sites: std::sync::Mutex::default(),
            orders,
            counters: Counters::default(),
            refusals: ingest::Refusals::default(),
            plan_wanted: Notify::new(),
            bus_began_ms: AtomicI64::new(i64::MIN),
            news: Notify::new(),
            changes: AtomicU64::new(0),
            clock: parts.clock,
            tokens: parts.tokens,
            tell: parts.tell,
            cut: parts.cut,
        };
        Ok(Arc::new(hub))
    }

    /// Whether no host has joined yet.
    pub fn is_empty(&self) -> bool {
        self.directory.members().is_empty()
    }

    pub(crate) fn now(&self) -> i64 {
        (self.clock)()
    }

    pub(crate) fn tell(&self, kind: &'static str, news: &impl serde::Serialize) {
        // What has no JSON is no news.
        if let Ok(text) = serde_json::to_string(news) {
            (self.tell)(kind, text);
        }
    }

    /// What pages show of paths is not what it was.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(crate) fn note_serial(&self, agent: &Name, serial: u64) {
        self.serials.lock().unwrap_or_else(PoisonError::into_inner).insert(agent.clone(), serial);
    }

    /// Which host belongs to which site.
    pub(crate) fn sites(&self) -> BTreeMap<Name, Name> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_sites(&self, sites: BTreeMap<Name, Name>) {
        *self.sites.lock().unwrap_or_else(PoisonError::into_inner) = sites;
        self.changed();
    }

    pub(crate) fn site_of(&self, host: &Name) -> Option<Name> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    }

    pub(crate) fn serial_of(&self, agent: &Name) -> Option<u64> {
        self.serials.lock().unwrap_or_else(PoisonError::into_inner).get(agent).copied()
    }

    /// A new token by which so many hosts may join within a day.
    pub async fn token(&self, uses: u32, who: &str) -> Result<JoinToken> {
        if !(1..=MOST_USES).contains(&uses) {
            return Err(Error::Request(format!("a token is for 1 to {MOST_USES} hosts")));
        }
        let (token, now) = (JoinToken::new(self.keys.key_hash)?, self.now());
        let not_after_ms = now + TOKEN_MS;
        self.record.add_token(&Token { hash: token.hash(), made_ms: now, not_after_ms, uses }).await?;
        self.record.audit(who, "token.made", &format!("for {uses} hosts"), now).await?;
        Ok(token)
    }

    /// Throws an agent out: its connections end at once, and its peers deny it with their next
    /// plans, which are made at once too.
    pub async fn revoke(&self, name: &Name, who: &str) -> Result<()> {
        self.end(name, AgentState::Revoked, who, "agent.revoked").await
    }

    /// An agent leaves by itself.
    pub async fn leave(&self, name: &Name) -> Result<()> {
        self.end(name, AgentState::Left, name.as_str(), "agent.left").await
    }

    /// Where an agent finds the bus, and what it shows there.
    pub(crate) fn bus_of(&self, agent: &Agent) -> BusAddress {
        let of_tokens = self.tokens.as_ref().map(|tokens| tokens.address(agent, &self.bus_address, self.now()));
        of_tokens.unwrap_or_else(|| self.bus_address.clone())
    }

    async fn end(&self, name: &Name, state: AgentState, who: &str, what: &str) -> Result<()> {
        let agent = self.directory.get(name).ok_or_else(|| Error::Missing(format!("agent \"{name}\"")))?;
        self.record.set_state(name, state).await?;
        let changed = self.directory.change(name, |agent| agent.state = state);
        self.changed();
        (self.cut)(&agent.public_key);
        self.record.audit(who, what, name.as_str(), self.now()).await?;
        if let Some(agent) = changed {
            self.tell_agent(&agent);
        }
        self.plan_wanted.notify_one();
        Ok(())
    }

    /// Works until the future is dropped: takes results, hears agents, plans, locates, tidies up,
    /// inspects leases. Each on its own: a plan for thousands takes seconds. None of them ends by
    /// itself; if one does, the hub is of no use, and says why: it is to be started again.
    pub async fn run(self: &Arc<Self>) -> Error {
        if let Some(tokens) = &self.tokens {
            // The servers may have been away when somebody was revoked.
            tokens.tell_revoked(self.now());
        }
        let mut tasks = JoinSet::new();
        let of = || Arc::clone(self);
        let [ingest, hear, plan, locate, tidy, inspect] = [of(), of(), of(), of(), of(), of()];
        tasks.spawn(async move { ingest.ingest_always().await });
        tasks.spawn(async move { hear.hear_always().await });
        tasks.spawn(async move { plan.plan_always().await });
        tasks.spawn(async move { locate.locate_always().await });
        tasks.spawn(async move { tidy.tidy_always().await });
        tasks.spawn(async move { inspect.inspect_always().await });
        match tasks.join_next().await {
            Some(Err(error)) => Error::Task(error.to_string()),
            _ => Error::Task("it ended".to_owned()),
        }
    }

    async fn tidy_always(&self) {
        let mut minutes = 0_u32;
        loop {
            tokio::time::sleep(Duration::from_secs(60)).await;
            if let Err(error) = self.record.roll_up().await {
                tracing::warn!(%error, "hours could not be summed up");
            }
            // Another hub may have given some that are now ours to send.
            if let Err(error) = self.recall_orders().await {
                tracing::warn!(%error, "orders could not be read");
            }
            // Another hub may have begun or ended one.
            if let Err(error) = self.recall_proofs().await {
                tracing::warn!(%error, "proofs could not be read");
            }
            if let Err(error) = self.recall_groupings().await {
                tracing::warn!(%error, "groupings could not be read");
            }
            // Nothing may come any more of what a proof or a grouping waits for.
            if let Err(error) = self.judge_comparisons().await {
                tracing::warn!(%error, "proofs and groupings could not be judged");
            }
            // Hosts are free again, or a day has passed.
            if let Err(error) = self.widen().await {
                tracing::warn!(%error, "runs with more octets could not be ordered");
            }
            minutes += 1;
            if minutes % (24 * 60) == 1
                && let Err(error) = self.record.retain(self.now()).await
            {
                tracing::warn!(%error, "what is too old could not be removed");
            }
        }
    }
}

/// Who orders and does what nobody asked for.
const HUB: &str = "hub";
/// A fleet on the embedded bus has 50 hosts.
const MOST_USES: u32 = 1_000;
const TOKEN_MS: i64 = 86_400_000;
