//! `narrows hub move`.

use std::path::PathBuf;

use super::place::PlaceArgs;
use super::store::{copy, failure, is_state, open, runtime};
use crate::exit::{Exit, Failure};
use crate::output;

/// What moves, and where to.
#[derive(Debug, clap::Args)]
#[group(id = "what", required = true, multiple = true, args = ["store", "bus"])]
pub(crate) struct MoveArgs {
    /// Where the record goes: `postgres://user@host/database` or `sqlite:FILE`; nothing is there
    /// yet
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Where the bus in the hub goes: `nats://host:4222`; may be repeated for the servers of one
    /// cluster
    #[arg(long, value_name = "URL", value_parser = server)]
    bus: Vec<String>,
    /// The record as it is; by default hub.db in the state directory
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The hub's state directory
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

pub(super) fn run(args: &MoveArgs) -> Result<Exit, Failure> {
    let place = PlaceArgs { state: args.state.clone(), store: args.from.clone() };
    let _lock = place.lock_if_there()?;
    if let Some(store) = &args.store {
        copy(&place, store)?;
    }
    if args.bus.is_empty() {
        return Ok(Exit::Valid);
    }
    let state = place.state();
    is_state(&state)?;
    if !state.join("bus.db").exists() {
        let text = "--bus: the bus of this hub is not in the hub: only one that is there can be moved";
        return Err(Failure::usage(text));
    }
    let keys = narrows_hub::Keys::open(&state, &[]).map_err(|error| failure(&error))?;
    let now_ms = i64::try_from(narrows_hub::wall_clock().as_millis()).unwrap_or(i64::MAX);
    let members = runtime()?.block_on(async {
        // A new record is the one that counts from now on.
        let record = open(args.store.as_ref().unwrap_or(&place.store())).await?;
        narrows_hub::move_bus(&*record, &keys, &args.bus, now_ms).await.map_err(|error| failure(&error))
    })?;
    // A password in the URL is not for the screen.
    let store = args.store.iter().map(|_| "that --store".to_owned());
    let flags: Vec<String> = args.bus.iter().map(|bus| format!("--bus {bus}")).chain(store).collect();
    let text = format!("start the hub with {}: {members} agents are told when they come\n", flags.join(" and "));
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

fn server(text: &str) -> Result<String, String> {
    let known = text.starts_with("nats://") || text.starts_with("tls://");
    known.then(|| text.to_owned()).ok_or_else(|| "write nats://HOST:PORT or tls://HOST:PORT".to_owned())
}
