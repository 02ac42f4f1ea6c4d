//! From levels to an outcome.

use narrows_units::{BitRate, Layer, Metric, rounded};

use super::analyse::{Available, Findings, Level, findings, sharing};
use narrows_probe::outcome::{
    BuffersFinding, Caveat, Confidence, Estimate, FillBasis as Basis, Finding, Limit, Outcome, Ranged, Reason,
    StreamsFinding, StreamsLevel,
};
use narrows_probe::probes::{TcpSample, TransferReport};
use narrows_train::bulk::series;

/// What the transfers have told.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// In rising order of their streams.
    pub(super) levels: Vec<Level>,
    pub(super) available: Option<Available>,
    /// One stream was stalled by the peer's window or by its own buffer, for a fifth of the time.
    pub(super) window_held: bool,
    /// A run with explicit buffers: what was asked for, what the kernel granted, and the rate,
    /// bit/s.
    pub(super) buffers: Option<Buffers>,
    /// Busiest threads at the level with most streams.
    cpu: (f32, f32),
}

/// A run with explicit buffers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Buffers {
    pub(super) requested_octets: u32,
    pub(super) granted_octets: Option<u32>,
    pub(super) bps: f64,
}

/// A kernel that ties one buffer to the other shows so: without both, less than this share of what
/// path and window allow; with both, so much more (`[Netest03]` §III.B: 22 times).
const HELD_BACK: f64 = 0.5;
const CURED: f64 = 1.5;
/// A share of a CPU from which a thread counts as the limit.
const BUSY: f32 = 0.9;

impl Known {
    /// One stream's rate, as another method has measured it.
    pub(super) fn given(&mut self, rate: BitRate) {
        self.levels.push(Level { streams: 1, rates: vec![rate.as_f64()], rtt: 0.0, loss: 0.0 });
    }

    /// Takes in a run with explicit buffers.
    pub(super) fn note_buffers(&mut self, requested_octets: u32, report: &TransferReport, bps: f64) {
        let granted = report.streams.iter().filter_map(|stream| stream.granted_send_buffer_octets);
        self.buffers = Some(Buffers { requested_octets, granted_octets: granted.min(), bps });
    }

    /// Adds a measurement to its level.
    pub(super) fn note(&mut self, streams: u16, rates: Vec<f64>, rtt: f64, report: &TransferReport) {
        let loss = series::sums(report).loss();
        if streams == 1 {
            self.window_held |= held_by_windows(report);
        }
        self.cpu =
            (report.sender_cpu.unwrap_or(0.0).max(self.cpu.0), report.receiver_cpu.unwrap_or(0.0).max(self.cpu.1));
        let at = self.levels.partition_point(|level| level.streams < streams);
        match self.levels.get_mut(at).filter(|level| level.streams == streams) {
            Some(level) => {
                // Running means over runs of one length.
                let runs = level.rates.len() as f64;
                level.rtt = (level.rtt * runs + rtt) / (runs + 1.0);
                level.loss = (level.loss * runs + loss) / (runs + 1.0);
                level.rates.extend(rates);
            }
            None => self.levels.insert(at, Level { streams, rates, rtt, loss }),
        }
    }
}

/// Whether a connection waited for a window or a buffer for more than a fifth of the time.
fn held_by_windows(report: &TransferReport) -> bool {
    let whole = report.ended.since(report.began).as_secs_f64();
    report.streams.iter().any(|stream| {
        let (Some(first), Some(last)) = (stream.samples.first(), stream.samples.last()) else {
            return false;
        };
        let grown = |of: fn(&TcpSample) -> Option<std::time::Duration>| {
            of(last).unwrap_or_default().saturating_sub(of(first).unwrap_or_default())
        };
        let stalled = grown(|sample| sample.limited_by_receive_window) + grown(|sample| sample.limited_by_send_buffer);
        stalled.as_secs_f64() > 0.2 * whole
    })
}

pub(super) fn outcome(known: &Known, reason: Option<Reason>) -> Outcome {
    let found =
        findings(&known.levels, known.available).filter(|_| known.levels.iter().any(|level| level.mean() > 0.0));
    let Some(found) = found else {
        return Outcome::inconclusive(reason.unwrap_or(Reason::NoAnswer));
    };
    let streams = Ranged::new(found.fill, found.low, found.high).map(u32::from);
    let mut estimate = Estimate::new(Metric::TcpStreamsToFill, None, streams);
    estimate = match found.basis {
        Basis::Reached => estimate,
        Basis::Flat => {
            estimate.limited_by = match known.cpu {
                (sender, _) if sender > BUSY => Limit::Sender,
                (_, receiver) if receiver > BUSY => Limit::Receiver,
                _ => Limit::Path,
            };
            estimate
        }
        Basis::Extrapolated | Basis::Unsure => {
            estimate.confidence = Confidence::Low;
            estimate.caveat(Caveat::NotConverged)
        }
        Basis::Rising => estimate.at_least(Limit::Budget).caveat(Caveat::NotConverged),
    };
    if reason.is_some() {
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    estimate = parallel(estimate, known, &found);
    diagnostics(estimate, known, &found).into()
}

/// The sum at the filling number, as far as it was tried.
fn parallel(mut estimate: Estimate, known: &Known, found: &Findings) -> Estimate {
    let level = known.levels.iter().find(|level| level.streams >= found.fill).or(known.levels.last());
    let Some(level) = level else { return estimate };
    let half =
        narrows_stat::mean_interval_correlated(&level.rates, 0.95).map_or(0.0, |interval| interval.width() / 2.0);
    let mean = level.mean();
    let range = Ranged::new(rounded(mean), rounded((mean - half).max(0.0)), rounded(mean + half));
    let range = range.map(BitRate::from_bps);
    let mut sum = Estimate::new(Metric::TcpAchievableParallel, Some(Layer::TcpPayload), range)
        .with("streams", u32::from(level.streams));
    sum.limited_by = estimate.limited_by;
    if matches!(found.basis, Basis::Extrapolated | Basis::Rising) {
        sum = sum.at_least(Limit::Budget);
    }
    estimate.also.push(sum);
    estimate
}

fn diagnostics(mut estimate: Estimate, known: &Known, found: &Findings) -> Estimate {
    let level = |level: &Level| StreamsLevel {
        streams: level.streams,
        sum_bps: level.mean(),
        rtt_ns: level.rtt * 1e9,
        retransmitted_share: level.loss,
        intrusion: None,
    };
    let mut finding = StreamsFinding {
        basis: found.basis,
        levels: known.levels.iter().map(level).collect(),
        recommended: found.recommended,
        available_payload_bps: known.available.map(|available| BitRate::from_bps(rounded(available.bps))),
        intrusive: found.intrusive.as_ref().map(|(streams, _)| *streams),
        intrusive_by: found.intrusive.iter().flat_map(|(_, signs)| signs).map(|sign| sign.name().to_owned()).collect(),
        harmful: found.harmful,
        competing_flows: None,
        buffers: buffers(known),
    };
    if let Some(shared) = sharing(&known.levels) {
        finding.competing_flows = Some(shared.flows);
        estimate = estimate.with("shared_payload_bps", rounded(shared.shared_bps));
        if let Some(available) = known.available.filter(|available| shared.shared_bps > available.bps) {
            let others = shared.shared_bps - available.bps;
            for level in &mut finding.levels {
                level.intrusion = Some(((level.sum_bps - available.bps) / others).clamp(0.0, 1.0));
            }
        }
    }
    finding.tell(&mut estimate.diagnostics);
    estimate.found(Finding::Streams(Box::new(finding)))
}

/// What explicit buffers at both sides of the sending host changed (`-FullD`).
fn buffers(known: &Known) -> Option<BuffersFinding> {
    let (run, one) = (known.buffers?, known.levels.first()?);
    let gain = run.bps / one.mean().max(1.0);
    let held = known.available.is_some_and(|available| one.mean() < HELD_BACK * available.bps);
    Some(BuffersFinding {
        requested_octets: run.requested_octets,
        granted_octets: run.granted_octets,
        clamped: run.granted_octets.is_some_and(|granted| granted < run.requested_octets),
        gain,
        kernel_at_fault: held && one.loss <= 0.0 && !known.window_held && gain >= CURED,
    })
}
