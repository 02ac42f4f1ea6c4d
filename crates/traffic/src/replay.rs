//! The sizes and gaps of a capture's packets, to be sent again.
//!
//! A capture (pcap or pcapng) is read twice: once when it is opened, to know what is in it and
//! whether it is whole, and once more, as it is sent, so that its length does not matter. What is
//! replayed is the IP packets' lengths and the times between them, not their contents. Lengths are
//! those of the IP header, as the packets were on the wire, even where the capture kept only their
//! heads; link layers: Ethernet (with VLAN tags), raw IP, Linux "any" (both versions), BSD
//! loopback.
//!
//! A capture that ends in the middle of a packet, or is damaged, is replayed up to there, and
//! [`Contents::damage`] says so.

mod capture;
mod link;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_sim::Arrival;

use crate::error::CaptureError;
use capture::Capture;

/// A capture that can be replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    path: PathBuf,
    filter: Filter,
    factor: f64,
    contents: Contents,
}

/// Which packets of a capture are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only those that this address sent.
    pub from: Option<IpAddr>,
    /// Only those that were sent to this address.
    pub to: Option<IpAddr>,
}

impl Filter {
    fn takes(self, from: IpAddr, to: IpAddr) -> bool {
        self.from.is_none_or(|wanted| wanted == from) && self.to.is_none_or(|wanted| wanted == to)
    }
}

/// What is in a capture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// Packets that are replayed.
    pub packets: u64,
    /// Their IP octets.
    pub ip_octets: u64,
    /// From the first to the last of them, in the capture's own time.
    pub span: Duration,
    /// The smallest and the largest, IP octets.
    pub sizes: (u16, u16),
    /// Packets that are no IP, or whose heads were not kept.
    pub passed_over: u64,
    /// Packets that the filter does not take.
    pub filtered: u64,
    /// Packets without a time, or with one before their predecessor's: these are sent with it.
    pub out_of_time: u64,
    /// Why reading ended before the end.
    pub damage: Option<String>,
}

impl Replay {
    /// Opens a capture and reads it once. With `factor` 2 it is sent twice as fast.
    pub fn open(path: &Path, filter: Filter, factor: f64) -> Result<Self, CaptureError> {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(CaptureError::Factor(factor));
        }
        let mut capture = Capture::open(path, filter)?;
        let mut contents = Contents::default();
        let mut sizes = (u16::MAX, 0);
        let mut last = 0;
        while let Some(packet) = capture.next_packet() {
            contents.packets += 1;
            contents.ip_octets += u64::from(packet.ip_octets);
            sizes = (sizes.0.min(packet.ip_octets), sizes.1.max(packet.ip_octets));
            last = packet.at_ns;
        }
        contents.span = Duration::from_nanos(last);
        contents.sizes = sizes;
        (contents.passed_over, contents.filtered) = (capture.passed_over, capture.filtered);
        (contents.out_of_time, contents.damage) = (capture.out_of_time, capture.damage);
        if contents.packets == 0 {
            let why = contents.damage.unwrap_or_else(|| {
                format!("{} packets are no IP, {} are left out by the filter", contents.passed_over, contents.filtered)
            });
            return Err(CaptureError::Empty { path: path.display().to_string(), why });
        }
        Ok(Self { path: path.to_owned(), filter, factor, contents })
    }

    /// Where the capture is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Its packets, the first at time zero.
    pub fn packets(&self) -> Result<ReplayStream, CaptureError> {
        Ok(ReplayStream { capture: Capture::open(&self.path, self.filter)?, factor: self.factor })
    }
}

/// The packets of a capture in order of time.
pub struct ReplayStream {
    capture: Capture,
    factor: f64,
}

impl Iterator for ReplayStream {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let packet = self.capture.next_packet()?;
        Some(Arrival { at_ns: scaled(packet.at_ns, self.factor), ip_octets: packet.ip_octets })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts of floats saturate, and neither number is negative"
)]
fn scaled(at_ns: u64, factor: f64) -> u64 {
    (at_ns as f64 / factor).round() as u64
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
