//! The system calls that the standard library, socket2 and nix do not offer in the form that probing needs, behind safe
//! functions: batches of messages with ancillary data, and socket options by number.

pub(crate) mod control;
pub(crate) mod option;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod thread;
