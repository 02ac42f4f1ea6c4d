//! Evaluation plans: scenarios, methods, parameters, seeds and worlds crossed, run, kept and summarised; rivals beside them.
//!
//! Shapes: a [`Plan`] is read from a file and crossed into [`Cell`]s, one per row; each is run as often as the plan says, in the
//! simulator by this crate, in the lab by a [`Bench`] that the program hands over; each [`Run`] goes to a store that survives a kill;
//! rows are summaries of runs, in the plan's order.

mod cell;
mod error;
pub mod judge;
mod key;
mod output;
mod parallel;
pub mod pictures;
pub mod plan;
mod recorded;
pub mod rival;
pub mod simulated;
mod store;
pub mod subject;
mod summary;
mod tracked;
pub mod truth;
mod work;

pub use cell::{Bench, Cell, Judged, Order, Run, Traced};
pub use error::{PlanError, RunFault, StoreError};
pub use key::Key;
pub use output::runs_csv;
#[cfg(feature = "parquet")]
pub use output::{rows_parquet, runs_parquet};
pub use parallel::parallel;
pub use plan::Plan;
pub use store::Store;
pub use subject::Subject;
pub use summary::{document, each_run};
pub use work::{Options, Progress, Shortfalls, carry_out};
