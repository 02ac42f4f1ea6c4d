//! The rate that most gaps of one train agree on.

use narrows_units::{Receiver, Stamp};

use crate::capacity::pathrate::densest;
use narrows_probe::PathFacts;
use narrows_probe::probes::{Arrival, TrainReport};
use narrows_train::train_method::whole_packets;

/// Whether a train is long enough, of full-size packets alone.
pub(super) fn is_full(facts: &PathFacts, report: &TrainReport) -> bool {
    report.arrivals.len() >= LEAST_PACKETS && report.arrivals.iter().all(|row| row.ip_octets == facts.path_mtu)
}

/// The rate at which most packets of a train follow one another, bit/s: of gaps that the narrow
/// link made, the window of a few per cent that holds most, if that is half of them.
pub(super) fn level(facts: &PathFacts, report: &TrainReport) -> Option<f64> {
    let Gaps { sorted, apart, of, window } = gaps_that_tell(facts, report)?;
    let most = densest(&sorted, window);
    let alike = most.len() as f64 >= AGREE * of as f64;
    let octets = apart as f64 * f64::from(facts.path_mtu);
    alike.then(|| narrows_stat::median(most)).flatten().map(|gap| octets * 8e9 / gap)
}

/// Gaps of a train, ns, and within which factor of one another they are alike.
pub(super) struct Gaps {
    sorted: Vec<f64>,
    /// They are over so many packets.
    apart: usize,
    /// How many there are, those included that the narrow link did not make.
    of: usize,
    window: f64,
}

/// Gaps over as many packets as make them long against what stamps are off by, if the train has
/// enough of them.
pub(super) fn gaps_that_tell(facts: &PathFacts, report: &TrainReport) -> Option<Gaps> {
    let rows: Vec<_> = is_full(facts, report).then(|| report.received().take(MOST_READ).collect())?;
    let host = &facts.receiver;
    let error = 3.0 * host.stamp_error.max(host.clock_resolution).as_nanos() as f64;
    let gap = narrows_stat::median(&gaps(&rows, 1))?;
    let apart = whole_packets(error / ((WINDOW.1 - 1.0) * gap)).max(1);
    let mut sorted = gaps(&rows, apart);
    sorted.sort_by(f64::total_cmp);
    let window = WINDOW.0.max(1.0 + error / narrows_stat::median(&sorted)?);
    let of = rows.len().saturating_sub(apart);
    (of >= LEAST_GAPS && window <= WINDOW.1).then_some(Gaps { sorted, apart, of, window })
}

/// Times between arrivals that many packets apart, ns, where the narrow link made them.
fn gaps(rows: &[(&Arrival, Stamp<Receiver>)], apart: usize) -> Vec<f64> {
    let pairs = rows.iter().zip(rows.iter().skip(apart));
    pairs
        .filter(|(first, last)| (last.0.seq as usize).checked_sub(apart) == Some(first.0.seq as usize))
        .filter_map(|(first, last)| {
            let came = (last.1.nanos() - first.1.nanos()) as f64;
            let left = (last.0.departed.nanos() - first.0.departed.nanos()) as f64;
            (left < came).then_some(came)
        })
        .collect()
}

// Ours, all of them.
/// Of the gaps that count as alike; the wider the coarser stamps are, up to the second.
const WINDOW: (f64, f64) = (1.05, 1.15);
/// Of a train's gaps. Others' traffic of a half of the link leaves fewer alike, or the most of them
/// at the packet's own time.
const AGREE: f64 = 0.5;
const LEAST_PACKETS: usize = 8;
/// Of a train's packets: as long as a rate stands.
const MOST_READ: usize = 24;
/// Fewest of them that agree on anything.
const LEAST_GAPS: usize = 7;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_probe::StampSource;
    use narrows_probe::probes::{Fate, PacingCheck, TrainId};

    use super::*;

    /// Stamps of 10 us, packets of 123.
    #[test]
    fn coarse_stamps_read_gaps_over_more_packets() {
        let mut facts = PathFacts::ideal(1500, Duration::from_millis(10));
        facts.receiver.clock_resolution = Duration::from_micros(10);
        let train = |came: &dyn Fn(i64) -> i64| TrainReport {
            id: TrainId(0),
            arrivals: (0..24u32)
                .map(|seq| Arrival {
                    seq,
                    departed: Stamp::from_nanos(i64::from(seq) * 12_000),
                    ip_octets: 1500,
                    fate: Fate::Received(Stamp::from_nanos(came(i64::from(seq)) / 10_000 * 10_000)),
                })
                .collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: PacingCheck::Kept,
        };
        let alone = level(&facts, &train(&|seq| seq * 123_000)).expect("one rate");
        assert!((alone / 97.56e6 - 1.0).abs() < 0.03, "{alone}");
        // Of others, some between two of ours and none between the next.
        let shared = train(&|seq| 123_000 * (seq + seq * seq % 11));
        assert_eq!(level(&facts, &shared), None);
    }
}
