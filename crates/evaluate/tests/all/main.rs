//! Plans, what becomes of one that is cut off, and a path that changes, in one program: each is
//! linked with everything.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its assertions do")]

mod expectations;
mod plans;
mod resume;
mod tracking;
