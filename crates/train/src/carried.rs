//! How fast a train was carried at least, however its answers were held up.
//!
//! A host that does not run for a while stamps many packets in one moment. Their spacing is then
//! the host's and far too narrow, and a rate from first stamp to last is one that no link has.
//! Delays do not lie that way: a packet is never stamped before it came. On a path that keeps
//! order, the time from the first departure to the last arrival, less what a packet takes that
//! waits nowhere, is at least the time that the train took the path. (Ours.)

use narrows_probe::probes::{Arrival, TrainReport};

/// Of one train. Times in ns; those between two hosts have an unknown offset, which is the same for
/// all trains of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Carried {
    /// IP bits behind the first packet that got there.
    bits: f64,
    /// First departure to last arrival.
    whole_ns: i64,
    /// Least delay of a packet.
    least_ns: i64,
    /// Least rates at which the later half of the packets arrived, and the last quarter of many,
    /// bit/s; infinite if in no time.
    later_bps: f64,
    last_bps: f64,
}

impl Carried {
    /// Of the packets of which `there` knows when they were there; `None` for fewer than two.
    pub fn of(report: &TrainReport, there: fn(&Arrival) -> Option<i64>) -> Option<Self> {
        let rows = report.arrivals.iter().filter_map(|row| Some((row.departed.nanos(), there(row)?, row.ip_octets)));
        let rows: Vec<(i64, i64, u16)> = rows.collect();
        let count = rows.len();
        let octets: u64 = rows.iter().skip(1).map(|(_, _, size)| u64::from(*size)).sum();
        let began = rows.iter().map(|(departed, ..)| *departed).min()?;
        let ended = rows.iter().map(|(_, arrived, _)| *arrived).max()?;
        let least = rows.iter().map(|(departed, arrived, _)| arrived.saturating_sub(*departed)).min()?;
        let whole_ns = ended.saturating_sub(began);
        let quarter = count - count / 4;
        let short = count - quarter < LEAST_QUARTER;
        let later_bps = later(&rows, count / 2);
        let last_bps = if short { f64::INFINITY } else { later(&rows, quarter) };
        (count > 1).then_some(Self { bits: 8.0 * octets as f64, whole_ns, least_ns: least, later_bps, last_bps })
    }

    /// The least delay of several trains, ns: as near as they come to that of a packet that waits
    /// nowhere.
    pub fn base(all: impl IntoIterator<Item = Self>) -> Option<i64> {
        all.into_iter().map(|train| train.least_ns).min()
    }

    /// The highest rate at which one of several trains was carried, bit/s; `None` for no train, or
    /// where no time passed.
    pub fn fastest(all: impl IntoIterator<Item = Self>, base_ns: i64) -> Option<f64> {
        highest(all.into_iter().map(|train| train.rate(base_ns)))
    }

    /// The highest rate at which one of several trains was carried on and on, as
    /// [`Carried::fastest`].
    pub fn fastest_sustained(all: impl IntoIterator<Item = Self>, base_ns: i64) -> Option<f64> {
        highest(all.into_iter().map(|train| train.sustained(base_ns)))
    }

    /// The rate at which the path carried it on and on, bit/s: what a token bucket lets through at
    /// once speeds the first part of a train up, and not the later half.
    pub fn sustained(&self, base_ns: i64) -> f64 {
        self.rate(base_ns).min(self.later_bps)
    }

    /// The rate at which its later half arrived, bit/s.
    pub fn later_bps(&self) -> f64 {
        self.later_bps
    }

    /// The least rate at which the last quarter of its packets arrived, or the last half of few;
    /// bit/s, infinite if in no time.
    pub fn ended_bps(&self) -> f64 {
        self.later_bps.min(self.last_bps)
    }

    /// The least delay of its packets, ns, with the clocks' unknown offset.
    pub fn least_ns(&self) -> i64 {
        self.least_ns
    }

    /// IP bits that got there, but for the first packet's.
    pub fn bits(&self) -> f64 {
        self.bits
    }

    /// The time that the path took for it at most, ns, where a packet takes `base_ns` that waits
    /// nowhere.
    pub fn longest_ns(&self, base_ns: i64) -> f64 {
        self.whole_ns.saturating_sub(base_ns).max(0) as f64
    }

    /// The rate at which the path carried it at least, bit/s at the IP layer; infinite if no time
    /// passed.
    pub fn rate(&self, base_ns: i64) -> f64 {
        let longest = self.longest_ns(base_ns);
        if longest > 0.0 { self.bits / longest * 1e9 } else { f64::INFINITY }
    }
}

/// The least rate at which the packets arrived from this place on, bit/s.
fn later(rows: &[(i64, i64, u16)], from: usize) -> f64 {
    let Some((began, ended)) = rows.get(from).zip(rows.last()) else { return f64::INFINITY };
    let octets: u64 = rows.iter().skip(from + 1).map(|(_, _, size)| u64::from(*size)).sum();
    let time_ns = ended.1.saturating_sub(began.1);
    let pauses = rows.iter().skip(from).zip(rows.iter().skip(from + 1)).map(|(a, b)| b.1.saturating_sub(a.1));
    let pause_ns = pauses.max().unwrap_or(0);
    // A bucket that is filled at ticks lets packets through in lumps. Where the part begins behind
    // a pause and ends before one, it has a lump more than its time.
    let usual_ns = time_ns as f64 / rows.len().saturating_sub(from + 1).max(1) as f64;
    let longest_ns = time_ns as f64 + (pause_ns as f64 - usual_ns).max(0.0);
    if time_ns > 0 { 8e9 * octets as f64 / longest_ns } else { f64::INFINITY }
}

/// Packets of the last quarter: with fewer, traffic of others says more than a bucket (ours).
const LEAST_QUARTER: usize = 8;

fn highest(rates: impl Iterator<Item = f64>) -> Option<f64> {
    rates.reduce(f64::max).filter(|most| most.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train_method::arrived_ns;
    use narrows_probe::StampSource;
    use narrows_probe::probes::{Fate, PacingCheck, TrainId};
    use narrows_units::Stamp;

    /// Packets of 1250 octets by departure and arrival, us.
    fn train(packets: &[(i64, i64)]) -> TrainReport {
        let row = |(seq, (departed, arrived)): (u32, &(i64, i64))| Arrival {
            seq,
            departed: Stamp::from_nanos(departed * 1000),
            ip_octets: 1250,
            fate: Fate::Received(Stamp::from_nanos(arrived * 1000)),
        };
        TrainReport {
            id: TrainId(1),
            arrivals: (0..).zip(packets).map(row).collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::User,
            arrived_by: StampSource::User,
            pacing: PacingCheck::Kept,
        }
    }

    fn carried(packets: &[(i64, i64)]) -> Carried {
        Carried::of(&train(packets), arrived_ns).unwrap()
    }

    #[test]
    fn a_link_of_ten_megabit_carries_what_it_carries() {
        let steady = carried(&[(0, 5_000), (0, 6_000), (0, 7_000), (0, 8_000)]);
        assert!((steady.rate(Carried::base([steady]).unwrap()) - 10e6).abs() < 1.0);
    }

    #[test]
    fn stamps_in_one_moment_are_no_faster_link() {
        let steady = carried(&[(0, 5_000), (0, 6_000), (0, 7_000), (0, 8_000)]);
        // The same train, the host asleep until 9 ms: its stamps alone say 7.5 Gbit/s.
        let held = carried(&[(0, 9_000), (0, 9_001), (0, 9_002), (0, 9_004)]);
        let base = Carried::base([steady, held]).unwrap();
        assert!(held.rate(base) < 10e6, "{}", held.rate(base));
        assert!(held.rate(base) > 7e6);
    }

    #[test]
    fn what_a_bucket_lets_through_at_once_is_not_carried_on() {
        // Two packets at once, then one each millisecond, which is 10 Mbit/s.
        let bucket = carried(&[(0, 5_000), (0, 5_001), (0, 6_000), (0, 7_000), (0, 8_000), (0, 9_000), (0, 10_000)]);
        let base = Carried::base([bucket]).unwrap();
        assert!((bucket.rate(base) - 12e6).abs() < 1.0, "{}", bucket.rate(base));
        assert!((bucket.sustained(base) - 10e6).abs() < 1.0, "{}", bucket.sustained(base));
    }

    #[test]
    fn lumps_are_no_faster_link() {
        // Three at once every 3 ms: 10 Mbit/s. The later half is six packets of two lumps behind
        // the end of one, or in 3 ms.
        let lumps: Vec<(i64, i64)> = (0..12).map(|packet| (0, 5_000 + packet / 3 * 3_000)).collect();
        let train = carried(&lumps);
        let sustained = train.sustained(Carried::base([train]).unwrap());
        assert!((8e6..=10e6).contains(&sustained), "{sustained}");
    }

    #[test]
    fn one_packet_tells_nothing() {
        assert_eq!(Carried::of(&train(&[(0, 5_000)]), arrived_ns), None);
    }
}
