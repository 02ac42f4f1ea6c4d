//! Whether slow paths share a link.
//!
//! Three answers, each dearer and surer than the one before:
//! * [`explain`] finds the fewest segments that explain all slow paths; it needs nothing but
//!   routes. [`explain_candidates`] does it where values have left some segments of each route.
//! * [`rfc8382`] groups flows whose one-way delays behave alike; it needs 18 s of light probes over
//!   all of them at one time ([`streams`]).
//! * [`prove`] judges by what one path has available while another one is loaded: two loading runs.

mod cover;
mod prove;
pub mod rfc8382;
mod streams;

pub use cover::{Explanation, explain, explain_candidates};
pub use prove::{Available, Proof, ProofVerdict, prove};
pub use streams::{DELAY_SERIES, DELAY_SUMMARY, NOISE_NS, STREAM, Stream, delay_summary, streams};
