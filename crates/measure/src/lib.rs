//! What users get: for each metric the method that answers unless the caller names another.
//!
//! One file or folder each; the name of the module is the quantity. `narrows_methods` lists them.

pub mod asymprobe;
pub mod available;
pub mod burst;
pub mod capacity;
pub mod follow;
pub mod hops;
pub mod pmtu;
pub mod rtt;
pub mod shaper;
pub mod streams;
pub mod tcp;
pub mod udp;
pub mod window;
