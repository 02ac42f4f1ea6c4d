//! The record of a hub, apart from a running one.

use std::path::Path;
use std::sync::Arc;

use narrows_record::{Moved, Record};

use super::place::PlaceArgs;
use crate::exit::{Exit, Failure};
use crate::output;

/// Opens a record: `sqlite:FILE` or `postgres://..`.
pub(super) async fn open(url: &str) -> Result<Arc<dyn Record>, Failure> {
    narrows_record::open(url).await.map_err(|error| Failure::host(format!("{}: {error}", shown(url))))
}

/// What a fault of the hub means for who called.
pub(super) fn failure(error: &narrows_hub::Error) -> Failure {
    use narrows_bus::Error::{Settings, Storage};
    let hint = match error {
        narrows_hub::Error::Bus(Storage(_)) => "; --bus-size says how much of its disk the hub wants".to_owned(),
        narrows_hub::Error::Bus(Settings { name, setting, found, .. })
            if name == narrows_bus::STREAM && SIZES.contains(&&**setting) =>
        {
            format!("; a bus does not shrink: say --bus-size \"{found} B\", or more")
        }
        narrows_hub::Error::Bus(Settings { name, .. }) => {
            format!("; this version did not make {name}: use the one that did, or another bus")
        }
        _ => String::new(),
    };
    Failure::host(format!("{error}{hint}"))
}

/// The size of the stream of results, as NATS and the bus in the hub call it.
const SIZES: [&str; 2] = ["max_bytes", "max_octets"];

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Runtime::new().map_err(|error| Failure::host(format!("no threads: {error}")))
}

/// Without what may be a password.
fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => url.to_owned(),
    }
}

/// Whether a hub was ever here.
pub(super) fn is_state(state: &Path) -> Result<(), Failure> {
    let missing: Vec<_> = FILES.into_iter().filter(|name| !state.join(name).exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::host(format!("{} is not the state directory of a hub: no {}", state.display(), missing.join(", "))))
}

pub(super) fn check(place: &PlaceArgs) -> Result<Exit, Failure> {
    let (state, store) = (place.state(), place.store());
    is_state(&state)?;
    let keys = narrows_hub::Keys::open(&state, &[]).map_err(|error| failure(&error))?;
    let text = runtime()?.block_on(async {
        let record = open(&store).await?;
        let fault = |error: narrows_record::Error| Failure::host(error.to_string());
        let agents = record.agents().await.map_err(fault)?;
        let audits = record.audits(None, usize::MAX).await.map_err(fault)?;
        if let Some(number) = narrows_record::broken_at(&audits) {
            return Err(Failure::host(format!("the audit was changed at entry {number}")));
        }
        let (store, key) = (shown(&store), keys.sign.public());
        let (agents, audits) = (agents.len(), audits.len());
        Ok(format!(
            "{store}\n{agents} agents, {audits} entries of the audit, unbroken\nkey of the hub on NATS: {key}\n"
        ))
    })?;
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

/// What a hub makes at its first start.
const FILES: [&str; 4] = ["key.pem", "cert.pem", "sign.seed", "tenant.secret"];

/// Copies the record of a hub that does not run.
pub(super) fn copy(place: &PlaceArgs, to: &str) -> Result<Exit, Failure> {
    let now_ms = i64::try_from(narrows_hub::wall_clock().as_millis()).unwrap_or(i64::MAX);
    let moved = runtime()?.block_on(narrows_record::move_to(&place.store(), to, now_ms));
    said(moved, to)
}

/// Copies the record into a new file: one in a file while its hub goes on, another one while no hub
/// runs.
pub(super) fn backup(place: &PlaceArgs, file: &Path) -> Result<Exit, Failure> {
    let (store, to) = (place.store(), format!("sqlite:{}", file.display()));
    if let Some(from) = store.strip_prefix("sqlite:") {
        return said(runtime()?.block_on(narrows_record::backup(Path::new(from), file)), &to);
    }
    let _lock = place.lock_if_there()?;
    copy(place, &to)
}

fn said(moved: narrows_record::Result<Moved>, to: &str) -> Result<Exit, Failure> {
    let moved = moved.map_err(|error| Failure::host(format!("{}: {error}", shown(to))))?;
    output::write(&format!("copied {} rows, {} runs among them, to {}\n", moved.rows, moved.runs, shown(to)), None)?;
    Ok(Exit::Valid)
}
