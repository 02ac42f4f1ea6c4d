//! Bends that are no bucket's: of a train whose first packets waited.
//!
//! A host that stood still when a train came stamps its first packets in one moment, and the others
//! as the link brings them. A queue that drained does the same. The arrivals are two lines, as
//! behind a full bucket. The train alone does not tell, for its first packet waited as well; the
//! least delay of other trains does. (Ours.)

use super::bend::{Bend, Course};
use narrows_probe::probes::TrainReport;

impl Course {
    /// Without its bend, if the packets before waited so long that the path, at the rate behind the
    /// bend, brought meanwhile most of what a bucket seems to have let through. `base_s`: the delay
    /// of a packet that waits nowhere, as [`Bend::least_delay_s`].
    #[must_use]
    pub fn unless_held_up(self, base_s: f64) -> Self {
        let brought = |bend: &Bend| (bend.least_delay_s - base_s) * bend.sustained_bps / 8.0;
        let bend = self.bend.filter(|bend| brought(bend) < MOST * bend.depth_octets);
        Self { bend, ..self }
    }
}

/// The time from the first departure to the first arrival, seconds, with the clocks' offset.
pub(super) fn first_delay(report: &TrainReport) -> Option<f64> {
    let arrived = report.received().map(|(_, at)| at.nanos()).min()?;
    Some(arrived.saturating_sub(report.arrivals.first()?.departed.nanos()) as f64 * 1e-9)
}

/// Ours: of what a bucket seems to have let through.
const MOST: f64 = 0.7;
