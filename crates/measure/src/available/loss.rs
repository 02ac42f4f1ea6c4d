//! What a train lost, and where.

use narrows_probe::probes::TrainReport;
use narrows_train::reading::lost_late;
use narrows_train::train_method::arrived_ns;
use narrows_units::BitRate;

/// Losses of one train; rates in bit/s.
#[derive(Debug, Clone, Copy)]
pub(super) struct Losses<'a> {
    report: &'a TrainReport,
    pub(super) packets: usize,
    pub(super) lost: usize,
    /// In the second half, with what the sender's host dropped.
    late: usize,
    /// Packets in front of the first that was lost.
    pub(super) before: usize,
    /// Rate at which the train left; infinite if no time passed.
    pub(super) rate_sent: f64,
}

impl<'a> Losses<'a> {
    pub(super) fn of(report: &'a TrainReport) -> Self {
        let packets = report.arrivals.len();
        Self {
            report,
            packets,
            lost: report.lost_on_path(),
            late: lost_late(report),
            before: report.arrivals.iter().position(|row| arrived_ns(row).is_none()).unwrap_or(packets),
            rate_sent: report.departure_rate().map_or(f64::INFINITY, BitRate::as_f64),
        }
    }

    /// Rate at which those in front of the first loss arrived, if there are two.
    pub(super) fn rate_before(&self) -> Option<f64> {
        self.rate_of(self.before)
    }

    /// Rate at which all arrived that did.
    pub(super) fn rate_out(&self) -> Option<f64> {
        self.rate_of(self.packets)
    }

    /// Rate at which those of the first rows arrived that did.
    fn rate_of(&self, rows: usize) -> Option<f64> {
        let mut came = self.report.arrivals.iter().take(rows).filter_map(|row| Some((row, arrived_ns(row)?)));
        let (_, first) = came.next()?;
        let (bits, last) = came.fold((0.0, first), |(bits, _), (row, at)| (bits + 8.0 * f64::from(row.ip_octets), at));
        Some(bits * 1e9 / (last - first) as f64).filter(|rate| rate.is_finite() && *rate > 0.0)
    }

    /// So much was lost that nothing is made of the train.
    pub(super) fn is_heavy(&self) -> bool {
        self.lost as f64 > LOSS_LIMIT * self.packets as f64
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

/// Packets of several trains, and those of them that the path lost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct PathLosses {
    sent: usize,
    lost: usize,
}

impl PathLosses {
    pub(super) fn push(&mut self, losses: &Losses<'_>) {
        self.sent += losses.packets;
        self.lost += losses.lost;
    }

    pub(super) const fn sent(self) -> usize {
        self.sent
    }

    pub(super) const fn lost(self) -> usize {
        self.lost
    }

    /// They lost more than is borne without a word.
    pub(super) fn is_lossy(self) -> bool {
        self.lost_more_than(LOSS_TOLERATED)
    }

    /// They lost more than this share.
    pub(super) fn lost_more_than(self, share: f64) -> bool {
        self.lost as f64 > share * self.sent as f64
    }
}

/// Loss in a train up to which it is used without a word.
pub(super) const LOSS_TOLERATED: f64 = 0.03;
/// Loss in a train up to which it is used at all.
const LOSS_LIMIT: f64 = 0.15;
