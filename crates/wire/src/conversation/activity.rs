//! The one train, load or transfer that a session may have under way.

use super::Violation;
use crate::message::{ClientMessage, Direction, ServerMessage};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Idle,
    /// Forward train: expected, armed, sent, its rows announced.
    Expected(u32),
    Armed(u32),
    Sent(u32),
    ArrivalsNext(u32),
    /// Reverse train: asked for, its plan received, its rows announced.
    PlanNext(u32),
    Planned(u32),
    DeparturesNext(u32),
    LoadAsked(u32, Direction),
    Load(u32, Direction),
    LoadEnding(u32, Direction),
    TransferAsked(u32, Direction),
    Transfer(u32, Direction),
    TransferEnding(u32, Direction),
}

use Direction::{Forward, Reverse};

/// The train, load or transfer that a client's message speaks of, if it speaks of one that should
/// be under way.
pub(super) fn subject(message: &ClientMessage) -> Option<u32> {
    match message {
        ClientMessage::TrainSent { id, .. } | ClientMessage::LoadEnd { id } | ClientMessage::TransferEnd { id } => {
            Some(*id)
        }
        ClientMessage::LoadSegment(segment) => Some(segment.id),
        ClientMessage::TransferSegment(segment) => Some(segment.id),
        _ => None,
    }
}

impl Activity {
    pub(super) fn id(self) -> Option<u32> {
        match self {
            Self::Idle => None,
            Self::Expected(id)
            | Self::Armed(id)
            | Self::Sent(id)
            | Self::ArrivalsNext(id)
            | Self::PlanNext(id)
            | Self::Planned(id)
            | Self::DeparturesNext(id)
            | Self::LoadAsked(id, _)
            | Self::Load(id, _)
            | Self::LoadEnding(id, _)
            | Self::TransferAsked(id, _)
            | Self::Transfer(id, _)
            | Self::TransferEnding(id, _) => Some(id),
        }
    }

    /// A load or transfer, from its request to its end.
    pub(super) fn is_loading(self) -> bool {
        let load = matches!(self, Self::LoadAsked(..) | Self::Load(..) | Self::LoadEnding(..));
        load || matches!(self, Self::TransferAsked(..) | Self::Transfer(..) | Self::TransferEnding(..))
    }

    /// Whether the client's message is in order; a request while something is under way is not.
    pub(super) fn client(&mut self, message: &ClientMessage) -> Result<bool, Violation> {
        let begun = match message {
            ClientMessage::ExpectTrain(train) => Some(Self::Expected(train.id)),
            ClientMessage::SendTrain { id, .. } => Some(Self::PlanNext(*id)),
            ClientMessage::LoadBegin(plan) => Some(Self::LoadAsked(plan.id, plan.direction)),
            ClientMessage::TransferBegin(plan) => Some(Self::TransferAsked(plan.id, plan.direction)),
            _ => None,
        };
        if let Some(begun) = begun {
            if *self != Self::Idle {
                return Err(Violation("a request while another is under way"));
            }
            *self = begun;
            return Ok(true);
        }
        let next = match (*self, message) {
            (Self::Armed(id), ClientMessage::TrainSent { id: of, .. }) if id == *of => Self::Sent(id),
            (Self::Load(id, Reverse), ClientMessage::LoadSegment(segment)) if id == segment.id => *self,
            (Self::Load(id, direction) | Self::LoadAsked(id, direction), ClientMessage::LoadEnd { id: of })
                if id == *of =>
            {
                Self::LoadEnding(id, direction)
            }
            (Self::Transfer(id, Reverse), ClientMessage::TransferSegment(segment)) if id == segment.id => *self,
            (
                Self::Transfer(id, direction) | Self::TransferAsked(id, direction),
                ClientMessage::TransferEnd { id: of },
            ) if id == *of => Self::TransferEnding(id, direction),
            _ => return Ok(false),
        };
        *self = next;
        Ok(true)
    }

    /// The server's message is in order.
    pub(super) fn server(&mut self, message: &ServerMessage) -> Result<(), Violation> {
        let next = match (*self, message) {
            (Self::Expected(id), ServerMessage::Armed { id: of }) if id == *of => Self::Armed(id),
            (Self::Sent(id), ServerMessage::TrainResult(result)) if id == result.id => Self::ArrivalsNext(id),
            (Self::Planned(id), ServerMessage::TrainLeft { id: of, .. }) if id == *of => Self::DeparturesNext(id),
            (Self::LoadAsked(id, direction), ServerMessage::LoadReady { id: of }) if id == *of => {
                Self::Load(id, direction)
            }
            // The end crossed with the beginning.
            (Self::LoadEnding(id, _), ServerMessage::LoadReady { id: of }) if id == *of => *self,
            (Self::Load(id, Forward) | Self::LoadEnding(id, Forward), ServerMessage::LoadStatus(status))
                if id == status.id =>
            {
                *self
            }
            (Self::Load(id, Reverse) | Self::LoadEnding(id, Reverse), ServerMessage::LoadSent(sent))
                if id == sent.id =>
            {
                *self
            }
            (Self::LoadEnding(id, _), ServerMessage::LoadDone { id: of }) if id == *of => Self::Idle,
            (Self::TransferAsked(id, direction), ServerMessage::TransferReady { id: of }) if id == *of => {
                Self::Transfer(id, direction)
            }
            (Self::TransferEnding(id, _), ServerMessage::TransferReady { id: of }) if id == *of => *self,
            (
                Self::Transfer(id, Forward) | Self::TransferEnding(id, Forward),
                ServerMessage::TransferReceived(received),
            ) if id == received.id => *self,
            (
                Self::Transfer(id, Reverse) | Self::TransferEnding(id, Reverse),
                ServerMessage::TransferSamples { id: of, .. },
            ) if id == *of => *self,
            (Self::Transfer(id, Reverse) | Self::TransferEnding(id, Reverse), ServerMessage::TransferSent(sent))
                if id == sent.id =>
            {
                *self
            }
            (Self::TransferEnding(id, _), ServerMessage::TransferDone { id: of }) if id == *of => Self::Idle,
            _ => return Err(Violation("an answer to nothing that is under way")),
        };
        *self = next;
        Ok(())
    }

    /// A plan for `id` would be in order.
    pub(super) fn plan(self, id: u32) -> bool {
        self == Self::PlanNext(id)
    }

    pub(super) fn planned(&mut self, id: u32) -> bool {
        self.step(Self::PlanNext(id), Self::Planned(id))
    }

    pub(super) fn departures(&mut self, id: u32) -> bool {
        self.step(Self::DeparturesNext(id), Self::Idle)
    }

    pub(super) fn arrivals(&mut self, id: u32) -> bool {
        self.step(Self::ArrivalsNext(id), Self::Idle)
    }

    fn step(&mut self, from: Self, to: Self) -> bool {
        let fits = *self == from;
        if fits {
            *self = to;
        }
        fits
    }
}
