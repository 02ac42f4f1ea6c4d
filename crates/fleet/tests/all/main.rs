//! Leases under faults, and a plan from its file to its timetable, in one program.
#![expect(clippy::unwrap_used, reason = "a test that cannot prepare has failed")]

mod lease;
mod plan;
