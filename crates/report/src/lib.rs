//! Result documents: their JSON form with a versioned schema, their text for people, and the
//! advice.
//!
//! Shapes: [`Document`] is what `test` and `demo` print, [`SimulationDocument`] what `simulate`
//! prints, [`EvaluationDocument`] what `evaluate` prints. All are plain data that serialise to
//! JSON, which is a promise to programs. [`text`](Document::text) renders the same data for people.
//! The JSON schemas ship with the crate ([`schema`]): rates are integer bit/s, times integer ns,
//! sizes octets, and the unit is in the key.
//!
//! Nothing is measured here: what goes in are outcomes of methods. A schema only grows; a change of
//! meaning is a new version. To add a field, add it to the document's type, and to the schema under
//! `schema/`. A stored document of every kind is in `apps/narrows/tests/documents/`: no key of it
//! may vanish or change its type.

mod answer;
mod answer_line;
pub mod burst;
pub mod condition;
pub mod diff;
mod document;
mod evaluation;
pub mod events;
mod findings;
pub mod hops;
pub mod host;
mod names;
pub mod page;
mod passive;
pub mod picture;
pub mod readings;
pub mod redaction;
mod replay;
mod report_file;
mod rows;
mod samples;
pub mod schema;
pub mod screen;
mod simulation;
pub mod streams;
mod text;
mod timing;
mod tracking;
mod watch;

pub use answer::{LoadedDelay, Transfer};
pub use answer_line::{AnswerLine, Topic, answer_text};
pub use document::{CostRow, Document, HostReport, Note, Problem, SINGLE_ENDED, Target};
pub use evaluation::{EvaluationDocument, EvaluationRow, Published, RowKind, Status, World};
pub use events::stage_line;
pub use findings::Environments;
pub use narrows_diagnose::advice::{Advice, HostEnvironment, Severity};
pub use passive::{FlowDirection, PassiveCounts, PassiveDamage, PassiveDocument, PassiveFlow, PassivePair};
pub use replay::{How, ReplayDocument, ReplayedRun};
pub use report_file::{ReportFile, TransferFile};
pub use rows::{MetricRow, Remark};
pub use samples::SamplesRow;
pub use simulation::{RunRow, SimulationDocument, Summary, TruthBasis};
pub use timing::{StageTimingRow, TimingReport};
pub use tracking::{TrackedPoint, Tracking, TrackingSummary};
pub use watch::{Watch, WatchRow, WatchSummary, WindowRow};
