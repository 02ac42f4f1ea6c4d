//! What agents and hub say to each other, as JSON on the bus or in a request.
//!
//! | subject or request | who | content |
//! |-|-|-|
//! | `POST /api/v1/join` | agent | [`Join`], answered by [`Joined`] |
//! | `result.<agent>.<kind>` | agent | [`Run`] |
//! | `status.<agent>` | agent, every 30 s | [`Status`] |
//! | key `<agent>` of bucket `plan` | hub | [`Signed`] of a [`Plan`] |
//! | `order.<agent>` | hub | [`Signed`] of an [`Order`] |
//! | `stored.<agent>` | hub, also in answer to a status | [`Answer`] |
//!
//! Times are Unix time in whole milliseconds (`_ms`) of the hub's clock, rates bit/s, sizes octets.
//! Unknown fields are ignored: agents may be older or newer than their hub. What changes the
//! meaning of a field takes a new schema.

mod join;
mod order;
mod plan;
mod run;
mod signed;
mod status;

pub use join::{BusAddress, Join, Joined};
pub use order::Order;
pub use plan::{Directed, Peer, Plan, PlannedRun, ServerKey};
pub use run::{Claim, Direction, Exit, Flag, Hop, Origin, Run, Value};
pub use signed::Signed;
pub use status::{Answer, HubTime, Status, Stored};
