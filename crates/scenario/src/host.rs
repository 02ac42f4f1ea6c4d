//! The hosts at the ends, and how they lie.

use std::sync::Arc;
use std::time::Duration;

use narrows_host_profile::HostProfile;
use narrows_units::{BitRate, Delta};

use crate::hop::Router;

/// A host.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Its clock.
    pub clock: ClockModel,
    /// Time that one send call takes: the smallest gap between two departures.
    pub send_cost: Duration,
    /// Time that one receive call takes; user-level stamps come that much later, one after the
    /// other.
    pub receive_cost: Duration,
    /// How fast octets are copied between a program and its kernel; `None`: at no cost. The copy
    /// is part of the call, which takes that much longer the longer the packet is.
    pub copy_rate: Option<BitRate>,
    /// Processor time of one receive interrupt. The receiving program waits meanwhile: both share
    /// one processor, and interrupts come first. One comes for each packet, or for each batch of
    /// `coalescing`.
    pub interrupt_cost: Duration,
    /// Each planned departure is late by up to this much (uniform), independently.
    pub pacing_jitter: Duration,
    /// Times during which the host does not run.
    pub stalls: Option<Stalls>,
    /// Receive coalescing of its interface.
    pub coalescing: Option<Coalescing>,
    /// A measured host that it plays instead of costs, jitter, stalls and coalescing of its own. A
    /// profile of both ends on one machine is played by both hosts of a scenario. TCP endpoints are
    /// not touched by it.
    pub profile: Option<Arc<HostProfile>>,
    /// Nominal rate of its interface, which serialises what leaves before the first hop's queue
    /// (pacing and stamps are taken before it); `None`: the first hop's link is the interface.
    pub interface_rate: Option<BitRate>,
    /// Most octets that its TCP receive buffer can hold of payload.
    pub tcp_receive_octets: u32,
    /// What its programs and its send buffer allow one TCP connection.
    pub tcp: TcpHost,
    /// How its kernel answers packets that no program awaits: UDP datagrams to a closed port (with
    /// all of this), TCP SYNs (the limit and the size of ICMP messages aside). No receive or send
    /// call is made for these.
    pub answers: Router,
}

impl Default for Host {
    /// An ideal host with Linux's usual receive-buffer limit (6 MiB of memory, half of it payload)
    /// and its ICMP limit off.
    fn default() -> Self {
        Self {
            clock: ClockModel::default(),
            send_cost: Duration::ZERO,
            receive_cost: Duration::ZERO,
            copy_rate: None,
            interrupt_cost: Duration::ZERO,
            pacing_jitter: Duration::ZERO,
            stalls: None,
            coalescing: None,
            profile: None,
            interface_rate: None,
            tcp_receive_octets: 3 << 20,
            tcp: TcpHost::default(),
            answers: Router::default(),
        }
    }
}

impl Host {
    /// Time of a send call with its copy.
    pub fn send_time(&self, ip_octets: u16) -> Duration {
        self.send_cost.saturating_add(self.copy_time(ip_octets))
    }

    /// Time of a receive call with its copy.
    pub fn receive_time(&self, ip_octets: u16) -> Duration {
        self.receive_cost.saturating_add(self.copy_time(ip_octets))
    }

    fn copy_time(&self, ip_octets: u16) -> Duration {
        self.copy_rate.and_then(|rate| rate.time_for(ip_octets.into())).unwrap_or_default()
    }

    /// The same clock, interface, TCP and answers; calls, pacing, stalls and stamps as measured.
    #[must_use]
    pub fn playing(self, profile: Arc<HostProfile>) -> Self {
        Self {
            send_cost: Duration::ZERO,
            receive_cost: Duration::ZERO,
            pacing_jitter: Duration::ZERO,
            stalls: None,
            coalescing: None,
            profile: Some(profile),
            ..self
        }
    }
}

/// What a host's programs and its send buffer allow one TCP connection; nothing is bounded by
/// default. Elastic cross traffic has hosts of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpHost {
    /// Most octets of payload that its send buffer can hold; `None`: it follows the window.
    pub send_octets: Option<u32>,
    /// Payload that the sending program writes, at most.
    pub writes: Option<BitRate>,
    /// Payload that the receiving program reads, at most.
    pub reads: Option<BitRate>,
    /// Processor time of the sending or receiving thread per full segment. It goes no faster than
    /// that.
    pub segment_cost: Duration,
    /// Processors that the threads of all connections of one transfer share, each thread having its
    /// turn for a segment at a time; `None`: one for each.
    pub processors: Option<std::num::NonZeroU16>,
    /// What such a turn costs beside the segment (switch, cold caches), once there are more threads
    /// than processors.
    pub switch_cost: Duration,
}

impl TcpHost {
    /// Processor time per full segment that one of so many threads waits for: its own, its switch,
    /// and the turns of others.
    pub fn segment_cost_among(&self, threads: u16) -> Duration {
        match self.processors {
            Some(processors) if threads > processors.get() => {
                let turn = self.segment_cost.saturating_add(self.switch_cost);
                turn.saturating_mul(threads.into()) / u32::from(processors.get())
            }
            _ => self.segment_cost,
        }
    }
}

/// A clock that lies:
/// `reading = floor((t + offset + t × skew + steps so far) / granularity) × granularity`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockModel {
    /// What it shows at time zero.
    pub offset: Delta,
    /// How much too fast it runs.
    pub skew_ppm: f64,
    /// Readings are multiples of this. At least 1 ns.
    pub granularity: Duration,
    /// When it is set, and by how much.
    pub steps: Vec<ClockStep>,
}

impl Default for ClockModel {
    /// A perfect clock.
    fn default() -> Self {
        Self { offset: Delta::ZERO, skew_ppm: 0.0, granularity: Duration::from_nanos(1), steps: Vec::new() }
    }
}

/// A clock being set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// Since the scenario's begin.
    pub at: Duration,
    /// By how much.
    pub by: Delta,
}

/// A host that loses its processor now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stalls {
    /// Mean time from the end of one to the begin of the next (exponential).
    pub every: Duration,
    /// How long each lasts (exponential, this mean).
    pub lasting: Duration,
}

/// Receive coalescing: an interrupt, and with it one stamp for all packets waiting, when the timer
/// that the first of them started runs out or when so many frames wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// The timer.
    pub timer: Duration,
    /// The frame count.
    pub frames: u32,
}
