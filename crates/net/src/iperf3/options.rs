//! What a server is told, and what it tells of its tests.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use narrows_units::BitRate;
use narrows_wire::iperf3::{Flow, PORT, Transport};

use super::token::Gate;

/// Caps of the server (defaults ours).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iperf3Limits {
    /// Tests at a time; a client beyond them hears that the server is busy.
    pub sessions: usize,
    /// Tests at a time from one address.
    pub sessions_per_address: usize,
    /// Streams of all tests together: each has a thread, and a buffer of at most 128 KiB.
    pub streams: usize,
    /// Connections that have not said what they are; the oldest goes when one more comes.
    pub half_open: usize,
    /// Longest test, what it omits included.
    pub duration: Duration,
    /// Highest rate of a test, all its streams together; TCP streams that this side sends are held
    /// to it.
    pub rate: Option<BitRate>,
    /// Octets of a test.
    pub octets: Option<u64>,
    /// Longest wait for the client's next word before and after the test.
    pub timeout: Duration,
}

impl Default for Iperf3Limits {
    fn default() -> Self {
        Self {
            sessions: 16,
            sessions_per_address: 8,
            streams: 512,
            half_open: 256,
            duration: Duration::from_secs(3_600),
            rate: None,
            octets: None,
            timeout: Duration::from_secs(10),
        }
    }
}

/// How to serve.
#[derive(Clone)]
pub struct Iperf3Options {
    /// Addresses to listen on.
    pub listen: Vec<IpAddr>,
    /// TCP and UDP port; 0 lets the system choose one.
    pub port: u16,
    /// Send UDP to clients outside this host and private networks, too.
    pub allow_load: bool,
    /// Who may test, by name and password; everybody where that is `None`.
    pub gate: Option<Arc<Gate>>,
    /// Caps.
    pub limits: Iperf3Limits,
    /// Is told of every test that ended.
    pub on_end: Arc<dyn Fn(&SessionSummary) + Send + Sync>,
}

impl fmt::Debug for Iperf3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iperf3Options")
            .field("listen", &self.listen)
            .field("port", &self.port)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Default for Iperf3Options {
    /// All addresses of both IP versions, the usual port.
    fn default() -> Self {
        Self {
            listen: vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            port: PORT,
            allow_load: false,
            gate: None,
            limits: Iperf3Limits::default(),
            on_end: Arc::new(|_| {}),
        }
    }
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEnd {
    /// As it should.
    Complete,
    /// The client ended it early.
    Terminated,
    /// The client went away.
    Vanished,
    /// It ran into a limit of the server.
    Limit,
    /// The server ends.
    ServerEnds,
    /// It was refused, or the client broke the protocol: why.
    Refused(String),
}

/// What a test came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The client.
    pub peer: SocketAddr,
    /// What carried it, which way, and streams per direction; `None` if the client never said.
    pub what: Option<(Transport, Flow, u16)>,
    /// Payload octets sent and received while they counted.
    pub sent_octets: u64,
    /// See above.
    pub received_octets: u64,
    /// Datagrams missed.
    pub lost: u64,
    /// How it ended.
    pub end: SessionEnd,
}

impl fmt::Display for SessionSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iperf3 client {}: ", self.peer)?;
        if let Some((transport, flow, streams)) = self.what {
            let transport = if transport == Transport::Tcp { "TCP" } else { "UDP" };
            let flow = match flow {
                Flow::Forward => "forward",
                Flow::Reverse => "reverse",
                Flow::Both => "both ways",
            };
            write!(
                f,
                "{transport} {flow} x{streams}, sent {} octets, received {}, lost {}; ",
                self.sent_octets, self.received_octets, self.lost
            )?;
        }
        match &self.end {
            SessionEnd::Complete => f.write_str("complete"),
            SessionEnd::Terminated => f.write_str("ended early by the client"),
            SessionEnd::Vanished => f.write_str("the client went away"),
            SessionEnd::Limit => f.write_str("ended by a limit"),
            SessionEnd::ServerEnds => f.write_str("ended here"),
            SessionEnd::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}
