//! How a host leaves its fleet: its results first, then itself.

use std::time::Duration;

use narrows_bus::{Bus, Subscription};
use narrows_fleet::message::{Answer, Status};

use crate::error::Result;
use crate::former::{Former, own, put_aside};
use crate::spool::{Bounds, Spool};
use crate::state::{Membership, State};

/// What became of a host that left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// Whether the hub heard of it.
    pub heard: bool,
    /// Results that are not in the record, and never will be.
    pub former: Option<Former>,
}

/// Sends what waits in the spool, tells the hub, and forgets the fleet; as far as bus and hub
/// answer in time.
pub async fn leave(
    state: &State,
    membership: &Membership,
    bus: &dyn Bus,
    version: &str,
    now_ms: i64,
) -> Result<Departure> {
    let (mut spool, _) = own(state, &membership.joined, Bounds::default())?;
    let last = state.status()?;
    let agent = &membership.joined.agent;
    let status = |runs: u64, leaving: bool| Status {
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
        spool_runs: runs,
        spool_octets: 0,
        spool_lost: last.as_ref().map_or(0, |last| last.spool_lost),
        leases_lost: last.as_ref().map_or(0, |last| last.leases_lost),
        running: None,
        order: None,
        orders: Vec::new(),
        leaving,
        declined: Vec::new(),
        faults: Vec::new(),
    };
    let heard = tokio::time::timeout(REACHED_WITHIN, connected(bus)).await.is_ok_and(|connected| connected);
    if heard {
        drain(&mut spool, bus, agent.as_str(), |runs| status(runs, false)).await?;
    }
    let waiting = spool.waiting()?;
    let last_word = status(waiting.runs, true);
    let telling = tell(bus, agent.as_str(), &last_word);
    let heard = heard && tokio::time::timeout(REACHED_WITHIN, telling).await.ok().flatten().is_some();
    let former = put_aside(state, spool)?;
    state.leave()?;
    Ok(Departure { heard, former })
}

async fn connected(bus: &dyn Bus) -> bool {
    bus.condition().wait_for(|now| now.server.is_some()).await.is_ok()
}

async fn tell(bus: &dyn Bus, agent: &str, status: &Status) -> Option<()> {
    let text = serde_json::to_vec(status).ok()?;
    bus.send(&format!("status.{agent}"), text.into()).await.ok()?;
    // The answer to this question comes behind the message: it has left this host.
    bus.read("plan", agent).await.ok().map(drop)
}

/// Sends all results until the record has them, or nothing of them is stored for a while.
async fn drain(spool: &mut Spool, bus: &dyn Bus, agent: &str, status: impl Fn(u64) -> Status) -> Result<()> {
    let Ok(mut answers) = bus.subscribe(&format!("stored.{agent}")).await else { return Ok(()) };
    let mut left = spool.waiting()?.runs;
    while left > 0 {
        send(spool, bus, agent).await?;
        // The hub answers it with what the record has.
        let asked = tell(bus, agent, &status(left)).await;
        let freed = tokio::time::timeout(STORED_WITHIN, stored(spool, &mut answers));
        let (Some(()), Ok(Ok(()))) = (asked, freed.await) else { return Ok(()) };
        left = spool.waiting()?.runs;
    }
    Ok(())
}

async fn send(spool: &Spool, bus: &dyn Bus, agent: &str) -> Result<()> {
    let mut last = 0;
    loop {
        let parcels = spool.after(last)?;
        let Some(newest) = parcels.last().map(|parcel| parcel.seq) else { return Ok(()) };
        for parcel in parcels {
            let subject = format!("result.{agent}.{}", parcel.kind);
            // What the bus does not take now, the record does not have, and the spool keeps.
            if let Err(error) = bus.publish(&subject, &parcel.id, parcel.text.into()).await {
                tracing::debug!(%error, seq = parcel.seq, "a result was not sent");
            }
        }
        last = newest;
    }
}

/// Returns once the record has more of the spool than before.
async fn stored(spool: &mut Spool, answers: &mut Subscription) -> Result<()> {
    loop {
        let message = answers.next().await?;
        let Ok(Answer { stored, .. }) = serde_json::from_slice(&message.payload) else { continue };
        if spool.free(&stored)? > 0 {
            return Ok(());
        }
    }
}

const REACHED_WITHIN: Duration = Duration::from_secs(10);
/// A hub takes results within seconds. One that has many waits of other agents takes longer.
const STORED_WITHIN: Duration = Duration::from_secs(30);
