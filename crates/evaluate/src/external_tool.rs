//! Other programs as rows: any program that prints a rate, by a small description.
//!
//! An [`Adapter`] is such a description, read from TOML: command lines with placeholders, how to
//! see that a server is ready, how to read the number, at which layer the number counts, how the
//! program ends. [`run()`] carries one out in the hosts that it is given ([`Hosts`]) and hands back
//! a [`Reading`]; how texts become numbers ([`Adapter::read`]) is pure. Adapters for the usual
//! programs are built in ([`builtin`]); `docs/guide/external-tools.md` says how to add one.
//!
//! What a program prints is bounded ([`process::OUTPUT_LIMIT`]), and so is its time: a program that
//! hangs is ended with its whole process group, and the run has failed.

mod adapter;
mod builtin;
mod error;
mod file;
mod listening;
pub mod process;
mod read;
mod run;
mod template;
mod unit;

pub use adapter::{Adapter, Command, Host, Ready, Setting};
pub use builtin::{BUILT_IN, builtin};
pub use error::{AdapterError, ExternalToolError, ReadError};
pub use read::{Number, ParsedNumber, PrintedCost, Reading, Texts};
pub use run::{ExternalToolRun, Hosts, installed, run, version};
