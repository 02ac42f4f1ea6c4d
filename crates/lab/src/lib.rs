//! A scenario's path in real time: real packets between two network namespaces of this machine.
//!
//! Shapes: a [`RealTimePath`] joins two [`LabHost`]s, each a network namespace whose only interface
//! is a TUN device. A single spinning thread reads what one host sends. [`narrows_sim::Path`], the
//! same code as in the simulator, carries it over the scenario's hops, queues, virtual cross
//! traffic and virtual routers. The thread hands it to the other host at the time that the path
//! says. Programs that know nothing of narrows (ping, traceroute, iperf3, old estimators) run
//! inside the hosts and see a path whose truth is exact. Each run reports how late its packets were
//! handed over, in ns, and how often and how long its thread stalled: [`TimingReport`]. If packets
//! were late, do not trust the run. To change the path, change the scenario.
//!
//! ```text
//!  namespace "sender"                one thread                 namespace "receiver"
//!  program ─ kernel ─ TUN ──▶ hops, queues, routers ──▶ TUN ─ kernel ─ program
//!                         ◀──      (narrows_sim::Path)      ◀──
//! ```
//!
//! A [`RealTimePath`] needs `/dev/net/tun`. A [`Lab`] (real routers, link by link) needs it only
//! where the kernel allows no packet rings. Both need root or user namespaces: call
//! [`enter_user_namespace_if_needed`] first thing in `main`, before any thread starts. They call no
//! other program. [`available`] and [`namespaces_available`] say whether a lab can run here.
//! Addresses: [`AddressPlan`].

mod device;
mod error;
mod fitness;
mod histogram;
mod host;
mod icmp;
mod link;
mod meter;
mod namespace;
mod netlink;
mod node;
mod packet;
mod placement;
mod plan;
mod player;
mod playing;
mod privilege;
mod program;
mod realtime;
mod tally;
mod timing_report;
mod topology;

pub use device::INTERFACE;
pub use error::{LabError, WhyNot};
pub use fitness::{Unfit, check_fitness, has_processors};
pub use host::LabHost;
pub use link::{EngineOptions, LinkEngine, LinkSpec, PortKind, PortSpec};
pub use meter::Meter;
pub use namespace::{Namespace, clean_leftovers};
pub use narrows_sim::{DropCause, LinkPart, Segment};
pub use node::Node;
pub use plan::{AddressPlan, Addresses, Side};
pub use privilege::{available, enter_user_namespace_if_needed, namespaces_available};
pub use program::{established, listens};
pub use realtime::{RealTimePath, StartOptions, not_played};
pub use timing_report::{Dropped, TimingReport};
pub use topology::{
    DeviceDescription, DirectionTruth, FlowDescription, FlowStatus, HopDescription, Lab, LabDescription, LabId,
    LabOptions, LabState, LinkStatus, NodeDescription, RealFlow, TruthDescription, clean_dead_labs, dead_labs,
    enter_node, find as find_lab, labs, log_file, programs_in,
};
