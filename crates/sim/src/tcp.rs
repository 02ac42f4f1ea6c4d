//! TCP without sockets: endpoints whose segments travel over a [`Path`](crate::Path).
//!
//! # Model
//! Every segment is full; windows, sequence numbers and counters are kept in segments. A connection has a sender with data
//! without end (until it is told to finish) and a receiver whose application reads at once. What Linux does by default is
//! done: initial window 10, SACK and timestamps, quick acknowledgements at first and every second segment later, CUBIC with
//! HyStart, receive-window autotuning, no pacing unless asked for.
//!
//! # Not modelled
//! Segmentation offload and coalesced receipt (bursts are as long as acknowledgements make them), costs of the hosts'
//! processors, tail-loss probes, F-RTO, ECN, send buffers as the limit (`tcp_wmem`), a receiving
//! application that is slow, the handshake's packets.

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
mod window;

pub(crate) use congestion::Control;
pub(crate) use elastic::elastic_flows;
pub(crate) use flow::{FlowConfig, Route};
pub(crate) use segment::{HEADER_OCTETS, Kind, Segment};
pub(crate) use stack::{Departure, Stack};
pub(crate) use window::ReceiveWindow;

#[cfg(test)]
mod tests;
