//! What `narrows watch` keeps, in one SQLite file.
//!
//! * [`Store::open`] is for the one process that writes; [`Writer`] hands rows to its thread.
//! * [`Reader`] is for everyone else, in this process and in others.
//! * [`records`] has what goes in and comes out.
//!
//! No clock is read here. Only the thread that writes waits for time to pass: it commits every ten
//! seconds, or when many rows wait. `docs/design/store.md` has the tables and the reasons.

pub mod records;

mod codec;
mod connection;
mod error;
mod import;
mod migrate;
mod names;
mod open;
mod queue;
mod reader;
mod retain;
mod roll_up;
mod rows;
mod salvage;
mod spread;
mod summary;
mod writer;

pub use error::{Error, Result};
pub use import::{Import, import};
pub use open::Opened;
pub use queue::Health;
pub use reader::Reader;
pub use retain::{FreeSpace, Retention, free_space};
pub use salvage::Salvage;
pub use spread::Spread;
pub use writer::{Options, Store, Writer};

/// The version of the SQLite that is built in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
