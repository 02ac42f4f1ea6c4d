//! What can go wrong with a lab.

use std::io;

use thiserror::Error;

/// Why a lab could not be built or did not end well.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// This host cannot have a lab at all.
    #[error("no lab on this host: {0}")]
    Unavailable(#[from] WhyNot),
    /// The scenario has more hops than the address plan has room for; the writer of the scenario can mend it.
    #[error("the scenario has {hops} hops one way; a lab has addresses for {most}")]
    TooManyHops {
        /// How many it has.
        hops: usize,
        /// How many are possible.
        most: usize,
    },
    /// The scenario has TCP connections as virtual cross traffic, which the lab does not play; real ones can be run inside it.
    #[error(
        "the scenario has elastic cross traffic, which cannot be played in real time; run TCP connections inside the lab instead"
    )]
    Elastic,
    /// The kernel refused a step.
    #[error("{doing}: {source}")]
    Kernel {
        /// What was being done, such as `entering the namespace of the sender`.
        doing: String,
        /// What it said.
        source: io::Error,
    },
    /// No link of the engine has this index, or the engine has not started; the caller can mend it.
    #[error("there is no link {link} that plays")]
    NoSuchLink {
        /// The index.
        link: usize,
    },
    /// The thread that plays the path died; its message went to the standard error output.
    #[error("the thread that plays the path panicked")]
    PlayerDied,
}

/// Why this host cannot have a lab.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WhyNot {
    /// `/dev/net/tun` is missing or closed to us.
    #[error(
        "/dev/net/tun cannot be opened for reading and writing ({0}); load the module tun, or ask for access to the device"
    )]
    TunDevice(#[source] io::Error),
    /// No network namespace can be made.
    #[error("a network namespace cannot be made ({0}); run as root, or allow unprivileged user namespaces")]
    NetworkNamespace(#[source] io::Error),
    /// No user namespace can be made.
    #[error("a user namespace cannot be made ({0}); run as root, or allow unprivileged user namespaces")]
    UserNamespace(#[source] io::Error),
    /// A TUN device cannot be made inside a new namespace.
    #[error("a TUN device cannot be made inside a new namespace ({0})")]
    TunInNamespace(#[source] io::Error),
}

impl LabError {
    pub(crate) fn kernel(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Kernel {
            doing: doing.into(),
            source: source.into(),
        }
    }
}
