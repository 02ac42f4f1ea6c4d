//! The world over loopback, and between network namespaces, in one program: each program is linked
//! with everything.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its assertions do")]

mod ends;
mod fleet;
mod loopback;
mod namespaces;
mod per_hop;
mod router;
mod single_ended;
