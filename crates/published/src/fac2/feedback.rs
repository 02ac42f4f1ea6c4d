//! The feedback loop alone (`preset=feedback`): converge, confirm, report the bracket. No slopes.

use super::fit;
use narrows_train::reading::Reading;

/// A train is congested if its rate falls by more than this on the way.
const EPSILON: f64 = 0.01;
/// A candidate is confirmed by a train this much faster that shows it.
const STEP: f64 = 0.1;
/// Utilisation that is assumed until two congested trains tell it.
const UNKNOWN_UTILISATION: f64 = 0.5;
/// Rounds of the loop; trains that confirm are not counted.
const ROUNDS: u32 = 10;
/// Confirmations that end it before.
const CONFIRMATIONS: usize = 3;

/// What comes next. Rates in bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    Rate(f64),
    /// The sender's highest rate came through unharmed.
    AtMax,
    Done,
}

/// The loop's memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Feedback {
    rounds: u32,
    /// Rate out of the train that a faster one is to confirm.
    candidate: Option<f64>,
    confirmed: Vec<f64>,
    /// Last rates of trains without and with congestion.
    quiet: Option<f64>,
    congested: Option<f64>,
}

/// What the loop found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FeedbackResult {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) confirmed: bool,
}

impl Feedback {
    /// The next train after the newest of `readings`. `end_error` is what a stamp at either end of
    /// a train may be off by, seconds.
    pub(super) fn next(&mut self, readings: &[Reading], at_max: bool, end_error: f64) -> Next {
        let Some(last) = readings.last() else { return Next::Done };
        let excess = last.rate_in / last.rate_out - 1.0;
        let epsilon = EPSILON.max(2.0 * end_error / last.send_time.max(1e-9));
        let congested = excess > epsilon;
        *(if congested { &mut self.congested } else { &mut self.quiet }) = Some(last.rate_in);
        if let Some(candidate) = self.candidate.take() {
            return self.confirm(readings, candidate, excess);
        }
        self.rounds += 1;
        if congested {
            if self.rounds >= ROUNDS {
                return Next::Done;
            }
            return Next::Rate(fit::next_rate(readings).unwrap_or(last.rate_out));
        }
        if at_max {
            return Next::AtMax;
        }
        self.candidate = Some(last.rate_out);
        Next::Rate(last.rate_in * (1.0 + STEP))
    }

    /// A faster train shows the candidate to be the turning point, or is the next candidate: noise
    /// makes the plain map stick below it.
    fn confirm(&mut self, readings: &[Reading], candidate: f64, excess: f64) -> Next {
        let Some(last) = readings.last() else { return Next::Done };
        let utilisation = utilisation(readings).unwrap_or(UNKNOWN_UTILISATION);
        self.rounds += 1;
        if excess >= 0.5 * STEP * (1.0 - utilisation) {
            self.confirmed.push(candidate);
            if self.confirmed.len() >= CONFIRMATIONS || self.rounds >= 2 * ROUNDS {
                return Next::Done;
            }
            return Next::Rate(fit::next_rate(readings).unwrap_or(last.rate_out));
        }
        if self.rounds >= 2 * ROUNDS {
            return Next::Done;
        }
        self.candidate = Some(last.rate_out);
        Next::Rate(last.rate_in * (1.0 + STEP))
    }

    /// The median of what was confirmed, between the last rates on either side; `None` if the loop
    /// never came to both sides.
    pub(super) fn found(&self) -> Option<FeedbackResult> {
        let (quiet, congested) = (self.quiet?, self.congested?);
        let confirmed = narrows_stat::median(&self.confirmed);
        let value = confirmed.unwrap_or_else(|| f64::midpoint(quiet, congested));
        (value.is_finite() && congested.is_finite()).then(|| FeedbackResult {
            value,
            low: quiet.min(congested).min(value),
            high: quiet.max(congested).max(value),
            confirmed: confirmed.is_some(),
        })
    }
}

/// `X/C` from the two newest trains, by the affine law.
fn utilisation(readings: &[Reading]) -> Option<f64> {
    let [.., before, last] = readings else { return None };
    let inverse = |reading: &Reading| (1.0 / reading.rate_in, 1.0 / reading.rate_out);
    let ((x0, y0), (x1, y1)) = (inverse(before), inverse(last));
    Some((y1 - y0) / (x1 - x0)).filter(|utilisation| (0.0..1.0).contains(utilisation))
}
