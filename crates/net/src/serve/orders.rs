//! What client and conductor tell each other.

use std::io;

use narrows_wire::{
    LoadPlan, LoadSegment, PlanRow, RefusalCode, Rows, ServerMessage, TrainExpectation, TransferPlan, TransferSegment,
};

/// What the client asks for, its order checked.
#[derive(Debug)]
pub(super) enum Order {
    ExpectTrain(TrainExpectation),
    TrainSent { packets: u32 },
    SendTrain { id: u32, flow: u16, plan: Vec<PlanRow> },
    LoadBegin(LoadPlan),
    LoadSegment(LoadSegment),
    LoadEnd,
    TransferBegin(TransferPlan),
    TransferSegment(TransferSegment),
    TransferEnd,
}

/// What the client is told.
#[derive(Debug)]
pub(super) enum Word {
    Message(ServerMessage),
    Rows(Rows),
}

impl Word {
    /// How much it is to remember until it is told: as much as so many samples.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Message(ServerMessage::TransferSamples { samples, .. }) => samples.len().max(1),
            Self::Message(_) | Self::Rows(_) => 1,
        }
    }
}

/// Why a train, load or transfer is broken off or not begun.
#[derive(Debug)]
pub(super) struct BrokenOff {
    pub(super) code: RefusalCode,
    pub(super) text: String,
}

impl BrokenOff {
    pub(super) fn limit(text: impl Into<String>) -> Self {
        Self { code: RefusalCode::Limit, text: text.into() }
    }

    pub(super) fn host(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { code: RefusalCode::Internal, text: format!("the server's host cannot {doing}: {error}") }
    }
}
