//! What one stream says: its loss, and whether its delays rise.

use std::time::Duration;

use narrows_stat::{Thresholds, Trend};
use narrows_units::{Receiver, Stamp};

use super::shape::Shape;
use narrows_probe::probes::{Arrival, TrainReport};

/// Fewest samples of a piece, unless the whole stream is there.
const LEAST_SAMPLES: usize = 36;
/// Share of short gaps from which a train or a stream counts as bunched by interrupts.
const COALESCED: f64 = 0.6;
/// Short gaps that make a burst of interrupt coalescence.
///
/// With fewer, packets that share interrupts beat with the timer: bursts of three at 500 us read 7
/// % high, and sure of it. Departs from pathload 1.3.2 in that gaps of several shorter runs do not
/// add up to three.
const BURST_GAPS: usize = 3;
/// Times the median beyond which a sending gap is a pause ("ours": ticks of the clock make up to
/// twice).
const PAUSE: f64 = 2.5;
/// Packets that the receiver took together after they had been sent over this time had waited for a
/// host that did not run, not for an interrupt ("ours": timers of coalescing are shorter),
/// nanoseconds.
const ASLEEP_NS: f64 = 500_000.0;
/// A share of the sending period below which a gap is short, whatever the tool's microseconds say.
const SHORT_SHARE: f64 = 0.3;

/// Gaps that the receiver cannot have seen on the wire, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Receiving {
    /// Time that the receiver needs for one packet.
    pub(super) receive_cost_ns: f64,
}

impl Receiving {
    /// A packet followed this closely was read from a queue of the host.
    fn back_to_back_ns(self, gap_ns: f64) -> f64 {
        let tool = if 1.5 * self.receive_cost_ns < 7000.0 { 7000.0 } else { 2.5 * self.receive_cost_ns };
        tool.min(SHORT_SHARE * gap_ns)
    }

    /// A gap this short belongs to a burst of interrupt coalescence.
    fn coalesced_ns(self, gap_ns: f64) -> f64 {
        (3.0 * self.receive_cost_ns).max(7000.0).min(SHORT_SHARE * gap_ns)
    }

    /// The stamps of a back-to-back train come in bursts: more than 60 % of its gaps are short.
    /// Then the distance of the bursts; of a single one, its length.
    pub(super) fn coalesces(self, stamps: &[Stamp<Receiver>]) -> Option<Duration> {
        let (first, last) = (stamps.first()?, stamps.last()?);
        let steps = stamps.len() - 1;
        let mean = (*last - *first).as_f64() / steps.max(1) as f64;
        let short = self.coalesced_ns(mean);
        let ends: Vec<Stamp<Receiver>> =
            stamps.windows(2).filter(|pair| (pair[1] - pair[0]).as_f64() > short).map(|pair| pair[0]).collect();
        if mean <= 0.0 || (steps - ends.len()) as f64 <= COALESCED * steps as f64 {
            return None;
        }
        let distances: Vec<f64> = ends.windows(2).map(|pair| (pair[1] - pair[0]).as_f64()).collect();
        let typical = narrows_stat::median(&distances).unwrap_or_else(|| (*last - *first).as_f64());
        Some(Duration::from_secs_f64(typical.max(0.0) * 1e-9))
    }
}

/// How a stream is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reader {
    pub(super) receiving: Receiving,
    /// The receiver coalesces interrupts: one delay per burst.
    pub(super) coalescing: bool,
    pub(super) thresholds: Thresholds,
}

/// One stream, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StreamReading {
    /// Share of packets lost or overtaken, 0..1; drops by the receiving host do not count.
    pub(super) loss: f64,
    /// One grade per piece that was long enough.
    pub(super) grades: Vec<Trend>,
    /// Bursts, under interrupt coalescence.
    pub(super) bursts: Option<usize>,
    /// The sender did not run for a while.
    pub(super) sender_switches: usize,
    /// The receiver did not.
    pub(super) receiver_switches: usize,
    /// Mean sending gap without pauses, nanoseconds.
    pub(super) mean_gap_ns: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    departed_ns: f64,
    arrived_ns: f64,
    /// Pauses of the sender before it.
    pauses: usize,
}

impl Sample {
    fn delay(self) -> f64 {
        self.arrived_ns - self.departed_ns
    }
}

impl Reader {
    pub(super) fn read(&self, report: &TrainReport, shape: Shape) -> StreamReading {
        let gap_ns = shape.gap_ns as f64;
        let (samples, overtaken) = in_order(report, gap_ns);
        let missing = report.lost_on_path() + overtaken;
        let mut reading = StreamReading {
            loss: missing as f64 / report.arrivals.len().max(1) as f64,
            grades: Vec::new(),
            bursts: None,
            sender_switches: 0,
            receiver_switches: 0,
            mean_gap_ns: mean_gap(&report.arrivals),
        };
        if self.coalescing && self.bunched(&samples, gap_ns) {
            let delays = self.burst_delays(&samples, gap_ns);
            reading.bursts = Some(delays.len());
            if delays.len() > 5 {
                let trend = narrows_stat::trend_of_medians(&delays, &self.thresholds);
                reading.grades.extend(trend.map(|trend| trend.grade));
            }
            return reading;
        }
        for piece in pieces(&samples) {
            reading.sender_switches += 1;
            let (delays, switches) = self.undisturbed(piece, gap_ns);
            reading.receiver_switches += switches;
            let whole = delays.len() + 1 >= report.arrivals.len();
            if delays.len() > LEAST_SAMPLES || whole {
                let trend = narrows_stat::stream_trend(&delays, &self.thresholds);
                reading.grades.extend(trend.map(|trend| trend.grade));
            }
        }
        reading.sender_switches = reading.sender_switches.saturating_sub(1);
        reading
    }

    /// More than 60 % of this stream's own gaps are short; slower streams meet fewer packets per
    /// interrupt, and are read as ever.
    fn bunched(&self, samples: &[Sample], gap_ns: f64) -> bool {
        let short = self.receiving.coalesced_ns(gap_ns);
        let close = samples.windows(2).filter(|pair| pair[1].arrived_ns - pair[0].arrived_ns <= short).count();
        close as f64 > COALESCED * samples.len() as f64
    }

    /// Delays of the packets that the next does not follow back to back, and how many runs the host
    /// slept through.
    fn undisturbed(&self, piece: &[Sample], gap_ns: f64) -> (Vec<f64>, usize) {
        let short = self.receiving.back_to_back_ns(gap_ns);
        let (mut delays, mut runs) = (Vec::with_capacity(piece.len()), 0);
        let mut began: Option<f64> = None;
        for (index, sample) in piece.iter().enumerate() {
            let next = piece.get(index + 1);
            if next.is_some_and(|next| next.arrived_ns - sample.arrived_ns <= short) {
                began.get_or_insert(sample.departed_ns);
            } else {
                delays.push(sample.delay());
                let slept = began.take().is_some_and(|began| sample.departed_ns - began >= ASLEEP_NS);
                runs += usize::from(slept);
            }
        }
        (delays, runs)
    }

    /// The delay of the packet that ends each burst: it waited least for the interrupt.
    fn burst_delays(&self, samples: &[Sample], gap_ns: f64) -> Vec<f64> {
        let short = self.receiving.coalesced_ns(gap_ns);
        let (mut delays, mut run) = (Vec::new(), 0);
        for pair in samples.windows(2) {
            if pair[1].arrived_ns - pair[0].arrived_ns <= short {
                run += 1;
            } else {
                if run >= BURST_GAPS {
                    delays.push(pair[0].delay());
                }
                run = 0;
            }
        }
        delays
    }
}

/// Samples in the order of sending, less those that had been overtaken: the tool counts these as
/// lost.
fn in_order(report: &TrainReport, gap_ns: f64) -> (Vec<Sample>, usize) {
    let mut samples: Vec<Sample> = Vec::with_capacity(report.arrivals.len());
    let mut overtaken = 0;
    let Some((origin, zero)) = report.received().next().map(|(row, stamp)| (row.departed, stamp)) else {
        return (samples, 0);
    };
    // Without reordering, stamps that run backwards are the clock's.
    let may_overtake = report.reordered > 0;
    let mut latest = f64::NEG_INFINITY;
    let limit = (2.0 * gap_ns).max(gap_ns + 1e6);
    // Of all rows, so that losses are no pauses.
    let mut pauses = report.arrivals.windows(2).filter_map(|pair| {
        let paused = (pair[1].departed - pair[0].departed).as_f64() > limit;
        paused.then_some(pair[1].seq)
    });
    let (mut next, mut passed) = (pauses.next(), 0);
    for (row, stamp) in report.received() {
        while next.is_some_and(|seq| seq <= row.seq) {
            passed += 1;
            next = pauses.next();
        }
        let sample = Sample {
            pauses: passed,
            departed_ns: (row.departed - origin).as_f64(),
            arrived_ns: (stamp - zero).as_f64(),
        };
        if may_overtake && sample.arrived_ns < latest {
            overtaken += 1;
            continue;
        }
        latest = sample.arrived_ns;
        samples.push(sample);
    }
    (samples, overtaken)
}

/// The stream, cut where the sender did not run.
fn pieces(samples: &[Sample]) -> impl Iterator<Item = &[Sample]> {
    samples.chunk_by(|a, b| a.pauses == b.pauses)
}

/// Departs from pathload 1.3.2, which leaves out the longest 15 % whatever they are: where a
/// clock's tick shows in the gaps, those are the gaps of one tick more, and the rate comes out too
/// high.
fn mean_gap(rows: &[Arrival]) -> Option<f64> {
    let gaps: Vec<f64> = rows.windows(2).map(|pair| (pair[1].departed - pair[0].departed).as_f64()).collect();
    let most = gaps.len() * 15 / 100;
    let usual = PAUSE * narrows_stat::median(&gaps)?;
    let pauses = gaps.iter().filter(|gap| **gap > usual).count();
    narrows_stat::Sorted::new(gaps).ok()?.mean_without(0, pauses.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_probe::StampSource;
    use narrows_probe::probes::{Fate, PacingCheck, TrainId};

    const SHAPE: Shape = Shape { ip_octets: 1000, gap_ns: 80_000 };

    fn reader(coalescing: bool) -> Reader {
        Reader { receiving: Receiving { receive_cost_ns: 0.0 }, coalescing, thresholds: Thresholds::PATHLOAD }
    }

    /// A stream of 100 packets whose delays are `delay(k)` nanoseconds; `None` is lost.
    fn stream(delay: impl Fn(i64) -> Option<i64>) -> TrainReport {
        let row = |k: i64| Arrival {
            seq: u32::try_from(k).unwrap(),
            departed: Stamp::from_nanos(k * 80_000),
            ip_octets: 1000,
            fate: delay(k).map_or(Fate::Lost, |delay| Fate::Received(Stamp::from_nanos(k * 80_000 + delay))),
        };
        TrainReport {
            id: TrainId(0),
            arrivals: (0..100).map(row).collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: PacingCheck::Kept,
        }
    }

    #[test]
    fn steady_rise_and_level() {
        let read = |report| reader(false).read(&report, SHAPE);
        // Any clock offset, of either sign.
        for offset in [-3_000_000_000, 0, 7_000_000] {
            assert_eq!(read(stream(|k| Some(offset + 500 * k))).grades, [Trend::Increasing]);
            assert_eq!(read(stream(|_| Some(offset))).grades, [Trend::NoTrend]);
        }
    }

    #[test]
    fn losses_count_and_do_not_hide_the_trend() {
        let read = |report| reader(false).read(&report, SHAPE);
        let first = read(stream(|k| (k > 0).then_some(500 * k)));
        assert_eq!((first.loss, first.grades), (0.01, vec![Trend::Increasing]));
        let middle = read(stream(|k| (k % 10 != 5).then_some(500 * k)));
        assert_eq!((middle.loss, middle.grades), (0.1, vec![Trend::Increasing]));
        let none = read(stream(|_| None));
        assert_eq!((none.loss, none.grades), (1.0, Vec::new()));
        let one = read(stream(|k| (k == 3).then_some(0)));
        assert_eq!(one.grades, Vec::new());
    }

    #[test]
    fn a_sender_that_slept_cuts_the_stream_in_two() {
        let mut report = stream(|k| Some(500 * k));
        for row in &mut report.arrivals[50..] {
            row.departed = row.departed + Duration::from_millis(5);
            // Delays start afresh behind the pause.
            row.fate = Fate::Received(Stamp::from_nanos(row.departed.nanos() + 500 * (i64::from(row.seq) - 50)));
        }
        let reading = reader(false).read(&report, SHAPE);
        assert_eq!(reading.grades, [Trend::Increasing; 2]);
        assert_eq!(reading.sender_switches, 1);
        // The longest 15 % of the gaps, the pause among them, do not count.
        assert_eq!(reading.mean_gap_ns, Some(80_000.0));
    }

    #[test]
    fn a_receiver_that_slept_leaves_its_last_packet() {
        // Packets 40 to 49 are read together when the receiver wakes.
        let report = stream(|k| Some(if (40..50).contains(&k) { (49 - k) * 80_000 } else { 0 }));
        let reading = reader(false).read(&report, SHAPE);
        assert_eq!((reading.receiver_switches, reading.grades), (1, vec![Trend::NoTrend]));
    }

    #[test]
    fn under_coalescence_one_delay_per_burst_counts() {
        // Ten packets per interrupt, the delay of the last of each rising.
        let report = stream(|k| Some((9 - k % 10) * 80_000 + 5000 * (k / 10)));
        let stamps: Vec<_> = report.received().map(|(_, stamp)| stamp).collect();
        assert_eq!(reader(false).receiving.coalesces(&stamps), Some(Duration::from_micros(805)));
        let reading = reader(true).read(&report, SHAPE);
        // The last burst does not end within the stream.
        assert_eq!((reading.bursts, reading.grades), (Some(9), vec![Trend::Increasing]));
        let level = stream(|k| Some((9 - k % 10) * 80_000));
        assert_eq!(reader(true).read(&level, SHAPE).grades, [Trend::NoTrend]);
    }

    #[test]
    fn a_clock_set_back_within_a_stream_is_not_a_trend_nor_a_panic() {
        let report = stream(|k| Some(if k < 50 { 500 * k } else { 500 * k - 1_000_000_000 }));
        assert_ne!(reader(false).read(&report, SHAPE).grades, [Trend::Increasing]);
    }
}
