//! The error queue of a socket: ICMP answers to what it sent, and the kernel's departure stamps.
//!
//! Both come by the same door, so one reader collects both, and each user takes its own.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use narrows_packet::icmp::{Extensions, ICMP_OCTETS, IcmpKind, extensions_behind};
use narrows_packet::ip::{IPV4_OCTETS, IPV6_OCTETS};
use narrows_packet::udp::UDP_OCTETS;
use narrows_probe::probes::HopReplyKind;

use crate::clock::{self, Crossing};
use crate::socket::{Kind, ProbeSocket};
use crate::sys::control::ExtendedError;
use crate::sys::receive::{BATCH, Message, Slots};

/// When the kernel or the card let a packet go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Number of the packet since the stamps were turned on.
    pub id: u32,
    /// The kernel's stamp in the driver, monotonic nanoseconds.
    pub kernel_ns: Option<i64>,
    /// The card's stamp, on the card's own scale.
    pub hardware_ns: Option<i64>,
}

/// An ICMP answer to a packet of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Who answered.
    pub from: IpAddr,
    /// Where the packet was bound for.
    pub bound_for: Option<SocketAddr>,
    /// What the answer says.
    pub kind: HopReplyKind,
    /// When it was back, monotonic nanoseconds.
    pub returned_ns: i64,
    /// The kernel took that stamp, not the program.
    pub by_kernel: bool,
    /// Length of the answer's IP packet: its headers and the quote as the kernel hands it on (IP
    /// options, if any, not counted).
    pub ip_octets: u16,
    /// The part of our payload that it quotes; may be empty (RFC 792 asks for eight octets behind
    /// the IP header alone).
    pub quoted: Vec<u8>,
    /// What it says beside the quote (RFC 4884).
    pub extensions: Option<Extensions>,
}

/// Reads one socket's error queue.
pub struct ErrorQueue {
    slots: Slots,
    crossing: Crossing,
    departures: Vec<Departure>,
    answers: Vec<Answer>,
}

/// A quote is at most what fits the largest ICMP error: 576 octets with IPv4 (RFC 1812 §4.3.2.3),
/// 1280 with IPv6 (RFC 4443 §2.4).
const SLOT_OCTETS: usize = 1280;

impl ErrorQueue {
    /// An empty collection.
    pub fn new() -> Self {
        Self {
            slots: Slots::new(BATCH, SLOT_OCTETS),
            crossing: Crossing::sample(),
            departures: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Collects what waits, without blocking; how many entries.
    pub fn drain(&mut self, socket: &ProbeSocket) -> usize {
        let mut total = 0;
        // What the kernel leaves out of the quote.
        let transport = if socket.kind() == Kind::Udp { UDP_OCTETS } else { 0 };
        loop {
            // Any error here says that nothing waits: the queue's own errors are its entries.
            let count = self.slots.receive(socket.as_fd(), true).unwrap_or(0);
            total += count;
            let user_ns = clock::now_ns();
            for (message, quoted) in self.slots.iter() {
                let Some(error) = message.ancillary.error else { continue };
                if error.origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
                    self.departures.push(Departure {
                        id: error.data,
                        kernel_ns: message.ancillary.kernel_ns.map(|stamp| self.crossing.monotonic_ns(stamp)),
                        hardware_ns: message.ancillary.hardware_ns,
                    });
                } else if let Some(answer) = answer(message, &error, quoted, user_ns, &self.crossing, transport) {
                    self.answers.push(answer);
                }
            }
            if count < BATCH {
                return total;
            }
        }
    }

    /// Looks whether the wall clock was stepped since the last look, and follows it. Stamps taken
    /// across a step are not to be compared.
    pub fn stepped(&mut self) -> bool {
        self.crossing.follow()
    }

    /// As if the wall clock had been stepped by so much since the last look.
    #[cfg(test)]
    pub(crate) fn step_wall_clock(&mut self, by_ns: i64) {
        self.crossing = self.crossing.before_step(by_ns);
    }

    /// The departures collected so far; card and kernel may stamp one packet in two entries.
    pub fn take_departures(&mut self) -> Vec<Departure> {
        std::mem::take(&mut self.departures)
    }

    /// The answers collected so far.
    pub fn take_answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }
}

impl Default for ErrorQueue {
    fn default() -> Self {
        Self::new()
    }
}

fn answer(
    message: &Message,
    error: &ExtendedError,
    quoted: &[u8],
    user_ns: i64,
    crossing: &Crossing,
    transport: usize,
) -> Option<Answer> {
    let (kind, ip_header) = match error.origin {
        libc::SO_EE_ORIGIN_ICMP => (IcmpKind::of_v4(error.kind, error.code, error.info)?, IPV4_OCTETS),
        libc::SO_EE_ORIGIN_ICMP6 => (IcmpKind::of_v6(error.kind, error.code, error.info)?, IPV6_OCTETS),
        _ => return None,
    };
    let at = error.extensions_at().filter(|at| *at <= quoted.len());
    let extensions = extensions_behind(quoted, at, ip_header + transport);
    // What is behind the quote is not part of it; old routers do not say where it ends, and a mark
    // lies far before that.
    let quoted = quoted.get(..at.unwrap_or(quoted.len())).unwrap_or(quoted);
    Some(Answer {
        from: error.offender?,
        bound_for: message.from,
        kind: reply_kind(kind),
        returned_ns: message.ancillary.kernel_ns.map_or(user_ns, |stamp| crossing.monotonic_ns(stamp)),
        by_kernel: message.ancillary.kernel_ns.is_some(),
        ip_octets: u16::try_from(message.octets + 2 * ip_header + ICMP_OCTETS + transport).unwrap_or(u16::MAX),
        quoted: quoted.to_vec(),
        extensions,
    })
}

fn reply_kind(kind: IcmpKind) -> HopReplyKind {
    match kind {
        IcmpKind::TimeExceeded => HopReplyKind::TimeExceeded,
        IcmpKind::PortUnreachable => HopReplyKind::PortUnreachable,
        IcmpKind::PacketTooBig { mtu } => {
            HopReplyKind::PacketTooBig { mtu: u16::try_from(mtu).ok().filter(|&mtu| mtu > 0) }
        }
        IcmpKind::Unreachable { code } => HopReplyKind::Unreachable { code },
    }
}

#[cfg(test)]
mod tests {
    use narrows_packet::checksum::checksum;
    use narrows_packet::icmp::write_checksum;

    use super::*;
    use crate::socket::SocketOptions;

    #[test]
    fn a_closed_port_answers_and_quotes_the_payload() {
        for local in [[127, 0, 0, 1].into(), IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1])] {
            let options = SocketOptions::default();
            let gone = ProbeSocket::bind(SocketAddr::new(local, 0), &options).unwrap().local().unwrap();
            let near = ProbeSocket::connected(gone, &options).unwrap();
            let before = clock::now_ns();
            near.send(&[42; 100]).unwrap();
            let mut queue = ErrorQueue::new();
            while queue.drain(&near) == 0 && clock::now_ns() < before + 30_000_000_000 {}
            let answers = queue.take_answers();
            assert_eq!(answers.len(), 1);
            assert_eq!(answers[0].kind, HopReplyKind::PortUnreachable);
            assert_eq!((answers[0].from, answers[0].bound_for), (local, Some(gone)));
            assert_eq!(answers[0].quoted, [42; 100]);
            let headers = if local.is_ipv6() { 96 } else { 56 };
            assert_eq!(answers[0].ip_octets, 100 + headers);
            assert!(answers[0].returned_ns >= before - 2_000 && answers[0].returned_ns <= clock::now_ns());
        }
    }

    /// A router's answer to the packet from `near` to `remote`, with a label behind the first 128
    /// octets; `words`: what it says of those.
    fn answer_with_label(near: SocketAddr, remote: SocketAddr, words: u8) -> Vec<u8> {
        let mut quote = vec![0x45, 0, 0, 128, 0, 1, 0, 0, 1, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1];
        quote.extend(near.port().to_be_bytes());
        quote.extend(remote.port().to_be_bytes());
        quote.extend([0, 108, 0, 0]);
        quote.resize(128, 42);
        let mut extensions = vec![0x20, 0, 0, 0, 0, 8, 1, 1, 0x05, 0xdc, 0x1b, 0x01];
        let sum = checksum(&extensions).to_be_bytes();
        extensions[2..4].copy_from_slice(&sum);
        let mut message = vec![11, 0, 0, 0, 0, words, 0, 0];
        message.extend(quote);
        message.extend(extensions);
        write_checksum(&mut message);
        message
    }

    /// The kernel says where extensions begin, and where it does not (routers older than RFC 4884)
    /// they are found all the same.
    #[test]
    #[ignore = "lab: needs root"]
    fn labels_of_routers_come_with_their_answers() {
        let router =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::RAW, Some(socket2::Protocol::ICMPV4)).unwrap();
        for (words, quoted) in [(32, 100), (0, 112)] {
            let options = SocketOptions::default();
            let remote = ProbeSocket::bind(([127, 0, 0, 1], 0).into(), &options).unwrap();
            let near = ProbeSocket::connected(remote.local().unwrap(), &options).unwrap();
            let message = answer_with_label(near.local().unwrap(), remote.local().unwrap(), words);
            router.send_to(&message, &SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
            let mut queue = ErrorQueue::new();
            let begun = clock::now_ns();
            while queue.drain(&near) == 0 && clock::now_ns() < begun + 30_000_000_000 {}
            let answers = queue.take_answers();
            assert_eq!(answers.len(), 1);
            assert_eq!(answers[0].kind, HopReplyKind::TimeExceeded);
            assert_eq!(answers[0].quoted.len(), quoted);
            assert_eq!(answers[0].ip_octets, 20 + 8 + 128 + 12);
            let labels: Vec<u32> =
                answers[0].extensions.iter().flat_map(Extensions::labels).map(|label| label.label).collect();
            assert_eq!(labels, [24_001], "length told: {words}");
        }
    }
}
