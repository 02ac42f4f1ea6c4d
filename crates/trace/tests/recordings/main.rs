//! Recordings of runs in the simulator: what is read back is what happened, and says the same.

mod analyse;
mod common;
mod damage;
mod format;
mod laws;
mod replay;
