//! Runs that somebody asks for by hand.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use narrows_fleet::config::Command;
use narrows_fleet::keys::{Key, Name, Resource};
use narrows_fleet::message::{Exit, Order, Peer, Run, Status};
use narrows_record::AgentState;
use narrows_units::weeks_since_1970;
use serde::Serialize;
use uuid::Uuid;

use crate::compile::{ms, reservations, stamp};
use crate::counters::outcome;
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::hub::planner::DAY_MS;
use crate::network::Network;
use crate::peer_keys::Servers;

/// The orders since the start of the hub, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    all: Mutex<Vec<Given>>,
}

#[derive(Debug, Clone)]
struct Given {
    order: Order,
    row: OrderRow,
}

/// An order, and what became of it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct OrderRow {
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) id: Uuid,
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) source: Name,
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) target: Name,
    pub(crate) command: String,
    pub(crate) at_ms: i64,
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    pub(crate) keys: Vec<Key>,
    /// `waits`, `running`, `lost`, or how its run ended.
    pub(crate) state: String,
    /// Its run, once that is stored.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    pub(crate) run: Option<Uuid>,
    /// What the agent said of it.
    pub(crate) said: Option<String>,
    /// What its keys leave out, if it loads a path that is not known whole.
    pub(crate) note: Option<String>,
}

/// What an order may say beside who measures what.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Terms<'a> {
    /// It begins no sooner.
    pub(crate) earliest: Option<i64>,
    /// It leases this path too, so that nobody else loads that meanwhile.
    pub(crate) also: Option<&'a (Name, Name)>,
    /// It looks at its path while this agent loads that.
    pub(crate) beside: Option<&'a Name>,
}

impl Given {
    fn is_open(&self, kind: &str, now: i64) -> bool {
        let is_near = self.order.not_after_ms + LATE_MS > now;
        is_near && self.row.run.is_none() && self.order.command.first().is_some_and(|word| word == kind)
    }
}

impl Orders {
    /// The newest first.
    pub(crate) fn rows(&self) -> Vec<OrderRow> {
        self.lock().iter().rev().map(|given| given.row.clone()).collect()
    }

    pub(crate) fn row(&self, id: Uuid) -> Option<OrderRow> {
        self.lock().iter().find(|given| given.row.id == id).map(|given| given.row.clone())
    }

    pub(crate) fn ids(&self) -> BTreeSet<Uuid> {
        self.lock().iter().map(|given| given.row.id).collect()
    }

    /// An agent said how it is: also what became of orders.
    pub(crate) fn heard(&self, status: &Status, now: i64) {
        for given in self.lock().iter_mut().filter(|given| given.order.agent == status.agent) {
            if status.order == Some(given.order.id) {
                "running".clone_into(&mut given.row.state);
            }
            if let Some((_, said)) = status.orders.iter().find(|(id, _)| *id == given.order.id) {
                given.row.said = Some(said.clone());
            }
        }
        self.expire(now);
    }

    /// An order without a result is lost some time after its end, also if its agent is never heard
    /// again. What the agent said may overtake its result.
    pub(crate) fn expire(&self, now: i64) {
        for given in self.lock().iter_mut() {
            if given.row.run.is_none() && given.order.not_after_ms + LATE_MS < now {
                "lost".clone_into(&mut given.row.state);
            }
        }
    }

    /// A run was stored.
    pub(crate) fn ran(&self, id: Uuid, run: &Run) {
        for given in self.lock().iter_mut().filter(|given| given.order.id == id) {
            given.row.run = Some(run.id);
            outcome(run.exit).clone_into(&mut given.row.state);
            if run.exit != Exit::Done {
                given.row.said.clone_from(&run.reason);
            }
        }
    }

    /// Whether a run of this kind was ordered, and has not ended.
    pub(crate) fn is_open(&self, kind: &str, now: i64) -> bool {
        self.lock().iter().any(|given| given.is_open(kind, now))
    }

    /// The same over one path.
    pub(crate) fn is_open_over(&self, source: &Name, target: &Name, kind: &str, now: i64) -> bool {
        let is_path = |given: &Given| given.order.agent == *source && given.order.target == *target;
        self.lock().iter().any(|given| is_path(given) && given.is_open(kind, now))
    }

    fn waiting(&self, agent: &Name, now: i64) -> Vec<Order> {
        let waits =
            |given: &&Given| given.row.state == WAITS && given.row.said.is_none() && given.order.agent == *agent;
        let all = self.lock();
        all.iter().filter(waits).map(|given| given.order.clone()).filter(|order| order.not_after_ms > now).collect()
    }

    fn add(&self, order: Order, row: OrderRow) {
        let mut all = self.lock();
        all.push(Given { order, row });
        let over = all.len().saturating_sub(MOST);
        all.drain(..over);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Given>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Asks an agent for a run: at once if it is light, else in the earliest span that is free on
    /// all its keys. Returns the order's number.
    pub async fn order(&self, source: &Name, target: &Name, command: &str, who: &str) -> Result<Uuid> {
        Ok(self.order_at(source, target, command, who, Terms::default()).await?.id)
    }

    /// The same on terms.
    pub(crate) async fn order_at(
        &self,
        source: &Name,
        target: &Name,
        command: &str,
        who: &str,
        terms: Terms<'_>,
    ) -> Result<OrderRow> {
        for host in [source, target] {
            let member = self.directory.get(host).filter(|agent| agent.state == AgentState::Member);
            member.ok_or_else(|| Error::Missing(format!("agent \"{host}\"")))?;
        }
        if source == target {
            return Err(Error::Request("source and target are the same host".to_owned()));
        }
        let command = Command::read("command", command)?;
        let now = self.now();
        let at = terms.earliest.unwrap_or(now).max(now);
        let serial = self.record.next_serial().await?;
        let mut order = Order {
            schema: Order::SCHEMA.to_owned(),
            tenant: self.tenant.clone(),
            agent: source.clone(),
            id: Uuid::now_v7(),
            serial,
            target: target.clone(),
            peer: self.peer(source, target, now),
            command: command.words().to_vec(),
            keys: Vec::new(),
            beside: terms.beside.cloned(),
            at_ms: at,
            not_after_ms: at + LIGHT_MS,
            length_ms: u64::try_from(LIGHT_MS).unwrap_or(0),
            octets: LIGHT_OCTETS,
        };
        let mut note = None;
        if command.loads() {
            // A new bus gives no leases yet, and agents have to come back to it first.
            let at = at.max(self.bus_began_ms.load(Ordering::Relaxed).saturating_add(NEW_BUS_MS));
            note = self.reserve_order(&mut order, &command, at, terms.also).await?;
        }
        let row = OrderRow {
            id: order.id,
            source: source.clone(),
            target: target.clone(),
            command: order.command.join(" "),
            at_ms: order.at_ms,
            keys: order.keys.clone(),
            state: WAITS.to_owned(),
            run: None,
            said: None,
            note,
        };
        let text = format!("{source} to {target}: {}", row.command);
        self.record.audit(who, "order.given", &text, now).await?;
        self.orders.add(order.clone(), row.clone());
        self.send_order(&order).await;
        Ok(row)
    }

    /// The target as the source sees it: in a large fleet plans do not name everybody.
    fn peer(&self, source: &Name, target: &Name, now: i64) -> Option<Peer> {
        let (agent, week) = (self.directory.get(target)?, weeks_since_1970(now));
        let keys = Servers::new(&self.keys.tenant, target, week..week + 2).client_keys(source, 2);
        Some(Peer { name: agent.name, address: agent.address, place: None, site: None, keys })
    }

    /// Gives an order its keys and its span; returns what the keys leave out.
    async fn reserve_order(
        &self,
        order: &mut Order,
        command: &Command,
        at: i64,
        also: Option<&(Name, Name)>,
    ) -> Result<Option<String>> {
        let ground = self.ground(None).await?;
        let mut planner = self.planner.lock().await;
        let placed = planner.placed();
        // Budgets are a day's: what orders took of the last one is spent.
        let since = at - DAY_MS;
        for _ in 0..RACES {
            let held = self.record.reservations(since).await?;
            let input = ground.input(at, at, &placed, &held);
            let (source, target) = (order.agent.clone(), order.target.clone());
            let mut want = input.want((&source, &target), command, crate::compile::LENGTH);
            let pairs: Vec<(&Name, &Name)> =
                [(&source, &target)].into_iter().chain(also.map(|(a, b)| (a, b))).collect();
            if let Some((a, b)) = also {
                want.resources.extend(input.want((a, b), command, crate::compile::LENGTH).resources);
                want.resources.sort();
                want.resources.dedup();
            }
            let wants = [want];
            let mut room = input.book(&wants);
            let window = (stamp(at), stamp(at) + crate::compile::LENGTH);
            let request = room.request(&wants[0], 0, window, None);
            let found = room.book.order(&request);
            let found = found.map_err(|refusal| Error::Request(room.book.explain(refusal)))?;
            let run = room.run(&wants[0], &request, found.begin, &found.slots);
            order.keys.clone_from(&run.keys);
            (order.at_ms, order.length_ms, order.octets) = (ms(found.begin), run.length_ms, run.octets);
            order.not_after_ms = order.at_ms + i64::try_from(run.length_ms).unwrap_or(i64::MAX);
            let mut spans = reservations(&source, &run);
            for span in &mut spans {
                (span.run, span.serial, span.by_hand) = (order.id, order.serial, true);
            }
            match self.record.reserve(&spans).await {
                Ok(()) => {
                    planner.holding.insert(source.clone());
                    return Ok(unknown(&ground.found.network, &pairs, order.keys.contains(&Resource::UNTRACED.key(0))));
                }
                Err(narrows_record::Error::Reserved(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Request("another hub reserves at the same time".to_owned()))
    }

    /// Orders reach whoever listens now: they are sent again with each status until they began.
    pub(crate) async fn resend_orders(&self, agent: &Name) {
        for order in self.orders.waiting(agent, self.now()) {
            self.send_order(&order).await;
        }
    }

    async fn send_order(&self, order: &Order) {
        let payload = serde_json::to_vec(&self.keys.signed(order)).expect("texts");
        if let Err(error) = self.bus.send(&format!("order.{}", order.agent), payload.into()).await {
            tracing::debug!(%error, agent = %order.agent, "an order was not sent");
        }
    }
}

/// The paths without a route of the last day, and what is done about their links.
fn unknown(network: &Network, pairs: &[(&Name, &Name)], runs_alone: bool) -> Option<String> {
    let both = pairs.iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let unknown = both.filter(|(a, b)| !network.knows(a, b));
    let ways: Vec<String> = unknown.map(|(a, b)| format!("{a} to {b}")).collect();
    let text = if runs_alone {
        "it runs while no other run loads a link: no route of the last day is known"
    } else {
        "only its hosts and the declared access links are leased: no route of the last day is known"
    };
    (!ways.is_empty()).then(|| format!("{text} from {}", ways.join(", from ")))
}

const WAITS: &str = "waits";
/// Orders that are remembered.
const MOST: usize = 500;
/// A light run begins within this time, and takes no longer.
const LIGHT_MS: i64 = 120_000;
/// What it may send: more than any light run does.
const LIGHT_OCTETS: u64 = 500_000_000;
/// After its end an order that nobody spoke of is lost.
const LATE_MS: i64 = 60_000;
const RACES: usize = 3;
/// After a bus began anew, no loading run is ordered to begin sooner: as long as no agent takes a
/// lease, and some seconds in which agents come back.
const NEW_BUS_MS: i64 = narrows_fleet::lease::TAKEN_OVER_AFTER.as_secs().cast_signed() * 1_000 + 5_000;
