//! Trains as the classification sees them: which were pushed, paced or sparse, and how their
//! packets came.

use narrows_stat::Sorted;
use narrows_units::BitRate;

use narrows_probe::probes::TrainReport;

/// One train, in nanoseconds since its first departure and its first arrival.
#[derive(Debug, Clone)]
pub(super) struct TrainLog {
    pub(super) kind: Kind,
    /// Largest IP packet.
    pub(super) ip_octets: u16,
    /// All packets have that size.
    pub(super) uniform: bool,
    /// Packets sent.
    pub(super) sent: usize,
    /// What arrived, in order of time (of one instant: as sent).
    pub(super) came: Vec<Came>,
    /// When each packet that arrived had left, in the order of `came`.
    pub(super) departed_ns: f64,
    /// Packets that came behind a later one.
    pub(super) reordered: u32,
}

/// How a train was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Back to back, or as near to it as any train.
    Pushed,
    /// Slower, evenly.
    Paced,
    /// Single packets, far apart.
    Sparse,
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came {
    /// Since the train's first arrival.
    pub(super) at_ns: f64,
    /// Since the train's first departure.
    pub(super) left_ns: f64,
    /// One-way delay with the clocks' unknown offset.
    pub(super) delay_ns: f64,
    /// On the receiver's clock, as it is.
    pub(super) stamp_ns: i64,
    pub(super) ip_octets: u16,
    pub(super) seq: u32,
}

impl TrainLog {
    /// `None` if fewer than two packets arrived.
    fn new(report: &TrainReport, fastest: Option<f64>) -> Option<Self> {
        let first = report.arrivals.first()?.departed;
        let mut came: Vec<Came> = report
            .received()
            .map(|(row, stamp)| Came {
                at_ns: 0.0,
                left_ns: (row.departed - first).as_f64(),
                delay_ns: stamp.relative_to(row.departed).as_f64(),
                stamp_ns: stamp.nanos(),
                ip_octets: row.ip_octets,
                seq: row.seq,
            })
            .collect();
        came.sort_by_key(|packet| (packet.stamp_ns, packet.seq));
        let begin = came.first()?.stamp_ns;
        for packet in &mut came {
            packet.at_ns = difference(packet.stamp_ns, begin);
        }
        let ip_octets = report.arrivals.iter().map(|row| row.ip_octets).max()?;
        let gap = mean_departure_gap(report)?;
        let slack = if report.arrivals.len() >= LONG { LONG_CALL_NS } else { CALL_NS };
        let kind = if gap >= SPARSE_NS {
            Kind::Sparse
        } else if fastest.is_none_or(|fastest| gap > PACED * fastest + slack) {
            Kind::Paced
        } else {
            Kind::Pushed
        };
        (came.len() >= 2).then(|| Self {
            kind,
            ip_octets,
            uniform: report.arrivals.iter().all(|row| row.ip_octets == ip_octets),
            sent: report.arrivals.len(),
            departed_ns: gap * (report.arrivals.len() - 1) as f64,
            reordered: report.reordered,
            came,
        })
    }

    /// Share of packets that did not come.
    pub(super) fn loss(&self) -> f64 {
        1.0 - self.came.len() as f64 / self.sent as f64
    }

    /// From the first arrival to the last.
    pub(super) fn span_ns(&self) -> f64 {
        self.came.last().map_or(0.0, |last| last.at_ns)
    }

    /// Between arrivals, in order.
    pub(super) fn gaps_ns(&self) -> Vec<f64> {
        self.came.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect()
    }

    /// IP-layer rate from the `from`th arrival to the `to`th, the `from`th not counted; infinite if
    /// no time passed.
    pub(super) fn rate_bps(&self, from: usize, to: usize) -> Option<f64> {
        let part = self.came.get(from..=to).filter(|part| part.len() >= 2)?;
        let octets: f64 = part[1..].iter().map(|packet| f64::from(packet.ip_octets)).sum();
        let time = part[part.len() - 1].at_ns - part[0].at_ns;
        Some(if time > 0.0 { octets * 8e9 / time } else { f64::INFINITY })
    }

    /// IP-layer rate of the departures; infinite if they were at one instant.
    pub(super) fn departure_bps(&self) -> f64 {
        let octets = f64::from(self.ip_octets) * self.sent.saturating_sub(1) as f64;
        if self.departed_ns > 0.0 { octets * 8e9 / self.departed_ns } else { f64::INFINITY }
    }
}

/// All trains of which at least two packets arrived.
pub(super) fn seen(reports: &[TrainReport]) -> Vec<TrainLog> {
    let gaps: Vec<(f64, bool)> = reports
        .iter()
        .filter_map(|report| Some((mean_departure_gap(report)?, report.arrivals.len() >= LONG)))
        .collect();
    // Short trains leave unevenly; long ones tell how fast the host is, if there are any.
    let long = gaps.iter().filter(|(_, long)| *long).map(|(gap, _)| *gap);
    let any = gaps.iter().map(|(gap, _)| *gap);
    let fastest = long.min_by(f64::total_cmp).or(any.min_by(f64::total_cmp));
    reports.iter().filter_map(|report| TrainLog::new(report, fastest)).collect()
}

fn mean_departure_gap(report: &TrainReport) -> Option<f64> {
    let (first, rest) = report.arrivals.split_first()?;
    let last = rest.last()?;
    let gap = (last.departed - first.departed).as_f64() / rest.len() as f64;
    (gap >= 0.0).then_some(gap)
}

fn difference(later: i64, earlier: i64) -> f64 {
    later.saturating_sub(earlier) as f64
}

/// As a rate; infinite ones become the greatest.
pub(super) fn rate(bps: f64) -> BitRate {
    BitRate::from_bps_f64(bps).unwrap_or(BitRate::from_bps(u64::MAX))
}

/// Percentile of what need not be sorted; `None` of nothing.
pub(super) fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let sorted = Sorted::from_slice(values).ok()?;
    Some(sorted.quantile(p).unwrap_or_else(|| sorted.median()))
}

/// Packets this far apart meet nothing of one another (`capacity` §11.1: one packet per 10 ms).
const SPARSE_NS: f64 = 4e6;
/// A train with this many times the departure gaps of the fastest was paced (ours).
const PACED: f64 = 1.6;
/// What calls may differ by, single ones and the mean of many (ours).
const CALL_NS: f64 = 5000.0;
const LONG_CALL_NS: f64 = 100.0;
/// Trains from this length on tell how fast the host sends (ours).
const LONG: usize = 16;
