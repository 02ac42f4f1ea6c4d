//! Recorded observations: each probe of a run and its answer, to be analysed again without probing
//! again.
//!
//! [`Recorder`] wraps any [`World`](narrows_probe::World) and writes down everything that passes;
//! [`Recording::read`] reads it back; [`ReplayWorld`] answers a method from it;
//! [`Run::observations`] gives the raw rows to a method's pure `analyse`. A recording answers only
//! what was asked in it: a method that asks for another probe gets an error that says so.
//!
//! # The format
//!
//! All integers of fixed width are little-endian. A file is a head and any number of blocks.
//!
//! | octets | what |
//! |---|---|
//! | 8 | magic: `NARROWSR` |
//! | 2 | version of the format: 1 |
//!
//! A **block** stands alone, so a file whose writer was killed is readable up to its last whole
//! block:
//!
//! | octets | what |
//! |---|---|
//! | 4 | `n`: octets of the compressed content |
//! | 4 | octets of the content when inflated |
//! | 4 | CRC-32 (IEEE) of the compressed content |
//! | `n` | the content, by raw deflate (RFC 1951) |
//!
//! The inflated content is one frame after the other; no frame spans two blocks. A **frame**:
//!
//! | octets | what |
//! |---|---|
//! | 1 | kind: 1 head of a run, 2 exchange, 3 end of a run; readers skip other kinds |
//! | 4 | octets of the body, 64 MiB at most |
//! | … | the body |
//!
//! - **Head** (JSON text): [`Header`]. A run goes on until its end, or the next head.
//! - **Exchange** (postcard): the clock's first and last reading before the step (varints, zigzag,
//!   nanoseconds), what was asked ([`Request`]: a probe or a wait), what was answered ([`Answer`]).
//!   A train's rows are written as differences: the position less one; departure and length less
//!   those of the row before; the receive stamp less the one before; the return stamp less the
//!   row's own departure. A transfer's answer may be followed by the marks of its samples, stream
//!   by stream; older readers ignore them.
//! - **End** (JSON text): [`End`]: the clock's readings after the last answer, the outcome, the
//!   cost.
//!
//! Heads and ends are JSON because they grow with the program; exchanges are most of a file, and
//! postcard is small. If the content of an exchange changes, the format gets a new version. A test
//! compares version 1 octet by octet.
//!
//! A block is written at 32 KiB, after a second of the world's time, and at the end of each run. A
//! file that ends without a run's end is a run that did not end.

mod error;
mod frame;
mod header;
mod read;
mod recorder;
mod replay;
mod rows;
mod run;
mod sane;
mod write;

pub use error::{Damage, ReadError, ReplayFault, WriteError};
pub use header::{Header, Played, Setting, WorldKind};
pub use read::{Limits, Recording};
pub use recorder::Recorder;
pub use replay::{ReplayWorld, describe};
pub use run::{Answer, End, Exchange, Request, Run};
pub use write::{MAGIC, VERSION, Writer};
