//! ndt7 (specification v0.11, `[ndt7]`), without any socket or clock: the messages of a test over a
//! WebSocket.
//!
//! | part | here |
//! |---|---|
//! | which test a request is for | [`Subtest`], [`check_target`] |
//! | what either side measured, JSON | [`Measurement`] |
//! | how long the next message is | [`next_octets`] |
//! | when the server measures next | [`measure_after`] |
//!
//! One TCP connection carries one test. The sender sends binary messages, which the receiver counts
//! and throws away; text messages hold measurements, of either side. A binary message that goes the
//! wrong way ends the test.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What both sides must say in `Sec-WebSocket-Protocol`.
pub const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";
/// First length of a binary message.
pub const FIRST_OCTETS: usize = 1 << 13;
/// Where a sender stops doubling it (stock servers; the specification allows [`MOST_OCTETS`]).
pub const LONGEST_OCTETS: usize = 1 << 20;
/// Longest message that a receiver must take.
pub const MOST_OCTETS: usize = 1 << 24;
/// Longest text that is read as a measurement (ours: stock ones have some 3 KiB).
pub const MOST_TEXT_OCTETS: usize = 1 << 16;
/// How long a test takes.
pub const LENGTH: Duration = Duration::from_secs(10);
/// After this a client need not wait any longer.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(13);
/// After this a server ends the connection.
pub const SERVER_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest query of a request.
pub const MOST_QUERY_OCTETS: usize = 4_096;

/// Which way a test goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subtest {
    /// The server sends.
    Download,
    /// The client sends.
    Upload,
}

impl Subtest {
    /// Where a request for it goes.
    pub fn path(self) -> &'static str {
        match self {
            Self::Download => "/ndt/v7/download",
            Self::Upload => "/ndt/v7/upload",
        }
    }

    /// `download` or `upload`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// Why a request is not for a test. The answer is 404 to the first, and 400 to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Another path.
    #[error("no such path")]
    Path,
    /// More than [`MOST_QUERY_OCTETS`].
    #[error("the query is too long")]
    QueryLength,
    /// A query that is not what queries are.
    #[error("the query makes no sense")]
    Query,
    /// Something that is not known by that name or value.
    #[error("early_exit has one value, 250")]
    EarlyExit,
    /// The same name twice.
    #[error("a name is in the query twice")]
    Twice,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Which test.
    pub subtest: Subtest,
    /// A download ends when so many octets were acknowledged.
    pub most_octets: Option<u64>,
}

/// Reads path and query of a request. What the query says beside is the client's metadata, of which
/// nothing is kept.
pub fn check_target(path: &str, query: Option<&str>) -> Result<Target, TargetError> {
    let subtest = [Subtest::Download, Subtest::Upload]
        .into_iter()
        .find(|subtest| subtest.path() == path)
        .ok_or(TargetError::Path)?;
    let query = query.unwrap_or("");
    if query.len() > MOST_QUERY_OCTETS {
        return Err(TargetError::QueryLength);
    }
    let (mut names, mut most_octets) = (Vec::new(), None);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        if !(is_encoded(name) && is_encoded(value)) || name.is_empty() {
            return Err(TargetError::Query);
        }
        if names.contains(&name) {
            return Err(TargetError::Twice);
        }
        names.push(name);
        if name == "early_exit" {
            // Megabytes.
            let allowed = value == "250";
            most_octets = Some(allowed.then_some(250_000_000).ok_or(TargetError::EarlyExit)?);
        }
    }
    Ok(Target { subtest, most_octets })
}

/// Percent signs have two hexadecimal digits, and nothing is outside ASCII or a control character.
fn is_encoded(text: &str) -> bool {
    let octets = text.as_bytes();
    let escape = |at: usize| octets.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    octets.iter().enumerate().all(|(at, octet)| octet.is_ascii_graphic() && (*octet != b'%' || escape(at)))
}

/// What one side measured. Times are microseconds, rates nobody says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Measurement {
    /// What the program counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_info: Option<AppInfo>,
    /// Ends of the connection; servers say so once, clients never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_info: Option<ConnectionInfo>,
    /// `client` or `server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Which test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Subtest>,
    /// What the kernel says.
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    pub tcp_info: Option<TcpInfo>,
}

/// What a program counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AppInfo {
    /// Since the test began, microseconds.
    pub elapsed_time: i64,
    /// Payload octets.
    pub num_bytes: i64,
}

/// Ends of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ConnectionInfo {
    /// Address and port.
    pub client: String,
    /// Likewise.
    pub server: String,
    /// The connection's name.
    #[serde(rename = "UUID")]
    pub uuid: String,
}

/// What the kernel says of a connection; what it does not is `None`. Times in microseconds, lengths
/// in octets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TcpInfo {
    /// Time that there was something to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_time: Option<i64>,
    /// Acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_acked: Option<i64>,
    /// Received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<i64>,
    /// Sent, again or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<i64>,
    /// Sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_retrans: Option<i64>,
    /// Since the test began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_time: Option<i64>,
    /// Least round trip.
    #[serde(rename = "MinRTT", skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<i64>,
    /// Smoothed round trip.
    #[serde(rename = "RTT", skip_serializing_if = "Option::is_none")]
    pub rtt: Option<i64>,
    /// Its mean deviation.
    #[serde(rename = "RTTVar", skip_serializing_if = "Option::is_none")]
    pub rtt_var: Option<i64>,
    /// Time limited by the receive window.
    #[serde(rename = "RWndLimited", skip_serializing_if = "Option::is_none")]
    pub receive_window_limited: Option<i64>,
    /// Time limited by the send buffer.
    #[serde(rename = "SndBufLimited", skip_serializing_if = "Option::is_none")]
    pub send_buffer_limited: Option<i64>,
}

impl Measurement {
    /// Reads a text message; `None` for what is none: too long, or not of these types.
    pub fn parse(text: &str) -> Option<Self> {
        // A list of values in order would be read as one, too.
        if text.len() > MOST_TEXT_OCTETS || !text.trim_start().starts_with('{') {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    /// The message's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// Payload bit/s of `octets` in `micros`; `None` over no time, and of what cannot be.
pub fn payload_bps(octets: i64, micros: i64) -> Option<u64> {
    let (octets, micros) = (u128::try_from(octets).ok()?, u128::try_from(micros).ok()?);
    u64::try_from((octets * 8_000_000).checked_div(micros)?).ok()
}

/// Length of the next binary message, after one of `octets` and with `sent` in all: twice as long
/// as soon as that is no more than a sixteenth of what was sent.
pub fn next_octets(octets: usize, sent: u64) -> usize {
    let worth = u64::try_from(octets).unwrap_or(u64::MAX) <= sent / 16;
    if worth && octets < LONGEST_OCTETS { (octets * 2).min(LONGEST_OCTETS) } else { octets }
}

/// Time to the server's next measurement: exponential with a mean of 250 ms, held between 25 and
/// 625 ms; `uniform` lies in 0 to 1.
pub fn measure_after(uniform: f64) -> Duration {
    const MEAN: f64 = 0.25;
    let drawn = -MEAN * (1.0 - uniform.clamp(0.0, 1.0)).max(f64::MIN_POSITIVE).ln();
    Duration::from_secs_f64(drawn.clamp(0.025, 0.625))
}

#[cfg(test)]
mod tests;
