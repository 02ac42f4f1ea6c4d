//! How the agent is, for the hub and for `narrows agent status`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_fleet::message::Status;

use crate::clock::synchronised;
use crate::command::kinds;
use crate::feed::SPOOL;
use crate::shared::Shared;

/// How often the hub hears of an agent.
const EVERY: Duration = Duration::from_secs(30);
/// Of many changes one status tells.
const GATHER: Duration = Duration::from_millis(200);

/// Says so every 30 s, and when something changes.
pub(crate) async fn tell(shared: Arc<Shared>) {
    loop {
        say(&shared, false).await;
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = shared.changed.notified() => tokio::time::sleep(GATHER).await,
        }
    }
}

/// Says so now. `leaving`: for the last time.
pub(crate) async fn say(shared: &Shared, leaving: bool) {
    let status = Status { leaving, ..now(shared) };
    shared.works("status file", shared.state.keep_status(&status));
    let Ok(text) = serde_json::to_vec(&status) else { return };
    shared.about().time.ask(status.at_ms, &*shared.clock);
    let sent = shared.bus.send(&format!("status.{}", shared.name()), text.into()).await;
    if sent.is_ok() {
        // The hub has heard of these; others may have come meanwhile.
        shared.about().reports.drain(..status.orders.len());
    }
}

fn now(shared: &Shared) -> Status {
    let waiting = shared.works(SPOOL, shared.spool().waiting()).unwrap_or_default();
    let clock = &*shared.clock;
    let error_ms = clock.error().map_or(0, |error| u64::try_from(error.as_millis()).unwrap_or(u64::MAX));
    let plan_serial = shared.plan.borrow().as_ref().map_or(0, |plan| plan.serial);
    let order_serial = shared.works(SPOOL, shared.spool().order_serial()).unwrap_or_default();
    let complaint = shared.about().time.complaint(clock);
    shared.fault("clock", complaint);
    let about = shared.about();
    Status {
        schema: Status::SCHEMA.to_owned(),
        agent: shared.name().clone(),
        at_ms: clock.unix_ms(),
        version: shared.version.clone(),
        kinds: kinds(),
        plan_serial,
        order_serial,
        clock_synchronised: synchronised(clock),
        clock_error_ms: error_ms,
        clock_ahead_ms: about.time.ahead_ms(clock),
        spool_runs: waiting.runs,
        spool_octets: waiting.octets,
        spool_lost: waiting.lost,
        leases_lost: shared.leases_lost.load(Ordering::Relaxed),
        running: about.running,
        order: about.order,
        orders: about.reports.clone(),
        leaving: false,
        declined: about.declined.clone(),
        faults: about.faults.iter().map(|(what, why)| format!("{what}: {why}")).collect(),
    }
}
