//! Whether a plan or an order of the hub is carried out.
//!
//! Both are signed with Ed25519 over their very octets. An agent refuses what is not from its hub,
//! not for it, not newer than what it has, or too old. What its owner does not allow is refused of
//! an order, and left out of a plan (`declined`).

use narrows_bus::verifies;
use narrows_fleet::config::loads;
use narrows_fleet::keys::{Key, Name};
use narrows_fleet::message::{HubTime, Joined, Order, Plan, Signed};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::command::{checked, is_known};
use crate::declined::{Accepted, allowed};
use crate::limits::Limits;
use narrows_units::hex;

/// Why a plan or an order is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Somebody else signed it, or it was changed.
    #[error("it is not signed by the hub")]
    Signature,
    /// It cannot be read, or contradicts itself.
    #[error("it cannot be read: {0}")]
    Malformed(String),
    /// A later version wrote it.
    #[error("this version does not know {0}")]
    Schema(String),
    /// It is another fleet's.
    #[error("it is of the fleet {0}")]
    Tenant(Name),
    /// It is another agent's.
    #[error("it is for the agent {0}")]
    Agent(Name),
    /// It is older than the one before, or the same.
    #[error("serial {serial} is not above {last}")]
    Serial {
        /// Its own.
        serial: u64,
        /// The last one that was accepted.
        last: u64,
    },
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// The owner of the host does not allow it; of an order alone.
    #[error("{0}")]
    Limits(String),
}

/// The plan in a signed message, if it is one for this agent, as far as the owner of the host
/// allows it. `last` is the serial of the plan that it has; that plan itself is accepted again.
pub fn plan(signed: &Signed, joined: &Joined, limits: &Limits, last: u64, now_ms: i64) -> Result<Accepted, Refusal> {
    let plan: Plan = open(signed, joined, Plan::SCHEMA)?;
    of_us(&plan.tenant, &plan.agent, joined)?;
    if plan.serial < last {
        return Err(Refusal::Serial { serial: plan.serial, last });
    }
    if plan.not_after_ms <= now_ms {
        return Err(Refusal::Expired);
    }
    if plan.peer_at(plan.place).is_none_or(|peer| peer.name != plan.agent) {
        return Err(Refusal::Malformed("its place among the peers is another agent's".to_owned()));
    }
    runs_here(&plan).map_err(Refusal::Malformed)?;
    Ok(allowed(plan, limits))
}

/// The order in a signed message, if it is one for this agent. Whether it came before, the spool
/// knows.
pub fn order(signed: &Signed, joined: &Joined, limits: &Limits, now_ms: i64) -> Result<Order, Refusal> {
    let order: Order = open(signed, joined, Order::SCHEMA)?;
    of_us(&order.tenant, &order.agent, joined)?;
    if order.not_after_ms <= now_ms {
        return Err(Refusal::Expired);
    }
    if order.peer.as_ref().is_some_and(|peer| peer.name != order.target) {
        return Err(Refusal::Malformed("its peer is not its target".to_owned()));
    }
    leased(&order.command, &order.agent, &order.target, &order.keys)?;
    if !limits.target(&order.target) {
        return Err(Refusal::Limits(format!("the owner of this host allows no runs towards {}", order.target)));
    }
    checked(&order.command, limits).map_err(Refusal::Limits)?;
    if limits.octets_per_day.is_some_and(|most| order.octets > most.count()) {
        return Err(Refusal::Limits("it costs more octets than the owner of this host allows a day".to_owned()));
    }
    Ok(order)
}

/// The hub's time in its answer to a status of this agent.
pub(crate) fn time(signed: &Signed, joined: &Joined) -> Result<HubTime, Refusal> {
    let time: HubTime = open(signed, joined, HubTime::SCHEMA)?;
    of_us(&time.tenant, &time.agent, joined)?;
    Ok(time)
}

fn open<T: DeserializeOwned>(signed: &Signed, joined: &Joined, schema: &str) -> Result<T, Refusal> {
    #[derive(Deserialize)]
    struct Any {
        schema: String,
    }
    let signature = hex::to_octets(&signed.signature).ok_or(Refusal::Signature)?;
    if !verifies(&joined.hub_key, signed.message.as_bytes(), &signature) {
        return Err(Refusal::Signature);
    }
    let wrong = |error: serde_json::Error| Refusal::Malformed(error.to_string());
    let any: Any = serde_json::from_str(&signed.message).map_err(wrong)?;
    if any.schema != schema {
        return Err(Refusal::Schema(any.schema));
    }
    serde_json::from_str(&signed.message).map_err(wrong)
}

fn of_us(tenant: &Name, agent: &Name, joined: &Joined) -> Result<(), Refusal> {
    if *tenant != joined.tenant {
        return Err(Refusal::Tenant(tenant.clone()));
    }
    if *agent != joined.agent {
        return Err(Refusal::Agent(agent.clone()));
    }
    Ok(())
}

/// A loading run needs the keys of both hosts at least. A hub that forgot them would make runs
/// collide.
fn leased(command: &[String], agent: &Name, target: &Name, keys: &[Key]) -> Result<(), Refusal> {
    let kind = command.first().map_or("", String::as_str);
    let hosts = [agent, target].map(|host| Key::Host(host.clone()));
    match loads(command) {
        Some(true) if !hosts.iter().all(|host| keys.contains(host)) => {
            Err(Refusal::Malformed(format!("{kind} towards {target} loads, and leases not both hosts")))
        }
        _ => Ok(()),
    }
}

/// Whether all that the plan asks for is fit for an agent, whatever its owner allows. Runs of a
/// kind that this version does not know are left to the work, which skips them: the rest of a newer
/// hub's plan is as good as before.
fn runs_here(plan: &Plan) -> Result<(), String> {
    let anybody = Limits::default();
    let light = |words: &Vec<String>| {
        if !is_known(words) {
            return Ok(());
        }
        let kind = words.first().map_or("", String::as_str);
        if loads(words) == Some(true) {
            return Err(format!("{kind} loads, and belongs into the timetable"));
        }
        checked(words, &anybody).map(|_| ())
    };
    plan.mesh.iter().try_for_each(light)?;
    plan.directed.iter().map(|directed| &directed.command).try_for_each(light)?;
    for run in plan.runs.iter().filter(|run| is_known(&run.command)) {
        checked(&run.command, &anybody)?;
        leased(&run.command, &plan.agent, &run.target, &run.keys).map_err(|refusal| refusal.to_string())?;
    }
    Ok(())
}
