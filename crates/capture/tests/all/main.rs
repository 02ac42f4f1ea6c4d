//! Captures, whole and damaged, in one program: each program is linked with everything.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its assertions do")]

mod common;
mod flows;
mod hostile;
