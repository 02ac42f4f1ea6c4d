//! The path, hop by hop.

mod report;

pub use report::{AnswerPace, Forecast, Foretold, HiddenDevice, HopCapacity, HopFinding, PathHops, Responder, key};
