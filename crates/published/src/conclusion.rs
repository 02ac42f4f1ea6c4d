//! How a run ends: its estimate with the caveats, or why there is none.

use narrows_probe::outcome::{Caveat, Details, Diagnostics, Estimate, Outcome, Reason};

/// What the method makes of its samples, and that it was stopped, if it was; the reason for that
/// goes before its own.
pub(crate) fn conclude(judged: Result<Estimate, Reason>, caveats: Vec<Caveat>, stopped: Option<&Reason>) -> Outcome {
    match judged {
        Ok(estimate) => {
            let early = stopped.map(|_| Caveat::StoppedEarly);
            let all = caveats.into_iter().chain(early);
            all.fold(estimate, Estimate::caveat).into()
        }
        Err(own) => Outcome::Inconclusive {
            reason: stopped.cloned().unwrap_or(own),
            caveats,
            details: Details::default(),
            diagnostics: Diagnostics::default(),
        },
    }
}
