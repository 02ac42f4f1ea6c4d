//! The same packets in a second capture, nearer to the data's sender: when each of them left.
//!
//! Both captures are read once, side by side: the second one runs ahead by a bounded number of
//! packets. A packet is the same if its addresses, ports, sequence number, payload length and IPv4
//! identification are; one that appears twice in the second capture (a retransmission over IPv6) is
//! nobody's. The captures' clocks need not agree. What the second capture saw with *fewer* hops
//! left travelled the other way, and gets no departure.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;

use crate::decode::{Decoded, TcpPacket, decode};
use crate::file::CaptureReader;

/// Packets that the second capture may be ahead.
const AHEAD: usize = 1 << 18;

/// Departures, from the second capture.
#[derive(Debug)]
pub struct Departures<R: Read> {
    reader: CaptureReader<R>,
    known: HashMap<u64, Departure>,
    /// In order of their reading.
    order: VecDeque<u64>,
    ended: bool,
    matched: u64,
}

#[derive(Debug, Clone, Copy)]
struct Departure {
    at_ns: i64,
    hop_limit: u8,
    twice: bool,
}

impl<R: Read> Departures<R> {
    /// From this capture.
    pub fn new(reader: CaptureReader<R>) -> Self {
        Self { reader, known: HashMap::new(), order: VecDeque::new(), ended: false, matched: 0 }
    }

    /// Packets that were found.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    /// The capture, for what it says about itself.
    pub fn reader(&self) -> &CaptureReader<R> {
        &self.reader
    }

    /// When a packet of the first capture passed the second one.
    pub fn departed_ns(&mut self, packet: &TcpPacket) -> Option<i64> {
        let identity = identity(packet)?;
        if !self.known.contains_key(&identity) {
            self.read_until(identity);
        }
        let departure = self.known.remove(&identity)?;
        if departure.twice || departure.hop_limit < packet.hop_limit {
            return None;
        }
        self.matched += 1;
        Some(departure.at_ns)
    }

    /// Reads on until the packet is found, or as far as may be. When the room is used up, the
    /// oldest packet makes place for one more: what the first capture never saw must not hold the
    /// second one up.
    fn read_until(&mut self, wanted: u64) {
        let mut beyond = 0;
        while !self.ended && beyond < 2 {
            if self.order.len() >= AHEAD {
                beyond += 1;
                if let Some(oldest) = self.order.pop_front() {
                    self.known.remove(&oldest);
                }
            }
            let Some(raw) = self.reader.next_packet() else {
                self.ended = true;
                return;
            };
            let Decoded::Tcp(packet) = decode(&raw) else { continue };
            let Some(identity) = identity(&packet) else { continue };
            let twice = self.known.contains_key(&identity);
            let departure = Departure { at_ns: packet.seen.at_ns, hop_limit: packet.hop_limit, twice };
            self.known.insert(identity, departure);
            self.order.push_back(identity);
            if identity == wanted {
                return;
            }
        }
    }
}

/// What makes a packet with data itself, in short. The chance that two packets share it is that of
/// a 64-bit hash.
fn identity(packet: &TcpPacket) -> Option<u64> {
    let tcp = &packet.seen.tcp;
    if tcp.payload_octets == 0 {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (packet.source, packet.destination).hash(&mut hasher);
    (tcp.sequence, tcp.payload_octets, packet.seen.ip_id).hash(&mut hasher);
    Some(hasher.finish())
}
