//! Trains of pairs: two packets close together, a silence, and the next two; what methods share
//! that read the spacing inside pairs.

use std::time::Duration;

use narrows_units::{Receiver, Stamp, nanos_f64};

use narrows_probe::outcome::Reason;
use narrows_probe::probes::{Arrival, Fate, PacketPlan, Train, TrainReport};
use narrows_probe::{HostFacts, PathFacts, StampSource};

/// The spacing of one pair whose packets both arrived, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PairGap {
    pub(super) sent: f64,
    pub(super) came: f64,
}

/// What one train of pairs says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PairsRead {
    pub(super) gaps: Vec<PairGap>,
    /// Pairs of which a packet, or both, did not arrive on the path's account.
    pub(super) torn: u64,
    /// Pairs whose second packet came first, or on a clock that was set.
    pub(super) disordered: u64,
}

/// A train of `pairs` pairs, `intra` apart inside, and about `silence` from the second packet to
/// the next first one: half as long up to one and a half times, drawn anew for each (from `serial`,
/// so that a run can be repeated), for periodic traffic meets pairs in step always at one phase,
/// and pairs at regular shifts mostly at a few.
pub(super) fn plan(ip_octets: u16, intra: Duration, silence: Duration, pairs: usize, serial: u32) -> Vec<PacketPlan> {
    let mut packets = Vec::with_capacity(2 * pairs);
    let mut random = narrows_stat::SplitMix64::new(u64::from(serial));
    for _ in 0..pairs {
        // The upper 32 of 64 bits, as a share of 1.
        let share = (random.next_u64() >> 32) as f64 / 4_294_967_296.0;
        for gap in [silence.mul_f64(0.5 + share), intra] {
            packets.push(PacketPlan { gap, ip_octets, hop_limit: None });
        }
    }
    packets
}

/// Whether a train is one of pairs of packets of this size, so that [`read`] makes sense of it.
pub(super) fn is_pairs(train: &Train, ip_octets: u16) -> bool {
    let alike = |packet: &PacketPlan| packet.ip_octets == ip_octets && packet.hop_limit.is_none();
    let closer = train.packets.windows(3).step_by(2).all(|three| three[1].gap < three[2].gap);
    train.packets.len() >= 4 && train.packets.len().is_multiple_of(2) && train.packets.iter().all(alike) && closer
}

/// The spacings inside the pairs of a train.
pub(super) fn read(report: &TrainReport) -> PairsRead {
    let mut read = PairsRead::default();
    for pair in report.arrivals.chunks_exact(2) {
        let [first, second] = pair else { continue };
        match (arrived(first), arrived(second)) {
            (Some(before), Some(after)) => {
                let sent = (second.departed - first.departed).as_f64();
                let came = (after - before).as_f64();
                if came < 0.0 || sent < 0.0 || came > LONGEST_NS || sent > LONGEST_NS {
                    read.disordered += 1;
                } else {
                    read.gaps.push(PairGap { sent, came });
                }
            }
            _ => read.torn += 1,
        }
    }
    read
}

fn arrived(row: &Arrival) -> Option<Stamp<Receiver>> {
    match row.fate {
        Fate::Received(stamp) => Some(stamp),
        Fate::Echoed { .. } | Fate::Answered(_) | Fate::Lost => None,
    }
}

/// Whether stamps or the receiving host hide what is inside pairs.
pub(super) fn hidden(gaps: &[PairGap], facts: &PathFacts, ip_octets: u16, source: StampSource) -> Option<Reason> {
    let mean = |of: &dyn Fn(&PairGap) -> f64| narrows_stat::mean(&gaps.iter().map(of).collect::<Vec<f64>>());
    let apart = mean(&|gap| gap.came.max(gap.sent))?;
    let error = |host: &HostFacts| nanos_f64(host.stamp_error).max(nanos_f64(host.clock_resolution));
    let blur = error(&facts.receiver).hypot(error(&facts.sender));
    // No path brings pairs closer together than they left, on the mean.
    let (came, sent) = (mean(&|gap| gap.came)?, mean(&|gap| gap.sent)?);
    let batched = together(gaps, apart) > MOST_TOGETHER || came < CLOSER * sent;
    if apart <= 0.0 || (blur <= COARSEST * apart && batched) {
        return Some(Reason::ReceiveBatching);
    }
    if blur > COARSEST * apart {
        return Some(Reason::StampsTooCoarse);
    }
    let rate = f64::from(ip_octets) * 8e9 / came.max(1.0);
    let slow = facts.receiver.stamps_limit(rate, ip_octets, source);
    slow.then_some(Reason::ReceiverTooSlow)
}

/// Share of pairs whose packets came within [`TOGETHER`] of both the time at which they left and
/// what is usual, `apart_ns`: the receiving host handed them over together.
fn together(gaps: &[PairGap], apart_ns: f64) -> f64 {
    let close = |gap: &&PairGap| gap.came <= (TOGETHER * apart_ns).max(TOGETHER_SENT * gap.sent);
    gaps.iter().filter(close).count() as f64 / gaps.len().max(1) as f64
}

/// Mean of the growth of the spacing without the tenth at either end, and its standard error;
/// `None` below five pairs.
pub(super) fn trimmed_growth(gaps: &[PairGap]) -> Option<(f64, f64)> {
    let grown: Vec<f64> = gaps.iter().map(|gap| gap.came - gap.sent).collect();
    let count = grown.len();
    if count < 5 {
        return None;
    }
    let sorted = narrows_stat::Sorted::new(grown).ok()?;
    let mean = sorted.trimmed_mean(TRIMMED)?;
    let cut = count / 10;
    let kept = sorted.without(cut, cut)?;
    let spread = kept.variance_sample().unwrap_or(0.0).sqrt();
    Some((mean, spread / (kept.len() as f64).sqrt()))
}

/// A pair closer than this share of its packet time was handed over by the host (`[PJD04]`, made
/// relative).
const TOGETHER: f64 = 0.3;
/// Nor does a path bring packets to less than this share of the time at which they left (ours; half
/// of all traffic would have to be behind the narrow link).
const TOGETHER_SENT: f64 = 0.5;
/// Mean spacing over that at the sender below which the host is at work (ours).
const CLOSER: f64 = 0.9;
/// Pairs handed over together: more than this share, and stamps hide them (as `fac2` has it of
/// trains).
const MOST_TOGETHER: f64 = 0.25;
/// Stamps coarser than this share of the spacing hide it (as `spacing.rs` has it).
const COARSEST: f64 = 0.25;
/// Share of the pairs left out at either end (derived: the original's filter is not public).
const TRIMMED: f64 = 0.1;
/// A spacing of more than this is a clock's, or a host's that slept.
const LONGEST_NS: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_probe::probes::{PacingCheck, PeerKind, TrainId};

    fn report(rows: &[(i64, Option<i64>)]) -> TrainReport {
        TrainReport {
            id: TrainId(1),
            arrivals: (0..)
                .zip(rows)
                .map(|(seq, (sent, came))| Arrival {
                    seq,
                    departed: Stamp::from_nanos(*sent),
                    ip_octets: 1500,
                    fate: came.map_or(Fate::Lost, |came| Fate::Received(Stamp::from_nanos(came))),
                })
                .collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: PacingCheck::Kept,
        }
    }

    #[test]
    fn pairs_are_planned_and_read() {
        let packets = plan(1500, Duration::from_micros(12), Duration::from_millis(2), 3, 0);
        assert_eq!(packets.len(), 6);
        assert!(packets[2].gap >= Duration::from_millis(1) && packets[2].gap <= Duration::from_millis(3));
        assert_ne!(packets[2].gap, packets[4].gap);
        let train = Train { id: TrainId(1), packets, peer_kind: PeerKind::Receiver };
        assert!(is_pairs(&train, 1500) && !is_pairs(&train, 1400));
        assert!(!is_pairs(&Train::uniform(TrainId(1), 6, 1500, Duration::ZERO), 1500));
        let rows =
            [(0, Some(100)), (12, Some(130)), (1000, None), (1012, Some(1200)), (2000, Some(2200)), (2012, Some(2190))];
        let read = read(&report(&rows));
        assert_eq!(read.gaps, [PairGap { sent: 12.0, came: 30.0 }]);
        assert_eq!((read.torn, read.disordered), (1, 1));
    }

    #[test]
    fn growth_without_extremes() {
        let gaps: Vec<PairGap> =
            (0..10).map(|k| PairGap { sent: 10.0, came: if k == 9 { 1e6 } else { 10.0 + f64::from(k) } }).collect();
        // 1 to 8 are left of 0 to 8 and the outlier: their mean is 4.5.
        let (mean, error) = trimmed_growth(&gaps).unwrap();
        assert!((mean - 4.5).abs() < 1e-9, "{mean}");
        assert!((error - (6.0f64 / 8.0).sqrt()).abs() < 1e-9, "{error}");
        assert_eq!(trimmed_growth(&gaps[..4]), None);
    }

    #[test]
    fn packets_handed_over_together_show() {
        let apart = PairGap { sent: 12.0, came: 120.0 };
        let close = PairGap { sent: 12.0, came: 1.0 };
        assert!((together(&[apart, close, close, apart], 120.0) - 0.5).abs() < 1e-12);
        assert!(together(&[], 120.0).abs() < 1e-12);
    }
}
