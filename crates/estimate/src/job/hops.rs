//! The path, hop by hop.

pub use crate::outcome::{
    AnswerPace, FarStamped, Forecast, Foretold, HiddenDevice, HopCapacity, HopFinding, PathFinding, PathHops, Responder,
};
