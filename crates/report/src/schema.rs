//! The JSON schemas that ship with the program.

/// Name and version of [`REPORT`].
pub const REPORT_NAME: &str = "narrows.report/1";

/// JSON schema (draft 2020-12) of [`Document`](crate::Document).
pub const REPORT: &str = include_str!("../schema/report-1.json");

/// Name and version of [`SIMULATION`].
pub const SIMULATION_NAME: &str = "narrows.simulation/1";

/// JSON schema (draft 2020-12) of [`SimulationDocument`](crate::SimulationDocument).
pub const SIMULATION: &str = include_str!("../schema/simulation-1.json");

/// Name and version of [`EVALUATION`].
pub const EVALUATION_NAME: &str = "narrows.evaluation/1";

/// JSON schema (draft 2020-12) of [`EvaluationDocument`](crate::EvaluationDocument).
pub const EVALUATION: &str = include_str!("../schema/evaluation-1.json");
