//! What methods of variable packet size share: probes of many sizes that die at each router in turn, and the slope of least round trip
//! over size.
//!
//! ```text
//!  RTT_n(L) = a_n + F_n W(L) + B_n W(R)      F_n: sum of 8/C over the n links there, B_n over the links back
//!  C_n = 8 / (F_n - F_n-1)                   R: length of the router's answer, which quotes part of the probe
//! ```
//!
//! [`session`] asks, [`table`] keeps least round trips, [`fit`] draws lines, [`answer`] makes hops of them, [`settings`] holds what the
//! three tools set differently.

pub(super) mod answer;
pub(super) mod fit;
pub(super) mod session;
pub(super) mod settings;
pub(super) mod table;
#[cfg(test)]
pub(super) mod tests;
