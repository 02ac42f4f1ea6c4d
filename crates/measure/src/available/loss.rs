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

/// How long queues were where packets were lost: a drop-tail queue loses where it is full, and
/// nowhere else; a bucket that drops does not look at queues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct QueueAtLosses {
    /// The delay in front of each run of losses, and the number of its train, ns.
    before: Vec<(usize, i64)>,
    /// The highest delay of all, ns.
    most_ns: Option<i64>,
}

impl QueueAtLosses {
    /// Takes the delays of the train of that number; `None` is a packet that was lost.
    pub(super) fn push(&mut self, number: usize, delays_ns: impl Iterator<Item = Option<i64>>) {
        let mut in_front = None;
        for delay in delays_ns {
            match delay {
                Some(_) => (self.most_ns, in_front) = (self.most_ns.max(delay), delay),
                None => self.before.extend(in_front.take().map(|delay| (number, delay))),
            }
        }
    }

    /// Losses of several trains came where delays were as long as they ever were, above a least
    /// delay of `base_ns`.
    pub(super) fn was_full(&self, base_ns: i64) -> bool {
        let Some(most) = self.most_ns else { return false };
        let top = FULL * most.saturating_sub(base_ns) as f64;
        let full = self.before.iter().filter(|(_, delay)| delay.saturating_sub(base_ns) as f64 >= top).count();
        let trains = self.before.chunk_by(|one, next| one.0 == next.0).count();
        trains >= TRAINS && full as f64 >= MOSTLY * self.before.len() as f64
    }
}

/// A queue is full from this share of its highest length on: the packets of others that it drops
/// next leave room (ours, as where transfers keep it full).
const FULL: f64 = 0.7;
/// So many of the losses are to come there, and trains that had some (ours).
const MOSTLY: f64 = 0.9;
const TRAINS: usize = 3;
/// Loss in a train up to which it is used without a word.
pub(super) const LOSS_TOLERATED: f64 = 0.03;
/// Loss in a train up to which it is used at all.
const LOSS_LIMIT: f64 = 0.15;

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: i64 = 1_000_000;

    /// Trains whose packets come `in_front` behind the first one, then none, then one more.
    fn was_full(in_front: &[i64], last: i64) -> bool {
        let mut queue = QueueAtLosses::default();
        for (number, delay) in in_front.iter().enumerate() {
            let train = [Some(BASE), Some(BASE + delay), None, None, Some(BASE + last)];
            queue.push(number, train.into_iter());
        }
        queue.was_full(BASE)
    }

    #[test]
    fn losses_at_the_longest_delays_are_of_a_full_queue() {
        assert!(was_full(&[20_000_000, 19_000_000, 15_000_000], 20_000_000));
    }

    #[test]
    fn losses_at_any_delay_are_not() {
        assert!(!was_full(&[20_000_000, 19_000_000, 4_000_000], 20_000_000), "one while it was short");
        assert!(!was_full(&[9_000_000, 9_000_000, 9_000_000], 20_000_000), "it was longer later");
    }

    #[test]
    fn losses_of_two_trains_may_be_chance() {
        assert!(!was_full(&[20_000_000, 19_000_000], 20_000_000));
    }

    /// What is lost from the first packet on has nothing in front that tells.
    #[test]
    fn trains_without_a_packet_in_front_of_the_losses_say_nothing() {
        let mut queue = QueueAtLosses::default();
        for number in 0..9 {
            queue.push(number, [None, None, Some(BASE + 20_000_000)].into_iter());
        }
        assert!(!queue.was_full(BASE));
    }
}
