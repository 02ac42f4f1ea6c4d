//! Gives orders: finds their spans, keeps them, and sends them until they began.

use std::sync::atomic::Ordering;

use narrows_fleet::config::Command;
use narrows_fleet::keys::{Name, Resource};
use narrows_fleet::message::{Order, Peer};
use narrows_record::{AgentState, Reservation};
use narrows_units::weeks_since_1970;
use uuid::Uuid;

use crate::compile::{LENGTH, ms, reservations, stamp};
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::hub::orders::{Given, OrderRow};
use crate::hub::planner::DAY_MS;
use crate::network::Network;
use crate::peer_keys::Servers;

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
        let order = Order {
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
        let given = if command.loads() {
            // A new bus gives no leases yet, and agents have to come back to it first.
            let at = at.max(self.bus_began_ms.load(Ordering::Relaxed).saturating_add(NEW_BUS_MS));
            self.reserve_order(order, &command, at, (terms.also, who)).await?
        } else {
            self.keep_order(&order, None, &[], who).await?
        };
        self.orders.add(given.clone());
        self.send_order(&given).await;
        Ok(given.row)
    }

    /// The target as the source sees it: in a large fleet plans do not name everybody.
    fn peer(&self, source: &Name, target: &Name, now: i64) -> Option<Peer> {
        let (agent, week) = (self.directory.get(target)?, weeks_since_1970(now));
        let keys = Servers::new(&self.keys.tenant, target, week..week + 2).client_keys(source, 2);
        Some(Peer { name: agent.name, address: agent.address, place: None, site: None, keys })
    }

    /// Gives an order its keys and its span, and keeps both.
    async fn reserve_order(
        &self,
        mut order: Order,
        command: &Command,
        at: i64,
        (also, who): (Option<&(Name, Name)>, &str),
    ) -> Result<Given> {
        let ground = self.ground(None).await?;
        // One after the other: each sees what the one before took of the budgets.
        let _alone = self.planner.lock().await;
        // Budgets are a day's: what orders took of the last one is spent.
        let since = at - DAY_MS;
        let (source, target) = (order.agent.clone(), order.target.clone());
        let pairs: Vec<(&Name, &Name)> = [(&source, &target)].into_iter().chain(also.map(|(a, b)| (a, b))).collect();
        for _ in 0..RACES {
            let held = self.record.reservations(since).await?;
            let input = ground.input(at, at, &[], &held);
            let mut want = input.want((&source, &target), command, LENGTH);
            if let Some((a, b)) = also {
                want.resources.extend(input.want((a, b), command, LENGTH).resources);
                want.resources.sort();
                want.resources.dedup();
            }
            let wants = [want];
            let mut room = input.book(&wants);
            let request = room.request(&wants[0], 0, (stamp(at), stamp(at) + LENGTH), None);
            let found = room.book.order(&request);
            let found = found.map_err(|refusal| Error::Conflict(room.book.explain(refusal)))?;
            let run = room.run(&wants[0], &request, found.begin, &found.slots);
            order.keys.clone_from(&run.keys);
            (order.at_ms, order.length_ms, order.octets) = (ms(found.begin), run.length_ms, run.octets);
            order.not_after_ms = order.at_ms + i64::try_from(run.length_ms).unwrap_or(i64::MAX);
            let mut spans = reservations(&source, &run);
            for span in &mut spans {
                (span.run, span.serial, span.by_hand) = (order.id, order.serial, true);
            }
            let note = unknown(&ground.found.network, &pairs, order.keys.contains(&Resource::UNTRACED.key(0)));
            match self.keep_order(&order, note, &spans, who).await {
                Err(narrows_record::Error::Reserved(_)) => {}
                other => return Ok(other?),
            }
        }
        Err(Error::Conflict("another hub reserves at the same time".to_owned()))
    }

    /// From here on the order stays given, whatever becomes of this hub.
    async fn keep_order(
        &self,
        order: &Order,
        note: Option<String>,
        spans: &[Reservation],
        who: &str,
    ) -> narrows_record::Result<Given> {
        let given = Given::new(order.clone(), &self.keys.signed(order), note);
        let text = format!("{} to {}: {}", order.agent, order.target, given.row.command);
        self.record.give(&given.kept(), spans, (who, &text), self.now()).await?;
        Ok(given)
    }

    /// Reads orders of hubs before this one and beside it, and what they heard of them.
    pub(crate) async fn recall_orders(&self) -> Result<()> {
        self.orders.learn(self.record.orders(crate::hub::orders::MOST).await?);
        Ok(())
    }

    /// Orders reach whoever listens now: they are sent again with each status until they began.
    pub(crate) async fn resend_orders(&self, agent: &Name) {
        for given in self.orders.waiting(agent, self.now()) {
            self.send_order(&given).await;
        }
    }

    async fn send_order(&self, given: &Given) {
        let agent = given.agent();
        if let Err(error) = self.bus.send(&format!("order.{agent}"), given.payload()).await {
            tracing::debug!(%error, %agent, "an order was not sent");
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

/// A light run begins within this time, and takes no longer.
const LIGHT_MS: i64 = 120_000;
/// What it may send: more than any light run does.
const LIGHT_OCTETS: u64 = 500_000_000;
const RACES: usize = 3;
/// After a bus began anew, no loading run is ordered to begin sooner: as long as no agent takes a
/// lease, and some seconds in which agents come back.
const NEW_BUS_MS: i64 = narrows_fleet::lease::TAKEN_OVER_AFTER.as_secs().cast_signed() * 1_000 + 5_000;
