//! A hub in this process, with the embedded bus and SQLite, and agents that act by the messages
//! alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare has failed")]

mod alerts;
mod api;
mod directed;
mod faults;
mod fleet;
mod grouping;
mod joining;
mod large;
mod leases;
mod matrix;
mod open_api;
mod orders;
mod plans;
mod results;
mod world;
