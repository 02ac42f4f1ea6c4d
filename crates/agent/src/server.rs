//! What this host's server needs: the file that `narrows serve --fleet-keys` reads.

use std::path::PathBuf;
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
        if let Some(plan) = plan {
            let text = text(&plan, holder);
            let written = shared.state.write(SERVER_KEYS, text.as_bytes()).map(|()| shared.state.path(SERVER_KEYS));
            if let Some(path) = shared.works("keys of the server", written) {
                shared.server_keys.send_if_modified(|known| known.replace(path).is_none());
            }
        }
        let changed = tokio::select! {
            changed = plans.changed() => changed,
            changed = loading.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// The file, once there is a plan.
pub(crate) async fn keys(shared: &Shared) -> PathBuf {
    let mut known = shared.server_keys.subscribe();
    loop {
        if let Some(path) = known.borrow_and_update().clone() {
            return path;
        }
        // The sender is ours: it lives as long as we do.
        let _ = known.changed().await;
    }
}

fn text(plan: &Plan, holder: Loading) -> String {
    let holder = holder.map(|(run, revision)| Holder { run, revision });
    serde_json::to_string(&File { weeks: &plan.server_keys, denied: &plan.denied, holder }).unwrap_or_default() + "\n"
}
