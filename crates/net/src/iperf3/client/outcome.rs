//! What a test is told, and what it comes to.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_wire::iperf3::{Parameters, Results};

use super::super::intervals::Part;
use crate::client::IpVersion;
use crate::spacing::Spacing;

/// What to test, beside what the server is told.
#[derive(Debug, Clone)]
pub struct TestOptions {
    /// What the server is told.
    pub parameters: Parameters,
    /// Length of the test where nothing else ends it; whole seconds, rounded up, is what the server
    /// hears.
    pub duration: Duration,
    /// Time before counting begins, likewise.
    pub omit: Duration,
    /// Time between reports.
    pub interval: Duration,
    /// Server's port.
    pub port: u16,
    /// IP version to use.
    pub version: IpVersion,
    /// Local address of all sockets.
    pub near: Option<IpAddr>,
    /// Local port of the first data stream; those of the others follow.
    pub near_port: Option<u16>,
    /// Longest wait for any single answer.
    pub timeout: Duration,
    /// Ends the test early, with results.
    pub stop: Arc<AtomicBool>,
}

/// A stream's two ends and what the kernel granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    /// Its number.
    pub id: u32,
    /// This side sends.
    pub sends: bool,
    /// This end.
    pub near: SocketAddr,
    /// The peer.
    pub remote: SocketAddr,
    /// Segment size; TCP.
    pub mss_octets: Option<u32>,
    /// Send buffer, in octets of the kernel's accounting.
    pub send_buffer_octets: Option<usize>,
    /// Receive buffer.
    pub receive_buffer_octets: Option<usize>,
    /// Congestion control; TCP.
    pub congestion: Option<String>,
}

/// What is known when streams are open and before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The server.
    pub peer: SocketAddr,
    /// The test's name.
    pub cookie: String,
    /// Its streams.
    pub streams: Vec<Connected>,
}

/// A finished test.
#[derive(Debug, Clone)]
pub struct Finished {
    /// What was known at its begin.
    pub outline: Outline,
    /// All intervals.
    pub parts: Vec<Part>,
    /// Counting began, and this side's senders or the test ended: since the test began.
    pub span: (Duration, Duration),
    /// What this side counted, as the server was told.
    pub ours: Results,
    /// What the server counted.
    pub theirs: Results,
    /// How evenly datagrams left, per stream on which this side sends by UDP.
    pub spacing: Vec<(u32, Spacing)>,
    /// The user ended it early.
    pub interrupted: bool,
}
