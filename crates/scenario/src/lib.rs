//! Paths as data: one builder and one TOML format for every world. The truth is derived from the
//! path, never typed.
//!
//! Shapes: a [`Scenario`] is a row of [`Hop`]s per direction between two [`Host`]s, with [`Cross`]
//! traffic over some of them. It is built in code ([`Scenario::new`]) or read from TOML
//! ([`Scenario::from_toml`]); both end in [`Scenario::validate`], so a scenario that exists makes
//! sense. [`Truth`] answers what a perfect estimator would say of it: capacity and available rate
//! (bit/s), base delay, path MTU (IP octets), and more.
//!
//! Hop *i* is the link from node *i* to node *i + 1*: node 0 is the sender, the last node the
//! receiver, the nodes between are routers. Rates of hops are nominal (wire) rates; rates of cross
//! traffic count IP octets; queues count the IP octets (or the packets) that wait or are being
//! sent.
//!
//! The truth assumes the long-run rates of cross traffic. Over a short run, or beside TCP that
//! backs off, what was really free differs: [`Truth::beside`] takes what really crossed each hop.
//! Example: `scenarios/*.toml`.

mod cross;
mod crossed;
mod elastic;
mod error;
mod expect;
mod file;
mod hop;
mod host;
mod model;
mod service;
mod stages;
mod truth;
mod way;

pub use cross::{Arrivals, Cross, GeneratedBy, Passing, SizeMix, Source};
pub use crossed::{Counted, Crossed, TruthFrom};
pub use elastic::{Elastic, ElasticControl, Workload};
pub use error::ScenarioError;
pub use expect::{BoundScale, BoundSide, Expectation, Expected, ExpectedBound, MedianOf, TIGHT};
pub use hop::{
    Burst, EarlyDrop, Hop, Jitter, Layer2, Link, Loss, Oddities, Queue, RateChange, Reorder, Router, TokenBucket,
};
pub use host::{ClockModel, ClockStep, Coalescing, Host, Stalls, TcpHost};
pub use model::Scenario;
pub use service::{Aggregation, Channels, Dealing, Inside, Service, Slots};
pub use truth::{BurstTruth, Truth};
pub use way::PathDirection;
