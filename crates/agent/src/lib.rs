//! An agent of a fleet: it joins, measures by signed plans, leases what it loads, and spools what
//! it finds until the record of its hub has it.
//!
//! * [`join()`] makes a host an agent; [`State`] is the folder that it keeps.
//! * [`Agent`] is one that runs: `agenda` says what is due, `work` does it, [`Spool`] keeps the
//!   results.
//! * [`Limits`] are what the owner of the host allows. They stand above what the hub signs.
//!
//! It measures nothing itself and reads no clock itself: [`Measure`] and [`Clock`] are arguments.
//! `connection` and `moves` react to the bus, `clock` to the hub's time, `lease` to leases.
//! `docs/design/fleet.md` says what an agent does while hub or bus is away.
//!
//! Invariant: a result is on the disk of this host before the bus hears of it, and stays until the
//! record has it.

mod agenda;
mod agent;
mod chance;
mod clock;
mod command;
mod connect;
mod connection;
mod declined;
mod delays;
mod document;
mod error;
mod feed;
mod former;
mod join;
mod lease;
mod leave;
mod limits;
mod measure;
mod moves;
mod parts;
mod plan;
mod rejoin;
mod send;
mod server;
mod shared;
mod spool;
mod state;
mod status;
mod work;

pub use agent::Agent;
pub use clock::Clock;
pub use connect::connect;
pub use declined::Accepted;
pub use error::{Error, Result};
pub use former::Former;
pub use join::{HUB_PORT, HubAddress, Token, join};
pub use leave::{Departure, leave};
pub use limits::Limits;
pub use measure::{Credential, Fence, Measure, Outcome, Task};
pub use parts::Parts;
pub use plan::{Refusal, order, plan};
pub use rejoin::{Rejoined, rejoin};
pub use spool::{Bounds, Parcel, Spool, Waiting};
pub use state::{Membership, State, lock};
