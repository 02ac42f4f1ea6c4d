//! What can go wrong, by who can mend it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A fault of generator or sink.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// The caller asked for what cannot be sent.
    #[error("{0}")]
    Caller(#[from] CallerError),
    /// A capture is of no use.
    #[error("{0}")]
    Capture(#[from] CaptureError),
    /// This host refused a system call.
    #[error("this host cannot {doing}: {source}")]
    Host {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// This host has no such congestion control, or does not let this user have it.
    #[error("this host's kernel does not offer the congestion control {wanted:?}; it offers: {offered}")]
    Congestion {
        /// What was asked for.
        wanted: String,
        /// What there is.
        offered: String,
    },
    /// Nothing listens there.
    #[error("nothing listens on {peer}: is `narrows traffic sink` running there?")]
    NotListening {
        /// The remote host.
        peer: SocketAddr,
    },
    /// The sink refused, and said why.
    #[error("{peer} refuses: {why}")]
    Refused {
        /// The remote host.
        peer: SocketAddr,
        /// In its own words.
        why: String,
    },
    /// The remote host broke the protocol.
    #[error("{peer} does not keep to the protocol: {what}")]
    Protocol {
        /// The remote host.
        peer: SocketAddr,
        /// What was wrong.
        what: String,
    },
    /// The remote host ended the session.
    #[error("{peer} closed the session")]
    Closed {
        /// The remote host.
        peer: SocketAddr,
    },
    /// No answer in time.
    #[error("no answer from {peer} within {waited:?}")]
    Silent {
        /// The remote host.
        peer: SocketAddr,
        /// How long it was waited.
        waited: Duration,
    },
    /// The network says that it cannot get there.
    #[error("no way to {peer}: {source}")]
    Unreachable {
        /// The remote host.
        peer: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// Faults that the caller can mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallerError {
    /// There is no flow.
    #[error("there is no flow to send")]
    NoFlow,
    /// More flows than a session has.
    #[error("{flows} flows are more than the {most} that one session has")]
    TooManyFlows {
        /// How many.
        flows: usize,
        /// The limit.
        most: usize,
    },
    /// Packets too short for the headers.
    #[error(
        "{flow}: packets of {ip_octets} octets have no room for the headers of IP and UDP and this program's 12 octets; the \
         smallest over {version} has {least}"
    )]
    TooShort {
        /// Which flow.
        flow: String,
        /// The smallest size asked for.
        ip_octets: u16,
        /// `IPv4` or `IPv6`.
        version: &'static str,
        /// The smallest possible.
        least: u16,
    },
    /// Packets longer than the way out.
    #[error(
        "{flow}: packets of {ip_octets} octets do not fit the outgoing interface, whose MTU is {mtu}; they are never fragmented"
    )]
    TooLong {
        /// Which flow.
        flow: String,
        /// The largest size asked for.
        ip_octets: u16,
        /// The interface's limit.
        mtu: u16,
    },
    /// Nothing limits the run, and the caller cannot end it.
    #[error("{0}")]
    Flow(String),
}

/// What is wrong with a capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It cannot be opened or read.
    #[error("cannot read the capture {path}: {source}")]
    Read {
        /// Which.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Neither pcap nor pcapng.
    #[error("{path} is neither a pcap nor a pcapng file")]
    Format {
        /// Which.
        path: String,
    },
    /// No packet of it can be replayed.
    #[error("no packet of {path} can be replayed: {why}")]
    Empty {
        /// Which.
        path: String,
        /// Why.
        why: String,
    },
    /// A factor of time that is none.
    #[error("a capture cannot be replayed {0} times as fast; the factor is above zero")]
    Factor(f64),
}

impl TrafficError {
    /// Wraps what the system said.
    pub(crate) fn host(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Host { doing, source }
    }
}
