//! Where a sample piles up: pathrate's local modes and two kernel densities.

mod biweight;
mod pathrate;
mod relative;

pub use biweight::{Biweight, DensityMode, MAX_GRID_CELLS, biweight_density};
pub use pathrate::{LocalMode, Merit, ModeParams, best_mode, local_modes};
pub use relative::{Peak, RelativeDensity, SecondPeak, relative_density};
