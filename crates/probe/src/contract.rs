//! One event in, exactly one step out.

use narrows_units::{Sender, Stamp};
use serde::{Deserialize, Serialize};

use crate::facts::PathFacts;
use crate::outcome::{Estimate, Outcome, Reason};
use crate::probes::{CaptureReport, LoadReport, Probe, TrainReport, TransferReport};
#[cfg(doc)]
use crate::world::{run, watch};

/// What a world tells an estimator.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a run begins once: a box would save nothing")]
pub enum Event {
    /// The run begins; always the first event, and only that.
    Started(PathFacts),
    /// A train is over.
    Train(TrainReport),
    /// A load segment is over.
    Load(LoadReport),
    /// A transfer segment is over.
    Transfer(TransferReport),
    /// A capture is over.
    Capture(CaptureReport),
    /// The awaited time has come.
    TimerFired,
    /// The world cannot carry out the last probe; it may be able to carry out another.
    Refused(Refusal),
    /// The run ends now: out of budget, or the user asked. The estimator answers with `Done`, from
    /// what it has.
    Stop(Reason),
}

/// Why a world did not carry out a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Packets of this size do not fit.
    TooLarge {
        /// Largest IP packet that fits.
        max_ip_octets: u16,
    },
    /// Packets of this size cannot carry the probe header.
    TooSmall {
        /// Smallest IP packet that can.
        min_ip_octets: u16,
    },
    /// The world has no such ability (a recording cannot send; a socket without privilege cannot
    /// read ICMP).
    NotOffered,
    /// The peer forbids it: its caps on rate, duration, octets or streams.
    ForbiddenByPeer,
}

/// What an estimator wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the path.
    Send(Probe),
    /// Let time pass.
    Wait {
        /// Until when.
        until: Stamp<Sender>,
    },
    /// The answer.
    Done(Outcome),
}

/// A method in the middle of its work. One event in, exactly one step out; no clock, socket, random
/// source or log inside.
pub trait Estimator {
    /// The next step, at `now`, after `event`.
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step;

    /// What it makes of what it has by now, for those who follow a method that tracks a quantity:
    /// [`watch`] asks after every event, [`run`] never. `None` where there is nothing to tell yet,
    /// and from methods that only answer at their end.
    fn latest(&self) -> Option<Latest> {
        None
    }
}

/// What a method that tracks a quantity says on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Latest {
    /// The middle of the time that it is about, on the clock of the estimator's host.
    pub at: Stamp<Sender>,
    /// The same that the method would answer were it stopped now, with the interval that it is
    /// about.
    pub estimate: Estimate,
}
