//! The methods of the literature, faithful to their papers and programs, for comparison.
//!
//! They answer where the caller names one. One of them also serves a default: `narrows test
//! --thorough` runs `pathload` beside `slope`.
//!
//! Each tool has a file or folder, and its manual in the `.md` file beside it. The manual says what
//! the tool assumes, its formula, and when it fails. `docs/design/methods/` says where ours differs
//! from the paper or the program. Results have the units of `narrows_measure`: bit/s at the IP
//! layer, octets, ns.
//!
//! | module | shared by several tools |
//! |---|---|
//! | `chirps` | trains whose rate grows from packet to packet |
//! | `gaps` | trains whose spacing is compared at both ends |
//! | `turning` | searches for the rate at which spacing begins to grow |
//! | `vps` | variable packet size: least round trip per size and hop |
//! | `tailgating` | delays behind a large packet whose hop limit ends on the way |
//! | `pairtrain` | trains of pairs |
//! | `spacing` | how far stamps can be trusted |
//! | `conclusion` | how a run ends |
//!
//! Code that `narrows_measure` needs too is in `narrows_train`: the two crates never depend on each
//! other.
//!
//! To compare a tool with ours: `narrows simulate SCENARIO.toml --method NAME`, or a plan for
//! `narrows evaluate`.

pub mod abing;
pub mod assolo;
pub mod bart;
pub mod bing;
pub mod bprobe;
pub mod capprobe;
mod chirps;
pub mod clink;
mod conclusion;
pub mod cprobe;
pub mod diettopp;
pub mod fac2;
mod forward_bound;
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
mod tailgating;
pub mod topp;
mod turning;
mod vps;
pub mod wbest;
pub mod yaz;
