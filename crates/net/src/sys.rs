//! The system calls that the standard library, socket2 and nix do not offer in the form that
//! probing needs, behind safe functions: batches of messages with ancillary data, socket options by
//! number, rings of frames in shared memory.

pub(crate) mod bind;
pub(crate) mod control;
pub(crate) mod counter;
pub(crate) mod departure;
pub(crate) mod ethtool;
pub(crate) mod filter;
pub(crate) mod name;
pub(crate) mod option;
pub(crate) mod receive;
pub(crate) mod ring;
pub(crate) mod send;
pub(crate) mod thread;
pub(crate) mod timex;
pub(crate) mod tun;
