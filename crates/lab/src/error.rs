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
    /// The scenario has more hops than the address plan has room for; the writer of the scenario
    /// can mend it.
    #[error("the scenario has {hops} hops one way; a lab has addresses for {most}")]
    TooManyHops {
        /// How many it has.
        hops: usize,
        /// How many are possible.
        most: usize,
    },
    /// The ways differ in length, so routers cannot stand on both; the writer of the scenario can
    /// mend it.
    #[error(
        "the scenario has {forward} hops forward and {reverse} back; a lab's routers stand on both ways, so it needs as many each \
         way (the simulator and the real-time path do not)"
    )]
    UnequalWays {
        /// Hops of the forward way.
        forward: usize,
        /// Hops of the reverse way.
        reverse: usize,
    },
    /// The two ways of one link are of kinds that do not go together.
    #[error(
        "hop {hop} is {} forward and {} back: a real-time link is one both ways", links[0], links[1]
    )]
    MixedLink {
        /// The hop of the forward way, from 0.
        hop: usize,
        /// Its kind each way.
        links: [&'static str; 2],
    },
    /// More cross traffic needs hosts of its own than the address plan has room for.
    #[error("{flows} flows of cross traffic need hosts of their own; a lab has room for {most}")]
    TooManyFlows {
        /// How many there are.
        flows: usize,
        /// How many are possible.
        most: usize,
    },
    /// A name that cannot be a lab's.
    #[error("{name:?} cannot name a lab: it takes 1 to 24 letters, digits and '_'")]
    BadId {
        /// The name.
        name: String,
    },
    /// A lab of this name exists already.
    #[error("there is a lab {id} already; end it with `narrows lab down {id}`, or choose another name")]
    IdTaken {
        /// Its name.
        id: String,
    },
    /// There is no lab of this name.
    #[error("there is no lab {id}; `narrows lab status` lists those there are")]
    NoSuchLab {
        /// The name.
        id: String,
    },
    /// The lab has no node of this name.
    #[error("lab {id} has no node {node}; it has {}", nodes.join(", "))]
    NoSuchNode {
        /// The lab.
        id: String,
        /// The name.
        node: String,
        /// The names that it has.
        nodes: Vec<String>,
    },
    /// The lab belongs to a process that does something else with it.
    #[error(
        "lab {id} belongs to process {process}, which was not started by `narrows lab up`; it goes when that process ends"
    )]
    NotOurs {
        /// The lab.
        id: String,
        /// The process.
        process: u32,
    },
    /// The scenario has TCP connections as virtual cross traffic, which the lab does not play; real
    /// ones can be run inside it.
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
    /// The program that sets up the kernel's shapers is missing.
    #[error("the program tc cannot be run ({0}); install iproute2, or use links of the kinds real_time and veth")]
    NoTc(#[source] io::Error),
    /// A TUN device cannot be made inside a new namespace.
    #[error("a TUN device cannot be made inside a new namespace ({0})")]
    TunInNamespace(#[source] io::Error),
}

impl LabError {
    pub(crate) fn kernel(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Kernel { doing: doing.into(), source: source.into() }
    }
}
