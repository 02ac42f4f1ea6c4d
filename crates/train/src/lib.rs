//! What methods share that send trains or loads: how a received train is read, and how a plan of
//! trains is carried out.
//!
//! | module | from a train's report, or several |
//! |---|---|
//! | [`reading`] | rate in and out, growth of one-way delay, batching by the receiver |
//! | [`burst_ends`] | which packets of a train have stamps that can be trusted |
//! | [`bucket`], [`bucket_watch`] | token buckets: rate and depth |
//! | [`carried`] | a lower bound of the rate at which the path passed it, also if a host stalled |
//! | [`pairs`], [`mindelay`], [`pair_mode`] | packet pairs: which ones met no queue, and their rate |
//! | [`windows`] | percentiles of a quantity that varies |
//!
//! | module | for a method that sends |
//! |---|---|
//! | [`train_method`] | small trains one after the other: the state machine around a plan |
//! | [`peer_kinds`], [`echoed`] | trains to hosts without our server, read by their answers |
//! | [`bucket_head`] | packets in front of a train that empty a token bucket |
//! | [`token_pool`] | a budget of octets at a mean load |
//! | [`bulk`] | bursts, loads and TCP transfers |
//!
//! Rates are in bit/s at the IP layer, times in ns, sizes in IP octets. Nothing here names a metric
//! or a method. `narrows_measure` and `narrows_published` both use this crate and never each other,
//! so what both need belongs here. A train that cannot be read is an error that says why, never a
//! number.

pub mod bucket;
pub mod bucket_head;
pub mod bucket_watch;
pub mod bulk;
pub mod burst_ends;
pub mod carried;
pub mod echoed;
pub mod mindelay;
pub mod pair_mode;
pub mod pairs;
pub mod peer_kinds;
pub mod reading;
pub mod token_pool;
pub mod train_method;
pub mod windows;
