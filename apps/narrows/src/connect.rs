//! Reaching the remote host, and what its faults mean to the user.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(feature = "watch")]
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) use narrows_net::client::IpVersion as Version;
use narrows_net::client::{ConnectOptions, IpVersion, QueueObserver, SocketWorld};
use narrows_net::single_ended::{SingleEndedOptions, SingleEndedWorld};
use narrows_net::via::Via;
use narrows_units::Direction;

use crate::exit::{Exit, Failure};
use crate::key::{Key, KeyArgs};
use crate::progress::Progress;

/// Whom to measure against.
#[derive(Debug, clap::Args)]
pub(crate) struct ConnectArgs {
    /// Host to measure to: one that runs `narrows serve`, or with --via any host that answers
    #[arg(add = crate::complete::hosts())]
    host: String,
    /// Its port [default: 8620]
    #[arg(long, short, env = "NARROWS_PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Only IPv4
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// Only IPv6
    #[arg(short = '6')]
    ipv6: bool,
    #[command(flatten)]
    key: KeyArgs,
}

/// The remote host, ready to be connected to.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) port: u16,
    version: IpVersion,
    key: Key,
}

impl ConnectArgs {
    /// What another command's flags say of it; `only`: IPv4, IPv6.
    pub(crate) fn to(host: String, port: Option<u16>, key: KeyArgs, only: (bool, bool)) -> Self {
        Self { host, port, ipv4: only.0, ipv6: only.1, key }
    }

    /// The remote host, as the caller named it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Reads the key.
    pub(crate) fn peer(&self) -> Result<Peer, Failure> {
        Ok(Peer {
            name: self.host.clone(),
            port: self.port.unwrap_or(narrows_wire::DEFAULT_PORT),
            version: match (self.ipv4, self.ipv6) {
                (true, _) => IpVersion::V4,
                (_, true) => IpVersion::V6,
                _ => IpVersion::Any,
            },
            key: self.key.read()?,
        })
    }
}

impl Peer {
    /// A remote host without a key, at its usual port.
    pub(crate) fn plain(name: String, port: u16) -> Self {
        Self { name, port, version: IpVersion::Any, key: Key::default() }
    }

    /// The same over these IP versions alone.
    pub(crate) fn of_version(name: String, port: u16, version: Version) -> Self {
        Self { version, ..Self::plain(name, port) }
    }

    /// The same with a key, or without one.
    pub(crate) fn with_key(self, key: Key) -> Self {
        Self { key, ..self }
    }

    pub(crate) fn has_key(&self) -> bool {
        self.key.psk.is_some()
    }

    /// A world over real sockets, from the network namespace of the calling thread.
    pub(crate) fn connect(
        &self,
        direction: Direction,
        stop: &Arc<AtomicBool>,
        progress: &Progress,
    ) -> Result<SocketWorld, Failure> {
        self.connect_with(direction, stop, progress, ConnectOptions::default())
    }

    /// The same, for no longer than this: where nobody has said that a server is there.
    pub(crate) fn connect_within(
        &self,
        direction: Direction,
        timeout: Duration,
        stop: &Arc<AtomicBool>,
        progress: &Progress,
    ) -> Result<SocketWorld, Failure> {
        let quick = ConnectOptions { timeout, queue_timeout: timeout, ..ConnectOptions::default() };
        self.connect_with(direction, stop, progress, quick)
    }

    fn connect_with(
        &self,
        direction: Direction,
        stop: &Arc<AtomicBool>,
        progress: &Progress,
        usual: ConnectOptions,
    ) -> Result<SocketWorld, Failure> {
        let (teller, name) = (progress.clone(), self.name.clone());
        let options = ConnectOptions {
            port: self.port,
            version: self.version,
            direction: match direction {
                Direction::Reverse => narrows_wire::Direction::Reverse,
                Direction::Forward | Direction::RoundTrip => narrows_wire::Direction::Forward,
            },
            stop: Arc::clone(stop),
            on_queued: QueueObserver::new(move |_, place| {
                teller.note(&format!("{name} is busy; place {place} in its queue"));
            }),
            ..usual
        };
        SocketWorld::connect(&self.name, self.key.clone().give(options)).map_err(|error| failure(&error))
    }
}

/// Why nothing can be measured with a server now.
#[cfg(feature = "watch")]
pub(crate) enum NotAdmitted {
    /// Others come first.
    Busy,
    /// Anything else.
    Fault(Failure),
}

#[cfg(feature = "watch")]
impl Peer {
    /// Connects and takes a slot within this time each, or says whether the server was only busy.
    pub(crate) fn connect_admitted(
        &self,
        direction: Direction,
        timeout: Duration,
        stop: &Arc<AtomicBool>,
    ) -> Result<SocketWorld, NotAdmitted> {
        let queued = Arc::new(AtomicBool::new(false));
        let teller = Arc::clone(&queued);
        let options = ConnectOptions {
            port: self.port,
            version: self.version,
            direction: if direction == Direction::Reverse {
                narrows_wire::Direction::Reverse
            } else {
                narrows_wire::Direction::Forward
            },
            stop: Arc::clone(stop),
            timeout,
            queue_timeout: timeout,
            on_queued: QueueObserver::new(move |_, _| teller.store(true, Ordering::Relaxed)),
            ..ConnectOptions::default()
        };
        SocketWorld::connect(&self.name, self.key.clone().give(options)).map_err(|error| match failure(&error) {
            refused if refused.exit == Exit::Refused && queued.load(Ordering::Relaxed) => NotAdmitted::Busy,
            other => NotAdmitted::Fault(other),
        })
    }
}

impl Peer {
    /// The same towards a host that runs nothing of ours, within the usual time or this one.
    pub(crate) fn connect_single_ended(
        &self,
        via: Via,
        within: Option<Duration>,
        stop: &Arc<AtomicBool>,
    ) -> Result<SingleEndedWorld, Failure> {
        let usual = SingleEndedOptions::new(via);
        let options = SingleEndedOptions {
            version: self.version,
            psk: self.key.psk.clone(),
            stop: Arc::clone(stop),
            timeout: within.unwrap_or(usual.timeout),
            ..usual
        };
        SingleEndedWorld::connect(&self.name, &options).map_err(|error| failure(&error))
    }

    /// The same to measure what lies between, by packets of one flow.
    pub(crate) fn connect_per_hop(&self, via: Via, stop: &Arc<AtomicBool>) -> Result<SingleEndedWorld, Failure> {
        let options = SingleEndedOptions {
            version: self.version,
            stop: Arc::clone(stop),
            per_hop: true,
            ..SingleEndedOptions::new(via)
        };
        SingleEndedWorld::connect(&self.name, &options).map_err(|error| failure(&error))
    }
}

/// Exit code and party of a fault.
pub(crate) fn failure(error: &narrows_net::Error) -> Failure {
    use narrows_net::error::{CallerError, PathError, PeerError};
    let (exit, who) = match error {
        narrows_net::Error::Caller(CallerError::NoAddress { .. }) => (Exit::Unreachable, "caller"),
        narrows_net::Error::Caller(CallerError::KeyNeeded { .. } | CallerError::KeyRefused { .. }) => {
            (Exit::Refused, "caller")
        }
        narrows_net::Error::Caller(_) => (Exit::Usage, "caller"),
        narrows_net::Error::Host { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            (Exit::Privilege, "host")
        }
        narrows_net::Error::Peer(
            PeerError::NotListening { .. }
            | PeerError::NoIperf3 { .. }
            | PeerError::NoNdt7 { .. }
            | PeerError::NoReflector { .. }
            | PeerError::Closed { .. },
        ) => (Exit::Unreachable, "peer"),
        narrows_net::Error::Peer(
            PeerError::Refused { .. } | PeerError::NotAdmitted { .. } | PeerError::NoKeyAsked { .. },
        ) => (Exit::Refused, "peer"),
        narrows_net::Error::Peer(PeerError::Protocol { .. } | PeerError::Version { .. }) => (Exit::Protocol, "peer"),
        narrows_net::Error::Peer(PeerError::Failed { .. }) => (Exit::Failure, "peer"),
        narrows_net::Error::Path(
            PathError::Silent { .. }
            | PathError::Unreachable { .. }
            | PathError::UdpBlocked { .. }
            | PathError::NoAnswer { .. },
        ) => (Exit::Unreachable, "path"),
        _ => (Exit::Failure, "host"),
    };
    Failure { exit, who, text: error.to_string() }
}
