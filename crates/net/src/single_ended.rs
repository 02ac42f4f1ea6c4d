//! The estimators' world against hosts that run nothing of ours: [`SingleEndedWorld`].
//!
//! | [`Via`] | what answers | offered | needs |
//! |---|---|---|---|
//! | `Icmp` | the kernel, with each packet whole | `PeerKind::Echo` | membership in `ping_group_range`, or `CAP_NET_RAW` |
//! | `Udp` | the kernel, with ICMP errors that quote the packet | `PeerKind::ClosedPort` | nothing |
//! | `Tcp` | the kernel's TCP, with segments of 40 octets | `PeerKind::TcpSyn` | `CAP_NET_RAW` |
//! | `Stamp` | a Session-Reflector, with its own stamps | `PeerKind::Echo`, and by those stamps `PeerKind::Receiver` | nothing |
//!
//! Everything else is refused. Packets with a hop limit go with any of them and are answered by
//! routers. Stamps are the kernel's, on departure and on return, as far as it gives them.

mod limit;
mod marks;
pub mod pulse;
mod responders;
mod rows;
mod train;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use narrows_probe::probes::{Fate, HopReplyKind, Train, TrainId, TrainReport};
use narrows_probe::{AnswerLimit, Event, HostFacts, Measured, PathFacts, Probe, Refusal, World};
use narrows_units::{Sender, Stamp};
use narrows_wire::Psk;
use narrows_wire::stamp::ErrorEstimate;

pub use responders::{Responders, UnmatchedReplies};

use crate::client::IpVersion;
use crate::clock;
use crate::error::{CallerError, Error, PathError, PeerError};
use crate::errors::ErrorQueue;
use crate::host::{self, Environment, Interface};
use crate::socket::{Kind, ProbeSocket, SocketOptions};
use crate::thread_scheduling::ThreadScheduling;
use crate::via::Via;
use limit::Tokens;

/// How to reach the remote host, and what to measure it by.
#[derive(Debug, Clone)]
pub struct SingleEndedOptions {
    /// By what it answers.
    pub via: Via,
    /// Which IP versions may be used.
    pub version: IpVersion,
    /// Key of an authenticated STAMP session; other ways to be answered have none.
    pub psk: Option<Psk>,
    /// Longest wait for the first answer. Default 3 s.
    pub timeout: Duration,
    /// What to ask of the system for the thread that sends trains.
    pub thread_scheduling: ThreadScheduling,
    /// Set it to end a measurement early.
    pub stop: Arc<AtomicBool>,
    /// Measure what lies between: the remote host need not answer, its limit is not looked for, and
    /// all packets are of one flow (addresses, ports, and the checksum of ICMP). Another world
    /// towards the same host is another flow. Not with [`Via::Stamp`].
    pub per_hop: bool,
}

impl SingleEndedOptions {
    /// With the defaults.
    pub fn new(via: Via) -> Self {
        Self {
            via,
            version: IpVersion::default(),
            psk: None,
            timeout: Duration::from_secs(3),
            thread_scheduling: ThreadScheduling::default(),
            stop: Arc::new(AtomicBool::new(false)),
            per_hop: false,
        }
    }
}

/// What the remote host's own count of packets says of losses each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossSplit {
    /// Packets that never reached it.
    pub forward: u64,
    /// Answers of it that never came back.
    pub reverse: u64,
}

/// What a reflector says of its clock, and this host knows of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteClock {
    /// Synchronised from outside.
    pub synchronised: bool,
    /// By how much it may be off.
    pub error: Duration,
    /// By how much this host's may be off; `None`: nobody disciplines it.
    pub near_error: Option<Duration>,
    /// What this host's wall clock shows more than the clock of its stamps.
    pub wall_ahead_ns: i64,
}

/// A path to a host that runs nothing of ours, measured from here alone.
pub struct SingleEndedWorld {
    options: SingleEndedOptions,
    peer: SocketAddr,
    socket: Arc<ProbeSocket>,
    queue: ErrorQueue,
    /// When anything last came; nobody looks at it here.
    last_received_ns: Arc<AtomicI64>,
    near: HostFacts,
    interface: Option<Interface>,
    path_mtu: u16,
    rtt: Option<Duration>,
    next_id: u32,
    /// STAMP's number of the next packet, and the session's name.
    next_seq: u32,
    ssid: u16,
    /// Nobody else's packets.
    tag: [u8; 8],
    identifier: u16,
    /// The remote host's limit, once it is known; and this program's own for SYNs.
    tokens: Option<Tokens>,
    losses: rows::Losses,
    remote_clock: Option<ErrorEstimate>,
    /// IP octets of the remote host's longest answer.
    largest_reply: Option<u16>,
    /// Who answered packets with a hop limit, and what they said beside.
    responders: Responders,
}

/// Time beyond a round trip after which what has not come is lost (ours, as in [`crate::client`]).
const GRACE: Duration = Duration::from_millis(100);
/// Packets that show whether a remote host limits its answers: twice what Linux gives at once.
const DOZEN: usize = 12;
/// SYNs are what floods are made of: so many at once, and then no more than 100 per second (ours).
const SYN_BURST: u16 = 128;
const SYN_EVERY: Duration = Duration::from_millis(10);
/// First source port of pulses that are SYNs: below those of trains.
const FIRST_PULSE_PORT: u16 = 13_000;

impl SingleEndedWorld {
    /// Opens a socket for `target` (a name or an address), measures this host and a few round
    /// trips, and how the remote host limits its answers. Takes about half a second; some three if
    /// it limits them.
    pub fn connect(target: &str, options: &SingleEndedOptions) -> Result<Self, Error> {
        let mut last = None;
        for peer in resolve(target, options)? {
            match Self::open(peer, options).and_then(Self::greeted) {
                Ok(world) => return Ok(world),
                // The machine's own faults are the same for every address.
                Err(error @ (Error::Host { .. } | Error::Caller(_))) => return Err(error),
                Err(error) => last = last.or(Some(error)),
            }
        }
        Err(last.unwrap_or_else(|| no_address(target, options.version)))
    }

    fn open(peer: SocketAddr, options: &SingleEndedOptions) -> Result<Self, Error> {
        let socket = Arc::new(socket(peer, options.via)?);
        let interface = Interface::towards(peer);
        let near = host::measure(interface.as_ref()).map_err(Error::host("measure itself"))?;
        let (tag, id, names) = (random::<8>()?, random::<4>()?, random::<4>()?);
        let [ssid, identifier] = [[names[0], names[1]], [names[2], names[3]]].map(u16::from_be_bytes);
        let now = clock::now_ns();
        let own_pace = matches!(options.via, Via::Tcp { .. })
            .then(|| Tokens::new(AnswerLimit::new(SYN_BURST, SYN_EVERY), SYN_BURST.into(), now));
        Ok(Self {
            options: options.clone(),
            peer,
            path_mtu: socket.path_mtu().unwrap_or(1500),
            socket,
            queue: ErrorQueue::new(),
            last_received_ns: Arc::new(AtomicI64::new(i64::MIN)),
            near,
            interface,
            rtt: None,
            next_id: u32::from_be_bytes(id),
            next_seq: 0,
            // Zero would say that there is none.
            ssid: ssid.max(1),
            tag,
            identifier,
            tokens: own_pace,
            losses: rows::Losses::default(),
            remote_clock: None,
            largest_reply: None,
            responders: Responders::default(),
        })
    }

    /// The first round trips, and the limit of answers.
    fn greeted(mut self) -> Result<Self, Error> {
        const TRIES: usize = 3;
        if self.options.per_hop {
            // One packet tells how far the host is, if it answers at all; more would use up what it
            // answers in a second.
            self.small_train(1, Duration::ZERO)?;
            return Ok(self);
        }
        let deadline = clock::now_ns() + clock::nanos(self.options.timeout);
        loop {
            let report = self.small_train(TRIES, Duration::from_millis(20))?;
            if self.rtt.is_some() {
                break;
            }
            if let Some(error) = self.refused_by(&report) {
                return Err(error);
            }
            if clock::now_ns() >= deadline || self.stop_requested() {
                return Err(PathError::NoAnswer {
                    peer: self.peer,
                    via: self.options.via,
                    waited: self.options.timeout,
                }
                .into());
            }
            // A host that limits its answers may have given its last to somebody else.
            self.wait(Stamp::from_nanos(clock::now_ns() + 300_000_000))?;
        }
        if matches!(self.options.via, Via::Udp { .. }) {
            self.learn_limit(TRIES)?;
        } else {
            self.small_train(TRIES, Duration::from_millis(5))?;
        }
        Ok(self)
    }

    /// What an ICMP error to the first packets means.
    fn refused_by(&self, report: &TrainReport) -> Option<Error> {
        let reply = report.arrivals.iter().find_map(|row| match row.fate {
            Fate::Answered(reply) => Some(reply),
            Fate::Received(_) | Fate::Echoed { .. } | Fate::Lost => None,
        })?;
        let peer = self.peer;
        match (reply.kind, self.options.via) {
            (HopReplyKind::PortUnreachable, Via::Stamp { .. }) => Some(PeerError::NoReflector { peer }.into()),
            (HopReplyKind::Unreachable { code }, _) => Some(
                PathError::Unreachable {
                    peer,
                    source: std::io::Error::other(format!("{} says so, ICMP code {code}", reply.from)),
                }
                .into(),
            ),
            _ => None,
        }
    }

    /// A train of the smallest packets, answered as [`Via`] says.
    fn small_train(&mut self, count: usize, gap: Duration) -> Result<TrainReport, Error> {
        let mut train = Train::uniform(TrainId(0), count, self.least_ip_octets().max(64), gap);
        train.peer_kind = self.options.via.answering().peer_kind();
        self.carry_out(&train)
    }

    /// How the remote host limits its answers: a dozen packets at once, and if it cuts them off,
    /// how long until it answers again. `before` packets were answered just now.
    fn learn_limit(&mut self, before: usize) -> Result<(), Error> {
        let report = self.small_train(DOZEN, Duration::from_millis(1))?;
        let answered: Vec<bool> = report.arrivals.iter().map(|row| row.fate != Fate::Lost).collect();
        let Some(burst) = limit::cut_off(&answered) else {
            return Ok(());
        };
        let burst = burst.saturating_add(u16::try_from(before).unwrap_or(0));
        self.learn_refill(burst, rows::last_answered_ns(&report))
    }

    /// The bucket is empty since the last answer, to a packet of `since_ns`; asks ten times a
    /// second until there is one again.
    fn learn_refill(&mut self, burst: u16, since_ns: Option<i64>) -> Result<(), Error> {
        const EVERY: Duration = Duration::from_millis(100);
        const MOST: u32 = 30;
        let began = since_ns.unwrap_or_else(clock::now_ns);
        // Hosts that answer no sooner than this are asked no sooner either.
        let mut every = EVERY * MOST;
        for _ in 0..MOST {
            let asked = clock::now_ns();
            let report = self.small_train(1, Duration::ZERO)?;
            if report.lost() == 0 {
                let took = u64::try_from(asked.saturating_sub(began)).unwrap_or(0);
                every = Duration::from_nanos(took).max(Duration::from_millis(1));
                break;
            }
            if self.stop_requested() {
                break;
            }
            self.wait(Stamp::from_nanos(asked + clock::nanos(EVERY)))?;
        }
        let mut tokens = Tokens::new(AnswerLimit::new(burst, every), 0, clock::now_ns());
        tokens.empty();
        self.tokens = Some(tokens);
        Ok(())
    }

    /// What is known of the setup of this host.
    pub fn environment(&self) -> Environment {
        Environment::read(self.interface.clone())
    }

    /// The remote host's address; the port is zero where there is none.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// By what the remote host answers.
    pub fn via(&self) -> Via {
        self.options.via
    }

    /// How many answers the remote host gives, where it was seen to limit them.
    pub fn answer_limit(&self) -> Option<AnswerLimit> {
        match self.options.via {
            Via::Udp { .. } => self.tokens.map(|tokens| tokens.limit()),
            Via::Icmp | Via::Tcp { .. } | Via::Stamp { .. } => None,
        }
    }

    /// IP octets of the remote host's longest answer; `None` if a reflector's stamps make its
    /// reverse direction irrelevant, or none came.
    pub fn largest_reply(&self) -> Option<u16> {
        self.largest_reply.filter(|_| !matches!(self.options.via, Via::Stamp { .. }))
    }

    /// Losses each way; `None` unless the remote host counts the packets itself (a stateful STAMP
    /// reflector), or nothing was lost between here and a reflector.
    pub fn losses(&self) -> Option<LossSplit> {
        let nothing = matches!(self.options.via, Via::Stamp { .. }) && self.losses.none();
        self.losses.split().or(nothing.then_some(LossSplit::default()))
    }

    /// The reflector's clock as it says itself; `None` unless one answered.
    pub fn remote_clock(&self) -> Option<RemoteClock> {
        let error = self.remote_clock?;
        Some(RemoteClock {
            synchronised: error.synchronised,
            error: Duration::from_nanos(error.error_ns()),
            near_error: clock::wall_error(),
            wall_ahead_ns: clock::wall_ns().saturating_sub(clock::now_ns()),
        })
    }

    fn ipv6(&self) -> bool {
        self.peer.is_ipv6()
    }

    /// The routers that answered, and answers that were left out.
    pub fn responders(&self) -> &Responders {
        &self.responders
    }

    fn quiet(&self) -> Duration {
        // A router may take longer over its answer than the whole path over a packet.
        let known = self.rtt.max(self.responders.longest());
        known.unwrap_or(Duration::from_millis(900)) + GRACE
    }
}

impl World for SingleEndedWorld {
    type Fault = Error;

    fn now(&self) -> Stamp<Sender> {
        clock::now()
    }

    fn facts(&self) -> PathFacts {
        // Whoever stamps at the peer, a reflector's program makes two calls per packet. Nothing
        // is known of its machine: it is taken for one like this.
        let receiver = HostFacts {
            receive_cost: self.near.receive_cost + self.near.send_cost,
            interface_rate: None,
            ..self.near.clone()
        };
        PathFacts {
            path_mtu: self.path_mtu,
            ipv6: self.ipv6(),
            rtt: self.rtt.or(self.responders.longest()).unwrap_or(Duration::from_secs(1)),
            sender: self.near.clone(),
            receiver,
            rate_cap: None,
            octet_budget: None,
            answering: self.options.via.answering(),
            answer_limit: self.answer_limit(),
        }
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Error> {
        match probe {
            Probe::Train(train) => {
                if let Some(refusal) = self.refusal(&train) {
                    return Ok(Event::Refused(refusal));
                }
                let _careful = self.options.thread_scheduling.take();
                self.carry_out(&train).map(Event::Train)
            }
            Probe::Load(_) | Probe::Transfer(_) | Probe::Capture(_) => Ok(Event::Refused(Refusal::NotOffered)),
        }
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Error> {
        const POLL_NS: i64 = 20_000_000;
        while !self.stop_requested() && clock::now_ns() < until.nanos() {
            clock::sleep_until_ns(until.nanos().min(clock::now_ns() + POLL_NS));
        }
        Ok(())
    }

    /// Packets above a path MTU that was found are not answered, though the interface sends them.
    fn concluded(&mut self, measured: &Measured, _stopped: Option<&narrows_probe::outcome::Reason>) {
        self.path_mtu = crate::path_mtu::after(self.path_mtu, measured);
    }

    fn stop_requested(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for SingleEndedWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SingleEndedWorld")
            .field("peer", &self.peer)
            .field("via", &self.options.via)
            .finish_non_exhaustive()
    }
}

/// Octets that nobody can guess.
fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(|error| Error::Host {
        doing: "draw random octets",
        source: std::io::Error::other(error.to_string()),
    })?;
    Ok(octets)
}

fn socket(peer: SocketAddr, via: Via) -> Result<ProbeSocket, Error> {
    let options = SocketOptions::default();
    let denied = |error: &std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
    let unreachable = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::HostUnreachable | std::io::ErrorKind::NetworkUnreachable => {
            Error::from(PathError::Unreachable { peer, source })
        }
        _ => Error::host("open a socket for probes")(source),
    };
    match via {
        Via::Udp { .. } => ProbeSocket::connected(peer, &options).map_err(unreachable),
        Via::Stamp { .. } => {
            let socket = ProbeSocket::connected(peer, &options).map_err(unreachable)?;
            // RFC 8762 §4.1: the reflector's copy of it then tells the hops.
            socket.set_hop_limit(255).map_err(Error::host("set the hop limit"))?;
            Ok(socket)
        }
        Via::Icmp => match ProbeSocket::connected_kind(Kind::Ping, peer, &options) {
            Err(error) if denied(&error) => {
                ProbeSocket::connected_kind(Kind::RawIcmp, peer, &options).map_err(|error| {
                    if denied(&error) {
                        Error::host(
                            "send ICMP echoes without CAP_NET_RAW or a group within net.ipv4.ping_group_range \
                             (--via udp needs neither)",
                        )(error)
                    } else {
                        unreachable(error)
                    }
                })
            }
            other => other.map_err(unreachable),
        },
        Via::Tcp { .. } => {
            // A raw socket has no ports: the segments do.
            let host = SocketAddr::new(peer.ip(), 0);
            ProbeSocket::connected_kind(Kind::RawTcp, host, &options).map_err(|error| {
                if denied(&error) {
                    Error::host("send TCP SYNs without CAP_NET_RAW (--via udp needs no privilege)")(error)
                } else {
                    unreachable(error)
                }
            })
        }
    }
}

fn resolve(target: &str, options: &SingleEndedOptions) -> Result<Vec<SocketAddr>, Error> {
    let bare = target.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(target);
    let found = (bare, options.via.port()).to_socket_addrs().map_err(|_| no_address(target, options.version))?;
    let wanted = |address: &SocketAddr| match (options.version, address.ip()) {
        (IpVersion::Any, _) | (IpVersion::V4, IpAddr::V4(_)) | (IpVersion::V6, IpAddr::V6(_)) => true,
        (IpVersion::V4 | IpVersion::V6, _) => false,
    };
    Ok(found.filter(wanted).collect())
}

fn no_address(target: &str, version: IpVersion) -> Error {
    CallerError::NoAddress {
        target: target.to_owned(),
        version: match version {
            IpVersion::Any => "IP",
            IpVersion::V4 => "IPv4",
            IpVersion::V6 => "IPv6",
        },
    }
    .into()
}
