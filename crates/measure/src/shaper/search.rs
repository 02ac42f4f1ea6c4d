//! Trains of doubling length: which comes next, and after which pause.

use std::time::Duration;

use narrows_units::{BitRate, rounded, to_usize};

use super::params::{Params, seconds};
use narrows_probe::facts::PathFacts;
use narrows_probe::probes::{Arrival, Train, TrainId, TrainReport};
use narrows_train::bucket;
use narrows_train::bucket::{Bend, BucketEvidence, BucketSearchParams, Course, TurningPoint};
use narrows_train::train_method::arrived_ns;

/// The search at work.
#[derive(Debug, Clone)]
pub(super) struct Search {
    params: BucketSearchParams,
    confirm: usize,
    ip_octets: u16,
    /// Packets of the longest train.
    most: usize,
    /// Longest train, in time.
    max_train: Duration,
    /// Packets of the next train, or of the one that is out.
    packets: usize,
    /// Trains of this length so far, and how many of them were straight.
    here: u32,
    straight_here: u32,
    pub(super) courses: Vec<Course>,
    /// Highest rate of a packet behind another, bit/s, or that at which they left if it is lower.
    pub(super) closest_bps: f64,
    /// What the receiver's clock ticks by.
    tick: Duration,
}

/// The closest of neighbours: what others' traffic does to most of a train it does not do to all.
fn closest_bps(report: &TrainReport) -> f64 {
    let rate = |two: &[Arrival]| {
        let came = arrived_ns(&two[1])?.saturating_sub(arrived_ns(&two[0])?);
        let left = two[1].departed.nanos().saturating_sub(two[0].departed.nanos());
        let gap = came.max(left);
        (gap > 0).then(|| 8e9 * f64::from(two[1].ip_octets) / gap as f64)
    };
    report.arrivals.windows(2).filter_map(rate).fold(0.0, f64::max)
}

/// Packets of the first train.
const FIRST: usize = 16;
/// Trains sent back to back before the rate is known well enough to pace.
const UNPACED: usize = 2;
/// Trains of one length without agreement before the next length ("ours").
const TRIES: u32 = 6;
/// Pause after a train, in times of that train ("ours": leaves three quarters of the path to
/// others).
const PAUSE: f64 = 3.0;
/// Pause after a bent train, in times of what fills the bucket ("ours": depth and rate may both be
/// off by a tenth).
const REFILL: f64 = 1.25;

impl Search {
    pub(super) fn new(params: &Params, ip_octets: u16, facts: &PathFacts) -> Self {
        let peak = facts.rate_cap.map(|rate| rate.octets_in(Duration::from_millis(100)));
        let octets = params.max_octets.min(peak.unwrap_or(u64::MAX));
        let most = to_usize(octets / u64::from(ip_octets.max(1))).max(1);
        Self {
            params: BucketSearchParams { min_ratio: params.min_ratio, agreement: params.agreement, min_trains: 2 },
            confirm: params.confirm,
            ip_octets,
            most,
            max_train: params.max_train,
            packets: FIRST.min(most),
            here: 0,
            straight_here: 0,
            courses: Vec::new(),
            closest_bps: 0.0,
            tick: facts.receiver.clock_resolution,
        }
    }

    /// The train that is due.
    pub(super) fn train(&self, id: TrainId, facts: &PathFacts) -> Train {
        match self.pace(facts) {
            Some(rate) => Train::at_rate(id, self.packets, self.ip_octets, rate),
            None => Train::uniform(id, self.packets, self.ip_octets, Duration::ZERO),
        }
    }

    /// The rate of the links, where the sender is clearly faster and can keep it: then a train
    /// fills no queue but the bucket's.
    fn pace(&self, facts: &PathFacts) -> Option<BitRate> {
        let rate = self.peak_bps();
        let capped = facts.rate_cap.is_some_and(|cap| rate > cap.as_f64());
        let paced = facts.max_paced_rate(self.ip_octets);
        let fast_enough = paced.is_none_or(|most| rate < 0.9 * most.as_f64());
        (self.outpaces() && (fast_enough || capped))
            .then(|| BitRate::from_bps_f64(rate))
            .flatten()
            .map(|rate| facts.rate_cap.map_or(rate, |cap| rate.min(cap)))
    }

    /// The highest rate of the trains that were sent back to back, bit/s.
    pub(super) fn peak_bps(&self) -> f64 {
        let unpaced = self.courses.iter().take(UNPACED);
        unpaced.map(|course| course.fastest_bps).fold(0.0, f64::max)
    }

    /// Trains that must agree on a bucket: more where their pace behind the bend is uneven, for
    /// then chance may bend some alike.
    fn wanted(&self, turning_point: &TurningPoint) -> usize {
        self.confirm + usize::from(turning_point.uneven)
    }

    /// The bucket, if enough trains agree on it: two, in a run that had no time for more, where the
    /// pace is even.
    pub(super) fn turning_point(&self) -> Option<TurningPoint> {
        let turning_point = self.bucket_evidence().turning_point?;
        (!turning_point.uneven || turning_point.trains >= self.wanted(&turning_point)).then_some(turning_point)
    }

    /// Whether trains sent back to back left clearly faster than the path took them: then it was
    /// the path that set their peak.
    pub(super) fn outpaces(&self) -> bool {
        let unpaced = self.courses.iter().take(UNPACED);
        let left = unpaced.map(|course| course.departure_bps).fold(f64::INFINITY, f64::min);
        self.courses.len() >= UNPACED && left > 1.3 * self.peak_bps()
    }

    pub(super) fn bucket_evidence(&self) -> BucketEvidence {
        bucket::of_courses(&self.courses, &self.params)
    }

    /// Takes the answer to the train. Returns the pause before the next, or `None` if there is
    /// none.
    pub(super) fn note(&mut self, report: &TrainReport, rtt: Duration) -> Option<Duration> {
        self.closest_bps = self.closest_bps.max(closest_bps(report));
        let course = bucket::course(report, self.params.min_ratio, self.tick);
        self.here += 1;
        self.straight_here += u32::from(course.is_some_and(|course| course.bend.is_none()));
        self.courses.extend(course);
        let bucket_evidence = self.bucket_evidence();
        if bucket_evidence
            .turning_point
            .is_some_and(|turning_point| turning_point.trains >= self.wanted(&turning_point))
        {
            return None;
        }
        let bend = course.and_then(|course| course.bend);
        let unsettled = bucket_evidence.bent > 0 && self.straight_here < 2;
        if unsettled && self.here < TRIES {
            if let Some(bend) = bend {
                self.lengthen(&bend);
            }
            return Some(self.refill().unwrap_or_default().max(Self::pause(course)) + rtt);
        }
        self.longer().then(|| Self::pause(course) + rtt)
    }

    /// Doubles the length, or takes the longest; false if that was sent.
    fn longer(&mut self) -> bool {
        let rate = self.peak_bps();
        let in_time = rate / 8.0 * self.max_train.as_secs_f64() / f64::from(self.ip_octets);
        let most = self.most.min(to_usize(rounded(in_time)).max(2 * FIRST));
        if self.packets >= most {
            return false;
        }
        self.packets = (2 * self.packets).min(most);
        (self.here, self.straight_here) = (0, 0);
        true
    }

    /// As many packets behind the bend as before it, for two lines of like weight.
    fn lengthen(&mut self, bend: &Bend) {
        let wanted = bend.before + bend.before.max(32);
        self.packets = self.packets.max(wanted.min(self.most));
    }

    fn pause(course: Option<Course>) -> Duration {
        let took = course.map_or(0.0, |course| course.span_s);
        seconds(PAUSE * took, 30.0).max(Duration::from_millis(10))
    }

    /// Time that fills the bucket of the bends so far.
    fn refill(&self) -> Option<Duration> {
        let bends: Vec<Bend> = self.courses.iter().filter_map(|course| course.bend).collect();
        let depth = narrows_stat::median(&bends.iter().map(|bend| bend.depth_octets).collect::<Vec<_>>())?;
        let rate = narrows_stat::median(&bends.iter().map(|bend| bend.sustained_bps).collect::<Vec<_>>())?;
        let last = bends.last()?;
        // What still waits at the bend leaves first.
        let time = REFILL * 8.0 * (depth + last.queued_octets) / rate;
        Some(seconds(time, 60.0))
    }

    /// Takes the answer to a train of another phase.
    pub(super) fn keep(&mut self, report: &TrainReport) {
        self.courses.extend(bucket::course(report, self.params.min_ratio, self.tick));
    }

    /// What the train that is out really was.
    pub(super) fn at(&mut self, packets: usize, ip_octets: u16) {
        if packets != self.packets {
            (self.here, self.straight_here) = (0, 0);
        }
        self.packets = packets;
        self.ip_octets = ip_octets;
    }

    pub(super) fn octets(&self) -> u64 {
        self.packets as u64 * u64::from(self.ip_octets)
    }

    pub(super) fn shrink(&mut self, ip_octets: u16) {
        self.ip_octets = ip_octets;
    }
}
