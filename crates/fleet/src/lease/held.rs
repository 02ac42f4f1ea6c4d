//! One key of a run: what is known of it, and the request that is open.

use std::time::Duration;

use narrows_units::Stamp;

use super::{ANSWER_WITHIN, RENEW_EVERY, RequestId};
use crate::clock::Boot;
use crate::keys::Key;

#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) key: Key,
    /// The revision that may be overwritten, read in this try.
    pub(super) free: Option<u64>,
    pub(super) lease: Option<Lease>,
    pub(super) open: Option<Open>,
}

/// The value at `revision` names our run. The write that made it was sent at `sent` or later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) revision: u64,
    pub(super) sent: Stamp<Boot>,
}

/// A request without an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) request: RequestId,
    pub(super) sent: Stamp<Boot>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write(Unsure),
    /// Reads what became of a write without an answer.
    ReadBack(Unsure),
}

/// Writes of one expected revision: any of them may still be carried out, so that a new revision
/// proves no more than that the first was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsure {
    pub(super) expected: u64,
    pub(super) first_sent: Stamp<Boot>,
}

impl Held {
    pub(super) const fn new(key: Key) -> Self {
        Self { key, free: None, lease: None, open: None }
    }

    /// The request that this key needs now, if none is open or the open one is overdue.
    pub(super) fn needs(&self, now: Stamp<Boot>, write_turn: bool) -> Option<Kind> {
        let fresh = |expected| Kind::Write(Unsure { expected, first_sent: now });
        match (self.open, self.lease, self.free) {
            (Some(open), _, _) if now.since(open.sent) < ANSWER_WITHIN => None,
            (Some(open), _, _) => Some(match open.kind {
                Kind::Read => Kind::Read,
                Kind::Write(unsure) | Kind::ReadBack(unsure) => Kind::ReadBack(unsure),
            }),
            (None, Some(lease), _) => (now.since(lease.sent) >= RENEW_EVERY).then(|| fresh(lease.revision)),
            (None, None, Some(revision)) => write_turn.then(|| fresh(revision)),
            (None, None, None) => Some(Kind::Read),
        }
    }

    /// When [`Self::needs`] changes by time alone.
    pub(super) fn due(&self) -> Option<Stamp<Boot>> {
        match (self.open, self.lease) {
            (Some(open), _) => Some(open.sent + ANSWER_WITHIN),
            (None, lease) => lease.map(|lease| lease.sent + RENEW_EVERY),
        }
    }

    /// When the right to send on this key ends.
    pub(super) fn ends(&self, valid_for: Duration) -> Option<Stamp<Boot>> {
        self.lease.map(|lease| lease.sent + valid_for)
    }
}
