//! Orders with more octets for paths on which light runs spend theirs and find nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_fleet::allowance::{Allowances, EXPECTED, Ending, Subject};
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Origin, Run};
use narrows_units::{BitRate, Octets};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::hub::tomography::Findings;
use crate::hub::{HUB, Hub};

/// What is known of them, and which orders are theirs.
#[derive(Debug, Default)]
pub(crate) struct Wider(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    allowances: Allowances,
    orders: BTreeMap<Uuid, Subject>,
}

impl Wider {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run was stored.
    pub(crate) fn ran(&self, run: &Run, found: &Findings, now: i64) {
        if !KINDS.contains(&run.kind.as_str()) {
            return;
        }
        let ending = ending(run);
        let mut state = self.lock();
        match run.origin {
            Origin::Mesh | Origin::Directed => {
                let (source, target) = (run.agent.clone(), run.target.clone());
                state.allowances.light(Subject { source, target, kind: run.kind.clone() }, ending, now);
            }
            Origin::Order(id) => {
                if let Some(subject) = state.orders.remove(&id) {
                    let rate = carried(found, &subject.source, &subject.target);
                    state.allowances.ordered(&subject, ending, rate, now);
                }
            }
            Origin::Planned | Origin::Repeated => {}
        }
    }
}

impl Hub {
    /// Orders what is due.
    pub(crate) async fn widen(&self) -> Result<()> {
        let now = self.now();
        let found = self.tomography.found();
        let rate = |one: &Subject| carried(&found, &one.source, &one.target);
        loop {
            let Some((subject, octets)) = self.wider.lock().allowances.next(rate, now) else { return Ok(()) };
            match self.wider_order(&subject, octets, now).await {
                Ok(id) => {
                    let mut state = self.wider.lock();
                    state.orders.insert(id, subject);
                    // Lost ones end by themselves.
                    while state.orders.len() > MOST_OPEN {
                        state.orders.pop_first();
                    }
                }
                // A host that has left, or no room for it today.
                Err(Error::Missing(_) | Error::Conflict(_)) => self.wider.lock().allowances.refused(&subject, now),
                Err(error) => return Err(error),
            }
        }
    }

    /// The order for it: the one that a hub before this one gave, while that can still be carried
    /// out. A hub that is started again and again would fill the timetable else.
    async fn wider_order(&self, subject: &Subject, octets: Octets, now: i64) -> Result<Uuid> {
        self.recall_orders().await?;
        let Subject { source, target, kind } = subject;
        match self.orders.open_over(source, target, kind, now) {
            Some(given) => Ok(given),
            None => self.order(source, target, &format!("{kind} --budget {}B", octets.count()), HUB).await,
        }
    }
}

/// What a path carries, as far as that is known. A lower bound does not say it, unless it is more
/// than is expected anyway.
fn carried(found: &Findings, source: &Name, target: &Name) -> Option<BitRate> {
    let latest = found.capacity.latest.get(&found.network.pair(source, target)?)?;
    let rate = BitRate::from_bps_f64(latest.high)?;
    match latest.claim {
        Claim::Estimate | Claim::AtMost => Some(rate),
        Claim::AtLeast => Some(rate.max(EXPECTED)),
        Claim::Inconclusive => None,
    }
}

/// What a run says of its own octets.
fn ending(run: &Run) -> Ending {
    let has_value = run.values.iter().any(|value| value.claim != Claim::Inconclusive);
    let reason = run.evidence.as_ref().and_then(|evidence| evidence.pointer("/reason/id")?.as_str());
    match (has_value, reason) {
        (true, _) => Ending::Value,
        (false, Some(SPENT)) => Ending::Spent,
        (false, _) => Ending::Other,
    }
}

/// Kinds of light runs whose octets may not suffice.
const KINDS: [&str; 2] = ["available", "capacity"];
/// `Reason::OctetsSpent`, as documents have it.
const SPENT: &str = "octets_spent";
/// Orders whose end is waited for.
const MOST_OPEN: usize = 1_000;
