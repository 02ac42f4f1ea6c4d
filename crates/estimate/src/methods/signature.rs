//! signature: recognises parallel links, aggregation and grants by the rates of trains over their length.

mod batches;
mod cause;
mod classify;
mod grants;
mod knee;
mod rungs;
mod trains;

pub use cause::{Cause, Rung, Signature, Spread};
pub use classify::classify;
