//! Which link limits a path, and what paths carry that nobody measured, from end-to-end values.
//!
//! # Model
//! A run over pair `p` reads `y_p = min(c_l, l on the route of p) * exp(e)`, `e` normal with mean 0
//! and standard deviation `s_p`, which the interval of the run gives. Each link has one value `c_l`
//! per direction: its capacity, or what it has available during ten minutes.
//!
//! # Assumptions
//! A1 links are FIFO; A2 a run's packets take one route, the one that was traced (a run whose trace
//! before and after differ is void); A3 a link's value is the same for all flows, so a policer that
//! limits some flows breaks it; A4 a run that a host or a window limited gives a lower bound only.
//!
//! # Formula
//! Segments take the place of links ([`crate::topology::Segment`]); `ln` is natural, `z(q)` the
//! normal quantile.
//! 1. Lower bound per segment ([`Estimate::lower_bound`]): `ln L_l = max over p through l of
//!    ln y_p - s_p z(1 - 0.005 / m_l)`, `m_l` runs through `l`. Without `m_l` the largest of many
//!    errors would exclude the link that limits.
//! 2. Candidates: `S_p = {l on p: L_l <= y_p exp(2.576 s_p)}`, 2.576 = `z(0.995)`.
//! 3. One candidate: *located* ([`Finding::Located`]). Its value is the weighted mean of `ln y`
//!    over the paths located there. Several candidates: located too if one of them is known from
//!    other paths to have this very value, and the others would have to have it by chance.
//! 4. Else [`next_runs`] names the pair to measure next, by gain per octet.
//! 5. If no pair can tell the candidates apart, [`next_hops`] names the path for one run of `hops`.
//! 6. [`Estimate::infer`]: an unmeasured pair has the value of its slowest located segment, if no
//!    other segment of its route can be slower.
//!
//! Steps 1, 2, 4 and 6 rest on ideas of `[BRoute05]` (routes share links) and `[Chen04]` (n log n
//! paths determine the others); the arithmetic is ours.
//!
//! # Parameters
//! | name | unit | value | source |
//! |-|-|-|-|
//! | miss of a bound or a candidate | probability | 0.005 | ours: 0.02 names wrong links more often (docs/results/tomography.md) |
//! | what contradicts several and is left out | runs | 2 | ours |
//! | difference of `hops` from the path | ln | 0.05 | ours: docs/results/hop-methods.md |
//! | least standard deviation of a run, and of a segment | ln | 0.001 | ours: docs/results/capacity-grid.md |
//! | odds that `hops` names the right link | ratio | 100 | ours: docs/results/hop-methods.md |
//! | range of possible values | ln | 11.5 | ours: 1 Mbit/s to 100 Gbit/s |
//! | share of likelihood that locates | share | 0.99 | ours |
//! | how much slower an inferred pair's other segments may be | share | 0.05 | ours; the interval then reaches down to them |

mod choose;
mod estimate;
mod infer;
mod reading;
mod windows;

pub use choose::{HopsRun, next_hops, next_runs};
pub use estimate::{Estimate, Finding, SegmentValue};
pub use infer::Inferred;
pub use reading::{Claim, HopsFinding, Reading};
pub use windows::agreed;
