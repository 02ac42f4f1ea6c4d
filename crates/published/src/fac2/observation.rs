//! One train for methods that compare what left with what came: rates and losses, without the
//! growth of delays.

use std::time::Duration;

use narrows_probe::probes::TrainReport;
use narrows_train::reading;
use narrows_train::reading::Unusable;

/// What left and what came of one train.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrainObservation {
    /// Departure rate, bit/s; infinite if the sender's clock saw no time pass.
    pub(crate) rate_sent: f64,
    /// The same of the packets that arrived.
    pub(crate) rate_in: f64,
    /// Arrival rate from burst end to burst end, bit/s. Finite and above 0.
    pub(crate) rate_out: f64,
    /// Packets sent.
    pub(crate) packets: usize,
    /// Packets lost on the path.
    pub(crate) lost: usize,
    /// Of these, in the second half of the train.
    pub(crate) lost_late: usize,
    /// Typical spacing of batches at the receiver, if it batches.
    pub(crate) batch: Option<Duration>,
    /// The receiving host did not run for an eighth of the train or more.
    pub(crate) stalled: bool,
    /// Coefficient of variation of the rates of ten sub-trains.
    pub(crate) sub_train_variation: Option<f64>,
    /// The first sub-train is this much faster than the late ones, as a share.
    pub(crate) head_excess: f64,
}

/// Why a train tells nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Fewer than two packets arrived.
    AllLost,
    /// The sender left a gap of a tenth of the train, or more.
    Pacing,
    /// A clock jumped.
    ClockStep,
    /// The receiver saw too few batches.
    FewBatches,
}

/// Reduces a train; `fastest` is the highest arrival rate seen so far, which betrays batches.
/// Departures that left the plan count as they were: only a gap of a tenth of the train spoils it.
pub(crate) fn observation(report: &TrainReport, fastest: Option<f64>) -> Result<TrainObservation, Flaw> {
    let reading = reading::read(report, fastest, true).map_err(|unusable| match unusable {
        Unusable::AllLost => Flaw::AllLost,
        Unusable::Pacing => Flaw::Pacing,
        Unusable::ClockStep => Flaw::ClockStep,
        Unusable::FewBatches => Flaw::FewBatches,
    })?;
    let sound = reading.rate_in > 0.0 && reading.rate_out > 0.0 && reading.rate_out.is_finite();
    if !sound {
        return Err(Flaw::ClockStep);
    }
    Ok(TrainObservation {
        rate_sent: reading.rate_sent,
        rate_in: reading.rate_in,
        rate_out: reading.rate_out,
        packets: reading.packets,
        lost: reading.lost,
        lost_late: reading.lost_late,
        batch: reading.batch,
        stalled: reading.stalled,
        sub_train_variation: reading.sub_train_variation,
        head_excess: reading.head_excess,
    })
}
