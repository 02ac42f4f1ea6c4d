//! The last test of an answer: bulks that leave a little slower than it must come as they left.
//!
//! Packets of others that come at a steady rate take the same share of every bulk, whatever its
//! length and its packets' size: behind a narrow link of rate `C`, a link of rate `c` of which they
//! take `x` leaves `C c / (C + x)`, time after time, and no queue shows that others do without. But
//! of a bulk at that very rate they take their share again, while a link's own rate is what it
//! carries. Bulks on a loaded narrow link are spread by this test, too, however right the answer
//! is, unless one meets an idle moment: a bound is left.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::run::Run;
use narrows_probe::contract::Step;
use narrows_probe::outcome::{Caveat, Confidence, Limit, Outcome};
use narrows_probe::probes::TrainReport;
use narrows_train::mindelay;
use narrows_train::mindelay::{Bulk, Hunt, HuntResult, Reads};

/// An answer under test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paced {
    /// IP octets of the packets that it was found with.
    octets: u16,
    found: HuntResult,
    /// Bulks sent.
    sent: usize,
    /// Bulks sent at most.
    most: usize,
    /// Bulks that left at the rate wanted, and came whole.
    pub(super) tried: usize,
    /// One of them came as it left.
    pub(super) held: bool,
}

impl Paced {
    fn take(&mut self, report: &TrainReport, reads: Reads, allowance_ns: f64) {
        self.sent += 1;
        let Ok(bulk) = Bulk::read(report, reads) else { return };
        let at_rate = bulk.after as f64 * self.found.each_ns;
        if bulk.sent_ns < at_rate || bulk.sent_ns > SLOWEST * at_rate {
            return;
        }
        self.tried += 1;
        self.held |= bulk.span_ns <= bulk.sent_ns * SPREAD + allowance_ns;
    }
}

impl Run {
    /// The answer, if it needs no test; `None` if the test begins.
    pub(super) fn unless_tested(&mut self, octets: u16, found: HuntResult) -> Option<Outcome> {
        if !self.params.check || found.best.open() {
            return Some(self.answer(octets, &found));
        }
        // What waits rarely needs few bulks; where idle moments are rare, so are those of the test.
        let per_clean = found.samples / found.clean.max(1);
        self.octets = octets;
        self.paced = Some(Paced {
            octets,
            found,
            sent: 0,
            most: (FEWEST + PER_CLEAN * per_clean).min(self.params.bulks.max(FEWEST)),
            tried: 0,
            held: false,
        });
        None
    }

    /// Takes a bulk of the test, if there is one.
    pub(super) fn take_paced(&mut self, report: &TrainReport) -> bool {
        let reads = self.via.reads();
        let grain = self.grain().map_or(0.0, |grain| 2.0 * grain.arrival_ns + grain.departure_ns);
        let period = if self.batched() {
            self.hunt.as_ref().map_or(0.0, Hunt::period_ns).max(self.batching.period_ns())
        } else {
            0.0
        };
        let Some(paced) = &mut self.paced else { return false };
        paced.take(report, reads, grain + 2.0 * period);
        true
    }

    /// The next bulk of the test, or its end; `None` if there is no test.
    pub(super) fn test_pace(&mut self, now: Stamp<Sender>) -> Option<Step> {
        let paced = self.paced?;
        if paced.held {
            return Some(Step::Done(self.answer(paced.octets, &paced.found)));
        }
        if paced.sent >= paced.most {
            return Some(Step::Done(self.not_held(&paced)));
        }
        let gap = mindelay::duration(paced.found.each_ns / PACE).max(Duration::from_nanos(1));
        Some(self.send_spaced(now, paced.found.best.after + 1, gap))
    }

    /// The test cannot be gone on with.
    pub(super) fn untested(&mut self) -> Option<Outcome> {
        self.paced.map(|paced| self.not_held(&paced))
    }

    fn not_held(&mut self, paced: &Paced) -> Outcome {
        match self.answer(paced.octets, &paced.found) {
            Outcome::Estimated(estimate) => {
                let mut estimate = estimate.caveat(Caveat::NotConverged);
                if paced.tried > 0 {
                    // What others spread is no faster than the link.
                    return estimate.at_least(Limit::Path).into();
                }
                // The sender cannot keep that pace.
                estimate.confidence = Confidence::Low;
                estimate.into()
            }
            other @ Outcome::Inconclusive { .. } => other,
        }
    }
}

/// Ours: of the answer. Nearer to it, stamps and links' own jitter would spread bulks; farther from
/// it, others could take their share of what is left.
const PACE: f64 = 0.95;
/// Ours: the test is none for bulks that left at less than half the rate.
const SLOWEST: f64 = 2.0;
/// Ours: a bulk that came as it left. A share that makes the answer 7 % too low spreads one at its
/// pace so far.
const SPREAD: f64 = 1.01;
/// Ours: bulks of a test at most, and so many more for each that a clean one took.
const FEWEST: usize = 10;
const PER_CLEAN: usize = 10;
