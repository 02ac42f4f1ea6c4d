//! One stream of a test: its socket, its thread, and what both counted.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_probe::probes::TcpSample;
use narrows_wire::iperf3::{ArrivalCounts, Counters};

use super::worker::{SendPlan, Shared};
use super::{tcp, udp};
use crate::clock;
use crate::socket::ProbeSocket;
use crate::spacing::Spacing;
use crate::transfer::{TcpInfo, congestion, wait_in_calls};

/// What carries a stream.
#[derive(Debug, Clone)]
pub(super) enum Carrier {
    Tcp(Arc<TcpStream>),
    Udp(Arc<ProbeSocket>),
}

/// A stream, as this side has it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) sends: bool,
    carrier: Carrier,
    congestion: String,
    acked_before: u64,
    pub(super) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a stream had counted at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The stream's number.
    pub id: u32,
    /// This side sends.
    pub sends: bool,
    /// When, monotonic nanoseconds.
    pub at_ns: i64,
    /// Payload octets sent or received.
    pub octets: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// What arrived, of a UDP stream that this side receives.
    pub arrivals: Option<ArrivalCounts>,
    /// What the kernel says of a connection on which this side sends.
    pub tcp: Option<TcpSample>,
    /// Datagrams that this host refused to send.
    pub refused: u64,
    /// Datagrams that this host dropped for want of buffer.
    pub local_drops: u64,
    /// CPU time of the stream's thread.
    pub cpu: Duration,
}

impl Snapshot {
    /// Of a stream over which nothing went yet.
    pub fn nothing(id: u32, sends: bool) -> Self {
        Self {
            id,
            sends,
            at_ns: 0,
            octets: 0,
            datagrams: 0,
            arrivals: (!sends).then(ArrivalCounts::default),
            tcp: None,
            refused: 0,
            local_drops: 0,
            cpu: Duration::ZERO,
        }
    }

    /// The same before anything was counted: what a test begins with, whenever a busy host comes to
    /// look.
    pub(super) fn zeroed(&self) -> Self {
        Self {
            octets: 0,
            datagrams: 0,
            arrivals: self.arrivals.map(|_| ArrivalCounts::default()),
            refused: 0,
            ..self.clone()
        }
    }
}

impl Stream {
    pub(super) fn new(id: u32, sends: bool, carrier: Carrier, counters: Counters) -> io::Result<Self> {
        let (mut name, mut acked_before) = (String::new(), 0);
        if let Carrier::Tcp(stream) = &carrier {
            wait_in_calls(stream)?;
            name = congestion(stream);
            acked_before = TcpInfo::read(&**stream, &name)?.acked_octets();
        }
        Ok(Self {
            id,
            sends,
            carrier,
            congestion: name,
            acked_before,
            shared: Arc::new(Shared::new(counters)),
            thread: None,
        })
    }

    /// Starts to send.
    pub(super) fn send(&mut self, plan: SendPlan) -> io::Result<()> {
        let (shared, carrier) = (Arc::clone(&self.shared), self.carrier.clone());
        self.spawn("send", move || match carrier {
            Carrier::Tcp(stream) => tcp::send(&stream, &shared, &plan),
            Carrier::Udp(socket) => udp::send(&socket, &shared, &plan),
        })
    }

    /// Starts to receive; `crowded`: datagrams that come so close to one another that a stamp for
    /// each is not worth its price.
    pub(super) fn receive(&mut self, block: usize, crowded: bool) -> io::Result<()> {
        let (shared, carrier) = (Arc::clone(&self.shared), self.carrier.clone());
        self.spawn("receive", move || match carrier {
            Carrier::Tcp(stream) => tcp::receive(&stream, &shared, block),
            Carrier::Udp(socket) => udp::receive(&socket, &shared, crowded),
        })
    }

    fn spawn(&mut self, what: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let name = format!("{what}-{}", self.id);
        self.thread = Some(std::thread::Builder::new().name(name).spawn(work)?);
        Ok(())
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let shared = &self.shared;
        let is_udp = matches!(self.carrier, Carrier::Udp(_));
        let tcp = match &self.carrier {
            Carrier::Tcp(stream) if self.sends => TcpInfo::read(&**stream, &self.congestion).ok(),
            _ => None,
        };
        let arrivals = (is_udp && !self.sends).then(|| self.arrivals());
        Snapshot {
            id: self.id,
            sends: self.sends,
            at_ns: clock::now_ns(),
            octets: shared.octets.load(Ordering::Relaxed),
            datagrams: shared.datagrams.load(Ordering::Relaxed),
            arrivals,
            tcp: tcp.map(|info| info.sample(self.acked_before)),
            refused: shared.refused.load(Ordering::Relaxed),
            local_drops: shared.local_drops.load(Ordering::Relaxed),
            cpu: Duration::from_nanos(shared.cpu_ns.load(Ordering::Relaxed)),
        }
    }

    fn arrivals(&self) -> ArrivalCounts {
        self.shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner).counts()
    }

    pub(super) fn spacing(&self) -> Spacing {
        self.shared.spacing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The congestion control that a connection really uses.
    pub(super) fn congestion(&self) -> Option<&str> {
        (!self.congestion.is_empty()).then_some(self.congestion.as_str())
    }

    /// Segment size, send and receive buffer that the kernel really granted.
    pub(super) fn granted(&self) -> (Option<u32>, Option<usize>, Option<usize>) {
        match &self.carrier {
            Carrier::Tcp(stream) => {
                let socket = socket2::SockRef::from(&**stream);
                let mss = TcpInfo::read(&**stream, "").ok().map(|info| info.sample(0).mss_octets);
                (mss, socket.send_buffer_size().ok(), socket.recv_buffer_size().ok())
            }
            Carrier::Udp(socket) => {
                let buffers = socket.buffers().ok();
                (None, buffers.map(|(_, send)| send), buffers.map(|(receive, _)| receive))
            }
        }
    }

    /// Both ends of it.
    pub(super) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        match &self.carrier {
            Carrier::Tcp(stream) => Some((stream.local_addr().ok()?, stream.peer_addr().ok()?)),
            Carrier::Udp(socket) => Some((socket.local().ok()?, socket.peer().ok()?)),
        }
    }

    /// The connection broke before its time.
    pub(super) fn broken(&self) -> bool {
        self.shared.broken.load(Ordering::Relaxed)
    }

    /// The peer has closed its side.
    pub(super) fn ended(&self) -> bool {
        self.shared.ended.load(Ordering::Relaxed) || self.broken()
    }

    /// Asks the thread to end.
    pub(super) fn ask_to_stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the thread; the socket stays as it is.
    pub(super) fn end_thread(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked does nothing more either.
            let _ = thread.join();
        }
    }

    /// Ends the thread, and says to the peer that nothing more comes.
    pub(super) fn finish(&mut self) {
        self.end_thread();
        if let (Carrier::Tcp(stream), true) = (&self.carrier, self.sends) {
            // Fails only where the connection is gone already.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    /// Everything written was acknowledged by the far kernel, or never will be.
    pub(super) fn drained(&self) -> bool {
        let Carrier::Tcp(stream) = &self.carrier else {
            return true;
        };
        !self.sends
            || TcpInfo::read(&**stream, &self.congestion)
                .ok()
                .is_none_or(|info| info.unsent_octets() == Some(0) && info.sample(0).in_flight_segments == 0)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Carrier::Tcp(stream) = &self.carrier
            && !self.drained()
        {
            // Without this the kernel would go on for minutes to deliver what is left in the
            // buffers.
            let _ = socket2::SockRef::from(&**stream).set_linger(Some(Duration::ZERO));
        }
        self.finish();
    }
}
