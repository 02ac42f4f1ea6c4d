//! How a host leaves its fleet.

use std::time::Duration;

use narrows_bus::Bus;
use narrows_fleet::message::Status;

use crate::error::Result;
use crate::state::{Membership, State};

/// Tells the hub, if the bus answers in time, and forgets the fleet. Whether the hub heard of it.
pub async fn leave(state: &State, membership: &Membership, bus: &dyn Bus, version: &str, now_ms: i64) -> Result<bool> {
    let agent = &membership.joined.agent;
    let last = state.status()?;
    let status = Status {
        schema: Status::SCHEMA.to_owned(),
        agent: agent.clone(),
        at_ms: now_ms,
        version: version.to_owned(),
        kinds: Vec::new(),
        plan_serial: last.as_ref().map_or(0, |last| last.plan_serial),
        order_serial: last.as_ref().map_or(0, |last| last.order_serial),
        clock_synchronised: false,
        clock_error_ms: 0,
        clock_ahead_ms: None,
        spool_runs: last.as_ref().map_or(0, |last| last.spool_runs),
        spool_octets: last.as_ref().map_or(0, |last| last.spool_octets),
        spool_lost: last.as_ref().map_or(0, |last| last.spool_lost),
        leases_lost: last.as_ref().map_or(0, |last| last.leases_lost),
        running: None,
        order: None,
        orders: Vec::new(),
        leaving: true,
        declined: Vec::new(),
        faults: Vec::new(),
    };
    let mut condition = bus.condition();
    let tell = async {
        condition.wait_for(|now| now.server.is_some()).await.ok()?;
        let text = serde_json::to_vec(&status).ok()?;
        bus.send(&format!("status.{agent}"), text.into()).await.ok()?;
        // The answer to this question comes behind the message: it has left this host.
        bus.read("plan", agent.as_str()).await.ok()
    };
    let reached = tokio::time::timeout(PATIENCE, tell).await.ok().flatten().is_some();
    state.leave()?;
    Ok(reached)
}

const PATIENCE: Duration = Duration::from_secs(10);
