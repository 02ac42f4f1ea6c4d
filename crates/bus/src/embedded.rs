//! The bus inside the hub, for up to 50 hosts: WebSocket outside, one SQLite file inside.
//!
//! `frame` has the messages, `greet` the handshake. The `keeper` is the one thread that
//! touches the file; it commits what waits together, and only then does anyone get an answer. The
//! `router` hands messages to subscriptions.
//!
//! What it promises beyond NATS: an acknowledged message is on the disk, not merely with the
//! server. What it does not promise: a second server that takes over, messages of a publish to
//! plain subscribers, and delivery counts that outlive the server: after a restart each result that
//! was not acknowledged is delivered as if for the first time.
//!
//! The server reads the clock of its host for the age of messages and the duplicate window. A clock
//! that jumps forward makes both end early; the record still knows each id.

mod client;
mod connect;
mod frame;
mod greet;
mod keeper;
mod limits;
mod router;
mod server;
mod session;
mod shared;

pub use client::Client;
pub use connect::{Address, backoff};
pub use limits::Limits;
pub use server::Server;
pub use shared::Admission;
