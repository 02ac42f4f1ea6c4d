//! From a train's answers to the gaps that tell of the narrow link.

use narrows_probe::probes::TrainReport;
use narrows_train::train_method::returned_ns;

/// The time between two neighbouring answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gap {
    /// Between the answers, ns.
    pub(super) ns: f64,
    /// That the two requests had between them when they left, ns.
    pub(super) sent_ns: f64,
}

impl Gap {
    /// The requests left no closer than the answers came: the gap is the sender's.
    pub(super) fn is_open(&self) -> bool {
        self.sent_ns > OPEN * self.ns
    }
}

/// Gaps of a train that count: both answers came, in order, later than `wake_ns` after the train's
/// first answer or in its second half. The first answer is only a trigger: a host at rest is late
/// with it, and what waits behind it follows too closely.
pub(super) fn gaps(report: &TrainReport, wake_ns: f64) -> Vec<Gap> {
    let rows = &report.arrivals;
    let back: Vec<Option<i64>> = rows.iter().map(returned_ns).collect();
    let Some(first) = back.iter().flatten().min().copied() else {
        return Vec::new();
    };
    let awake = |at: usize, back: i64| at > 0 && (back.saturating_sub(first) as f64 >= wake_ns || 2 * at >= rows.len());
    let mut gaps = Vec::new();
    for at in 1..rows.len() {
        let (Some(before), Some(after)) = (back[at - 1], back[at]) else {
            continue;
        };
        if awake(at - 1, before) && after > before {
            let sent = rows[at].departed.nanos().saturating_sub(rows[at - 1].departed.nanos());
            gaps.push(Gap { ns: after.saturating_sub(before) as f64, sent_ns: sent.max(0) as f64 });
        }
    }
    gaps
}

/// Answers that overtook an earlier one.
pub(super) fn disordered(report: &TrainReport) -> bool {
    let back: Vec<i64> = report.arrivals.iter().filter_map(returned_ns).collect();
    back.windows(2).any(|two| two[1] < two[0])
}

/// `pathrate` practice: a host within 5 % of the answer may be the answer.
const OPEN: f64 = 0.95;
