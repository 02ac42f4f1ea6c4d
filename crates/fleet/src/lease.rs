//! Leases: who may load a key now.
//!
//! Each key is a value with a revision on the bus, which writes it only if the writer names the
//! last revision. A [`Lessee`] takes all keys of a run, renews them while the run sends, and gives
//! them back. It gets events with the host's boot time, and answers with actions.
//!
//! # Why two runs never send on one key
//!
//! * A run may send until [`VALID_FOR`] after it *sent* its last write that was accepted, on every
//!   key. The bus wrote it later, so the others saw that revision later still.
//! * Another agent overwrites a holder only if one revision stood for [`TAKEN_OVER_AFTER`] since it
//!   first saw it. If the holder renewed since, the revision is another and the write is refused.
//!   So late, lost, doubled and stale messages cost time, never safety.
//! * No clocks are compared: only their rates matter, which may differ as 1.5 to 1.
//! * A bus that starts again may have lost its last writes, and gives their revisions again to
//!   other writes. Its `server_id` is new then: a lessee forgets every revision, stops its run,
//!   and takes nothing for [`TAKEN_OVER_AFTER`]; by then all leases of before have ended.
//!
//! * A value that no agent proved ([`Verifier`]) names nobody: no peer admits its run. But a forger
//!   may have written it over a lease whose holder has not heard of that yet. So it is overwritten
//!   like any other, after it stood for [`TAKEN_OVER_AFTER`], or when the hub freed it
//!   ([`Inspector`]).
//! * An agent sees few keys, and those of a holder that is gone only once it wants them. The hub
//!   sees all of them, and frees them by the same rule: so they are free [`TAKEN_OVER_AFTER`] after
//!   the last renewal, whoever wants them when.
//!
//! Ours, after Gray and Cheriton, *Leases* (SOSP 1989), and Burrows, *Chubby* (OSDI 2006). Its
//! sequencer is our revision: a peer admits only the run and revision that [`Lessee::shown`] gives
//! for its own `host.<peer>`.
//!
//! # What the caller owes
//!
//! * A request and its answer belong to one connection: requests that were not sent before it broke
//!   are dropped, never sent on the next one. `Connected` comes before any other event of it.
//! * Before each burst of at most 10 ms the sender asks [`Lessee::may_send`].
//! * Events are handled between bursts: the keys that `Stop` and `Finished` give back are free.
//! * After each event, [`Event::Tick`] comes at [`Lessee::due`] at the latest.

mod held;
mod inspector;
mod lessee;
#[cfg(test)]
mod tests;
mod value;

use std::time::Duration;

use narrows_units::Stamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use inspector::{Abandoned, Finding, Inspector};
pub use lessee::Lessee;
pub use value::{Credential, Forgery, Place, Proven, Verifier, certified, sealed};

use crate::clock::Boot;
use crate::keys::{Key, Name};

/// How long after a write was sent its run may send. Ours: three renewals may be lost, and a bus
/// that is gone stops all loading within it.
pub const VALID_FOR: Duration = Duration::from_secs(10);

/// How long one revision must stand before another agent overwrites it. Ours: half as long again as
/// [`VALID_FOR`], so that a clock that runs 19 % slow and one that runs 19 % fast still agree.
pub const TAKEN_OVER_AFTER: Duration = Duration::from_secs(15);

/// How often a lease is renewed.
pub const RENEW_EVERY: Duration = Duration::from_secs(3);

/// How long an answer of the bus may take. Ours: above the round trip of any path between hosts,
/// and short enough that a lost renewal is noticed before the next one.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A burst starts no later than this before the lease ends: 10 ms of sending, and 40 ms in queues.
pub const GUARD: Duration = Duration::from_millis(50);

/// The times that decide whether leases are safe. Only checkers that must see broken times fail use
/// others than the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// See [`VALID_FOR`].
    pub valid_for: Duration,
    /// See [`TAKEN_OVER_AFTER`].
    pub taken_over_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { valid_for: VALID_FOR, taken_over_after: TAKEN_OVER_AFTER }
    }
}

/// Who has a key. Its agent signs it on the bus ([`sealed`]); what nobody has is null there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holder {
    /// The agent that sends.
    pub agent: Name,
    /// Its run.
    pub run: Uuid,
}

/// What the value of a key says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// Nobody has it: it was never written, or is null.
    Free,
    /// This run has it, and its agent signed that.
    Held(Holder),
    /// Something else: no agent of the fleet proved that it wrote this.
    Unproven,
}

impl KeyState {
    /// Who has the key, if that is proven.
    pub const fn holder(&self) -> Option<&Holder> {
        match self {
            Self::Held(holder) => Some(holder),
            Self::Free | Self::Unproven => None,
        }
    }
}

/// A loading run that wants its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// The run. It has this number once: an agent that starts again does not go on with it.
    pub run: Uuid,
    /// All keys it needs.
    pub keys: Vec<Key>,
    /// If it has not started by then, it is skipped.
    pub start_by: Stamp<Boot>,
    /// A bus that began anew gives no lease for [`TAKEN_OVER_AFTER`]. The run may start this long
    /// after that, also if it is later than `start_by`. Zero: it may not.
    pub after_new_bus: Duration,
}

/// A request to the bus, by a number that its lessee gives once.
pub type RequestId = u64;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A connection to the bus stands; `server` is its `server_id`, which is new after each start.
    Connected {
        /// The identity of the server.
        server: String,
    },
    /// The connection broke.
    Disconnected,
    /// The answer to a read; a key that was never written has revision 0 and is free.
    Read {
        /// The request.
        request: RequestId,
        /// The last revision.
        revision: u64,
        /// Who has the key.
        state: KeyState,
    },
    /// A write was accepted.
    Accepted {
        /// The request.
        request: RequestId,
        /// The new revision.
        revision: u64,
    },
    /// A write was refused: the revision was another (NATS error 10071).
    Refused {
        /// The request.
        request: RequestId,
    },
    /// A write of anybody, as the bus republishes it.
    Republished {
        /// The key.
        key: Key,
        /// The new revision.
        revision: u64,
        /// Who has it now.
        state: KeyState,
    },
    /// Time passed.
    Tick,
    /// The run has sent all it wanted, or its agent ends it.
    Finished,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read a key directly, not through the feed.
    Read {
        /// To answer with.
        request: RequestId,
        /// The key.
        key: Key,
    },
    /// Write a key if its last revision is `expected`.
    Write {
        /// To answer with.
        request: RequestId,
        /// The key.
        key: Key,
        /// The last revision that the writer knows.
        expected: u64,
        /// The new value.
        holder: Option<Holder>,
    },
    /// All keys are leased: the run may send.
    Start,
    /// The run must not send from now on. It is over.
    Stop(Stopped),
    /// A key was not to be had; all of them are tried again later.
    BackedOff {
        /// Which key.
        obstacle: Obstacle,
        /// When they are tried again at the latest: sooner if the key is free, or stood for so
        /// long that it may be overwritten.
        until: Stamp<Boot>,
    },
    /// The time to start has passed; the run is over.
    Skipped {
        /// The last key that was not to be had; `None` if the bus did not answer.
        obstacle: Option<Obstacle>,
    },
}

/// Why a run stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// The bus answered no renewal in time.
    Expired,
    /// Another writer has a key: the agent was away for too long, or somebody broke the rules.
    Overwritten(Key),
    /// The bus started again, and may have forgotten the lease.
    BusRestarted,
}

/// A key that a run did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The key.
    pub key: Key,
    /// Who had it, if that is known.
    pub holder: Option<Holder>,
}
