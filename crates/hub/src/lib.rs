//! The hub of a fleet: who belongs to it, what each agent is to do, what they found.
//!
//! * [`Hub`] joins hosts, plans, takes results, and locates links; its parts are `join`, `planner`,
//!   `ingest`, `tomography`, `rules`.
//! * [`Keys`] are its secrets, [`JoinToken`] is what a host shows.
//! * [`Server`] serves the API, the pages and the embedded bus on one port.
//!
//! `compile` makes a timetable from what is known; it is pure, so that a configuration can be
//! tried. What the hub decides comes from `narrows_fleet`; what it keeps is in `narrows_record`.
//! `docs/design/fleet.md` has the reasons.
//!
//! Invariant: a result is acknowledged on the bus after the record has it, never before.

mod api;
mod assets;
mod channels;
mod compile;
mod cost;
mod counters;
mod directory;
mod error;
mod hub;
mod keys;
mod move_bus;
mod network;
mod peer_keys;
mod reach;
mod server;
mod token;
mod tokens;

use std::time::Duration;

pub use channels::Channels;
pub use directory::{Directory, Presence};
pub use error::{Error, Result};
pub use hub::bottlenecks::Bottleneck;
pub use hub::view::PlanView;
pub use hub::{Accepted, Clock, Cut, Hub, Parts, Tell};
pub use keys::{HubFile, Keys};
pub use move_bus::move_bus;
pub use narrows_site::wall_clock;
pub use server::{Server, Settings};
pub use token::JoinToken;
pub use tokens::{Tokens, operator_settings};

/// After a fault of the bus or the record, the same is tried again.
const AGAIN: Duration = Duration::from_secs(2);
