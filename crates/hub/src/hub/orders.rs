//! Orders by hand, and what becomes of them. The record has them; here are the newest, so that each
//! status of an agent costs no question.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use narrows_fleet::keys::{Key, Name};
use narrows_fleet::message::{Exit, Order, Run, Signed, Status};
use narrows_record::{GivenOrder, OrderState};
use serde::Serialize;
use uuid::Uuid;

use crate::counters::outcome;

/// The newest orders, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    all: Mutex<Vec<Given>>,
}

/// An order as it was signed, and what is known of it.
#[derive(Debug, Clone)]
pub(super) struct Given {
    order: Order,
    signed: String,
    pub(super) row: OrderRow,
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

impl Given {
    pub(super) fn new(order: Order, signed: &Signed, note: Option<String>) -> Self {
        let signed = serde_json::to_string(signed).expect("two texts");
        Self::of(order, signed, note, OrderState { state: WAITS.to_owned(), run: None, said: None })
    }

    fn of(order: Order, signed: String, note: Option<String>, state: OrderState) -> Self {
        let OrderState { state, run, said } = state;
        let row = OrderRow {
            id: order.id,
            source: order.agent.clone(),
            target: order.target.clone(),
            command: order.command.join(" "),
            at_ms: order.at_ms,
            keys: order.keys.clone(),
            state,
            run,
            said,
            note,
        };
        Self { order, signed, row }
    }

    /// As the record has it.
    fn read(kept: GivenOrder) -> serde_json::Result<Self> {
        let signed: Signed = serde_json::from_str(&kept.doc)?;
        Ok(Self::of(serde_json::from_str(&signed.message)?, kept.doc, kept.note, kept.state))
    }

    /// As the record is to have it.
    pub(super) fn kept(&self) -> GivenOrder {
        GivenOrder {
            id: self.order.id,
            agent: self.order.agent.clone(),
            doc: self.signed.clone(),
            note: self.row.note.clone(),
            not_after_ms: self.order.not_after_ms,
            state: self.state(),
        }
    }

    fn state(&self) -> OrderState {
        OrderState { state: self.row.state.clone(), run: self.row.run, said: self.row.said.clone() }
    }

    pub(super) const fn agent(&self) -> &Name {
        &self.order.agent
    }

    /// What is sent: the very octets, however often.
    pub(super) fn payload(&self) -> Bytes {
        self.signed.clone().into()
    }

    /// Another hub may have heard more of it than this one.
    fn learn(&mut self, state: OrderState) {
        let OrderState { state, run, said } = state;
        if self.row.run.is_some() {
            return;
        }
        if run.is_some() || self.row.state == WAITS {
            (self.row.run, self.row.state) = (run, state);
        }
        self.row.said = said.or_else(|| self.row.said.take());
    }

    fn is_open(&self, kind: &str, now: i64) -> bool {
        let is_near = self.order.not_after_ms + LATE_MS > now;
        is_near && self.row.run.is_none() && self.order.command.first().is_some_and(|word| word == kind)
    }
}

impl Orders {
    /// Takes what the record has: orders of before this hub began, and of others.
    pub(crate) fn learn(&self, kept: Vec<GivenOrder>) {
        let mut all = self.lock();
        for one in kept {
            match all.iter_mut().find(|given| given.row.id == one.id) {
                Some(given) => given.learn(one.state),
                None => match Given::read(one) {
                    Ok(given) => all.push(given),
                    Err(error) => tracing::debug!(%error, "an order of the record cannot be read"),
                },
            }
        }
        all.sort_by_key(|given| given.order.serial);
        shorten(&mut all);
    }

    /// The newest first.
    pub(crate) fn rows(&self) -> Vec<OrderRow> {
        self.lock().iter().rev().map(|given| given.row.clone()).collect()
    }

    pub(crate) fn row(&self, id: Uuid) -> Option<OrderRow> {
        self.lock().iter().find(|given| given.row.id == id).map(|given| given.row.clone())
    }

    /// An agent said how it is: also what became of orders. Returns those of which that is news.
    pub(crate) fn heard(&self, status: &Status, now: i64) -> Vec<(Uuid, OrderState)> {
        let mut news = Vec::new();
        let is_open = |given: &&mut Given| given.order.agent == status.agent && given.row.run.is_none();
        for given in self.lock().iter_mut().filter(is_open) {
            let before = given.state();
            if status.order == Some(given.order.id) {
                "running".clone_into(&mut given.row.state);
            }
            if let Some((_, said)) = status.orders.iter().find(|(id, _)| *id == given.order.id) {
                given.row.said = Some(said.clone());
            }
            if given.state() != before {
                news.push((given.order.id, given.state()));
            }
        }
        self.expire(now);
        news
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

    /// A run of an order was stored.
    pub(crate) fn ran(&self, id: Uuid, run: &Run) {
        let is_it = |given: &&mut Given| given.order.id == id && given.order.agent == run.agent;
        for given in self.lock().iter_mut().filter(is_it) {
            given.learn(state_of(run));
        }
    }

    /// Whether this hub has heard of an order.
    pub(crate) fn knows(&self, id: Uuid) -> bool {
        self.lock().iter().any(|given| given.row.id == id)
    }

    /// Whether an order is to measure while another one loads the path.
    pub(crate) fn is_beside_load(&self, id: Uuid) -> bool {
        self.lock().iter().any(|given| given.row.id == id && given.order.beside.is_some())
    }

    /// Whether a run of this kind was ordered, and has not ended.
    pub(crate) fn is_open(&self, kind: &str, now: i64) -> bool {
        self.lock().iter().any(|given| given.is_open(kind, now))
    }

    /// The same over one path.
    pub(crate) fn is_open_over(&self, source: &Name, target: &Name, kind: &str, now: i64) -> bool {
        self.open_over(source, target, kind, now).is_some()
    }

    /// The order of this kind over one path that has not ended.
    pub(crate) fn open_over(&self, source: &Name, target: &Name, kind: &str, now: i64) -> Option<Uuid> {
        let is_path = |given: &&Given| given.order.agent == *source && given.order.target == *target;
        self.lock().iter().filter(is_path).find(|given| given.is_open(kind, now)).map(|given| given.row.id)
    }

    pub(super) fn waiting(&self, agent: &Name, now: i64) -> Vec<Given> {
        let waits =
            |given: &&Given| given.row.state == WAITS && given.row.said.is_none() && given.order.agent == *agent;
        self.lock().iter().filter(waits).filter(|given| given.order.not_after_ms > now).cloned().collect()
    }

    pub(super) fn add(&self, given: Given) {
        let mut all = self.lock();
        all.push(given);
        shorten(&mut all);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Given>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shorten(all: &mut Vec<Given>) {
    let over = all.len().saturating_sub(MOST);
    all.drain(..over);
}

/// What becomes of an order by its run.
pub(super) fn state_of(run: &Run) -> OrderState {
    let said = if run.exit == Exit::Done { None } else { run.reason.clone() };
    OrderState { state: outcome(run.exit).to_owned(), run: Some(run.id), said }
}

const WAITS: &str = "waits";
/// Orders that are remembered.
pub(super) const MOST: usize = 500;
/// After its end an order that nobody spoke of is lost.
const LATE_MS: i64 = 60_000;
