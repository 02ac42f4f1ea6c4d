//! The protocol between `narrows` and `narrows serve`, and those of peers that speak another,
//! without any socket or clock.
//!
//! | layer | module | carries |
//! |---|---|---|
//! | control (TCP) | [`ClientMessage`], [`ServerMessage`], [`Rows`] | requests, answers, tables |
//! | order of control messages | [`Conversation`] | which message may come when, either side |
//! | data, over UDP | [`Datagram`] | proof of address, then trains, echoes and loads |
//! | data, over TCP | [`DataHello`] | the first octets of a bulk connection |
//! | a stock peer, over TCP and UDP | [`iperf3`] | tests by stock iperf3 clients and servers |
//! | an M-Lab peer, over a WebSocket | [`ndt7`] | tests by ndt7 clients and servers |
//! | STAMP, over UDP | [`stamp`] | RFC 8762 packets, for hosts that run a reflector instead |
//! | proofs | [`CookieKeys`], [`Psk`], [`fleet_key`] | return routability, shared keys, the keys of a fleet |
//!
//! Octets from outside enter through `parse` functions that take `&[u8]`, check before they
//! allocate, and never panic: [`FrameReader`], [`ClientMessage::parse`], [`ServerMessage::parse`],
//! [`Rows::parse`], [`Datagram::parse`], [`DataHello::parse`], and those of [`stamp`] and
//! [`fleet_key`].
//! `docs/design/protocol.md` has the layouts of octets and the order of messages. Rates are in
//! bit/s, times in ns.
//!
//! If an older peer would misread a new message, raise [`VERSION`]. The two sides use the lower of
//! their versions.

mod bytes;
mod conversation;
mod cookie;
mod data;
mod datagram;
pub mod fleet_key;
mod frame;
pub mod iperf3;
mod light;
mod limits;
mod message;
pub mod ndt7;
mod psk;
mod rows;
mod secret;
pub mod stamp;

pub use conversation::{Conversation, MessageVerdict, Side, Violation};
pub use cookie::{COOKIE_EPOCH, CookieKeys};
pub use data::{DATA_HELLO_OCTETS, DataHello, DataHelloError};
pub use datagram::{Datagram, DatagramError, ECHO_OCTETS, HELLO_OCTETS, Handshake, PROBE_OCTETS, Probe, ProbeKind};
pub use frame::{FRAME_HEADER_OCTETS, Frame, FrameCaps, FrameError, FrameKind, FrameReader, encode_frame};
pub use light::LightMeter;
pub use limits::SessionLimits;
pub use message::{
    Auth, BulkStream, ClientMessage, Direction, HostFacts, HostSettings, LoadPlan, LoadSegment, LoadSent, LoadStatus,
    LoadTuning, MessageError, Pacing, RefusalCode, ServerMessage, SettingsCounted, SlotKind, SocketStands, StampSource,
    TcpSample, TcpState, TrainExpectation, TrainResult, TransferPlan, TransferReceived, TransferSegment, TransferSent,
    TransferTuning,
};
pub use psk::{Psk, PskError};
pub use rows::{ArrivalRow, DepartureRow, MAX_ROWS, PlanRow, ROW_OCTETS, Rows, RowsError, Table};
pub use secret::{Cookie, Nonce, Proof, Tag, Token};

/// The newest version of the protocol that this crate speaks.
pub const VERSION: u16 = 4;

/// From this version on a session may tune loads and transfers, and share the load slot of another
/// one. A peer of an older version would ignore the fields, and test something else: to it they are
/// not said.
pub const TUNES: u16 = 3;

/// From this version on a server may know its clients' keys by name, and grant the load slot to
/// leased runs alone. An older server ignores a key's name, and would take the key for its own.
pub const NAMES_KEYS: u16 = 4;

/// The oldest one. Version 1 has no `AskHost`, and its peers refuse fields that they do not know.
pub const OLDEST_VERSION: u16 = 1;

/// The version of a session whose client speaks none newer than this; `None` if this side has
/// abandoned all that the client speaks. A client that gets an answer outside of what it speaks
/// leaves.
pub const fn agreed(client_newest: u16) -> Option<u16> {
    if client_newest < OLDEST_VERSION {
        None
    } else if client_newest < VERSION {
        Some(client_newest)
    } else {
        Some(VERSION)
    }
}

/// TCP and UDP port of `narrows serve` unless another is given (ours; unassigned by IANA).
pub const DEFAULT_PORT: u16 = 8620;

/// Longest silence of a side on the control connection while traffic runs: each sends at least this
/// often, if only `Alive` (RFC 9097's watchdogs count in seconds; ours stop sooner).
pub const ALIVE_EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// After its last word each side says `Alive` so many times more, at its next looks (50 ms apart).
/// A full queue on the way loses the word that follows a train; only what comes behind it tells TCP
/// so at once, and else a timer does after some 300 ms (RFC 8985 §7.2).
pub const FOLLOWED_BY: u8 = 3;

/// The sender of traffic stops after this long without a word from the other side. Who only
/// receives a train waits up to [`IDLE_LIMIT`], for the train may have filled the queue in which
/// that word is lost.
pub const PEER_SILENT_AFTER: std::time::Duration = std::time::Duration::from_millis(900);

/// The longest silence on the control connection while no traffic runs; each side sends `Alive` at
/// least every third of it.
pub const IDLE_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);
