//! Linux sockets, kernel stamps and pacing, and the worlds in which methods measure real paths.
//!
//! - [`client`]: `SocketWorld`, for a path to a host that runs the server, measured in one
//!   direction.
//! - [`single_ended`]: the world for hosts that run nothing of ours; their echoes and ICMP errors
//!   answer.
//! - [`serve`], [`reflect`]: the server, and a STAMP reflector (RFC 8762).
//! - [`pace`], [`receive`], [`load`], [`transfer`]: trains, stamped receiving, UDP loads, TCP
//!   transfers.
//!
//! A world takes a probe (sizes and departure times) and returns an event: for each packet its
//! departure (stamped by the program or the kernel) and its arrival, in ns, or that it was lost.
//! Receive stamps come from the card or the kernel where they give any, else from the program; the
//! facts of the path say which. If this host cannot carry out a probe, the answer is a refusal with
//! its reason. No wait is endless: each has a timeout.
//!
//! A new feature of sockets gets a file of its own beside these, and its calls in `src/sys/`.
//!
//! All `unsafe` code of the project is in `src/sys/`.

pub mod client;
pub mod clock;
mod control_socket;
pub mod error;
pub mod errors;
pub mod foreign;
pub mod host;
pub mod iperf3;
pub mod listen;
pub mod load;
pub mod names;
#[cfg(feature = "tls")]
pub mod ndt7;
pub mod pace;
mod path_mtu;
mod pending_connections;
mod poll_interval;
pub mod receive;
pub mod reflect;
pub mod ring;
mod send_budget;
pub mod serve;
pub mod single_ended;
pub mod socket;
pub mod spacing;
mod sys;
pub mod thread_scheduling;
pub mod transfer;
pub mod tun;
pub mod via;

pub use error::Error;
