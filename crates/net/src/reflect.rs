//! A Session-Reflector: STAMP (RFC 8762), with the TLVs of RFC 8972 (see [`narrows_wire::stamp`]),
//! and TWAMP-Light's packets from 41 octets on.
//!
//! It answers with as many octets as it got, only to whom it got them from, and to nobody faster
//! than it is allowed to, so that forged senders gain nothing by it. What is no packet of the mode
//! that it runs in (a key: authenticated packets alone) is met with silence.

mod allowance;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use narrows_units::nanos;
use narrows_wire::Psk;
use narrows_wire::stamp::{self, ErrorEstimate, Reflection, StampFormat, StampTime, Surroundings, reflect};

use crate::clock;
use crate::receive::{Datagram, Receiver};
use crate::socket::{ProbeSocket, SocketOptions};
use crate::thread_scheduling::ThreadScheduling;
use allowance::Allowance;

/// How a reflector runs.
#[derive(Debug, Clone)]
pub struct ReflectorOptions {
    /// Where it listens.
    pub listen: Vec<IpAddr>,
    /// At which port; zero lets the system choose, for each address.
    pub port: u16,
    /// Answers authenticated packets of this key, and no others.
    pub key: Option<Psk>,
    /// Counts each session's packets itself, so that senders can tell losses each way apart.
    pub stateful: bool,
    /// Most packets per second that one address gets back over time (an IPv6 one: its /64). Default
    /// ours: 1000.
    pub per_source: u32,
    /// Most packets that it gets back at once, before that limit. Default ours: 4000, so that
    /// measurement trains pass.
    pub burst: u32,
    /// Most packets per second for all together. Default ours: 10 000, with the same burst in
    /// proportion.
    pub total: u32,
    /// Format of its stamps.
    pub format: StampFormat,
}

impl ReflectorOptions {
    /// At one port of these addresses, stateful, with our limits.
    pub fn new(listen: Vec<IpAddr>, port: u16) -> Self {
        Self {
            listen,
            port,
            key: None,
            stateful: true,
            per_source: 1_000,
            burst: 4_000,
            total: 10_000,
            format: StampFormat::Ntp,
        }
    }
}

/// What a reflector did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReflectorCounts {
    /// Packets answered.
    pub answered: u64,
    /// Packets not understood, not authentic, or cut.
    pub refused: u64,
    /// Packets beyond what their sender is allowed.
    pub limited: u64,
}

/// A reflector that runs until it is dropped, a thread per address.
#[derive(Debug)]
pub struct Reflector {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
    refused: AtomicU64,
    limited: AtomicU64,
}

/// The largest UDP payload over IPv4.
const SLOT_OCTETS: usize = 65_507;
/// How far a stamp of this host may be off, as it tells senders where nobody disciplines its clock
/// (ours).
const OFF_BY_NS: u64 = 1_000_000;
/// How often that is looked at: the kernel's bound grows until whoever disciplines the clock comes
/// again.
const ASK_NS: i64 = 1_000_000_000;
/// Beside what the clock is off by: a program stamps, not the card (ours: an idle host's wake-up).
const STAMPING_NS: u64 = 50_000;

impl Reflector {
    /// Opens the sockets and starts to answer.
    pub fn start(options: &ReflectorOptions) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut reflector = Self { addresses: Vec::new(), shared: Arc::clone(&shared), threads: Vec::new() };
        for address in &options.listen {
            let local = SocketAddr::new(*address, options.port);
            let socket = ProbeSocket::bind(local, &SocketOptions::default())?;
            // RFC 8762 §4.1, for either side.
            socket.set_hop_limit(255)?;
            // A kernel that does not tell is said to see nothing.
            let _ = socket.tell_traffic_class();
            let local = socket.local()?;
            reflector.addresses.push(local);
            let mut answering = Answering::new(options, local.port());
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new()
                .name("reflect".to_owned())
                .spawn(move || answering.run(&socket, &shared))?;
            reflector.threads.push(thread);
        }
        Ok(reflector)
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it did so far.
    pub fn counts(&self) -> ReflectorCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ReflectorCounts {
            answered: read(&self.shared.answered),
            refused: read(&self.shared.refused),
            limited: read(&self.shared.limited),
        }
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked answers no more either.
            let _ = thread.join();
        }
    }
}

struct Answering {
    key: Option<Psk>,
    stateful: bool,
    error: ErrorEstimate,
    allowance: Allowance,
    /// What to add to the monotonic clock to get the wall's, when this began: later steps of that
    /// are not followed, for stamps of both sides of one do not compare.
    to_wall_ns: i64,
    answer: Vec<u8>,
    port: u16,
    requested_ns: i64,
    /// What the socket sends with now.
    traffic_class: u8,
}

impl Answering {
    fn new(options: &ReflectorOptions, port: u16) -> Self {
        Self {
            key: options.key.clone(),
            stateful: options.stateful,
            error: clock_error(options.format),
            allowance: Allowance::new(options.per_source, options.burst, options.total),
            to_wall_ns: clock::wall_ns() - clock::now_ns(),
            answer: Vec::with_capacity(SLOT_OCTETS),
            port,
            requested_ns: clock::now_ns(),
            traffic_class: 0,
        }
    }

    fn run(&mut self, socket: &ProbeSocket, shared: &Shared) {
        const POLL_NS: i64 = 20_000_000;
        let _careful = ThreadScheduling::default().take();
        let mut receiver = Receiver::new(socket, SLOT_OCTETS);
        while !shared.stop.load(Ordering::Relaxed) {
            // An error of the socket itself shows as silence: there is nobody to tell.
            if receiver.receive(socket, clock::now_ns() + POLL_NS).unwrap_or(0) == 0 {
                continue;
            }
            for datagram in receiver.iter() {
                let count = match self.reply(socket, &datagram) {
                    Done::Answered => &shared.answered,
                    Done::Refused => &shared.refused,
                    Done::Limited => &shared.limited,
                };
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn reply(&mut self, socket: &ProbeSocket, datagram: &Datagram<'_>) -> Done {
        let Some(from) = datagram.from.filter(|_| datagram.payload.len() == datagram.payload_octets) else {
            return Done::Refused;
        };
        let now = clock::now_ns();
        // Before the key is tried, so that forged packets cost little.
        if !self.allowance.admit(from.ip(), now) {
            return Done::Limited;
        }
        if now.saturating_sub(self.requested_ns) > ASK_NS {
            self.requested_ns = now;
            self.error = clock_error(self.error.format);
        }
        self.answer.clear();
        self.answer.extend_from_slice(datagram.payload);
        let mut seen = Reflection {
            received_ns: datagram.seen.best_ns() + self.to_wall_ns,
            transmitted_ns: 0,
            error: self.error,
            hop_limit: datagram.hop_limit.unwrap_or(0),
            seq: None,
            surroundings: Surroundings {
                ports: (self.port, from.port()),
                traffic_class: datagram.traffic_class,
                synchronised: self.error.synchronised,
                counts: None,
                last: None,
            },
        };
        // Only what is a packet of a session counts there.
        let Ok(asked) = stamp::peek(datagram.payload, self.key.as_ref()) else {
            return Done::Refused;
        };
        if self.stateful {
            let counted = self.allowance.number(from, asked.ssid, asked.seq, now);
            let so_far = counted.number.wrapping_add(1);
            seen.seq = Some(counted.number);
            seen.surroundings.counts = Some((so_far, so_far));
            seen.surroundings.last = counted.last;
        }
        seen.transmitted_ns = clock::now_ns() + self.to_wall_ns;
        let Ok((_, extended)) = reflect(&mut self.answer, &seen, self.key.as_ref()) else {
            return Done::Refused;
        };
        self.mark(socket, extended.dscp);
        // A sender that cannot be answered is as gone as one that never asked.
        let _ = socket.send_to(&self.answer, from);
        if let Some(number) = seen.seq {
            let left = StampTime::from_unix_ns(clock::now_ns() + self.to_wall_ns, self.error.format);
            self.allowance.left(from, asked.ssid, number, left.wire());
        }
        Done::Answered
    }

    /// Answers carry the code point that their packet asks for, and none otherwise.
    fn mark(&mut self, socket: &ProbeSocket, dscp: Option<u8>) {
        let class = dscp.unwrap_or(0) << 2;
        if class != self.traffic_class && socket.set_traffic_class(class).is_ok() {
            self.traffic_class = class;
        }
    }
}

/// What this host can say of its clock.
fn clock_error(format: StampFormat) -> ErrorEstimate {
    match clock::wall_error() {
        Some(error) => {
            let nanos = nanos(error);
            ErrorEstimate::new(nanos.saturating_add(STAMPING_NS), true, format)
        }
        None => ErrorEstimate::new(OFF_BY_NS, false, format),
    }
}

enum Done {
    Answered,
    Refused,
    Limited,
}

#[cfg(test)]
mod tests;
