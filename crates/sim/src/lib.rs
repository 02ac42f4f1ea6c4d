//! Discrete-event simulator of a path, and the world in which methods measure it.
//!
//! Shapes: a [`Path`] carries packets of any payload over the hops of a
//! [`narrows_scenario::Scenario`], in both directions, in whole nanoseconds since the scenario
//! begins. Its result is a list of [`Output`]s in order of time. The same scenario and seed give
//! the same outputs, bit for bit. [`SimWorld`] carries out the probes of estimators on such a path,
//! between hosts whose clocks and calls have the faults that the scenario gives them. Hosts are
//! ideal unless it does, so results here flatter a method: compare with the lab.
//!
//! ```
//! use narrows_scenario::{Hop, PathDirection, Scenario};
//! use narrows_sim::{Packet, Path};
//! use narrows_units::BitRate;
//!
//! let scenario = Scenario::new("one hop").hop(Hop::rate(BitRate::from_mbps(100))).validate()?;
//! let mut path = Path::new(&scenario, scenario.seed);
//! let packet = Packet { ip_octets: 1500, hop_limit: 64, flow: 0, payload: "probe" };
//! path.send(0, PathDirection::Forward, packet);
//! let mut outputs = Vec::new();
//! path.advance(1_000_000, &mut outputs);
//! // 1538 octet times at 100 Mbit/s.
//! assert_eq!(outputs[0].at(), 123_040);
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```
//!
//! Nothing here reads a clock, opens a socket or draws from a global random source. What a hop may
//! do to packets is in `path/`, one file each; `CONTRIBUTING.md` has the recipe for another one.

mod bursts;
mod host;
mod path;
mod rng;
mod tcp;
mod world;

pub use bursts::burst_median;
pub use path::{Arrival, ArrivalStream, DropCause, LinkPart, Output, Packet, Path, Segment};
pub use tcp::{TransferStart, TransferStream};
pub use world::SimWorld;

/// Later than everything that happens: the departure of a packet from a link that never runs again.
const NEVER: u64 = u64::MAX;
