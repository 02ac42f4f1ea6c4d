//! TCP without sockets: endpoints whose segments travel over a [`Path`](crate::Path).
//!
//! # Model
//! Every segment is full; windows, sequence numbers and counters are kept in segments. A connection
//! has a sender with data without end (unless it is told how much there is) and a receiver whose
//! application reads at once. What Linux does by default is done: initial window 10, SACK and
//! timestamps, quick acknowledgements at first and every second segment later, CUBIC with HyStart,
//! receive-window autotuning, no pacing unless asked for, a small window after a pause. Reno and
//! BBR, which paces, on request.
//!
//! # Not modelled
//! Segmentation offload (bursts are as long as acknowledgements make them), tail-loss probes,
//! F-RTO, ECN, the handshake's packets. Programs and processors are as fast as needed unless a
//! host's [`narrows_scenario::TcpHost`] says otherwise. What measured hosts do to segments is
//! outside: `world/segments.rs`.

mod bbr;
mod congestion;
mod cubic;
mod elastic;
mod flow;
mod hystart;
mod interface;
mod prr;
mod ranges;
mod rate;
mod receiver;
mod reno;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod stack;
mod web;
mod window;

pub(crate) use congestion::Control;
pub(crate) use elastic::{Transfers, elastic_flows, transfers};
pub(crate) use flow::{FlowConfig, Programs, Route};
#[cfg(test)]
pub(crate) use segment::Data;
pub(crate) use segment::{HEADER_OCTETS, Kind, Segment};
pub(crate) use stack::{Departure, Stack};
pub use web::{TransferStart, TransferStream};
pub(crate) use window::ReceiveWindow;

#[cfg(test)]
mod tests;
