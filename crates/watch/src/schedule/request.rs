//! Jobs that people ask for: queued if the budget has room for them, else refused with the reason.

use narrows_units::Octets;

use super::job::{JobKind, TargetId, Why};
use super::planner::Planner;
use super::target::TargetPlan;
use crate::time::{BootTime, Local, Moment};

/// Why a job is not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotQueued {
    /// The target has no plan yet.
    #[error("the target has no address yet")]
    Unknown,
    /// Only pulses and routes run now.
    #[error("these are quiet hours: only pulses and routes run")]
    Quiet,
    /// The server failed or refused; it is asked again then.
    #[error("the server does not measure with us now; it is asked again at its time")]
    Server(BootTime),
    /// The day has no more for evidence and requests.
    #[error("it may take {needed}, and of today's octets for incidents and requests {left} are left")]
    Day {
        /// What the job may take.
        needed: Octets,
        /// What is left.
        left: Octets,
    },
    /// A minute never has so much.
    #[error("the share of the path that a minute may take is too small for it")]
    Minute,
}

impl Planner {
    /// Queues a job, which begins when link and minute allow it. Returns the most that it may send.
    /// One that is queued already stays so.
    pub fn request(&mut self, target: TargetId, kind: JobKind, now: Moment) -> Result<Octets, NotQueued> {
        let local = self.local(now);
        self.plan_mut(target).ok_or(NotQueued::Unknown)?.request(kind, now.boot, local)
    }
}

impl TargetPlan {
    fn request(&mut self, kind: JobKind, now: BootTime, local: Local) -> Result<Octets, NotQueued> {
        if kind.loads() && self.is_quiet(local) {
            return Err(NotQueued::Quiet);
        }
        if let Some(until) = self.backoff.until().filter(|until| kind.needs_server() && now < *until) {
            return Err(NotQueued::Server(until));
        }
        let needed = self.bookable(kind);
        let left = self.left(local.day, Why::Asked);
        if needed.count() == 0 {
            return Err(NotQueued::Minute);
        }
        if needed > left {
            return Err(NotQueued::Day { needed, left });
        }
        if !self.requested.contains(&kind) {
            self.requested.push(kind);
        }
        Ok(needed)
    }
}
