//! The bus as agents and hub see it.
#![expect(clippy::unwrap_used, reason = "a test that cannot prepare has failed")]
#![expect(clippy::print_stdout, reason = "what the cases measured is worth reading")]

mod embedded;
mod kills;
mod nats;
mod operator;
mod suite;
mod world;
