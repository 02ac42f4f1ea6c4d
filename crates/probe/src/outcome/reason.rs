//! Why there is no number.

use narrows_units::BitRate;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a method gives no number. The text says who can mend it.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Budget: steps.
    #[error("the step budget was spent before the method was done")]
    StepsSpent,
    /// Budget: octets.
    #[error("the octet budget was spent before the method was done; allow more with --budget")]
    OctetsSpent,
    /// Budget: time.
    #[error("the time budget was spent before the method was done; allow more with --budget")]
    TimeSpent,
    /// Budget: peak rate.
    #[error("the method needs a higher peak rate than the budget allows")]
    PeakRateExceeded,
    /// The user asked for an end.
    #[error("interrupted")]
    Interrupted,
    /// The host, the peer or the path broke on the way.
    #[error("the measurement broke off before the method was done")]
    WorldBroke,
    /// Recorded rows were analysed, and there are no more.
    #[error("the recorded rows end before the method was done")]
    RowsSpent,
    /// Nothing came back at all.
    #[error("no probe was answered: the path or the peer drops them")]
    NoAnswer,
    /// Small packets pass and those of full size do not.
    #[error("packets of full size vanish and small ones pass: an MTU black hole")]
    MtuBlackHole,
    /// Too few packets arrived.
    #[error("too many probes were lost ({lost} of {sent})")]
    TooMuchLoss {
        /// Packets lost.
        lost: u64,
        /// Packets sent.
        sent: u64,
    },
    /// The sender cannot keep the needed gaps.
    #[error("the sending host cannot keep the planned gaps")]
    SenderCannotPace,
    /// The sender is slower than what is to be measured.
    #[error("the sending host cannot send faster than {reached}, which is too slow for this method here")]
    SenderTooSlow {
        /// What it reached.
        reached: BitRate,
    },
    /// The receiver is slower than what is to be measured.
    #[error("the receiving host cannot keep up")]
    ReceiverTooSlow,
    /// Stamps are too coarse.
    #[error("the receiver's stamps are too coarse for this method at this rate")]
    StampsTooCoarse,
    /// The receiver batches.
    #[error("the receiver sees packets in batches, which hides what this method needs; lower its interrupt coalescing")]
    ReceiveBatching,
    /// The samples contradict each other.
    #[error("the samples disagree: no one value explains them; repeat, or measure when the path is less busy")]
    NoAgreement,
    /// The search did not settle.
    #[error("the search did not settle")]
    NotConverged,
    /// Too little that could be used.
    #[error("only {samples} usable sample(s)")]
    TooFewSamples {
        /// How many.
        samples: u64,
    },
    /// Passive: nothing passed.
    #[error("no TCP connection with data passed during the capture")]
    NoTraffic,
    /// Passive: the sender was the limit.
    #[error(
        "no queue stood before the narrow link: the connection's window or application held it back, so gaps between its packets are the sender's"
    )]
    NeverQueued,
    /// Passive: nothing tells whose gaps they are.
    #[error(
        "without TCP timestamps or losses nothing tells whether gaps between packets are the path's or the sender's"
    )]
    GapsUnproven,
    /// The world cannot do what the method needs.
    #[error("this method needs something that is not available here: {what}")]
    NotOffered {
        /// What.
        what: String,
    },
    /// The peer forbids it.
    #[error("the server forbids it: its limits on rate, duration or octets")]
    ForbiddenByPeer,
    /// Another result that this one rests on is missing.
    #[error("it rests on another result that is missing: {what}")]
    MissingInput {
        /// Which.
        what: String,
    },
    /// The world's answer makes no sense for the last step: a defect of the world.
    #[error("the last probe was answered with something else; this is a defect, please report it")]
    UnexpectedEvent,
}

impl Reason {
    /// In a few words, for where a line must do.
    pub fn brief(&self) -> &'static str {
        match self {
            Self::StepsSpent | Self::OctetsSpent | Self::TimeSpent => "the budget was spent",
            Self::PeakRateExceeded => "the budget's peak rate is too low",
            Self::Interrupted => "interrupted",
            Self::WorldBroke => "the measurement broke off",
            Self::RowsSpent => "the recording ends too early",
            Self::NoAnswer => "no probe was answered",
            Self::MtuBlackHole => "packets of full size vanish",
            Self::TooMuchLoss { .. } => "too many probes were lost",
            Self::SenderCannotPace => "the sender cannot keep the gaps",
            Self::SenderTooSlow { .. } => "the sender is too slow",
            Self::ReceiverTooSlow => "the receiver is too slow",
            Self::StampsTooCoarse => "timestamps are too coarse",
            Self::ReceiveBatching => "the receiver batches packets",
            Self::NoAgreement => "the samples do not agree",
            Self::NotConverged => "the search did not settle",
            Self::TooFewSamples { .. } => "too few samples",
            Self::NoTraffic => "no traffic passed",
            Self::NeverQueued => "no packet ever waited in a queue",
            Self::GapsUnproven => "gaps may be the sender's own",
            Self::NotOffered { .. } => "not possible here",
            Self::ForbiddenByPeer => "the server forbids it",
            Self::MissingInput { .. } => "another result is missing",
            Self::UnexpectedEvent => "a defect of narrows",
        }
    }
}
