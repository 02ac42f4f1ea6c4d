//! Tests with stock iperf3 peers, either side: sockets and threads around [`narrows_wire::iperf3`].
//!
//! | part | file | runs on |
//! |---|---|---|
//! | a test against a stock server | `client.rs` | the caller's thread |
//! | who comes to the server, by TCP and UDP | `listen_socket.rs` | a thread per address and protocol |
//! | one test of a stock client | `session.rs` | a thread per test |
//! | who may test | `token.rs` | |
//! | one stream: sending or receiving | `tcp.rs`, `udp.rs`; counters in `stream.rs` | a thread per stream |
//!
//! **Invariant:** every thread that sends looks at its stop flag at least every 20 ms, and a
//! session looks at its control connection as often: traffic ends within a second of the peer's
//! end.
//!
//! Departs from stock iperf3: what was written is waited for until the far kernel has it, before
//! the test is declared over (at most [`MOST_DRAIN`]), so that both sides of a TCP test count the
//! same octets.

mod client;
mod connect;
mod intervals;
mod link;
mod listen_socket;
mod options;
mod serve;
mod session;
mod shared;
mod stream;
mod tcp;
#[cfg(test)]
mod tests;
mod token;
mod udp;
mod worker;

use std::time::Duration;

pub use client::{Connected, Finished, Outline, TestOptions, run};
pub use intervals::{Intervals, Part, StreamPart, joined};
pub use options::{Iperf3Limits, Iperf3Options, SessionEnd, SessionSummary};
pub use serve::Iperf3Server;
pub use stream::Snapshot;
pub use token::{Gate, Padding, PublicKey, REFUSED_AFTER, TokenError};

/// Longest wait for what was written to arrive (ours: a buffer of 4 MiB at 17 Mbit/s).
pub const MOST_DRAIN: Duration = Duration::from_secs(2);

/// CPU time of this process: user, system.
fn cpu_times() -> (Duration, Duration) {
    use nix::sys::resource::{UsageWho, getrusage};
    let time = |value: nix::sys::time::TimeVal| {
        let micros = value.tv_sec().saturating_mul(1_000_000).saturating_add(value.tv_usec());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    // The call cannot fail for the calling process.
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or((Duration::ZERO, Duration::ZERO), |usage| (time(usage.user_time()), time(usage.system_time())))
}

/// CPU used since `before`, in percent of `elapsed`.
fn cpu_since(before: (Duration, Duration), elapsed: Duration) -> narrows_wire::iperf3::Cpu {
    let (user, system) = cpu_times();
    let percent = |now: Duration, before: Duration| {
        if elapsed.is_zero() { 0.0 } else { 100.0 * now.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64() }
    };
    let (user, system) = (percent(user, before.0), percent(system, before.1));
    narrows_wire::iperf3::Cpu { total: user + system, user, system }
}
