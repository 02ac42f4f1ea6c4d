//! What one load segment says. Pure.

use std::time::Duration;

use narrows_units::BitRate;

use narrows_probe::probes::{LoadReport, LoadStatus};

/// One load segment. Rates are IP-layer rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trial {
    /// Rate asked for.
    pub(super) asked: BitRate,
    /// Rate at which packets really left while the sender ran.
    pub(super) sent: BitRate,
    /// Share of the segment for which the sender did not run.
    pub(super) held_up: f64,
    /// Rate at which they arrived, ends of the segment and the time that the sender did not run
    /// left out.
    pub(super) delivered: BitRate,
    /// Share of packets that the path lost.
    pub(super) loss: f64,
    /// Share of packets that the receiving host dropped.
    pub(super) local: f64,
    /// Queueing delay gained per time, beyond what chance explains.
    pub(super) growth: f64,
    /// Packets that arrived.
    pub(super) arrived: u64,
    /// Packets that the receiving host dropped.
    pub(super) local_drops: u64,
    /// Share of packets that changed order.
    pub(super) reordered: f64,
    /// The sender did not reach the rate asked for.
    pub(super) sender_limited: bool,
    /// Share of a CPU of the busiest sending thread.
    pub(super) sender_cpu: Option<f32>,
    /// Largest mean delay of a status interval above the smallest delay.
    pub(super) delay: Duration,
    /// Length of the segment.
    pub(super) lasted: Duration,
}

/// The sender kept up if it reached this share of the rate asked for, and had at most 1 % of its
/// packets refused (ours).
const KEPT_UP: f64 = 0.95;
const REFUSED_SHARE: u64 = 100;
/// Status intervals must cover this share of the segment for its unaccounted packets to count as
/// lost.
const COVERED: f64 = 0.8;
/// Share of a segment from which on a sender counts as held up (ours).
pub(super) const HELD_UP: f64 = 0.02;
/// Most growth that is put down to chance (ours).
const MOST_WANDER: f64 = 0.01;

impl Trial {
    /// Reads the report on a segment at `asked`.
    pub(super) fn read(asked: BitRate, report: &LoadReport) -> Self {
        let lasted = report.ended.since(report.began);
        let ran = lasted.saturating_sub(report.held_up);
        let held_up = 1.0 - ran.as_secs_f64() / lasted.as_secs_f64().max(f64::MIN_POSITIVE);
        let sent = BitRate::over(report.sent_ip_octets, ran).unwrap_or(BitRate::ZERO);
        let (arrived, _, lost, local_drops) = report.totals();
        let covered: Duration = report.statuses.iter().map(|status| status.to.since(status.from)).sum();
        let missing = if covered.as_secs_f64() >= COVERED * lasted.as_secs_f64() {
            // Losses at the very end leave no gap in the sequence numbers.
            lost.max(report.sent_packets.saturating_sub(arrived))
        } else {
            lost
        };
        let during = during(&report.statuses, lasted);
        let delivered = while_it_ran(delivered(during), held_up);
        let sent_packets = report.sent_packets.max(1) as f64;
        let reordered: u64 = report.statuses.iter().map(|status| status.reordered).sum();
        let refused = report.send_failures > report.sent_packets / REFUSED_SHARE;
        Self {
            asked,
            sent,
            held_up,
            delivered,
            loss: missing.saturating_sub(local_drops) as f64 / sent_packets,
            local: local_drops as f64 / sent_packets,
            growth: (growth(during, held_up > HELD_UP) - wander(report, delivered, lasted)).max(0.0),
            arrived,
            local_drops,
            reordered: reordered as f64 / sent_packets,
            sender_limited: refused || sent.as_f64() < KEPT_UP * asked.as_f64(),
            sender_cpu: report.sender_cpu.filter(|share| share.is_finite()),
            delay: delays(during).fold(Duration::ZERO, Duration::max),
            lasted,
        }
    }

    /// The share that would be lost if the load went on for ever.
    ///
    /// While a queue fills nothing is lost, but its delay grows by `g = (R + X - C) / C` seconds
    /// per second; once it is full the share `(R + X - C) / (R + X) = g / (1 + g)` is lost. The two
    /// sum up over a segment in which it fills midway.
    pub(super) fn sustained_loss(&self) -> f64 {
        self.loss + self.growth / (1.0 + self.growth)
    }
}

/// The statuses from the first arrival for as long as the load lasted: those before and behind hear
/// it begin, and queues drain.
fn during(statuses: &[LoadStatus], lasted: Duration) -> &[LoadStatus] {
    let Some(first) = statuses.iter().position(|status| status.packets > 0) else {
        return &[];
    };
    let begin = statuses[first].from;
    let heard = &statuses[first..];
    let behind = heard.iter().position(|status| {
        let middle = status.from.since(begin) + status.to.since(status.from) / 2;
        middle > lasted
    });
    &heard[..behind.unwrap_or(heard.len())]
}

/// What a mean over all of the segment is over the time in which the sender ran.
fn while_it_ran(mean: BitRate, held_up: f64) -> BitRate {
    mean.scaled((1.0 - held_up).recip()).filter(|_| held_up > 0.0).unwrap_or(mean)
}

/// The rate over the inner status intervals: the first one may begin before the load, the last one
/// goes on while queues drain.
fn delivered(statuses: &[LoadStatus]) -> BitRate {
    let inner = match statuses {
        [_, inner @ .., _] if !inner.is_empty() => inner,
        all => all,
    };
    let octets = inner.iter().map(|status| status.ip_octets).sum();
    let time = inner.iter().map(|status| status.to.since(status.from)).sum();
    BitRate::over(octets, time).unwrap_or(BitRate::ZERO)
}

fn delays(statuses: &[LoadStatus]) -> impl Iterator<Item = Duration> + '_ {
    statuses.iter().filter_map(|status| status.delay_above_min.map(|(_, mean, _)| mean))
}

/// Growth that chance explains. A queue near its limit wanders: in a time `T` Poisson arrivals of
/// packets of `S` bits at rate `C` move its delay by `sqrt(S T / C)` (one standard deviation), and
/// the growth by that over `T`. Ours; the delivered rate stands for `C`. It is bounded: beside
/// heavy traffic `C` is far above what is delivered.
fn wander(report: &LoadReport, delivered: BitRate, lasted: Duration) -> f64 {
    let bits = report.sent_ip_octets as f64 * 8.0 / report.sent_packets.max(1) as f64;
    let packets = delivered.as_f64() * lasted.as_secs_f64() / bits;
    if packets > 0.0 { packets.sqrt().recip().min(MOST_WANDER) } else { 0.0 }
}

/// Growth of the mean delay from the first two status intervals to the last two, per time between
/// their middles; zero if it fell, or with fewer than four intervals to tell from. Between hosts
/// that are held up of the least delay, which their hold-ups move less.
fn growth(statuses: &[LoadStatus], held_up: bool) -> f64 {
    let heard: Vec<(f64, f64)> = statuses
        .iter()
        .filter_map(|status| {
            let (least, mean, _) = status.delay_above_min?;
            let middle = (status.from.nanos() as f64 + status.to.nanos() as f64) / 2e9;
            Some((middle, if held_up { least } else { mean }.as_secs_f64()))
        })
        .collect();
    let &[first, second, .., third, fourth] = heard.as_slice() else {
        return 0.0;
    };
    let time = (third.0 + fourth.0 - first.0 - second.0) / 2.0;
    let gained = (third.1 + fourth.1 - first.1 - second.1) / 2.0;
    if time > 0.0 { (gained / time).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use narrows_units::Stamp;

    use super::*;

    fn status(index: i64, packets: u64, delay_ms: u64) -> LoadStatus {
        LoadStatus {
            from: Stamp::from_nanos(index * 50_000_000),
            to: Stamp::from_nanos((index + 1) * 50_000_000),
            packets,
            ip_octets: packets * 1500,
            lost: 0,
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            delay_above_min: Some((Duration::ZERO, Duration::from_millis(delay_ms), Duration::ZERO)),
        }
    }

    fn report(statuses: Vec<LoadStatus>, sent: u64) -> LoadReport {
        LoadReport {
            began: Stamp::from_nanos(0),
            ended: Stamp::from_nanos(500_000_000),
            sent_packets: sent,
            sent_ip_octets: sent * 1500,
            send_failures: 0,
            sender_cpu: None,
            held_up: Duration::ZERO,
            statuses,
        }
    }

    /// 110 Mbit/s into 100: 10 % growth, 9.1 % sustained loss, though nothing is lost yet;
    /// delivered are the 100.
    #[test]
    fn a_filling_queue_foretells_its_loss() {
        let statuses = (0..10).map(|k| status(k, 417, 2 + 5 * k.unsigned_abs())).collect();
        let trial = Trial::read(BitRate::from_mbps(110), &report(statuses, 4170));
        // 4169 packets in that time wander by 1.5 %, of which 1 % is granted.
        let growth = 0.09;
        assert!((trial.growth - growth).abs() < 1e-4, "{}", trial.growth);
        assert!((trial.sustained_loss() - growth / (1.0 + growth)).abs() < 1e-4);
        assert_eq!(trial.delivered, BitRate::from_bps(100_080_000));
        assert!(trial.sender_limited);
    }

    #[test]
    fn a_draining_queue_foretells_nothing() {
        let statuses = (0..10).map(|k| status(k, 300, 50 - 5 * k.unsigned_abs())).collect();
        let trial = Trial::read(BitRate::from_mbps(72), &report(statuses, 3000));
        assert!(trial.sustained_loss().abs() < 1e-12);
    }

    #[test]
    fn packets_unaccounted_for_are_lost_unless_the_receiver_dropped_them() {
        let mut statuses: Vec<_> = (0..10).map(|k| status(k, 90, 1)).collect();
        let trial = Trial::read(BitRate::from_mbps(24), &report(statuses.clone(), 1000));
        assert!((trial.loss - 0.1).abs() < 1e-9);
        statuses[4].local_drops = 60;
        let trial = Trial::read(BitRate::from_mbps(24), &report(statuses.clone(), 1000));
        assert!((trial.loss - 0.04).abs() < 1e-9 && (trial.local - 0.06).abs() < 1e-9);
        // Half the statuses are missing: what was not reported is not lost.
        statuses.truncate(5);
        let trial = Trial::read(BitRate::from_mbps(24), &report(statuses, 1000));
        assert!(trial.loss.abs() < 1e-9);
    }

    #[test]
    fn nothing_at_all() {
        let trial = Trial::read(BitRate::from_mbps(24), &report(Vec::new(), 0));
        assert_eq!((trial.delivered, trial.arrived), (BitRate::ZERO, 0));
        assert!(trial.loss.abs() < 1e-9 && trial.growth.abs() < 1e-9);
    }
}
