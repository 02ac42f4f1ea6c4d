//! What sender and sink say to each other over TCP: one JSON object per line.
//!
//! ```text
//! sender                                   sink
//! {"announce": {protocol, clock,
//!   interval_ns, flows: ["udp", "tcp"]}} ──▶
//!                     ◀── {"accepted": {token, clock, cookies}}  or  {"refused": {why}}
//! … packets to the same port by UDP, data by TCP connections that begin with {"data": …} …
//! {"end": {sent: [packets per flow]}}    ──▶
//!                                     ◀── {"statistics": {flows: […], …}}
//! ```
//! Lines are short, or the connection ends. The sink answers nothing else, and nobody else.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_net::clock;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::received::Received;

/// Name and version of this protocol.
pub(crate) const PROTOCOL: &str = "narrows.traffic/1";
/// Longest line that a sink reads: the packet counts of the most flows.
pub(crate) const REQUEST_OCTETS: usize = 64 << 10;
/// Longest line that a sender reads: the series of the most flows.
pub(crate) const REPLY_OCTETS: usize = 128 << 20;

/// How a flow's packets travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// UDP datagrams.
    Udp,
    /// A TCP connection.
    Tcp,
}

/// What a sender says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    Announce(Announce),
    Data(Data),
    End(End),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Announce {
    pub(crate) protocol: String,
    /// Which clock stamps departures; see [`clock_identity`].
    pub(crate) clock: u64,
    pub(crate) interval_ns: u64,
    pub(crate) flows: Vec<Transport>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    pub(crate) token: u64,
    pub(crate) flow: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct End {
    /// Packets sent per flow; 0 for TCP.
    pub(crate) sent: Vec<u64>,
}

/// What a sink says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Accepted(Accepted),
    Refused { why: String },
    Statistics(Statistics),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Accepted {
    pub(crate) token: u64,
    pub(crate) clock: u64,
    /// One per flow; of a TCP flow without meaning.
    pub(crate) cookies: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Statistics {
    pub(crate) flows: Vec<Received>,
    /// Packets that the sink's host dropped for want of buffer meanwhile, of whichever session.
    pub(crate) local_drops: u64,
}

/// How a wait for a line ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    Line(Vec<u8>),
    /// The other side has closed, or the connection broke.
    Closed,
    /// Time ran out, or the stop flag was set.
    Nothing,
    TooLong,
}

/// Reads lines of bounded length.
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Octets of the buffer that hold no line end.
    looked: usize,
    most: usize,
}

impl Lines {
    pub(crate) fn new(most: usize) -> Self {
        Self { buffer: Vec::new(), looked: 0, most }
    }

    /// Waits for a line until `deadline_ns` (monotonic) or until `stop` is set.
    pub(crate) fn next(&mut self, stream: &TcpStream, deadline_ns: i64, stop: &AtomicBool) -> WaitEnd {
        const POLL: Duration = Duration::from_millis(20);
        if stream.set_read_timeout(Some(POLL)).is_err() {
            return WaitEnd::Closed;
        }
        let mut stream = stream;
        let mut block = [0; 16 << 10];
        loop {
            if let Some(end) = self.buffer[self.looked..].iter().position(|octet| *octet == b'\n') {
                let rest = self.buffer.split_off(self.looked + end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                self.looked = 0;
                return WaitEnd::Line(line);
            }
            self.looked = self.buffer.len();
            if self.looked > self.most {
                return WaitEnd::TooLong;
            }
            match stream.read(&mut block) {
                Ok(0) => return WaitEnd::Closed,
                Ok(read) => self.buffer.extend_from_slice(&block[..read]),
                Err(error) if is_passing(&error) => {
                    if clock::now_ns() >= deadline_ns || stop.load(Ordering::Relaxed) {
                        return WaitEnd::Nothing;
                    }
                }
                Err(_) => return WaitEnd::Closed,
            }
            if clock::now_ns() >= deadline_ns && !self.buffer.contains(&b'\n') {
                return WaitEnd::Nothing;
            }
        }
    }

    /// What was read beyond the last line.
    pub(crate) fn rest(&self) -> usize {
        self.buffer.len()
    }
}

/// A read or write that may be tried again.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Says something; gives up after some seconds of a peer that does not read.
pub(crate) fn say<T: Serialize>(stream: &TcpStream, message: &T) -> io::Result<()> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut stream = stream;
    stream.write_all(&line)
}

/// Understands a line.
pub(crate) fn understood<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// Tells whether two programs read one monotonic clock: the kernel's boot and the time namespace,
/// hashed (FNV-1a).
pub(crate) fn clock_identity() -> u64 {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    let text = format!("{} {}", boot.trim(), space.display());
    let hash = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_as_described() {
        let announce = Request::Announce(Announce {
            protocol: PROTOCOL.to_owned(),
            clock: 5,
            interval_ns: 7,
            flows: vec![Transport::Udp, Transport::Tcp],
        });
        let text = serde_json::to_string(&announce).unwrap();
        assert_eq!(
            text,
            r#"{"announce":{"protocol":"narrows.traffic/1","clock":5,"interval_ns":7,"flows":["udp","tcp"]}}"#
        );
        assert_eq!(understood::<Request>(text.as_bytes()), Ok(announce));
        assert!(understood::<Request>(br#"{"end":{"sent":[1],"more":2}}"#).is_err());
    }

    proptest! {
        #[test]
        fn any_line_never_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = understood::<Request>(&line);
            let _ = understood::<Reply>(&line);
        }
    }
}
