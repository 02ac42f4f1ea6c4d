//! One small packet a second, and its round trip: what follows a path all day.
//!
//! A pulse never waits. Many of them share a thread, which sleeps in [`wait`].

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};

use super::marks::{self, Form, Mark, Marks, Quote};
use super::{FIRST_PULSE_PORT, Via, random, socket};
use crate::clock;
use crate::error::Error;
use crate::errors::ErrorQueue;
use crate::receive::Receiver;
use crate::socket::{Kind, ProbeSocket};

/// Pulses to one host.
pub struct Pulse {
    socket: ProbeSocket,
    receiver: Receiver,
    errors: ErrorQueue,
    marks: Marks,
    /// Numbers of pulses that are not answered yet, and when they left.
    open: VecDeque<(u32, i64)>,
    next: u32,
    /// [`wait`] saw that something came.
    ready: bool,
}

/// An answer to a pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PulseAnswer {
    /// Which one, as [`Pulse::send`] counted.
    pub number: u32,
    /// From sending to the answer.
    pub round_trip: Duration,
}

impl Pulse {
    /// IP octets of a pulse; STAMP's are a few more.
    pub const IP_OCTETS: u16 = 64;

    /// Opens a socket towards `host`. ICMP needs a group within `net.ipv4.ping_group_range` or
    /// `CAP_NET_RAW`, TCP needs `CAP_NET_RAW`.
    pub fn open(host: IpAddr, via: Via) -> Result<Self, Error> {
        let peer = SocketAddr::new(host, via.port());
        let socket = socket(peer, via)?;
        let (tag, name) = (random::<8>()?, u16::from_be_bytes(random::<2>()?));
        let mark = Mark { tag, id: 0 };
        let form = match via {
            Via::Icmp => Form::Icmp {
                mark,
                ipv6: host.is_ipv6(),
                identifier: name,
                checksum: socket.kind() == Kind::RawIcmp && host.is_ipv4(),
            },
            Via::Udp { .. } => Form::Udp { mark },
            Via::Stamp { .. } => {
                Form::Stamp { first: 0, packet: marks::session_packet(clock::wall_ns(), name.max(1)), key: None }
            }
            Via::Tcp { port } => Form::Tcp {
                one_port: false,
                near: socket.local().map_or(host, |local| local.ip()),
                remote: host,
                remote_port: port,
                first_port: FIRST_PULSE_PORT,
                first_sequence: u32::from_be_bytes(random::<4>()?),
            },
        };
        Ok(Self {
            receiver: Receiver::new(&socket, super::train::SLOT_OCTETS),
            socket,
            errors: ErrorQueue::new(),
            marks: Marks { form, count: ROUND },
            open: VecDeque::new(),
            next: 0,
            ready: false,
        })
    }

    /// Sends one, and says which number it has. One that the host cannot send is lost like any
    /// other.
    pub fn send(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let length = self.socket.payload_octets(Self::IP_OCTETS).unwrap_or(0).max(self.marks.least_payload());
        let mut payload = vec![0; length];
        self.marks.write(number % ROUND, &mut payload);
        let sent_ns = clock::now_ns();
        // Without a route there is no answer either, and that is what is reported.
        if self.socket.send(&payload).is_ok() {
            self.open.push_back((number, sent_ns));
        }
        number
    }

    /// The answers of which [`wait`] knows; forgets pulses that are older than `longest_wait`.
    pub fn collect(&mut self, longest_wait: Duration) -> Vec<PulseAnswer> {
        let now_ns = clock::now_ns();
        let answers = if std::mem::take(&mut self.ready) { self.read(now_ns) } else { Vec::new() };
        self.open.retain(|(_, sent_ns)| now_ns.saturating_sub(*sent_ns) < clock::nanos(longest_wait));
        answers
    }

    fn read(&mut self, now_ns: i64) -> Vec<PulseAnswer> {
        let mut met = Vec::new();
        if !matches!(self.marks.form, Form::Udp { .. }) && self.receiver.receive(&self.socket, now_ns).is_ok() {
            let behind_ip = self.socket.kind().receives_ip_header(self.socket.ipv6());
            for datagram in self.receiver.iter() {
                let payload = if behind_ip { marks::behind_ipv4(datagram.payload) } else { datagram.payload };
                if let Some(echo) = self.marks.read_echo(payload, datagram.payload_octets) {
                    met.push((echo.seq, datagram.seen.best_ns()));
                }
            }
        }
        self.errors.drain(&self.socket);
        for answer in self.errors.take_answers() {
            // Only the host itself answers; a router that says why not is no answer.
            if answer.bound_for.is_none_or(|host| host.ip() == answer.from)
                && let Quote::Packet(seq) = self.marks.read_quote(&answer.quoted)
            {
                met.push((seq, answer.returned_ns));
            }
        }
        met.into_iter().filter_map(|(seq, came_ns)| self.close(seq, came_ns)).collect()
    }

    fn close(&mut self, seq: u32, came_ns: i64) -> Option<PulseAnswer> {
        let at = self.open.iter().position(|(number, _)| number % ROUND == seq)?;
        let (number, sent_ns) = self.open.remove(at)?;
        let round_trip = u64::try_from(came_ns.saturating_sub(sent_ns)).ok()?;
        Some(PulseAnswer { number, round_trip: Duration::from_nanos(round_trip.max(1)) })
    }
}

impl std::fmt::Debug for Pulse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pulse").field("next", &self.next).field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// Sleeps until an answer to any of them came, or `deadline_ns` (monotonic).
pub fn wait<'a>(pulses: impl IntoIterator<Item = &'a mut Pulse>, deadline_ns: i64) {
    let (sockets, mut ready): (Vec<_>, Vec<_>) =
        pulses.into_iter().map(|pulse| (&pulse.socket, &mut pulse.ready)).unzip();
    let mut polled: Vec<PollFd<'_>> =
        sockets.into_iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    let left = deadline_ns.saturating_sub(clock::now_ns()).max(0);
    let millis = u16::try_from(left.saturating_add(999_999) / 1_000_000).unwrap_or(u16::MAX);
    // A signal ends the wait early; the caller looks at its clock.
    let _ = nix::poll::poll(&mut polled, PollTimeout::from(millis));
    for (ready, polled) in ready.iter_mut().zip(&polled) {
        **ready |= polled.any().unwrap_or(true);
    }
}

/// Numbers of packets repeat after so many: longer than anybody waits for an answer, and no more
/// than there are ports of SYNs.
const ROUND: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers_pulses_to_a_closed_port() {
        // A port that was just free is closed.
        let free = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let mut pulse = Pulse::open([127, 0, 0, 1].into(), Via::Udp { port: free }).unwrap();
        let number = pulse.send();
        let mut answers = Vec::new();
        let deadline = clock::now_ns() + 5_000_000_000;
        while answers.is_empty() && clock::now_ns() < deadline {
            wait([&mut pulse], deadline);
            answers.extend(pulse.collect(Duration::from_secs(5)));
        }
        assert_eq!(answers.iter().map(|answer| answer.number).collect::<Vec<_>>(), [number]);
        assert!(pulse.open.is_empty());
    }
}
