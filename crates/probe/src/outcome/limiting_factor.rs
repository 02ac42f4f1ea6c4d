//! What held a rate down.

use serde::{Deserialize, Serialize};

use super::Limit;

/// A verdict on what held the rate down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitingFactor {
    /// Full segments never arrive, small ones do.
    MtuBlackHole,
    /// The sending thread was busy.
    SendingHost,
    /// The application did not offer enough.
    Application,
    /// The receiving application or its thread was busy.
    ReceivingHost,
    /// The peer's window.
    PeerWindow,
    /// This side's send buffer, or a window that was asked for.
    SendBuffer,
    /// A pacing rate or a user's cap.
    Pacing,
    /// The interface's own rate.
    Interface,
    /// Segments overtake one another, and are sent again without need.
    Reordering,
    /// A rate that falls for good when a bucket is empty, with a queue standing.
    Shaper,
    /// Loss without delay at a flat rate.
    Policer,
    /// Loss after the delay has risen: a queue that overflows.
    Queue,
    /// Loss without delay at about the rate that the loss model gives.
    RandomLoss,
    /// Loss without delay that neither chance nor a rate explains, or too little of it to tell.
    Loss,
    /// The window still grows.
    Growing,
}

impl LimitingFactor {
    /// Every one, in the order in which they bind.
    pub const ALL: [Self; 15] = [
        Self::MtuBlackHole,
        Self::SendingHost,
        Self::Application,
        Self::ReceivingHost,
        Self::PeerWindow,
        Self::SendBuffer,
        Self::Pacing,
        Self::Interface,
        Self::Reordering,
        Self::Shaper,
        Self::Policer,
        Self::Queue,
        Self::RandomLoss,
        Self::Loss,
        Self::Growing,
    ];

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MtuBlackHole => "mtu black hole",
            Self::SendingHost => "sending host",
            Self::Application => "application",
            Self::ReceivingHost => "receiving host",
            Self::PeerWindow => "peer window",
            Self::SendBuffer => "send buffer",
            Self::Pacing => "pacing",
            Self::Interface => "interface",
            Self::Reordering => "reordering",
            Self::Shaper => "shaper",
            Self::Policer => "policer",
            Self::Queue => "queue",
            Self::RandomLoss => "random loss",
            Self::Loss => "unexplained loss",
            Self::Growing => "window still growing",
        }
    }

    /// The same as the machine contract has it.
    pub const fn limit(self) -> Limit {
        match self {
            Self::SendingHost | Self::Application | Self::Interface => Limit::Sender,
            Self::ReceivingHost => Limit::Receiver,
            Self::PeerWindow | Self::SendBuffer => Limit::Window,
            Self::Pacing => Limit::Budget,
            Self::Policer | Self::Shaper => Limit::Shaper,
            Self::MtuBlackHole | Self::Reordering | Self::Queue | Self::RandomLoss | Self::Loss | Self::Growing => {
                Limit::Path
            }
        }
    }
}
