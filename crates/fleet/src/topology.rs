//! Which links the routes of a fleet cross, learnt from traces.
//!
//! A trace lists the routers that answered on the way from one host to another, on the flow of the
//! test itself (`[Augustin06]`). A *link* is (router that answered last, address that answers
//! next), so routers that stay silent make one link of several. It has one direction: a router
//! answers with the address of the interface by which the packet came in. Parallel links between
//! two routers therefore stay apart, since their addresses differ.
//!
//! A router whose addresses are not known to belong together splits the links behind it. Then less
//! is located, and nothing is wrong: each part is still a stretch of the route that its pairs
//! share.
//!
//! A *segment* is a set of links that no pair separates: whatever pairs are measured, these links
//! are on all of their routes or on none. It is the smallest part that end-to-end values can name.

mod alias;
mod graph;

pub use alias::Aliases;
pub use graph::{Graph, HostIndex, Link, LinkIndex, Pair, Place, Route, Segment, SegmentIndex, Trace};
