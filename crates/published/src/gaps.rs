//! What methods share that compare the spacing of trains at both ends: the account of all trains,
//! and the narrow link's rate from trains that leave back to back.

mod account;
mod narrow;
mod pairs;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod tight;

pub(super) use account::{Account, half_width, rates, rounding, spacing};
pub(super) use narrow::{Binning, Narrow, Spacing, gaps};
pub(super) use pairs::{exponential, pair_spacings, pair_train};
pub(super) use tight::Tight;

pub(super) use narrows_train::reading::Reading;
