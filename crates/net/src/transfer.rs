//! Bulk TCP transfers: a thread per connection on either side, and what the kernel says of each.

mod connection;
mod info;
mod receive;
mod send;
mod source;

pub(crate) use connection::{LOTS_FROM_OCTETS, congestion, mark, prepare, read_in_lots, set_pacing, wait_in_calls};
pub use connection::{TransferOptions, accepted, connect};
pub use info::TcpInfo;
pub use receive::{BulkReceiver, Progress};
pub use send::{BulkSender, Settings, Writing};
pub(crate) use source::{MOST_BLOCK, Pace, Source};
