//! What hosts can do, and what that means for measuring: `[Jin03a]` §3 to §6 and what became of it
//! on the hosts of today.
//!
//! Pure: everything here is a function of numbers that were read or measured elsewhere. Shapes:
//!
//! | module | question |
//! |---|---|
//! | [`seed`] | the equations of `[Jin03a]` as they are printed, with its numbers as tests |
//! | [`Ceiling`] | how much can leave (or enter) this host: equations 2 and 3 for buses, memory and processors of today |
//! | [`FamilyRow`] | which families of methods the two hosts can carry, and up to what rate |
//! | [`CaptureModel`] | how much can a capture take without loss: its §6 |
//! | [`Coalescing`] | whether packets are handed over in batches |
//! | [`Inventory`], [`Costs`] | what a host says of itself, and what was measured of it; `None` is *unknown*, never a guess |
//! | [`fixes`] | what could be set otherwise, each command with the one that takes it back |

mod capture;
mod ceiling;
mod coalescing;
mod costs;
mod families;
mod fix;
mod inventory;
mod noise;
mod pcie;
pub mod seed;

pub use capture::{CaptureMeasured, CaptureModel, CaptureRate};
pub use ceiling::{Bound, Ceiling, Path};
pub use coalescing::Coalescing;
pub use costs::{Costs, Loopback, Pacer, PacingRow, SleepRow, Spread, StampRow};
pub use families::{End, Ends, FamilyRow, HostFamily, HostVerdict, usable};
pub use fix::{Fix, fixes};
pub use inventory::{
    CardFacts, Channels, CoalescingSettings, Counters, IdleState, Inventory, Offload, Pcie, Processor, Rings,
    StampCapability, Tcp, Virtual,
};
pub use noise::{Noise, NoiseRemark};
pub use pcie::payload_rate;

/// Linux drivers whose card exists only in a hypervisor: the kernel calls it a card, and there is
/// no wire at it. Ours, from the kernel's own drivers.
pub const PARAVIRTUAL: [&str; 7] = ["virtio_net", "vmxnet3", "ena", "hv_netvsc", "xen-netfront", "vif", "gve"];
