//! The path, hop by hop.

mod report;

pub use report::{
    AnswerPace, FarStamped, Forecast, Foretold, HiddenDevice, HopCapacity, HopFinding, PathHops, Responder, key,
};
