//! Bulk TCP transfers: a thread per connection on either side, and what the kernel says of each.

mod connection;
mod info;
mod receive;
mod send;

pub use connection::{TransferOptions, accepted, connect};
pub(crate) use connection::{congestion, set_pacing};
pub use info::TcpInfo;
pub use receive::{BulkReceiver, Progress};
pub use send::BulkSender;
