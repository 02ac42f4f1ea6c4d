//! What the hub of a fleet keeps: agents, results, plans, and who changed what.
//!
//! [`open()`] gives a [`Record`], which is all that the hub knows of it. SQLite carries it for up
//! to 50 hosts, PostgreSQL 15 for more. One set of tests (`tests/all/suite`) runs over both.
//! `docs/design/record.md` has the tables, and how to change them.
//!
//! Invariant: when [`Record::ingest`] returns, the results are on the disk. A result that is sent
//! again is kept once.

mod chain;
mod codes;
mod error;
mod fit;
mod migration;
mod open;
pub mod postgres;
mod record;
mod routes;
mod rows;
pub mod sqlite;
mod sums;
mod tables;
mod transfer;

pub use chain::broken_at;
pub use error::{Error, Result};
pub use fit::unfit;
pub use open::open;
pub use record::Record;
pub use rows::{
    Agent, AgentState, ArrivalFilter, Arrivals, Audit, EndedRun, GivenOrder, Ingested, KeptGrouping, KeptProof,
    LastOutcome, Latest, NewAgent, NewNotice, OrderState, Point, Range, Reservation, RouteSeen, RunFilter, RunRow,
    SiteValue, Token, WaitingNotice,
};
pub use transfer::{Moved, backup, move_to};
