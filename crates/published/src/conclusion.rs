//! How a run ends: its estimate with the caveats, or why there is none.

use narrows_probe::outcome::{Caveat, Confidence, Details, Diagnostics, Estimate, Outcome, Reason, SampleCounts};

/// What a run saw, whether or not it found a number.
#[derive(Debug, Default)]
pub(crate) struct RunSummary {
    pub(crate) caveats: Vec<Caveat>,
    /// The peer's stamps count, not the echoes' return.
    pub(crate) stamped_by_remote: bool,
    pub(crate) samples: SampleCounts,
    pub(crate) diagnostics: Diagnostics,
}

/// What the method makes of its samples, and that it was stopped, if it was; the reason for that
/// goes before its own.
pub(crate) fn conclude(judged: Result<Estimate, Reason>, seen: RunSummary, stopped: Option<&Reason>) -> Outcome {
    let RunSummary { caveats, stamped_by_remote, samples, diagnostics } = seen;
    let outcome = match judged {
        Ok(mut estimate) => {
            let early = stopped.map(|_| Caveat::StoppedEarly);
            estimate.details.stamped_by_remote = stamped_by_remote;
            estimate.diagnostics.extend(diagnostics);
            caveats.into_iter().chain(early).fold(estimate, Estimate::caveat).into()
        }
        Err(own) => Outcome::Inconclusive {
            reason: stopped.cloned().unwrap_or(own),
            caveats,
            details: Details { stamped_by_remote, ..Details::default() },
            diagnostics,
        },
    };
    outcome.counted(samples)
}

/// An estimate of a run that was stopped says so before all else, and is of low confidence.
pub(crate) fn cut_short(judged: Result<Estimate, Reason>, stopped: Option<&Reason>) -> Result<Estimate, Reason> {
    let mut estimate = judged?;
    if stopped.is_some() {
        estimate = estimate.caveat(Caveat::StoppedEarly);
        estimate.confidence = Confidence::Low;
    }
    Ok(estimate)
}

/// The same of a method that reads echoes: confidence is low only where the reverse direction may
/// have set the number.
pub(crate) fn cut_short_echoes(
    judged: Result<Estimate, Reason>,
    seen: &RunSummary,
    stopped: Option<&Reason>,
) -> Result<Estimate, Reason> {
    let mut estimate = judged?;
    if stopped.is_some() {
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    if seen.caveats.contains(&Caveat::AsymmetricLimit) {
        estimate.confidence = Confidence::Low;
    }
    Ok(estimate)
}

impl From<Vec<Caveat>> for RunSummary {
    fn from(caveats: Vec<Caveat>) -> Self {
        Self { caveats, ..Self::default() }
    }
}
