//! Agents in one process: a bus in memory, a measurement that is none, and time that passes only
//! when nothing else is to be done. The embedded bus has threads, whose answers such a time does
//! not wait for; it has the same suite as NATS.
#![expect(clippy::unwrap_used, reason = "a test that cannot prepare has failed")]

mod clocks;
mod leases;
mod leaving;
mod memory;
mod plans;
mod results;
mod runs;
mod world;
