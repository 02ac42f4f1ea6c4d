//! What this host can do, and how it is set up. Measured in about a tenth of a second, on loopback
//! only.

mod bench;
mod capture;
mod card;
mod changes;
mod counters;
mod departures;
mod egress;
mod environment;
mod interface;
mod inventory;
mod measure;
mod offload;
mod recording;
pub(crate) mod reported;
mod text;

pub use bench::{costs, memory_costs};
pub use capture::capture;
pub use changes::RouteChanges;
pub use counters::CounterReading;
pub use departures::departure_times;
pub use egress::Egress;
pub use environment::{Environment, Steal};
pub use interface::Interface;
pub use inventory::environment;
pub use inventory::inventory;
pub use inventory::sending_connections;
pub use measure::measure;
pub use offload::turn_off_offloads;
pub use recording::{BusyReading, RecordingOptions, record};
