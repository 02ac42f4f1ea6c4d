//! What an agent is made of.

use std::sync::Arc;

use narrows_bus::Bus;

use crate::clock::Clock;
use crate::limits::Limits;
use crate::measure::Measure;
use crate::spool::Bounds;
use crate::state::{Membership, State};

/// What an agent is made of.
pub struct Parts {
    /// Its folder.
    pub state: State,
    /// Its fleet.
    pub membership: Membership,
    /// What its owner allows.
    pub limits: Limits,
    /// Version of its program.
    pub version: String,
    /// Its connection.
    pub bus: Arc<dyn Bus>,
    /// Its clocks.
    pub clock: Arc<dyn Clock>,
    /// How it measures.
    pub measure: Arc<dyn Measure>,
    /// How much may wait in its spool.
    pub bounds: Bounds,
}
