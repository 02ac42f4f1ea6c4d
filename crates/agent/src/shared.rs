//! What the tasks of an agent share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narrows_bus::Bus;
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Joined, Order, Plan};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::clock::{Clock, HubTime};
use crate::lease::Leases;
use crate::limits::Limits;
use crate::measure::Measure;
use crate::parts::Parts;
use crate::spool::Spool;
use crate::state::{Membership, State};

pub(crate) struct Shared {
    pub(crate) joined: Joined,
    pub(crate) membership: Membership,
    pub(crate) version: String,
    pub(crate) state: State,
    pub(crate) limits: Limits,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) measure: Arc<dyn Measure>,
    pub(crate) leases: Leases,
    /// The plan that counts.
    pub(crate) plan: watch::Sender<Option<Arc<Plan>>>,
    /// The keys of this host's server, once they are written.
    pub(crate) server_keys: watch::Sender<Option<PathBuf>>,
    /// Set once the agent belongs to another bus.
    pub(crate) moved: watch::Sender<Option<Membership>>,
    /// A result waits to be sent, or orders wait to be carried out, or something is worth a status.
    pub(crate) unsent: Notify,
    pub(crate) ordered: Notify,
    pub(crate) changed: Notify,
    pub(crate) leases_lost: AtomicU64,
    spool: Mutex<Spool>,
    about: Mutex<About>,
}

/// What a status tells beside.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub(crate) time: HubTime,
    /// Orders that wait for the worker.
    pub(crate) orders: Vec<Order>,
    /// What became of orders.
    pub(crate) reports: Vec<(Uuid, String)>,
    pub(crate) running: Option<Uuid>,
    /// The order that it belongs to.
    pub(crate) order: Option<Uuid>,
    /// What the owner of the host left out of the plan.
    pub(crate) declined: Vec<String>,
    /// What is wrong, by whose business it is.
    pub(crate) faults: BTreeMap<&'static str, String>,
}

impl Shared {
    pub(crate) fn new(parts: Parts, spool: Spool, leases: Leases) -> Self {
        let Parts { membership, version, state, limits, bus, clock, measure, .. } = parts;
        Self {
            joined: membership.joined.clone(),
            membership,
            version,
            state,
            limits,
            bus,
            clock,
            measure,
            leases,
            plan: watch::Sender::new(None),
            server_keys: watch::Sender::new(None),
            moved: watch::Sender::new(None),
            unsent: Notify::new(),
            ordered: Notify::new(),
            changed: Notify::new(),
            leases_lost: AtomicU64::new(0),
            spool: Mutex::new(spool),
            about: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.joined.agent
    }

    pub(crate) fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn about(&self) -> MutexGuard<'_, About> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unix time of the hub, in ms.
    pub(crate) fn now_ms(&self) -> i64 {
        self.about().time.now_ms(&*self.clock)
    }

    /// The plan that counts; none once it has expired.
    pub(crate) fn plan(&self) -> Option<Arc<Plan>> {
        let now_ms = self.now_ms();
        self.plan.borrow().as_ref().filter(|plan| now_ms < plan.not_after_ms).cloned()
    }

    /// Says what is wrong, or that it is right again.
    pub(crate) fn fault(&self, what: &'static str, why: Option<String>) {
        let mut about = self.about();
        if about.faults.get(what) == why.as_ref() {
            return;
        }
        if let Some(why) = why {
            tracing::warn!("{what}: {why}");
            about.faults.insert(what, why);
        } else {
            about.faults.remove(what);
        }
        drop(about);
        self.changed.notify_one();
    }

    /// The result of something that should work, and a fault as long as it does not.
    pub(crate) fn works<T>(&self, what: &'static str, result: Result<T, impl std::fmt::Display>) -> Option<T> {
        match result {
            Ok(value) => {
                self.fault(what, None);
                Some(value)
            }
            Err(error) => {
                self.fault(what, Some(error.to_string()));
                None
            }
        }
    }

    /// An order was refused or has ended.
    pub(crate) fn report(&self, order: Uuid, how: impl Into<String>) {
        self.about().reports.push((order, how.into()));
        self.changed.notify_one();
    }
}
