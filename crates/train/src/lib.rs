//! What methods share that send trains or loads: how a received train is read, and the machines around a plan.
//!
//! Nothing here names a metric or a method: arithmetic that both [`measure`] and [`published`] need lives here, for those two
//! crates never know each other.
//!
//! [`measure`]: https://docs.rs/narrows-measure
//! [`published`]: https://docs.rs/narrows-published

pub mod bucket;
pub mod bucket_watch;
pub mod bulk;
pub mod campaign;
pub mod densest;
pub mod echoed;
pub mod far_ends;
pub mod mindelay;
pub mod pairs;
pub mod purse;
pub mod reading;
pub mod windows;
