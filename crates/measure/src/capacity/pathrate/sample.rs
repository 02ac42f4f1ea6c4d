//! One train, reduced to what the phases need of it.

use narrows_units::{Framing, Receiver, Sender, Stamp, nanos_f64, to_u64};

use narrows_probe::StampSource;
use narrows_probe::probes::{Arrival, Fate, PacingCheck, TrainId, TrainReport};
use narrows_train::carried::Carried;
use narrows_train::train_method::arrived_ns;

/// What a train was sent for. It is part of the train's name, so that a recording can be analysed
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Discovery of the feasible train length, or of the rough rate.
    Lengths,
    /// The test for receive batching.
    BatchTest,
    /// Preliminary trains: bin width and quick termination.
    Preliminary,
    /// Phase I: pairs of varied size.
    Pairs,
    /// Phase II: long trains of the largest size.
    Trains,
    /// Trains of the receive-batching branch.
    Batches,
    /// Trains paced at the rate found: slowed only if other traffic is on the narrow link
    /// (adaptive).
    Check,
    /// Small pairs for the filter of least delay (adaptive).
    Filter,
    /// Long trains that look for a token bucket (adaptive).
    Bucket,
    /// Trains back to back that follow once paced ones were slowed (adaptive).
    Pushed,
    /// Trains paced between the rate found and the sender's own (adaptive).
    Between,
    /// Long trains behind what looks like a bucket of a few packets (adaptive).
    Settle,
    /// Trains behind packets that empty a bucket, paced at two rates (adaptive).
    SlowBehind,
    FastBehind,
    /// Long trains that look for a token bucket beside other traffic, paced at the rate found
    /// (adaptive).
    PacedBucket,
}

impl Phase {
    const ALL: [Self; 15] = [
        Self::Lengths,
        Self::BatchTest,
        Self::Preliminary,
        Self::Pairs,
        Self::Trains,
        Self::Batches,
        Self::Check,
        Self::Filter,
        Self::Bucket,
        Self::Pushed,
        Self::Between,
        Self::Settle,
        Self::SlowBehind,
        Self::FastBehind,
        Self::PacedBucket,
    ];

    /// Whether the sender paced its trains for what they are to show.
    pub(super) fn is_paced(self) -> bool {
        matches!(self, Self::Check | Self::Between | Self::SlowBehind | Self::FastBehind | Self::PacedBucket)
    }

    /// Whether its trains look for a token bucket.
    pub(super) fn is_bucket(self) -> bool {
        matches!(self, Self::Bucket | Self::PacedBucket)
    }

    /// Whether its trains begin with packets that empty a bucket.
    pub(super) fn is_behind(self) -> bool {
        matches!(self, Self::SlowBehind | Self::FastBehind)
    }

    /// Whether its trains come at random times (adaptive). Others' traffic that comes at regular
    /// times would else meet each of them alike, and what never changes passes for an empty path.
    pub(super) fn is_spread(self) -> bool {
        matches!(self, Self::Pairs | Self::Filter | Self::Trains)
    }

    /// The name of the `serial`-th train of a run, sent in this phase.
    pub(super) fn train_id(self, serial: u32) -> TrainId {
        TrainId(((self as u32) << SERIAL_BITS) | (serial & ((1 << SERIAL_BITS) - 1)))
    }

    /// The phase that a train's name tells.
    pub(super) fn of(id: TrainId) -> Option<Self> {
        Self::ALL.get(usize::try_from(id.0 >> SERIAL_BITS).ok()?).copied()
    }
}

const SERIAL_BITS: u32 = 24;

/// A train that came through, without its first packet: that one warms caches and wakes interfaces,
/// and its stamps are not used (`pathrate` discards it too).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) phase: Phase,
    pub(super) ip_octets: u16,
    /// Arrival gaps between neighbours, ns.
    pub(super) gaps_ns: Vec<f64>,
    /// Time between the first and the last departure of the same packets, ns.
    pub(super) sent_ns: f64,
    pub(super) stamped_by: StampSource,
    /// `None` unless every packet came.
    pub(super) delays: Option<Delays>,
    /// How fast the path carried it at least, its first packet included.
    pub(super) carried: Option<Carried>,
}

/// One-way delays within a train, ns, all from the departure of its first packet and with the
/// clocks' unknown offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the unit belongs into the name")]
pub(super) struct Delays {
    /// That departure, on the sender's clock.
    pub(super) departed_ns: i64,
    /// Of the first packet, which is not counted.
    pub(super) head_ns: i64,
    /// Of the first counted packet.
    pub(super) first_ns: i64,
}

impl Delays {
    fn read(rows: &[Arrival]) -> Option<Self> {
        let arrival = |row: &Arrival| match row.fate {
            Fate::Received(stamp) => Some(stamp.nanos()),
            _ => None,
        };
        if rows.iter().any(|row| arrival(row).is_none()) {
            return None;
        }
        let departed_ns = rows.first()?.departed.nanos();
        Some(Self {
            departed_ns,
            head_ns: arrival(rows.first()?)?.saturating_sub(departed_ns),
            first_ns: arrival(rows.get(1)?)?.saturating_sub(departed_ns),
        })
    }
}

/// Why a train is no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Packets were lost.
    Lost,
    /// Packets changed order.
    Disordered,
    /// The sender paused within the train for longer than the narrow link's backlog lasted.
    Paused,
}

impl Sample {
    /// Reads a report. With `whole`, every packet must have arrived and in order; otherwise the
    /// longest run without loss serves if it holds three packets, or half of the train.
    pub(super) fn read(report: &TrainReport, whole: bool) -> Result<Self, Flaw> {
        let rows = &report.arrivals;
        let counted = rows.get(1..).unwrap_or_default();
        if whole && rows.iter().any(|row| !matches!(row.fate, Fate::Received(_))) {
            return Err(Flaw::Lost);
        }
        let run = longest_run(counted, |row| matches!(row.fate, Fate::Received(_)));
        if run.len() < 2 || (run.len() < 3 && run.len() * 2 < counted.len()) {
            return Err(Flaw::Lost);
        }
        let mut stamps: Vec<(Stamp<Receiver>, Stamp<Sender>)> = Vec::with_capacity(run.len());
        for row in run {
            if let Fate::Received(stamp) = row.fate {
                stamps.push((stamp, row.departed));
            }
        }
        if stamps.windows(2).any(|two| two[1].0 < two[0].0) {
            return Err(Flaw::Disordered);
        }
        let gaps_ns: Vec<f64> = stamps.windows(2).map(|two| (two[1].0 - two[0].0).as_f64()).collect();
        let sent: Vec<f64> = stamps.windows(2).map(|two| (two[1].1 - two[0].1).as_f64().max(0.0)).collect();
        let sample = Self {
            phase: Phase::of(report.id).unwrap_or(Phase::Pairs),
            ip_octets: run.first().map_or(0, |row| row.ip_octets),
            gaps_ns,
            sent_ns: sent.iter().sum(),
            stamped_by: report.arrived_by,
            delays: Delays::read(rows),
            carried: Carried::of(report, arrived_ns),
        };
        let paused = match (sample.phase, report.pacing) {
            // Where a look's train bends tells, by the times at which its packets left.
            (_, PacingCheck::Kept) | (Phase::PacedBucket, _) => false,
            (phase, PacingCheck::Unknown) if phase.is_paced() => false,
            // Uneven gaps do no harm here, for only the ends of the train count; a stop of several
            // packets' time does.
            (phase, PacingCheck::Broken { worst }) if phase.is_paced() => {
                nanos_f64(worst) * sample.gaps_ns.len() as f64 > 2.0 * sample.sent_ns
            }
            _ => !sample.open() && sample.idle_share(&sent) > LARGEST_IDLE_SHARE,
        };
        if paused {
            return Err(Flaw::Paused);
        }
        Ok(sample)
    }

    /// Counted packets, N.
    pub(super) fn packets(&self) -> usize {
        self.gaps_ns.len() + 1
    }

    /// First to last arrival, ns; the dispersion.
    pub(super) fn span_ns(&self) -> f64 {
        self.gaps_ns.iter().sum()
    }

    /// Rate on a wire of this framing, bit/s; `None` if no time passed.
    pub(super) fn wire_rate(&self, framing: Framing) -> Option<f64> {
        rate(self.packets(), self.ip_octets, self.span_ns(), framing)
    }

    /// The same of the departures; `None` if they share a stamp.
    pub(super) fn sent_rate(&self, framing: Framing) -> Option<f64> {
        rate(self.packets(), self.ip_octets, self.sent_ns, framing)
    }

    /// The share of its time that it was slowed by; negative if it came faster than it left.
    pub(super) fn slowed(&self) -> f64 {
        1.0 - self.sent_ns / self.span_ns()
    }

    /// The packets did not leave closer than they arrived: the narrow link never closed the gaps,
    /// and the rate is the sender's.
    pub(super) fn open(&self) -> bool {
        self.sent_ns > OPEN * self.span_ns()
    }

    /// The share of the dispersion for which a link that serves one packet per mean arrival gap
    /// would have waited for the sender.
    fn idle_share(&self, sent_gaps: &[f64]) -> f64 {
        let service = self.span_ns() / self.gaps_ns.len() as f64;
        let (mut backlog, mut idle) = (service, 0.0);
        for gap in sent_gaps {
            let left = backlog - gap;
            idle += (-left).max(0.0);
            backlog = left.max(0.0) + service;
        }
        if self.span_ns() > 0.0 { idle / self.span_ns() } else { 0.0 }
    }
}

/// `pathrate` practice: a host within 5 % of the answer may be the answer.
const OPEN: f64 = 0.95;

/// Ours: a pause that shows in less than a twentieth of the dispersion is within the other errors
/// of one train.
const LARGEST_IDLE_SHARE: f64 = 0.05;

fn rate(packets: usize, ip_octets: u16, span_ns: f64, framing: Framing) -> Option<f64> {
    let bits = 8.0 * f64::from(framing.wire_octets(u32::from(ip_octets))) * (packets - 1) as f64;
    (span_ns > 0.0).then(|| bits / span_ns * 1e9)
}

fn longest_run<T>(rows: &[T], good: impl Fn(&T) -> bool) -> &[T] {
    rows.split(|row| !good(row)).max_by_key(|run| run.len()).unwrap_or_default()
}

/// Packets of a report that were sent, lost on the path, dropped by the receiver, and reordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) trains: u32,
    pub(super) sent: u64,
    pub(super) octets: u64,
    pub(super) lost: u64,
    pub(super) dropped: u64,
    pub(super) reordered: u64,
    pub(super) paused: u32,
    /// Trains that made no sample.
    pub(super) failed: u32,
    pub(super) answered_trains: u32,
}

impl Tally {
    pub(super) fn add(&mut self, report: &TrainReport) {
        self.trains += 1;
        self.sent += to_u64(report.arrivals.len());
        self.octets += report.arrivals.iter().map(|row| u64::from(row.ip_octets)).sum::<u64>();
        self.lost += to_u64(report.lost_on_path());
        self.dropped += u64::from(report.local_drops);
        self.reordered += u64::from(report.reordered);
        self.answered_trains += u32::from(report.received().next().is_some());
    }

    pub(super) fn loss_ratio(&self) -> f64 {
        self.share(self.lost)
    }

    pub(super) fn reordered_ratio(&self) -> f64 {
        self.share(self.reordered)
    }

    fn share(&self, packets: u64) -> f64 {
        if self.sent == 0 { 0.0 } else { packets as f64 / self.sent as f64 }
    }
}
