//! signature: recognises parallel links, aggregation and grants by the rates of trains over their length.

mod cause;
mod classify;
mod rungs;
mod trains;

pub use cause::{Cause, Rung, Signature, Spread};
pub use classify::classify;
