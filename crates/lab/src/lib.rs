//! Namespaces and the real-time path: a scenario played against the real clock with real packets.

mod device;
mod error;
mod histogram;
mod host;
mod icmp;
mod namespace;
mod packet;
mod plan;
mod privilege;

pub use device::INTERFACE;
pub use error::{LabError, WhyNot};
pub use host::LabHost;
pub use namespace::clean_leftovers;
pub use plan::{AddressPlan, Addresses, Side};
pub use privilege::{available, enter_user_namespace_if_needed};
