//! The methods of the literature, faithful to their papers and programs, for comparison: the benchmark, never the engine.
//!
//! One file or folder per tool. What tools share that differ only in their formulas stands in `chirps` (chirps), `gaps` (pairs
//! and trains whose gaps are compared), `turning` (searches for the turning point of a rate), `vps` (one round trip per size
//! and hop), `pairtrain` and `spacing`.

pub mod abing;
pub mod assolo;
pub mod bart;
pub mod bing;
pub mod bprobe;
pub mod capprobe;
mod chirps;
pub mod clink;
pub mod cprobe;
pub mod diettopp;
pub mod fac2;
mod gaps;
pub mod igi;
pub mod kite;
pub mod kite2;
pub mod nettimer;
mod pairtrain;
pub mod pathchar;
pub mod pathchirp;
pub mod pathload;
pub mod pathneck;
pub mod pbprobe;
pub mod pchar;
pub mod pipechar;
pub mod ptr;
pub mod quartets;
pub mod rapid;
pub mod rfc9097;
mod spacing;
pub mod sprobe;
pub mod spruce;
pub mod tailgate;
pub mod topp;
mod turning;
mod vps;
pub mod wbest;
pub mod yaz;
