//! What no train was sent fast enough for is no answer.

use narrows_probe::{Caveat, Confidence, Estimate, Limit, Ranged};
use narrows_units::BitRate;

use super::{RunAccount, TrainSlope};

impl RunAccount {
    /// The answer, unless trains of the usual length did not get there. If they were not sent that
    /// fast, they bound what is free by how they were carried; a short one says nothing that a
    /// bucket does not explain. If they were, and came far slower in their later part, no more is
    /// free than that: a link that a train overloads lets it through at what is free, or more.
    pub(super) fn as_sent(&self, estimate: Estimate) -> Option<Estimate> {
        let value = estimate.rate().map_or(0.0, |rate| rate.value.as_f64());
        let lengths: Vec<f64> = self.trains.iter().map(|train| train.send_time).collect();
        let usual = narrows_stat::median(&lengths).unwrap_or(0.0) / 2.0;
        let long: Vec<&TrainSlope> = self.trains.iter().filter(|train| train.send_time >= usual).collect();
        let sustained = |trains: &[&TrainSlope]| {
            trains.iter().map(|train| self.sustained(train).min(train.carried.ended_bps())).collect::<Vec<f64>>()
        };
        if long.len() < TRAINS || !self.curves.is_empty() {
            return Some(estimate);
        }
        let mut fast = long.clone();
        fast.retain(|train| train.rate_reached() >= REACHED * value);
        if fast.len() < LEAST_FAST {
            let least = BitRate::from_bps_f64(BELOW * narrows_stat::median(&sustained(&long))?)?;
            let bound = Estimate::ip_rate(estimate.metric, least, least, least);
            return Some(bound.at_least(Limit::Sender).caveat(Caveat::SenderLimited));
        }
        // A host that stood still slows the later part of a train as well.
        fast.retain(|train| !train.slept && train.pauses == 0);
        let came = sustained(&fast);
        let most = narrows_stat::median(&came).unwrap_or(f64::INFINITY);
        let alike = narrows_stat::mad(&came).is_some_and(|apart| apart < ALIKE * most);
        let held = alike && came.len() >= LEAST_STEADY && most < HELD * value;
        Some(if held { no_more_than(estimate, most) } else { estimate })
    }
}

/// Others may take all of what trains were held to.
fn no_more_than(mut estimate: Estimate, most: f64) -> Estimate {
    let most = BitRate::from_bps_f64(most).unwrap_or(BitRate::ZERO);
    estimate.also.clear();
    estimate.adjust(|rate: &mut Ranged<BitRate>| *rate = Ranged::new(most, BitRate::ZERO, most));
    estimate.confidence = Confidence::Low;
    estimate.limited_by = Limit::Path;
    estimate.caveat(Caveat::NotConverged)
}

// Ours, all of them.
/// Of the answer: hosts that stand still make trains this much slower.
const REACHED: f64 = 0.8;
/// Of the answer: bursts of others hold the median of trains to less than what is free, but not to
/// this little.
const HELD: f64 = 0.6;
/// By how much trains differ that a bucket holds: those that bursts meet differ by more.
const ALIKE: f64 = 0.06;
/// Trains of the usual length that tell, and those that must have been as fast as the answer: one
/// alone may have been a full bucket's, or stamped by a host that slept.
const TRAINS: usize = 4;
const LEAST_FAST: usize = 2;
const LEAST_STEADY: usize = 6;
/// What others' traffic at random moves the median by.
const BELOW: f64 = 0.96;
