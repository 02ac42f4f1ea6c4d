//! The store as its users see it: through its file.
#![expect(clippy::unwrap_used, reason = "a test that cannot prepare has failed")]

mod common;
mod damage;
mod full_disk;
mod kill;
mod records;
mod retention;
mod roll_ups;
mod versions;
