//! Linux sockets, kernel stamps and pacing, and the estimators' world over them.

pub mod care;
pub mod client;
pub mod clock;
pub mod error;
pub mod errors;
pub mod foreign;
pub mod host;
pub mod iperf3;
mod leisure;
pub mod listen;
pub mod load;
mod lobby;
pub mod lone;
pub mod names;
#[cfg(feature = "tls")]
pub mod ndt7;
pub mod pace;
mod purse;
pub mod receive;
pub mod reflect;
pub mod ring;
pub mod serve;
pub mod socket;
pub mod spacing;
mod sys;
mod timetable;
pub mod transfer;
pub mod tun;
pub mod via;

pub use error::Error;
