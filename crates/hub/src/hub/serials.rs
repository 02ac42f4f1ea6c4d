//! A record from a backup: agents have plans and orders that it does not know. They refuse plans
//! with lower serials, and take no order of a serial that they saw.

use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::hub::{HUB, Hub};

impl Hub {
    /// Somebody has seen this serial. If the record never gave it, it gives higher ones from now
    /// on, and all plans are made anew.
    pub(super) async fn seen_serial(&self, seen: u64, who: &str) -> Result<()> {
        if seen <= self.serial_known.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut last = self.record.serial_at_least(0).await?;
        if seen > last {
            let before = last;
            last = self.record.serial_at_least(seen.min(before.saturating_add(FARTHEST))).await?;
            let text = format!("from {before} to {last}: the record is older than what {who} has seen");
            self.record.audit(HUB, "serial.raised", &text, self.now()).await?;
            let mut planner = self.planner.lock().await;
            planner.least = planner.least.max(last);
            drop(planner);
            self.plan_wanted.notify_one();
        }
        self.serial_known.fetch_max(last, Ordering::Relaxed);
        Ok(())
    }
}

/// How far what one status says raises the serial: more than a fleet makes in a year, and so little
/// that an agent that lies does not bring it to its end.
const FARTHEST: u64 = 1_000_000;
