//! What this host's server needs: the file that `narrows serve --fleet-keys` reads.

use std::sync::Arc;

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Plan, ServerKey};
use serde::Serialize;
use uuid::Uuid;

use crate::lease::Loading;
use crate::shared::Shared;
use crate::state::SERVER_KEYS;

/// The file. The server grants its load slot to this holder alone.
#[derive(Serialize)]
struct File<'a> {
    weeks: &'a [ServerKey],
    denied: &'a [Name],
    holder: Option<Holder>,
}

#[derive(Serialize)]
struct Holder {
    run: Uuid,
    revision: u64,
}

/// Writes it whenever the plan or the lease of this host changes.
pub(crate) async fn keep_keys(shared: Arc<Shared>) {
    let (mut plans, mut loading) = (shared.plan.subscribe(), shared.leases.loading());
    loop {
        let (plan, holder) = (plans.borrow_and_update().clone(), *loading.borrow_and_update());
        let text = text(plan.as_deref(), holder);
        shared.works("keys of the server", shared.state.write(SERVER_KEYS, text.as_bytes()));
        let changed = tokio::select! {
            changed = plans.changed() => changed,
            changed = loading.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

fn text(plan: Option<&Plan>, holder: Loading) -> String {
    let holder = holder.map(|(run, revision)| Holder { run, revision });
    let (weeks, denied) = plan.map_or((&[][..], &[][..]), |plan| (&plan.server_keys, &plan.denied));
    serde_json::to_string(&File { weeks, denied, holder }).unwrap_or_default() + "\n"
}
