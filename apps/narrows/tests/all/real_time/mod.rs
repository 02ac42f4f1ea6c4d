//! Sockets, real-time path, simulator and methods held against one another. Needs privileges, so
//! nothing here runs by itself.
//!
//! What depends on the machine is judged only if the path says that it had valid timing (and the
//! sender that it kept its plan); if not, it is measured again, a few times, whatever the result
//! was, and the count is printed. What an estimator says is never a reason to measure again: that
//! it is inconclusive is a result. A test with several cases prints `JUDGED` or `NOT JUDGED` for
//! each, which `cargo xtask` counts.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests of a world that print how often they measured, and what"
)]

pub(crate) mod bench;
mod bursts;
mod kernel_buckets;
mod lab_against_simulator;
mod limits;
mod neighbours;
mod quick_mode;
mod real_time_against_simulator;
mod token_buckets;
mod watch;
