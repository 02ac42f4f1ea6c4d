//! Packets that others took: capture files, headers, TCP flows, and where along a flow's way a capture sits.
//!
//! Shapes: a [`CaptureReader`](file::CaptureReader) gives packets one after the other, [`decode`](decode::decode) reads their headers,
//! [`Analysis`] sorts them into connections, shows them to passive methods and gathers [`Findings`]. Memory is bounded whatever the
//! capture: one window of a file, a bounded table of connections, a bounded store of results.
//! [`filter`] is a useful part of tcpdump's language of filters, translated for the kernel and for us.
//!
//! This crate opens no file and no socket: it is given what can be read.

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
