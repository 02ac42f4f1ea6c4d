//! How the agents and the hub of a fleet talk: one trait, carried by NATS or by the hub itself.
//!
//! * [`Bus`] is what agents and hub need: results that are kept until they are taken, messages
//!   that reach whoever listens now, and keyed values with revisions.
//! * [`nats::Client`] carries it over a NATS server with `JetStream`.
//! * [`embedded::Server`] runs inside the hub, for up to 50 hosts. [`embedded::Client`] is for it.
//! * [`Permissions`] and [`Settings`] are the same for both.
//!
//! One set of tests (`tests/all/suite`) runs over both, so that a fleet can move from one to the
//! other. A new call of [`Bus`] needs both carriers and a test there. `docs/design/bus.md` has
//! subjects, limits and what happens when a server fails.
//!
//! Invariant: the bus is never the only copy of a result. The agent that publishes a result keeps
//! it until the record has it.

pub mod embedded;
pub mod nats;

mod bus;
mod error;
mod key;
mod permissions;
mod pinned;
mod settings;
mod subject;

pub use bus::{Bus, Condition, Delivery, Entry, Kept, Message, Subscription};
pub use error::{Error, Result};
pub use key::{Key, is_public_key, verifies};
pub use permissions::Permissions;
pub use pinned::{has_other_key, key_hash, pinned};
pub use settings::{Bucket, STREAM, Settings, Sinks, Stream};
