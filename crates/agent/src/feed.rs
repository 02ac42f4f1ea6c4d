//! What the hub says: plans, orders, and what its record has.

use std::sync::Arc;
use std::time::Duration;

use narrows_bus::Subscription;
use narrows_fleet::message::{Answer, Order, Plan, Signed};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::declined::Accepted;
use crate::plan::{self, Refusal};
use crate::shared::Shared;

/// Listens as long as it is not dropped.
pub(crate) async fn feed(shared: Arc<Shared>) {
    let mut condition = shared.bus.condition();
    loop {
        // The sender is in the bus, which lives as long as we do.
        let _ = condition.wait_for(|now| now.server.is_some()).await;
        match subscribe(&shared).await {
            Ok([mut plans, mut orders, mut stored]) => {
                shared.fault(BUS, None);
                let mut seen = 0;
                loop {
                    let now = condition.borrow_and_update().clone();
                    if now.server.is_some() && now.connections != seen {
                        seen = now.connections;
                        // What was republished while there was no connection is lost.
                        read_plan(&shared).await;
                        // So are orders: the hub sends them again when it hears of this agent.
                        shared.changed.notify_one();
                    }
                    let ended = tokio::select! {
                        message = plans.next() => message.map(|message| take_plan(&shared, &message.payload, true)),
                        message = orders.next() => message.map(|message| take_order(&shared, &message.payload)),
                        message = stored.next() => message.map(|message| take_stored(&shared, &message.payload)),
                        _ = condition.changed() => Ok(()),
                    };
                    if shared.works(BUS, ended).is_none() {
                        break;
                    }
                }
            }
            Err(error) => shared.fault(BUS, Some(error.to_string())),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn subscribe(shared: &Shared) -> narrows_bus::Result<[Subscription; 3]> {
    let name = shared.name();
    let plans = shared.bus.subscribe(&format!("plan.{name}")).await?;
    let orders = shared.bus.subscribe(&format!("order.{name}")).await?;
    Ok([plans, orders, shared.bus.subscribe(&format!("stored.{name}")).await?])
}

async fn read_plan(shared: &Shared) {
    let entry = shared.bus.read("plan", shared.name().as_str()).await;
    if let Some(Some(entry)) = shared.works("plan bucket", entry) {
        take_plan(shared, &entry.value, false);
    }
}

/// The plan of before this process, if it is still good for something.
pub(crate) fn recall_plan(shared: &Shared) {
    let recalled = shared.works("plan file", shared.state.plan()).flatten();
    if let Some(signed) = recalled
        && let Ok(accepted) = plan::plan(&signed, &shared.joined, &shared.limits, 0, shared.now_ms())
    {
        go_by(shared, accepted);
    }
}

/// `live`: the hub sent it just now.
fn take_plan(shared: &Shared, payload: &[u8], live: bool) {
    let last = shared.plan.borrow().as_ref().map_or(0, |plan| plan.serial);
    let signed = parse::<Signed>(payload);
    let accepted = signed.and_then(|signed| {
        let accepted = plan::plan(&signed, &shared.joined, &shared.limits, last, shared.now_ms())?;
        Ok((signed, accepted))
    });
    let Some((signed, accepted)) = shared.works("plan", accepted) else { return };
    let plan = &accepted.plan;
    if live {
        shared.about().time.heard(plan.made_ms, &*shared.clock);
    }
    shared.works(SPOOL, shared.spool().free(&plan.stored));
    if plan.serial > last {
        // Without its file the plan is read from the bus again after a restart.
        shared.works("plan file", shared.state.keep_plan(&signed));
        tracing::info!(serial = plan.serial, peers = plan.peers.len(), "a new plan");
        go_by(shared, accepted);
        // To name its serial acknowledges it.
        shared.changed.notify_one();
    }
}

/// From now on this plan counts.
fn go_by(shared: &Shared, Accepted { plan, declined }: Accepted) {
    for what in &declined {
        tracing::warn!(serial = plan.serial, "left out of the plan: {what}");
    }
    shared.about().declined = declined;
    shared.plan.send_replace(Some(Arc::new(plan)));
}

fn take_order(shared: &Shared, payload: &[u8]) {
    let now_ms = shared.now_ms();
    let signed = match parse::<Signed>(payload) {
        Ok(signed) => signed,
        Err(refusal) => return shared.fault("order", Some(refusal.to_string())),
    };
    match plan::order(&signed, &shared.joined, &shared.limits, now_ms) {
        Ok(order) => {
            shared.fault("order", None);
            let Order { id, serial, not_after_ms, .. } = order;
            let new = shared.spool().is_new_order(id, serial, not_after_ms, now_ms);
            if shared.works(SPOOL, new) == Some(true) {
                shared.about().orders.push(order);
                shared.ordered.notify_one();
            }
        }
        // This clock may be wrong. The hub answers the status that is on its way, and sends the
        // order again.
        Err(Refusal::Expired) if !shared.about().time.is_compared() => {}
        Err(refusal) => {
            shared.fault("order", Some(refusal.to_string()));
            let id = (refusal != Refusal::Signature).then(|| id_of(&signed)).flatten();
            if let Some(id) = id {
                shared.report(id, format!("refused: {refusal}"));
            }
        }
    }
}

fn id_of(signed: &Signed) -> Option<Uuid> {
    let order: serde_json::Value = serde_json::from_str(&signed.message).ok()?;
    order.get("id")?.as_str()?.parse().ok()
}

fn take_stored(shared: &Shared, payload: &[u8]) {
    // What cannot be read frees nothing, and the next one says more.
    let Ok(Answer { stored, time }) = parse::<Answer>(payload) else { return };
    if !stored.ranges.is_empty() {
        shared.works(SPOOL, shared.spool().free(&stored));
    }
    // Nor does it tell the time.
    if let Some(Ok(time)) = time.map(|signed| plan::time(&signed, &shared.joined)) {
        let clock = &*shared.clock;
        let mut about = shared.about();
        about.time.answered(time.asked_ms, time.hub_ms, clock);
        let complaint = about.time.complaint(clock);
        drop(about);
        shared.fault("clock", complaint);
    }
}

fn parse<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(payload).map_err(|error| Refusal::Malformed(error.to_string()))
}

/// What the plan says where it is shown.
pub(crate) fn bucket(plan: &Plan) -> String {
    format!("lease_{}", plan.lease_generation)
}

const BUS: &str = "bus";
pub(crate) const SPOOL: &str = "spool";
const AGAIN: Duration = Duration::from_secs(1);
