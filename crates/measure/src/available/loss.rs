//! What a train lost, and where.

use narrows_probe::probes::TrainReport;
use narrows_train::reading::lost_late;
use narrows_train::train_method::arrived_ns;
use narrows_units::BitRate;

/// Losses of one train; rates in bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Losses {
    pub(super) packets: usize,
    pub(super) lost: usize,
    /// In the second half, with what the sender's host dropped.
    pub(super) late: usize,
    /// Packets in front of the first that was lost.
    pub(super) before: usize,
    /// Rate at which the train left; infinite if no time passed.
    pub(super) rate_sent: f64,
    /// Rate at which those in front of the first loss arrived, if there are two.
    pub(super) rate_before: Option<f64>,
    /// Rate at which all arrived that did.
    pub(super) rate_out: Option<f64>,
}

impl Losses {
    pub(super) fn of(report: &TrainReport) -> Self {
        let came = |rows: usize| {
            let came = |row| Some((row, arrived_ns(row)?));
            let rows: Vec<_> = report.arrivals.iter().take(rows).filter_map(came).collect();
            let (first, last) = (rows.first()?, rows.last()?);
            let bits: f64 = rows.iter().skip(1).map(|(row, _)| 8.0 * f64::from(row.ip_octets)).sum();
            Some(bits * 1e9 / (last.1 - first.1) as f64).filter(|rate| rate.is_finite() && *rate > 0.0)
        };
        let packets = report.arrivals.len();
        let before = report.arrivals.iter().position(|row| arrived_ns(row).is_none()).unwrap_or(packets);
        Self {
            packets,
            lost: report.lost_on_path(),
            late: lost_late(report),
            before,
            rate_sent: report.departure_rate().map_or(f64::INFINITY, BitRate::as_f64),
            rate_before: came(before),
            rate_out: came(packets),
        }
    }

    /// Lost late, as by a queue that fills.
    pub(super) fn is_late(&self) -> bool {
        self.late as f64 > 2.0 * self.lost.saturating_sub(self.late) as f64 + 2.0
    }

    /// Most of what left behind the first loss was lost.
    pub(super) fn lost_the_rest(&self) -> bool {
        2 * self.lost >= self.packets - self.before && self.lost > 0
    }
}

/// Packets of trains that left no faster than a link lets them go, together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SlowTrains {
    sent: usize,
    lost: usize,
}

impl SlowTrains {
    pub(super) fn push(&mut self, losses: &Losses) {
        self.sent += losses.packets;
        self.lost += losses.lost;
    }

    /// They lost more than is borne without a word.
    pub(super) fn is_lossy(self) -> bool {
        self.lost as f64 > LOSS_TOLERATED * self.sent as f64
    }
}

/// Loss in a train up to which it is used without a word.
pub(super) const LOSS_TOLERATED: f64 = 0.03;
