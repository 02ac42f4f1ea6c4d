//! Evaluation plans: methods and external tools run over many paths, and their errors summarised.
//!
//! A [`Plan`] is a TOML file: scenarios, methods, parameters, seeds, and the worlds to run in. Each
//! combination of scenario, method with parameters, and world is a [`Cell`], and gives one row of
//! the result. [`carry_out`] runs each cell as often as the plan says: in the simulator by itself,
//! in the lab by the [`ExternalRunner`] that the program hands over. Each [`Run`] goes to a
//! [`Store`] at once, so a plan that was killed goes on where it stopped. Rows are summaries of
//! runs, in the plan's order: estimate over truth, cost in octets and ns, caveats.
//!
//! The truth comes from the scenario ([`truth`]), never from the plan. A run in the lab whose
//! timing was not valid is marked and not judged. External tools are described in the plan
//! ([`external_tool`]).
//!
//! To evaluate a method over other paths or loads, write a plan: `docs/guide/evaluate.md`.

mod cell;
mod error;
pub mod expected;
pub mod external_tool;
mod hosts;
pub mod judge;
mod key;
pub mod oracle;
mod output;
mod parallel;
pub mod pictures;
pub mod plan;
mod recorded;
pub mod simulated;
mod store;
pub mod subject;
mod summary;
mod text_file;
mod tracked;
pub mod truth;
mod work;

pub use cell::{Cell, ExternalRunner, Judged, Order, Run, Traced};
pub use error::{PlanError, RunFault, StoreError};
pub use hosts::scenario_beside;
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
