//! Traffic that other programs sent, read for passive methods: capture files, headers, TCP flows.
//!
//! 1. A [`CaptureReader`](file::CaptureReader) gives the packets of a file (pcap, pcapng) in order.
//! 2. [`decode`](decode::decode) reads their headers.
//! 3. [`Analysis`] sorts them into TCP connections, hands each direction to the passive methods and
//!    gathers [`Findings`]: results per flow and per pair of hosts, rates in bit/s.
//!
//! Assumed: stamps that resolve the spacing of packets, and a capture that sees at least one
//! direction whole. [`damage`] says what could not be read, and where; [`matching`] finds the same
//! packets in a second capture, which gives their departure times. [`filter`] is a useful part of
//! tcpdump's filter language, for the kernel and for us.
//!
//! Memory is bounded whatever the capture: one window of a file, a bounded table of connections, a
//! bounded store of results. This crate opens no file and no socket: the caller passes a reader.
//!
//! To read another link type, add it to `decode/link.rs`; another file format goes to `file/`.

pub mod damage;
pub mod decode;
pub mod file;
pub mod filter;
pub mod findings;
pub mod flows;
pub mod matching;
pub mod packet;
pub mod pairs;

mod analysis;

pub use analysis::{Analysis, Options};
pub use findings::Findings;
pub mod write;
