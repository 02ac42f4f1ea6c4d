//! The protocol of iperf3 (3.1 to 3.21), without any socket or clock: what `narrows` needs to be
//! understood by stock clients and servers.
//!
//! | part | here |
//! |---|---|
//! | the connection's name, 37 octets | [`Cookie`] |
//! | one octet for each step of a test | [`State`] |
//! | what the client asks for, JSON behind its length | [`Parameters`] |
//! | what each side counted, likewise | [`Results`] |
//! | order of all that, as each side sees it | [`ClientSide`], [`ServerSide`] |
//! | head of a UDP datagram, greeting of a UDP stream | [`DatagramHead`], [`GREETING`], [`GREETING_REPLY`] |
//! | account of UDP datagrams | [`Arrivals`] |
//! | name and password | [`auth`] |
//!
//! Octets from outside are bounded before they are kept, types are checked, and nothing panics. The
//! protocol has no document of its own: its source is what stock programs send.
//!
//! Departs from stock iperf3: datagrams that come twice do not cancel lost ones, and lengths that a
//! peer announces are never believed beyond [`MOST_PARAMETER_OCTETS`] and [`MOST_RESULT_OCTETS`].

mod arrivals;
pub mod auth;
mod client;
mod cookie;
mod datagram;
mod inbox;
mod json;
mod parameters;
mod results;
mod server;
mod state;
#[cfg(test)]
mod tests;

pub use arrivals::{ArrivalCounts, Arrivals};
pub use client::{ClientFault, ClientOrder, ClientSide};
pub use cookie::{COOKIE_OCTETS, Cookie};
pub use datagram::{Counters, DatagramHead, GREETING, GREETING_REPLY, is_greeting_reply};
pub use inbox::{MOST_PARAMETER_OCTETS, MOST_RESULT_OCTETS, frame};
pub use json::JsonError;
pub use parameters::{Flow, MOST_STREAMS, MOST_UDP_BLOCK, Parameters, Transport};
pub use results::{Cpu, Results, StreamResult};
pub use server::{ServerFault, ServerOrder, ServerSide};
pub use state::{ErrorNumber, State};

/// TCP and UDP port of stock servers.
pub const PORT: u16 = 5201;

/// Number of the `index`-th stream of a test on either side: 1, 3, 4, 5 and so on.
pub const fn stream_id(index: u32) -> u32 {
    if index == 0 { 1 } else { index + 2 }
}
