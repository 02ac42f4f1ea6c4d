//! The bus moves: a plan names another one than this agent uses.
//!
//! The agent looks first whether it gets a plan of its hub there, and keeps what it has until then.
//! So a plan with a wrong address cuts no agent off: it stays, and says why.

use std::sync::Arc;
use std::time::Duration;

use narrows_bus::Bus;
use narrows_fleet::message::{BusAddress, Joined, Signed};

use crate::connect::connect;
use crate::error::{Error, Result};
use crate::plan::plan;
use crate::shared::Shared;
use crate::state::Membership;

/// Ends when the agent has to start again, on the bus of this membership.
pub(crate) async fn follow(shared: Arc<Shared>) {
    let mut plans = shared.plan.subscribe();
    loop {
        let named = plans.borrow_and_update().as_ref().and_then(|plan| plan.bus.clone());
        let Some(bus) = named.filter(|bus| *bus != shared.joined.bus) else {
            shared.fault(MOVE, None);
            if plans.changed().await.is_err() {
                return;
            }
            continue;
        };
        match reach(&shared, bus).await {
            Ok(membership) => {
                shared.fault(MOVE, None);
                tracing::info!("the bus has moved");
                shared.moved.send_replace(Some(membership));
                return;
            }
            Err(error) => shared.fault(MOVE, Some(error.to_string())),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Looks whether the new bus is the hub's, and writes down that this agent belongs there.
async fn reach(shared: &Shared, bus: BusAddress) -> Result<Membership> {
    let joined = Joined { bus, ..shared.joined.clone() };
    let membership = Membership { joined, ..shared.membership.clone() };
    let bus = connect(&membership, shared.state.key()?).await?;
    let looked = tokio::time::timeout(WITHIN, own_plan(shared, &*bus)).await;
    let trouble = || bus.condition().borrow().trouble.clone().unwrap_or_else(|| "it does not answer".to_owned());
    looked.unwrap_or_else(|_| Err(Error::Protocol(format!("the bus that the plan names: {}", trouble()))))?;
    shared.state.join(&membership)?;
    Ok(membership)
}

/// Waits until the bus has a plan that the hub signed for this agent.
async fn own_plan(shared: &Shared, bus: &dyn Bus) -> Result<()> {
    let mut condition = bus.condition();
    // The sender is in the bus, which lives as long as we do.
    let _ = condition.wait_for(|now| now.server.is_some()).await;
    loop {
        if let Some(entry) = bus.read("plan", shared.name().as_str()).await? {
            let unread = |error: serde_json::Error| Error::Protocol(error.to_string());
            let signed: Signed = serde_json::from_slice(&entry.value).map_err(unread)?;
            let checked = plan(&signed, &shared.joined, &shared.limits, 0, shared.now_ms());
            return checked.map(drop).map_err(|refusal| Error::Protocol(format!("the plan there: {refusal}")));
        }
        tokio::time::sleep(LOOK).await;
    }
}

const MOVE: &str = "new bus";
const WITHIN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_secs(10);
