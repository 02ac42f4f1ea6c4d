//! Token buckets in the trains of methods that were sent for something else: what is free behind a bucket is its rate, which a train
//! that the bucket holds does not see.

use crate::Estimate;
use crate::bucket::{Course, LookParams, course, of_courses};
use crate::outcome::{Caveat, Confidence};
use crate::probe::TrainReport;

/// Trains that are looked at; later ones add little, and a run may have thousands ("ours").
const MOST_TRAINS: usize = 256;

/// The trains of a run so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct BucketWatch {
    courses: Vec<Course>,
}

impl BucketWatch {
    pub(crate) fn take(&mut self, report: &TrainReport) {
        if self.courses.len() < MOST_TRAINS {
            self.courses.extend(course(report, LookParams::default().min_ratio));
        }
    }

    /// The estimate with what the trains say of buckets: [`Caveat::Shaped`] and low confidence where they agree on one, else how deep
    /// one would have gone unseen.
    pub(crate) fn tell(&self, mut estimate: Estimate) -> Estimate {
        let look = of_courses(&self.courses, &LookParams::default());
        if look.knee.is_some() {
            estimate.confidence = Confidence::Low;
            return estimate.caveat(Caveat::Shaped);
        }
        estimate.caveat(Caveat::BucketNotExcluded {
            deeper_than_octets: look.excluded_octets,
        })
    }
}
