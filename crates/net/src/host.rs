//! What this host can do, and how it is set up. Measured in about a tenth of a second, on loopback only.

mod environment;
mod interface;
mod measure;
mod offload;

pub use environment::{Environment, Steal};
pub use interface::Interface;
pub use measure::measure;
pub use offload::turn_off_offloads;
