//! Host profiles: what a host does to packets and stamps, measured as quantiles.
//!
//! Shapes: a recorder fills [`Rows`] with what it saw, [`HostProfile::of_rows`] makes a profile of
//! them, and [`HostProfile::to_toml`] and [`HostProfile::from_toml`] write and read it. A simulated
//! host plays a profile: it draws from [`Quantiles`] and follows the stalls of a [`StallWalk`]. The
//! rows of a host that plays a profile give the same profile again.
//!
//! All times are nanoseconds. Nothing here reads a clock or draws from a random source: whoever
//! samples passes in numbers between 0 and 1.

mod ends;
mod error;
mod profile;
mod quantiles;
mod rows;
mod stalls;
mod text;

pub use ends::Ends;
pub use error::ProfileError;
pub use profile::{ClockProfile, HostProfile, ReceiveProfile, Recorded, SCHEMA, SendProfile};
pub use quantiles::{PERCENTS, Quantiles};
pub use rows::{About, PacketRow, Rows};
pub use stalls::{Sojourn, Span, StallProfile, StallState, StallWalk};
