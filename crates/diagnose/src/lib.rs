//! What the two hosts can do, what limited a transfer, what to do about it, and what captured
//! traffic shows of a path.
//!
//! | module | from | to |
//! |---|---|---|
//! | [`host`] | measured costs of calls, pacing, stamps | the fastest rate this host can measure |
//! | [`limits`] | the kernel's counters of a TCP transfer | the limiting factor, with its figures |
//! | [`advice`] | the results of a job and the hosts' settings | advice, each with a command |
//! | [`passive`] | the packets of one direction of a TCP connection | capacity of the path, bit/s |
//!
//! All of it is computed from its arguments: nothing here measures, reads a file or sends a packet.
//! A figure that is missing is never assumed: the rule that needs it says nothing. Thresholds stand
//! in the file that uses them; `docs/results/verdicts.md` counts how often the limits named are
//! right. To add an advice, write its rule in a file of `advice/rules/` and its line in
//! `advice/rules.rs`.

pub mod advice;
pub mod host;
pub mod limits;
pub mod passive;
