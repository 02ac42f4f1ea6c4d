//! The client's side of a measurement: [`SocketWorld`], the estimators' world over real sockets.
//!
//! One control connection, one UDP flow for trains and echoes, more flows for loads, data
//! connections for transfers. Every wait has an end: a remote host that falls silent while traffic
//! runs is abandoned within a second, one that does not answer a request after the request's own
//! timeout.

mod control;
mod convert;
pub(crate) mod gather;
mod handshake;
mod load;
mod options;
mod slots;
mod train;
mod transfer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_diagnose::advice::HostEnvironment;
use narrows_probe::outcome::Reason;
use narrows_probe::probes::{Probe, Train, TrainId};
use narrows_probe::{Answering, Event, HostFacts, Measured, PathFacts, Refusal, World};
use narrows_units::{Sender, Stamp};
use narrows_wire::{ClientMessage, Direction, LightMeter, ServerMessage, SessionLimits, SlotKind};

pub(crate) use handshake::resolve;
pub use options::{ConnectOptions, IpVersion, QueueObserver, TrafficOptions};

use crate::clock::{self, nanos};
use crate::error::{Error, PeerError};
use crate::errors::ErrorQueue;
use crate::host::{self, Environment, Interface};
use crate::path_mtu;
use crate::socket::ProbeSocket;
use crate::spacing::Spacing;

/// A path between this host and one that runs the server, measured in one direction.
pub struct SocketWorld {
    control: control::Control,
    keys: handshake::SessionKeys,
    limits: SessionLimits,
    meter: LightMeter,
    flows: Vec<Arc<ProbeSocket>>,
    queue: ErrorQueue,
    options: ConnectOptions,
    near: HostFacts,
    remote: HostFacts,
    interface: Option<Interface>,
    /// The session's version of the protocol.
    version: u16,
    path_mtu: u16,
    rtt: Duration,
    next_id: u32,
    load: Option<load::Running>,
    spacing: Vec<Spacing>,
    transfer: Option<transfer::Running>,
    read: Option<(u64, Duration)>,
    /// All that was to be sent has been, in the last segment.
    spent: bool,
    /// Both ends of each connection or flow of the last transfer or load.
    ends: Vec<(SocketAddr, SocketAddr)>,
    /// How the remote host's connections of the last reverse transfer stood.
    stands: Vec<narrows_wire::SocketStands>,
}

/// Time beyond a round trip after which what has not come is lost: ours, for queues and schedulers
/// on the way. A bloated queue that still delivers is never cut short, because it counts from the
/// last arrival.
const GRACE: Duration = Duration::from_millis(100);

impl SocketWorld {
    /// Opens a session with `target` (a name or an address), proves this host's address, measures
    /// this host (unless told not to) and a few round trips. Takes about half a second.
    pub fn connect(target: &str, mut options: ConnectOptions) -> Result<Self, Error> {
        let opened = handshake::open(target, &options)?;
        options.lease = options.lease.filter(|_| opened.version >= narrows_wire::NAMES_KEYS);
        let keys = handshake::SessionKeys { peer: opened.peer, session: opened.session, token: opened.token };
        let stop = Arc::clone(&options.stop);
        let mut control = control::Control::new(opened.stream, opened.reader, opened.conversation, stop)?;
        if slots::acquire(&mut control, SlotKind::Light, &options)?.is_err() {
            let reason = "not even light measurements are allowed".to_owned();
            return Err(PeerError::Refused { peer: keys.peer, reason }.into());
        }
        let flow = handshake::open_flow(&keys, 0, &options)?;
        let interface = Interface::towards(opened.peer);
        let near = if options.measure_host {
            host::measure(interface.as_ref()).map_err(Error::host("measure itself"))?
        } else {
            HostFacts::ideal()
        };
        let mut world = Self {
            control,
            keys,
            meter: LightMeter::new(&opened.limits, now()),
            limits: opened.limits,
            path_mtu: flow.path_mtu().unwrap_or(1500),
            flows: vec![flow],
            queue: ErrorQueue::new(),
            options,
            near,
            remote: convert::host(&opened.host),
            interface,
            version: opened.version,
            rtt: Duration::from_secs(1),
            next_id: 1,
            load: None,
            spacing: Vec::new(),
            transfer: None,
            read: None,
            spent: false,
            ends: Vec::new(),
            stands: Vec::new(),
        };
        world.measure_rtt()?;
        Ok(world)
    }

    /// What is known of the setup of this host.
    pub fn environment(&self) -> Environment {
        Environment::read(self.interface.clone())
    }

    /// The interface towards the remote host.
    pub fn interface(&self) -> Option<&Interface> {
        self.interface.as_ref()
    }

    /// How the remote host says that it is set up, and what it counted since this was asked before
    /// in this session (nothing, at first). `None` from one that speaks version 1 of the protocol,
    /// which does not tell. Ends what runs.
    pub fn ask_remote_host(&mut self) -> Result<Option<HostEnvironment>, Error> {
        /// The first version that tells.
        const TELLS: u16 = 2;
        if self.version < TELLS {
            return Ok(None);
        }
        self.end_running()?;
        self.control.say(&ClientMessage::AskHost)?;
        let reported =
            self.control.await_answer("asking how it is set up", self.timeout(), |incoming| match incoming {
                control::Incoming::Message(ServerMessage::HostReported(settings)) => Some(settings),
                _ => None,
            })?;
        Ok(reported.ok().map(|settings| host::reported::environment(*settings)))
    }

    /// What this host can do, and what the remote host says that it can do.
    pub fn hosts(&self) -> (&HostFacts, &HostFacts) {
        (&self.near, &self.remote)
    }

    /// What the remote host allows this session.
    pub fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// The remote host's address.
    pub fn peer(&self) -> SocketAddr {
        self.control.peer()
    }

    /// The version of the protocol that this session speaks.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The remote host knows of [`TrafficOptions`], and of sessions that share the load slot.
    pub fn tunes(&self) -> bool {
        self.version >= narrows_wire::TUNES
    }

    /// All that was to be sent ([`TrafficOptions::payload_octets`], [`TrafficOptions::packets`])
    /// has been sent: the last segment ended early, and the transfer or load with it.
    pub fn spent(&self) -> bool {
        self.spent
    }

    /// Has the next load end after so many packets: [`TrafficOptions::packets`], for who needs to
    /// know the path first.
    pub fn limit_packets(&mut self, packets: u64) {
        self.options.traffic.packets = Some(packets);
    }

    /// Addresses of both ends of each connection or flow of the last transfer or load.
    pub fn ends(&self) -> &[(SocketAddr, SocketAddr)] {
        &self.ends
    }

    /// How the remote host's connections of the last reverse transfer really stood, where it was
    /// told how they shall.
    pub fn remote_stands(&self) -> &[narrows_wire::SocketStands] {
        &self.stands
    }

    /// What the remote host last refused, in its own words.
    pub fn refused_because(&self) -> Option<&str> {
        self.control.refused_because()
    }

    /// Takes the load slot now, so that what follows begins at once. The inner error: the remote
    /// host will not.
    pub fn take_load_slot(&mut self) -> Result<Result<(), Refusal>, Error> {
        self.load_slot()
    }

    /// Takes the load slot now, and has `other`, a session with the same server, share it: so they
    /// can test at the same time. Both give it back as they would anyhow. The inner error: the
    /// remote host will not.
    pub fn share_load_slot(&mut self, other: &mut Self) -> Result<Result<(), Refusal>, Error> {
        if let Err(refusal) = self.load_slot()? {
            return Ok(Err(refusal));
        }
        slots::share(&mut other.control, self.keys.token, &other.options)
    }

    /// Learns the smallest of a few round trips, as every echo train does. A path that loses them
    /// all keeps the first guess of a second.
    fn measure_rtt(&mut self) -> Result<(), Error> {
        const ECHOES: usize = 5;
        let ip_octets = if self.ipv6() { 128 } else { 108 };
        let train = Train::uniform(TrainId(0), ECHOES, ip_octets, Duration::from_millis(5)).echoed();
        self.echo_train(&train)?;
        Ok(())
    }

    fn ipv6(&self) -> bool {
        self.keys.peer.is_ipv6()
    }

    fn reverse(&self) -> bool {
        self.options.direction == Direction::Reverse
    }

    /// A name for the next train, load or transfer of this session.
    fn take_id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        id
    }

    /// How long to wait for packets after the last sign of them.
    fn quiet(&self) -> Duration {
        self.rtt + GRACE
    }

    /// How long to wait for an answer on the control connection: a full queue on the way may lose a
    /// word and its repetitions, which come after 0.3, 0.6, 1.2 and 2.4 s.
    fn timeout(&self) -> Duration {
        Duration::from_secs(5) + 2 * self.rtt
    }

    /// Flows `0..count`, opened as far as they are not.
    fn flows(&mut self, count: u16) -> Result<Vec<Arc<ProbeSocket>>, Error> {
        let have = u16::try_from(self.flows.len()).unwrap_or(u16::MAX);
        for number in have..count {
            let flow = handshake::open_flow(&self.keys, number, &self.options)?;
            self.flows.push(flow);
        }
        Ok(self.flows.iter().take(count.into()).map(Arc::clone).collect())
    }

    /// Leave to send trains of so many octets: within the light limits at once, else with the load
    /// slot. A fleet's server has no load slot for a run without a lease, which therefore waits
    /// until its train is light.
    fn admit(&mut self, ip_octets: u64) -> Result<Result<(), Refusal>, Error> {
        if self.control.conversation().holds(SlotKind::Load) || self.meter.admit(ip_octets, now()) {
            return Ok(Ok(()));
        }
        if self.options.key_name.is_some()
            && self.options.lease.is_none()
            && let Some(missing) = self.meter.wait_for(ip_octets, now())
        {
            self.wait(clock::now() + missing)?;
            if self.meter.admit(ip_octets, now()) {
                return Ok(Ok(()));
            }
        }
        self.load_slot()
    }

    fn load_slot(&mut self) -> Result<Result<(), Refusal>, Error> {
        if self.control.conversation().holds(SlotKind::Load) {
            return Ok(Ok(()));
        }
        slots::acquire(&mut self.control, SlotKind::Load, &self.options)
    }

    /// Gives the load slot back, so that others may load their paths while this session goes on. It
    /// is asked for again when a probe needs it.
    pub fn release_load_slot(&mut self) -> Result<(), Error> {
        self.end_running()?;
        if self.control.conversation().holds(SlotKind::Load) {
            slots::release(&mut self.control, SlotKind::Load)?;
        }
        Ok(())
    }

    /// Ends what runs on from earlier segments.
    fn end_running(&mut self) -> Result<(), Error> {
        self.end_load()?;
        self.end_transfer()
    }
}

fn now() -> Duration {
    Duration::from_nanos(u64::try_from(clock::now_ns()).unwrap_or(0))
}

impl World for SocketWorld {
    type Fault = Error;

    fn now(&self) -> Stamp<Sender> {
        clock::now()
    }

    fn facts(&self) -> PathFacts {
        let (sender, receiver) = if self.reverse() { (&self.remote, &self.near) } else { (&self.near, &self.remote) };
        PathFacts {
            path_mtu: self.path_mtu,
            ipv6: self.ipv6(),
            rtt: self.rtt,
            sender: sender.clone(),
            receiver: receiver.clone(),
            rate_cap: None,
            octet_budget: None,
            answering: Answering::Server,
            answer_limit: None,
        }
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Error> {
        match probe {
            Probe::Train(train) => {
                self.end_running()?;
                let _careful = self.options.thread_scheduling.take();
                self.train(&train)
            }
            Probe::Load(load) => {
                self.end_transfer()?;
                self.load_segment(load)
            }
            Probe::Transfer(transfer) => {
                self.end_load()?;
                self.transfer_segment(&transfer)
            }
            Probe::Capture(_) => Ok(Event::Refused(Refusal::NotOffered)),
        }
    }

    /// Packets above a path MTU that was found are not answered, though the interface sends them.
    fn concluded(&mut self, measured: &Measured, _stopped: Option<&Reason>) {
        self.path_mtu = path_mtu::after(self.path_mtu, measured);
    }

    fn rest(&mut self) -> Result<(), Error> {
        self.release_load_slot()
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Error> {
        const POLL_NS: i64 = 20_000_000;
        self.end_running()?;
        while !self.stop_requested() {
            let now = clock::now_ns();
            if now >= until.nanos() {
                break;
            }
            let next = until.nanos().min(now + POLL_NS);
            // Nothing is expected; but a remote host that left is heard of here.
            if until.nanos() - now > POLL_NS {
                self.control.hear(next)?;
            } else {
                clock::sleep_until_ns(next);
            }
        }
        Ok(())
    }

    fn stop_requested(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }
}

impl Drop for SocketWorld {
    fn drop(&mut self) {
        // Whatever is wrong with the session then, this was its last use.
        let _ = self.end_running();
    }
}

impl std::fmt::Debug for SocketWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketWorld").field("peer", &self.control.peer()).finish_non_exhaustive()
    }
}

/// Sleeps a little, as one who waits for other threads does.
fn nap(deadline_ns: i64) {
    clock::sleep_until_ns(deadline_ns.min(clock::now_ns() + nanos(Duration::from_millis(1))));
}
