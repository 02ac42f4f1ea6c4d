//! From trains to a signature.

use super::cause::{Cause, Signature};
use super::{rungs, trains};
use crate::facts::PathFacts;
use crate::outcome::Confidence;
use crate::probe::TrainReport;

/// What these trains say of the path that they crossed. Pure; any trains towards a receiver, in any order, of any method: the more
/// kinds there are (lengths from 2 to some hundreds, two sizes, sizes mixed in one train, single packets far apart, a train paced below
/// the path's rate) the more causes can be told apart. What cannot is [`Cause::Batches`] or [`Cause::Unclear`], never a guess.
pub fn classify(facts: &PathFacts, reports: &[TrainReport]) -> Signature {
    let _ = facts;
    let seen = trains::seen(reports);
    let came: usize = seen.iter().map(|train| train.came.len()).sum();
    let reordered: f64 = seen.iter().map(|train| f64::from(train.reordered)).sum();
    Signature {
        cause: Cause::Unclear,
        confidence: Confidence::Low,
        rates: rungs::rungs(&seen),
        rate: None,
        inside: None,
        batch_packets: None,
        reordered: reordered / (came as f64).max(1.0),
    }
}
