//! What can go wrong, by who can mend it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::via::Via;

/// A fault of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that makes no sense.
    #[error("{0}")]
    Caller(#[from] CallerError),
    /// This host refused a system call.
    #[error("this host cannot {doing}: {source}")]
    Host {
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The remote host answered, but not as agreed, or with a refusal.
    #[error("{0}")]
    Peer(#[from] PeerError),
    /// The path gave no answer, or stopped giving any.
    #[error("{0}")]
    Path(#[from] PathError),
}

/// Faults that the caller can mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallerError {
    /// The name means no address of the wanted IP version.
    #[error("no {version} address for {target:?}")]
    NoAddress {
        /// What was asked for.
        target: String,
        /// `IPv4`, `IPv6` or `IP`.
        version: &'static str,
    },
    /// The remote host wants a key.
    #[error("{peer} wants a shared key")]
    KeyNeeded {
        /// The remote host.
        peer: SocketAddr,
    },
    /// The remote host wants another key.
    #[error("{peer} lets nobody in without the right key: {reason}")]
    KeyRefused {
        /// The remote host.
        peer: SocketAddr,
        /// In its own words.
        reason: String,
    },
}

/// Faults that the remote host's owner can mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// Nothing listens there.
    #[error("nothing listens on {peer}: is `narrows serve` running there?")]
    NotListening {
        /// The remote host.
        peer: SocketAddr,
    },
    /// It refused, and said why.
    #[error("{peer} refuses: {reason}")]
    Refused {
        /// The remote host.
        peer: SocketAddr,
        /// In its own words.
        reason: String,
    },
    /// It wants to know who asks, and does not accept what it was shown.
    #[error("{peer} asks for name and password, and does not accept what it was shown")]
    NotAdmitted {
        /// The remote host.
        peer: SocketAddr,
    },
    /// It speaks another version of the protocol.
    #[error(
        "{peer} speaks another version of the protocol: {reason}; this narrows speaks {} to {}: upgrade whichever is older",
        narrows_wire::OLDEST_VERSION,
        narrows_wire::VERSION
    )]
    Version {
        /// The remote host.
        peer: SocketAddr,
        /// In its own words.
        reason: String,
    },
    /// It failed at its part.
    #[error("{peer} failed: {reason}")]
    Failed {
        /// The remote host.
        peer: SocketAddr,
        /// In its own words.
        reason: String,
    },
    /// It asks for no key though the caller has one: another host, or one set up without it.
    #[error("{peer} asks for no key though one is given: is that the right host, and was it started with the key?")]
    NoKeyAsked {
        /// The remote host.
        peer: SocketAddr,
    },
    /// It broke the protocol, or says that this side did.
    #[error("{peer} does not keep to the protocol: {what}")]
    Protocol {
        /// The remote host.
        peer: SocketAddr,
        /// What was wrong.
        what: String,
    },
    /// No Session-Reflector listens there.
    #[error("no STAMP reflector listens on {peer}: is `narrows serve --stamp` or another one running there?")]
    NoReflector {
        /// The remote host.
        peer: SocketAddr,
    },
    /// No iperf3 server listens there.
    #[error("nothing listens on {peer}: is `iperf3 -s` or `narrows serve --iperf3` running there?")]
    NoIperf3 {
        /// The remote host.
        peer: SocketAddr,
    },
    /// No ndt7 server listens there.
    #[error("nothing listens on {peer}: is an ndt7 server or `narrows serve --ndt7` running there?")]
    NoNdt7 {
        /// The remote host.
        peer: SocketAddr,
    },
    /// It ended the session.
    #[error("{peer} closed the session")]
    Closed {
        /// The remote host.
        peer: SocketAddr,
    },
}

/// Faults of what lies between.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No answer in time.
    #[error("no answer from {peer} within {waited:?} ({doing}){}", hint_of(doing, peer.port()))]
    Silent {
        /// The remote host.
        peer: SocketAddr,
        /// What was being done.
        doing: &'static str,
        /// How long it was waited.
        waited: Duration,
    },
    /// A host that runs nothing of ours did not answer at all.
    #[error("no answer from {} by {via} within {waited:?}: it may be down, or it or a firewall drops such packets{}", peer.ip(), hint(*via))]
    NoAnswer {
        /// The remote host.
        peer: SocketAddr,
        /// By what it was to answer.
        via: Via,
        /// How long it was waited.
        waited: Duration,
    },
    /// The network says that it cannot get there.
    #[error("no way to {peer}: {source}")]
    Unreachable {
        /// The remote host.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// TCP passes and UDP does not.
    #[error("UDP does not pass to {peer}, though TCP does: a firewall?")]
    UdpBlocked {
        /// The remote host.
        peer: SocketAddr,
    },
}

/// What else may keep a host from answering.
/// Whoever just began knows neither that a server is needed nor that a firewall has to let it be
/// reached.
fn hint_of(doing: &str, port: u16) -> String {
    match doing {
        "connecting" => format!(": is the host up, and does its firewall let TCP port {port} in?"),
        _ => String::new(),
    }
}

fn hint(via: Via) -> &'static str {
    match via {
        Via::Udp { .. } => ", or a program listens on that port: try another",
        Via::Stamp { .. } => ", or its reflector wants a key or speaks on another port",
        Via::Icmp | Via::Tcp { .. } => "",
    }
}

impl Error {
    /// Wraps what the kernel said.
    pub fn host(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Host { doing, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_accepts_no_connection_may_be_down_or_behind_a_firewall() {
        let peer = SocketAddr::from(([192, 0, 2, 9], 8620));
        let silent = |doing| PathError::Silent { peer, doing, waited: Duration::from_secs(3) }.to_string();
        assert_eq!(
            silent("connecting"),
            "no answer from 192.0.2.9:8620 within 3s (connecting): is the host up, and does its firewall let TCP port 8620 in?"
        );
        assert_eq!(silent("asking for a slot"), "no answer from 192.0.2.9:8620 within 3s (asking for a slot)");
    }
}
