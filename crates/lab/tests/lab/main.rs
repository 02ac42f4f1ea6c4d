//! The real-time path between real kernels. Needs privileges and a machine with time to spare, so
//! nothing here runs by itself.
//!
//! What depends on the machine is judged only if the path says that it had valid timing and no
//! program left datagrams unread; if not, it is measured again, at most five times, whatever the
//! result was, and the count is printed. On a machine that never keeps time the test says
//! `NOT JUDGED`, which `cargo xtask` counts as skipped: nothing was shown.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of a world, with its real clock, that print how often they measured"
)]

mod bench;
mod life;
mod routers;
mod stock;
mod timing;
mod topology;
