//! The account of all trains of a run, and how it shows in the answer.

use std::time::Duration;

use narrows_units::{BitRate, Metric, Sender, Stamp};

use narrows_probe::PathFacts;
use narrows_probe::outcome::{
    Caveat, Confidence, Details, Diagnostics, Estimate, Limit, Outcome, Reason, SampleCounts,
};
use narrows_probe::probes::TrainReport;
use narrows_train::reading::{Reading, Unusable, read};
use narrows_train::train_method::whole_packets;

/// Trains of one flaw in a row after which a run gives up (ours).
const RETRY_LIMIT: u32 = 4;
/// Loss above which nothing is said (ours; pathload's limit for a stream).
const LOSS_LIMIT: f64 = 0.15;
/// Batches that a train must span (ours): the error of its ends is then below a tenth of a batch in
/// twelve.
const BATCHES: f64 = 12.0;
/// Links up to so many times as fast as the sender are reckoned with (ours).
const FASTER: f64 = 5.0;
/// Rates this near to the sender's own are at it (ours).
const AT_INTERFACE: f64 = 0.9;

/// What was sent and what became of it. Rates in bit/s.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    pub(crate) facts: Option<PathFacts>,
    /// IP octets of a probe packet.
    pub(crate) octets: u16,
    /// Highest rate at which a train arrived: no link spaces packets much closer.
    pub(crate) fastest: Option<f64>,
    /// Typical time between batches at the receiver, if it batches.
    pub(crate) batch: Option<Duration>,
    trains: u32,
    sent: u64,
    lost: u64,
    reordered: u64,
    local_drops: u64,
    broken: u32,
    clock_steps: u32,
    few_batches: u32,
    /// Flawed trains since the last good one.
    in_a_row: u32,
    last_flaw: Option<Unusable>,
    stalled: bool,
    least_packets: usize,
    began: Option<Stamp<Sender>>,
    ended: Option<Stamp<Sender>>,
}

impl Account {
    pub(crate) fn begin(&mut self, facts: &PathFacts, size: Option<u16>) {
        self.octets = size.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.facts = Some(facts.clone());
    }

    /// Bits of a packet.
    pub(crate) fn bits(&self) -> f64 {
        f64::from(self.octets.max(1)) * 8.0
    }

    /// Counts a train that is not read as a whole.
    pub(crate) fn count(&mut self, report: &TrainReport) {
        self.trains = self.trains.saturating_add(1);
        self.sent = self.sent.saturating_add(report.arrivals.len() as u64);
        self.lost = self.lost.saturating_add(report.lost_on_path() as u64);
        self.reordered = self.reordered.saturating_add(u64::from(report.reordered));
        self.local_drops = self.local_drops.saturating_add(u64::from(report.local_drops));
        if let (Some(first), Some(last)) = (report.arrivals.first(), report.arrivals.last()) {
            self.began.get_or_insert(first.departed);
            self.ended = Some(last.departed);
        }
    }

    /// Counts a train and reads it; `None` if it says nothing.
    pub(crate) fn take(&mut self, report: &TrainReport) -> Option<Reading> {
        self.count(report);
        match read(report, self.fastest, true) {
            Ok(mut reading) => {
                reading.receiver_bound = self.receiver_bound(reading.rate_out, report);
                self.good(&reading);
                Some(reading)
            }
            Err(flaw) => {
                self.flawed(flaw, report.arrivals.len());
                None
            }
        }
    }

    /// Whether packets at this rate may have come faster than the receiving host can stamp them.
    pub(crate) fn receiver_bound(&self, rate_out: f64, report: &TrainReport) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.receiver.stamps_limit(rate_out, self.octets, report.arrived_by))
    }

    fn good(&mut self, reading: &Reading) {
        self.in_a_row = 0;
        self.stalled |= reading.stalled;
        self.fastest = Some(self.fastest.map_or(reading.rate_out, |seen| seen.max(reading.rate_out)));
        if let Some(batch) = reading.batch {
            self.batch = self.batch.max(Some(batch));
            let per_batch = batch.as_secs_f64() * reading.rate_in.min(reading.rate_out) / self.bits();
            self.least_packets = self.least_packets.max(whole_packets(BATCHES * per_batch));
        }
    }

    fn flawed(&mut self, flaw: Unusable, packets: usize) {
        self.in_a_row += 1;
        self.last_flaw = Some(flaw);
        match flaw {
            Unusable::AllLost => {}
            Unusable::Pacing => self.broken += 1,
            Unusable::ClockStep => self.clock_steps += 1,
            Unusable::FewBatches => {
                self.few_batches += 1;
                self.least_packets = self.least_packets.max(packets.saturating_mul(2));
            }
        }
    }

    /// Packets of a train that is to have `wanted`, as many more as batches ask for, and no more
    /// than `most`.
    pub(crate) fn length(&self, wanted: usize, most: usize) -> usize {
        wanted.max(self.least_packets).min(most.max(wanted))
    }

    /// Whether a train of so many packets would span too few of the batches seen.
    pub(crate) fn too_few_batches(&self, packets: usize) -> bool {
        self.least_packets > packets.saturating_mul(2)
    }

    /// Why no more trains should be sent, if so.
    pub(crate) fn gives_up(&self) -> Option<Reason> {
        if self.in_a_row >= RETRY_LIMIT {
            return Some(match self.last_flaw {
                None | Some(Unusable::AllLost) => Reason::NoAnswer,
                Some(Unusable::Pacing) => Reason::SenderCannotPace,
                Some(Unusable::ClockStep) => Reason::NoAgreement,
                Some(Unusable::FewBatches) => Reason::ReceiveBatching,
            });
        }
        self.too_lossy()
    }

    /// Too much loss to say anything, once there is enough to tell.
    pub(crate) fn too_lossy(&self) -> Option<Reason> {
        let (lost, sent) = (self.lost, self.sent);
        let much = self.trains >= 3 && lost as f64 > LOSS_LIMIT * sent as f64;
        much.then_some(Reason::TooMuchLoss { lost, sent })
    }

    fn caveats(&self) -> Vec<Caveat> {
        let share = |count: u64| count as f64 / self.sent.max(1) as f64;
        let broken = self.broken;
        let (lost, reordered) = (share(self.lost), share(self.reordered));
        let seen = [
            self.batch.map(|period| Caveat::ReceiveBatching { period }),
            (broken > 0).then_some(Caveat::PacingBroken { trains: broken }),
            (lost > 0.001).then_some(Caveat::Loss { ratio: lost }),
            (self.local_drops > 0).then_some(Caveat::LocalDrops { packets: self.local_drops }),
            (reordered > 0.001).then_some(Caveat::Reordering { ratio: reordered }),
            (self.clock_steps > 0).then_some(Caveat::ClockStep),
            self.stalled.then_some(Caveat::HostStall),
        ];
        seen.into_iter().flatten().collect()
    }

    fn samples(&self) -> SampleCounts {
        SampleCounts::default()
            .rejected("unpaced_trains", self.broken)
            .rejected("clock_step_trains", self.clock_steps)
            .rejected("few_batches_trains", self.few_batches)
    }

    /// No number, with what was seen.
    pub(crate) fn inconclusive(&self, reason: Reason) -> Outcome {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("trains", self.trains);
        diagnostics.insert("packets", self.sent);
        let caveats = self.caveats();
        Outcome::Inconclusive { reason, caveats, details: Details::default(), diagnostics }.counted(self.samples())
    }

    /// What is available, with the account. Rates in bit/s; `None` if they are not numbers.
    pub(crate) fn available(&self, value: f64, low: f64, high: f64) -> Option<Estimate> {
        let value = BitRate::from_bps_f64(value.max(0.0))?;
        let low = BitRate::from_bps_f64(low.max(0.0))?;
        let high = BitRate::from_bps_f64(high.max(0.0))?;
        let mut estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, value, low, high);
        estimate.interval = self.began.zip(self.ended).map(|(began, ended)| ended.since(began));
        for caveat in self.caveats() {
            estimate = estimate.caveat(caveat);
        }
        Some(estimate.with("trains", self.trains).with("packets", self.sent).counted(self.samples()))
    }

    /// Trains that left at `sent` came through at `through`, all but unharmed, and the sender can
    /// do no more: a bound. What little they were stretched may be overload of a link that is
    /// faster still, `A = R - C (R/R' - 1)`, and counts as that of one five times as fast.
    pub(crate) fn sender_bound(&self, sent: f64, through: f64) -> Option<Estimate> {
        let stretched = (sent / through - 1.0).clamp(0.0, 1.0);
        let low = through * (1.0 - FASTER * stretched).max(0.0);
        self.bound_by_sender(sent, if self.at_interface(sent) { through } else { low })
    }

    /// At least `through` is available, and the sender can do no more than `sent`. Where `sent` is
    /// the rate of the sender's own interface, no more can be available than that link of the path
    /// carries, and the bound is the answer.
    pub(crate) fn bound_by_sender(&self, sent: f64, through: f64) -> Option<Estimate> {
        let facts = self.facts.as_ref()?;
        let interface = facts.sender.interface_rate.map(BitRate::as_f64);
        if let Some(interface) = interface.filter(|rate| sent >= AT_INTERFACE * rate && sent <= 1.1 * rate) {
            return self.available(through, 0.98 * through, interface.max(through));
        }
        let capped = facts.rate_cap.is_some_and(|cap| sent >= AT_INTERFACE * cap.as_f64());
        let limit = if capped { Limit::Budget } else { Limit::Sender };
        let bound = self.available(through, through, through)?.at_least(limit);
        Some(if capped { bound } else { bound.caveat(Caveat::SenderLimited) })
    }

    /// Whether a rate is that of the sender's own interface, which is a link of the path.
    pub(crate) fn at_interface(&self, sent: f64) -> bool {
        let interface = self.facts.as_ref().and_then(|facts| facts.sender.interface_rate);
        interface.is_some_and(|rate| sent >= AT_INTERFACE * rate.as_f64())
    }

    /// The receiving host takes packets no faster than this: what is available is that at least.
    pub(crate) fn receiver_limit(&self, through: f64) -> Option<Estimate> {
        let bound = self.available(through, through, through)?.at_least(Limit::Receiver);
        Some(bound.caveat(Caveat::ReceiverLimited))
    }

    /// How a method ends that was stopped from outside with something in hand.
    pub(crate) fn stopped(mut estimate: Estimate, stopped: Option<&Reason>) -> Estimate {
        if stopped.is_some() {
            estimate = estimate.caveat(Caveat::StoppedEarly);
            estimate.confidence = Confidence::Low;
        }
        estimate
    }
}

/// By how much bursts stretch a train on the mean at the turning point itself, as a share: the
/// queue there is a walk that cannot go below empty, whose mean after a train is sqrt(2/pi) = 0.8
/// of the walk's own deviation where it began empty, and less where it did not; half of it agrees
/// with the simulator. The deviation is that of ten cars' rates over sqrt(10) (ours).
pub(crate) fn rounding<'a>(readings: impl IntoIterator<Item = &'a Reading>) -> f64 {
    let squares: Vec<f64> = readings
        .into_iter()
        .filter_map(|reading| reading.sub_train_variation)
        .map(|variation| variation * variation)
        .collect();
    let mean = narrows_stat::mean(&squares).unwrap_or(0.0).max(0.0);
    (ROUNDING * (mean / SUB_TRAINS).sqrt()).min(MOST_ROUNDING)
}

/// Mean stretch at the turning point, in deviations of a train's mean gap (see above).
const ROUNDING: f64 = 0.5;
/// Cars of a reading.
const SUB_TRAINS: f64 = 10.0;
/// Trains that scatter by more say little of anything (ours).
const MOST_ROUNDING: f64 = 0.2;
/// Half the width of the 95 % interval of a mean of these, by Student's t; `None` for fewer than
/// two.
pub(crate) fn half_width(values: &[f64]) -> Option<f64> {
    let variance = narrows_stat::variance_sample(values)?;
    let dof = values.len() as f64 - 1.0;
    let quantile = narrows_stat::student_t_quantile(0.975, dof).ok()?;
    Some(quantile * (variance / values.len() as f64).sqrt())
}

/// Finite rates only: what evidence may hold.
pub(crate) fn rates<'a>(readings: impl IntoIterator<Item = &'a Reading>, of: fn(&Reading) -> f64) -> Vec<f64> {
    readings.into_iter().map(of).collect()
}

/// From the begin of a train of so many octets to the begin of the next, so that the mean load
/// stays at `load` of `rate` bit/s.
pub(crate) fn spacing(octets: f64, load: f64, rate: f64, cap: Option<BitRate>) -> Duration {
    let allowed = cap.map_or(f64::INFINITY, BitRate::as_f64).min(load * rate.max(1.0));
    Duration::try_from_secs_f64(octets * 8.0 / allowed.max(1.0)).map_or(LONGEST, |time| time.min(LONGEST))
}

/// Nobody waits longer between two trains (ours).
const LONGEST: Duration = Duration::from_secs(2);
