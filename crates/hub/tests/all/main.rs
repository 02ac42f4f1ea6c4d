//! A hub in this process, with the embedded bus and SQLite, and agents that act by the messages
//! alone.

mod api;
mod fleet;
mod plans;
mod results;
mod world;
