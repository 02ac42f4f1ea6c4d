//! Linux sockets, kernel stamps and pacing, and the estimators' world over them.

pub mod care;
pub mod client;
pub mod clock;
pub mod error;
pub mod errors;
pub mod host;
pub mod iperf3;
pub mod listen;
pub mod load;
pub mod lone;
pub mod names;
pub mod pace;
pub mod receive;
pub mod reflect;
pub mod ring;
pub mod serve;
pub mod socket;
mod sys;
pub mod transfer;

pub use error::Error;
