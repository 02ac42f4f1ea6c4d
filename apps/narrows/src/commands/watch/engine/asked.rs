//! Jobs that people ask for.

use narrows_units::format_duration;
use narrows_watch::Moment;
use narrows_watch::schedule::{JobKind, NotQueued, TargetId};
use narrows_web::{Accepted, Refusal};

use super::Engine;

impl Engine {
    /// Queues a job, or says why not.
    pub(super) fn asked(&mut self, id: TargetId, kind: JobKind, now: Moment) -> Result<Accepted, Refusal> {
        let Some(subject) = self.subjects.get(&id) else {
            return Err(Refusal::Unfit("this target is followed no more".to_owned()));
        };
        let (name, what) = (&subject.target.name, kind.name());
        match self.planner.request(id, kind, now) {
            Ok(octets) => {
                self.ask_at = now.boot;
                let text =
                    format!("{name}: {what} is queued; it may take {octets} and begins when link and share allow it");
                Ok(Accepted { text })
            }
            Err(why) => Err(refusal(&format!("{name}: {what}"), why, now)),
        }
    }
}

fn refusal(what: &str, why: NotQueued, now: Moment) -> Refusal {
    match why {
        NotQueued::Server(until) => {
            let wait = format_duration(until.since(now.boot));
            Refusal::Unavailable(format!("{what}: the server does not measure with us now; try again in {wait}"))
        }
        NotQueued::Unknown => Refusal::Unavailable(format!("{what}: {why}")),
        NotQueued::Quiet | NotQueued::Day { .. } | NotQueued::Minute => Refusal::Budget(format!("{what}: {why}")),
    }
}
