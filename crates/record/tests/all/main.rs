//! The record as the hub sees it.
#![expect(clippy::unwrap_used, reason = "a test that cannot prepare has failed")]
#![expect(clippy::print_stdout, reason = "what the cases measured is worth reading")]

mod cluster;
mod common;
mod full_disk;
mod kill;
mod moves;
mod older;
mod postgres;
mod sqlite;
mod suite;
