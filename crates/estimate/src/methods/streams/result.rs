//! From levels to an outcome.

use units::{BitRate, Layer, Metric};

use super::analyse::{Available, Basis, Findings, Level, findings};
use crate::methods::bulk::{self, series};
use crate::outcome::{Caveat, Confidence, Estimate, Limit, Outcome, Reason};
use crate::probe::TransferReport;

/// What the transfers have told.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// In rising order of their streams.
    pub(super) levels: Vec<Level>,
    pub(super) available: Option<Available>,
    /// Busiest threads at the level with most streams.
    cpu: (f32, f32),
}

/// A share of a CPU from which a thread counts as the limit.
const BUSY: f32 = 0.9;

impl Known {
    /// One stream's rate, as another method has measured it.
    pub(super) fn given(&mut self, rate: BitRate) {
        self.levels.push(Level {
            streams: 1,
            rates: vec![rate.as_f64()],
            rtt: 0.0,
            loss: 0.0,
        });
    }

    /// Adds a measurement to its level.
    pub(super) fn note(&mut self, streams: u16, rates: Vec<f64>, rtt: f64, report: &TransferReport) {
        let loss = series::sums(report).loss();
        self.cpu = (
            report.sender_cpu.unwrap_or(0.0).max(self.cpu.0),
            report.receiver_cpu.unwrap_or(0.0).max(self.cpu.1),
        );
        let at = self.levels.partition_point(|level| level.streams < streams);
        match self.levels.get_mut(at).filter(|level| level.streams == streams) {
            Some(level) => {
                // Running means over runs of one length.
                let runs = level.rates.len() as f64;
                level.rtt = (level.rtt * runs + rtt) / (runs + 1.0);
                level.loss = (level.loss * runs + loss) / (runs + 1.0);
                level.rates.extend(rates);
            }
            None => self.levels.insert(
                at,
                Level {
                    streams,
                    rates,
                    rtt,
                    loss,
                },
            ),
        }
    }
}

pub(super) fn outcome(known: &Known, reason: Option<Reason>) -> Outcome {
    let found =
        findings(&known.levels, known.available).filter(|_| known.levels.iter().any(|level| level.mean() > 0.0));
    let Some(found) = found else {
        return Outcome::inconclusive(reason.unwrap_or(Reason::NoAnswer));
    };
    let (value, low, high) = (found.fill.into(), found.low.into(), found.high.into());
    let mut estimate = Estimate::new(Metric::TcpStreamsToFill, None, value, low, high);
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
    evidence(estimate, known, &found).into()
}

/// The sum at the filling number, as far as it was tried.
fn parallel(mut estimate: Estimate, known: &Known, found: &Findings) -> Estimate {
    let level = known
        .levels
        .iter()
        .find(|level| level.streams >= found.fill)
        .or(known.levels.last());
    let Some(level) = level else { return estimate };
    let half = stat::mean_interval_correlated(&level.rates, 0.95).map_or(0.0, |interval| interval.width() / 2.0);
    let mean = level.mean();
    let mut sum = Estimate::new(
        Metric::TcpAchievableParallel,
        Some(Layer::TcpPayload),
        bulk::whole(mean),
        bulk::whole((mean - half).max(0.0)),
        bulk::whole(mean + half),
    )
    .with("streams", u32::from(level.streams));
    sum.limited_by = estimate.limited_by;
    if matches!(found.basis, Basis::Extrapolated | Basis::Rising) {
        sum = sum.at_least(Limit::Budget);
    }
    estimate.also.push(sum);
    estimate
}

fn evidence(mut estimate: Estimate, known: &Known, found: &Findings) -> Estimate {
    let series = |of: fn(&Level) -> f64| known.levels.iter().map(of).collect::<Vec<_>>();
    let basis = match found.basis {
        Basis::Reached => "fills what is available",
        Basis::Flat => "more streams bring no more",
        Basis::Unsure => "more streams bring no more beyond chance",
        Basis::Extrapolated => "extrapolated from one stream",
        Basis::Rising => "still rising at the last number tried",
    };
    estimate = estimate
        .with("streams_tried", series(|level| f64::from(level.streams)))
        .with("sum_bps", series(Level::mean))
        .with("rtt_loaded_ns", series(|level| level.rtt * 1e9))
        .with("retransmitted_share", series(|level| level.loss))
        .with("basis", basis)
        .with("recommended", found.recommended);
    if let Some(available) = known.available {
        estimate = estimate
            .with("available_payload_bps", bulk::whole(available.bps))
            .with("fills_available", found.basis == Basis::Reached);
    }
    if let Some(streams) = found.intrusive {
        estimate = estimate.with("intrusive_streams", u32::from(streams));
    }
    if let Some(streams) = found.harmful {
        estimate = estimate.with("harmful_streams", u32::from(streams));
    }
    estimate
}
