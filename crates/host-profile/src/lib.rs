//! Host profiles: what a host does to packets and stamps, measured as quantiles.
//!
//! Shapes: a recorder fills [`Rows`] with what it saw, [`HostProfile::of_rows`] makes a profile of
//! them, and [`HostProfile::to_toml`] and [`HostProfile::from_toml`] write and read it. A simulated
//! host plays a profile: it draws from [`Quantiles`] and follows the stalls of a [`StallWalk`]. If
//! a simulated host plays a profile and is recorded itself, the result is the same profile.
//!
//! A new key is a field in `profile.rs`, and a line in `text.rs`. `docs/guide/host.md` explains the
//! keys, `docs/design/host.md` what is recorded and why.
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
