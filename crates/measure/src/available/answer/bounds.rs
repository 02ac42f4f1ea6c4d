//! What trains bound, and what a token bucket leaves of that.

use narrows_probe::{BoundKind, Caveat, Confidence, Estimate, Limit, Ranged};
use narrows_units::{BitRate, Metric};

use super::super::full_queue::{Leftover, Queue};
use super::super::pooled::PooledEstimate;
use super::{AT_MAX, FLOOR, RunAccount, TrainSlope};

/// Standard errors by which delays may have grown unseen: the best of many trains is taken, so one
/// of a hundred may have grown more (ours).
const HIDDEN: f64 = 2.33;
/// Of a bucket's rate: what others may have taken of it while trains far above that rate passed,
/// unseen (ours: a tenth of the rate makes trains of seven times that rate a hundredth slower).
const EVEN: f64 = 0.1;
/// A bound is contradicted by trains sent at this share of it and above, by growth of delays beyond
/// this, and by so many (ours: stamps; hosts that stand still make single ones grow).
const ASKED: f64 = 0.5;
const SEEN: f64 = 0.02;
const REFUTING: usize = 3;
/// Of the path's rate: a bound below it is no answer (ours).
const LITTLE: f64 = 0.1;

impl RunAccount {
    /// At least as much as `bound` says, because no more could be sent.
    pub(super) fn at_sender_limit(&self, bound: Estimate) -> Estimate {
        let bound = self.less_unseen(bound);
        let capped = self.max_rate.zip(self.rate_cap).is_some_and(|(max, cap)| max >= AT_MAX * cap.as_f64());
        if capped { bound.at_least(Limit::Budget) } else { bound.at_least(Limit::Sender).caveat(Caveat::SenderLimited) }
    }

    /// Less what a bucket that is there may have let through of the longest of trains that were
    /// sent so fast, should it be deeper than what each of them sent in front.
    fn less_unseen(&self, mut bound: Estimate) -> Estimate {
        if !self.bucket_known {
            return bound;
        }
        let rate = bound.rate().map_or(0.0, |rate| rate.value.as_f64());
        let fast = self.trains.iter().filter(|train| train.rate_sent >= AT_MAX * rate);
        let longest = fast.map(|train| train.send_time).fold(0.0, f64::max);
        let unseen = 8.0 * self.buckets.unseen_octets() as f64 / longest;
        let most = BitRate::from_bps_f64((rate - unseen).max(0.0)).filter(|_| longest > 0.0);
        if let Some(most) = most {
            bound.adjust(|rate: &mut Ranged<BitRate>| (rate.value, rate.low, rate.high) = (most, most, most));
        }
        bound
    }

    /// The sender's highest rate came through unharmed.
    pub(super) fn host_limited(&self) -> Option<Estimate> {
        let max = self.max_rate?;
        let forward = self.trains.iter().filter(|train| train.rate_sent >= AT_MAX * max);
        let through: Vec<f64> = forward.map(|train| train.rate_out.min(self.carried(train))).collect();
        let value = narrows_stat::median(&through)?;
        let rate = BitRate::from_bps_f64(value)?;
        if let Some(interface) = self.interface_rate.filter(|interface| max >= 0.9 * interface.as_f64()) {
            // No more can be available than the path's first link carries.
            let low = rate.scaled(0.98)?;
            return Some(Estimate::ip_rate(Metric::AvailableIpCapacity, rate, low, interface));
        }
        // Growth of a hundredth is not seen: so much less may be available.
        let rate = rate.scaled(0.98)?;
        Some(self.at_sender_limit(Estimate::ip_rate(Metric::AvailableIpCapacity, rate, rate, rate)))
    }

    /// What looks like the turning point is the rate at which the receiving host takes packets.
    pub(super) fn receiver_limited(&self, pooled: &PooledEstimate) -> Option<Estimate> {
        let half = pooled.half_width(FLOOR * self.scale()?);
        let carried = self.most_carried()?;
        let value = BitRate::from_bps_f64((pooled.available - half).min(carried).max(0.0))?;
        let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value);
        Some(bound.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited))
    }

    /// No train near the turning point overloaded the path, yet none at the sender's limit either:
    /// what came through is available, less what growth of the delays its train would not have
    /// shown. A train whose delays say nothing bounds nothing.
    pub(super) fn undecided(&self) -> Option<Estimate> {
        let scale = self.scale()?;
        let unseen_bits = 8.0 * self.buckets.unseen_octets() as f64;
        let quiet = self.trains.iter().filter(|train| train.is_quiet() && train.rate_in.is_finite());
        let through = quiet.map(|train| {
            let hidden = (train.growth + HIDDEN * train.growth_error).max(0.0);
            self.carried(train).min(train.rate_out).min(self.sustained(train))
                - scale * hidden
                - unseen_bits / train.send_time
        });
        let mut through: Vec<f64> = through.collect();
        through.sort_by(|a, b| b.total_cmp(a));
        // Of two trains: a first one alone may have been a full bucket's.
        let most = 0.98 * through.into_iter().filter(|through| !self.is_contradicted(*through)).nth(1)?;
        let value = BitRate::from_bps_f64(most).filter(|_| most > LITTLE * scale)?;
        let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value);
        Some(bound.at_least(Limit::Budget).caveat(Caveat::NotConverged))
    }

    /// Whether trains that were sent about as fast or faster contradict, in the median, that
    /// `bound` is available: no FIFO link that carried them as fast as it did lets their delays
    /// grow so. What passed was let through by a token bucket, or stamped by a host in one moment.
    pub(super) fn is_contradicted(&self, bound: f64) -> bool {
        let asked: Vec<&TrainSlope> = self.trains.iter().filter(|train| train.rate >= ASKED * bound).collect();
        let beyond = |train: &&TrainSlope| train.growth - (train.rate - bound).max(0.0) / self.carried(train);
        let beyond = narrows_stat::median(&asked.iter().map(beyond).collect::<Vec<_>>());
        let error = narrows_stat::median(&asked.iter().map(|train| train.growth_error).collect::<Vec<_>>());
        let count = asked.len();
        count >= REFUTING
            && beyond.zip(error).is_some_and(|(beyond, error)| beyond > SEEN + HIDDEN * error / (count as f64).sqrt())
    }

    /// What trains of two rates show of the queue, if they were sent.
    pub(in crate::available) fn queue(&self) -> Option<Queue> {
        let [slow, fast] = &self.full_queue;
        let packet = 8.0 * f64::from(self.packet_octets);
        Queue::of(slow, fast, (self.carries()?, packet), self.least_ns? as f64)
    }

    /// What a token bucket let through is no bound of what lasts.
    pub(super) fn is_of_full_bucket(&self, estimate: &Estimate) -> bool {
        self.buckets.is_shaped() && estimate.rate().is_some_and(|rate| rate.verdict != BoundKind::Estimated)
    }

    /// What a token bucket leaves of trains that alone emptied it: its rate. Nothing else can be
    /// said of trains that it lets through at first and holds then.
    pub(super) fn of_bucket(&self) -> Option<Estimate> {
        // Where packets are lost nobody knows whose they were.
        let bucket = self.buckets.alone().filter(|_| self.lost == 0)?;
        let (low, high) = bucket.sustained_range;
        let rate = Estimate::ip_rate(
            Metric::AvailableIpCapacity,
            bucket.sustained,
            low.scaled(1.0 - EVEN)?.min(bucket.sustained),
            high.scaled(1.0 + FLOOR)?.max(bucket.sustained),
        );
        Some(rate.with("bucket_sustained_bps", bucket.sustained.as_f64()))
    }
}

/// What a queue leaves that others keep full.
pub(super) fn of_full_queue(left: Leftover) -> Option<Estimate> {
    let (value, high) = (BitRate::from_bps_f64(left.available)?, BitRate::from_bps_f64(left.high)?);
    let mut estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, value, BitRate::ZERO, high);
    estimate.confidence = Confidence::Low;
    Some(estimate.with("full_queue_load", left.load))
}
