//! Plans, hosts as they were recorded, what becomes of a plan that is cut off, and a path that
//! changes, in one program: each is linked with everything.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its assertions do")]

mod expectations;
mod hosts;
mod plans;
mod resume;
mod tracking;
