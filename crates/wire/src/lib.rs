//! The protocol between `narrows` and `narrows serve`, without any socket or clock.
//!
//! | layer | module | carries |
//! |---|---|---|
//! | control, over TCP | [`FrameReader`], [`ClientMessage`], [`ServerMessage`], [`Rows`] | requests, answers, rows |
//! | order of the control messages | [`Conversation`] | which message may come when, on either side |
//! | data, over UDP | [`Datagram`] | address validation, then trains, echoes and loads |
//! | data, over TCP | [`DataHello`] | the first octets of a bulk connection |
//! | a stock peer, over TCP and UDP | [`iperf3`] | tests by stock iperf3 clients and servers |
//! | STAMP, over UDP | [`stamp`] | RFC 8762 packets of either side, for hosts that run a reflector instead |
//! | ICMP errors, from anybody | [`icmp`] | which packet they are about, and what routers say beside |
//! | proofs | [`CookieKeys`], [`Psk`] | return routability, shared keys |
//!
//! Octets from outside enter through `parse` functions that take `&[u8]`, check before they allocate, and never panic:
//! [`FrameReader`], [`ClientMessage::parse`], [`ServerMessage::parse`], [`Rows::parse`], [`Datagram::parse`],
//! [`DataHello::parse`], and those of [`stamp`] and [`icmp`]. `docs/protocol.md` has the byte layouts and the order of messages.

mod bytes;
mod conversation;
mod cookie;
mod data;
mod datagram;
mod frame;
pub mod icmp;
pub mod iperf3;
mod light;
mod limits;
mod message;
mod psk;
mod rows;
mod secret;
pub mod stamp;

pub use conversation::{Conversation, Side, Verdict, Violation};
pub use cookie::{COOKIE_EPOCH, CookieKeys};
pub use data::{DATA_HELLO_OCTETS, DataHello, DataHelloError};
pub use datagram::{Datagram, DatagramError, ECHO_OCTETS, HELLO_OCTETS, Handshake, PROBE_OCTETS, Probe, ProbeKind};
pub use frame::{FRAME_HEADER_OCTETS, Frame, FrameCaps, FrameError, FrameKind, FrameReader, encode_frame};
pub use light::LightMeter;
pub use limits::SessionLimits;
pub use message::{
    Auth, BulkStream, ClientMessage, Direction, HostFacts, LoadPlan, LoadSegment, LoadSent, LoadStatus, MessageError,
    Pacing, RefusalCode, ServerMessage, SlotKind, StampSource, TcpSample, TcpState, TrainExpectation, TrainResult,
    TransferPlan, TransferReceived, TransferSegment, TransferSent,
};
pub use psk::{Psk, PskError};
pub use rows::{ArrivalRow, DepartureRow, MAX_ROWS, PlanRow, ROW_OCTETS, Rows, RowsError, Table};
pub use secret::{Cookie, Nonce, Proof, Tag, Token};

/// Version of the protocol; both sides must speak the same.
pub const VERSION: u16 = 1;

/// TCP and UDP port of `narrows serve` unless another is given (ours; unassigned by IANA).
pub const DEFAULT_PORT: u16 = 8620;

/// Longest silence of a side on the control connection while traffic runs: each sends at least this often, if only
/// `Alive` (RFC 9097's watchdogs count in seconds; ours stop sooner).
pub const ALIVE_EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// The sender of traffic stops after this long without a word from the other side.
pub const PEER_SILENT_AFTER: std::time::Duration = std::time::Duration::from_millis(900);

/// The longest silence on the control connection while no traffic runs; each side sends `Alive` at least every third of it.
pub const IDLE_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);
