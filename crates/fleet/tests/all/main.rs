//! Leases under faults, a plan from its file to its timetable, and tomography over drawn networks,
//! in one program.
#![expect(clippy::unwrap_used, reason = "a test that cannot prepare has failed")]

mod lease;
mod plan;
mod tomography;
