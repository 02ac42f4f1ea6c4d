//! ndt7 tests, either side: sockets, TLS and threads around [`narrows_wire::ndt7`].
//!
//! | part | file | runs on |
//! |---|---|---|
//! | a test against a server | `client.rs` | the caller's thread |
//! | who comes to the server | `listen_socket.rs` | a thread per address |
//! | one test of a client | `session.rs` | a thread per test |
//! | a WebSocket that never waits longer than told, over TCP or TLS | `socket.rs`, `tls.rs` | |
//!
//! **Invariant:** whoever sends looks at its stop flag and at the clock between any two messages,
//! and never waits longer than 20 ms: traffic ends within a second of the peer's end, and with the
//! server's timeout whatever the peer does.
//!
//! **Invariant:** a connection costs its server no thread before it has said something, and no more
//! memory than one message of the longest kind and one of ours.

mod client;
mod listen_socket;
mod session;
mod socket;
#[cfg(test)]
mod tests;
mod tls;

pub use client::{Finished, TestOptions, Tick, run};
pub use listen_socket::{Ndt7Limits, Ndt7Options, Ndt7Server, SessionEnd, SessionSummary};
pub use tls::{Identity, TlsError, Trust};
