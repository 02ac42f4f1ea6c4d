//! Control messages.
//!
//! JSON, one externally tagged value per frame, duplicate fields refused, every number checked
//! against a range that no honest peer leaves. Fields that are not known are ignored, messages that
//! are not known are none: a later version may add a field that does no harm to whoever ignores it,
//! and says a new message only where the session's version has it ([`crate::agreed`]). Durations
//! and stamps are whole nanoseconds, rates bits per second.

mod check;
mod facts;
mod load;
mod settings;
mod train;
mod transfer;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use facts::{HostFacts, StampSource};
pub use load::{LoadPlan, LoadSegment, LoadSent, LoadStatus, LoadTuning};
pub use settings::{HostSettings, SettingsCounted};
pub use train::{Pacing, TrainExpectation, TrainResult};
pub use transfer::{
    BulkStream, SocketStands, TcpSample, TcpState, TransferPlan, TransferReceived, TransferSegment, TransferSent,
    TransferTuning,
};

use crate::fleet_key::Lease;
use crate::frame::{FrameKind, encode_frame};
use crate::limits::SessionLimits;
use crate::secret::{Nonce, Proof, Token};
use check::{Check, short, text};

/// Why a frame is no message. The connection ends.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// Not JSON, or not a message of this protocol.
    #[error("not a message: {0}")]
    Syntax(String),
    /// A field holds what no honest peer sends.
    #[error("field {0} is out of range")]
    Range(&'static str),
}

/// How the server wants clients to prove themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// Not at all.
    None,
    /// By a pre-shared key.
    Psk,
}

/// What a session may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotKind {
    /// Trains and echoes within the announced light limits; several sessions side by side.
    Light,
    /// Anything that loads the path; one session at a time. Covers what the light slot covers.
    Load,
}

/// Which way the traffic goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Forward,
    /// From the server to the client.
    Reverse,
}

/// Why the server will not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// Another version of the protocol. Ends the connection.
    Version,
    /// Wrong or missing pre-shared key. Ends the connection.
    Key,
    /// No room for another session, or too many from this address. Ends the connection.
    Full,
    /// The slot's queue is full. The session goes on.
    Busy,
    /// Forbidden by the announced limits. The session goes on.
    Limit,
    /// A message that is malformed or out of order. Ends the connection.
    Protocol,
    /// The session lasted too long or held a slot for nothing, or the server ends. Ends the
    /// connection.
    Expired,
    /// The server itself failed. The session goes on, the test does not.
    Internal,
}

impl RefusalCode {
    /// The connection ends after this refusal.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Version | Self::Key | Self::Full | Self::Protocol | Self::Expired)
    }
}

/// From the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientMessage {
    /// First of all.
    Hello {
        /// The newest version that the client speaks.
        version: u16,
        /// For the proofs.
        nonce: Nonce,
        /// From version 4 on: which key the client has, for servers that know several
        /// ([`KeyName`](crate::fleet_key::KeyName)).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_name: Option<String>,
    },
    /// Answer to a welcome that asks for it.
    Prove {
        /// [`Psk::client_proof`](crate::Psk::client_proof).
        proof: Proof,
    },
    /// Wants a slot. Answered by `GrantedScheduling`, by `Queued` (repeated) and then
    /// `GrantedScheduling`, or by `Refused`.
    Slot {
        /// Which.
        kind: SlotKind,
        /// From version 3 on: shares the slot that this other session holds, from the same address,
        /// instead of waiting for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beside: Option<Token>,
        /// From version 4 on: the run that wants to load, for servers that grant the load slot to
        /// leased runs alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease: Option<Lease>,
    },
    /// Gives a slot back, or leaves its queue. Answered by `Released`; only then may the slot be
    /// asked for again.
    Release {
        /// Which.
        kind: SlotKind,
    },
    /// A train is about to come. Answered by `Armed`.
    ExpectTrain(TrainExpectation),
    /// The train has left. Answered by `TrainResult` and a table of arrivals.
    TrainSent {
        /// Which train.
        id: u32,
        /// Packets that really left.
        packets: u32,
    },
    /// Asks for a train; a table with its plan follows in the next frame. Answered, once it has
    /// left, by `TrainLeft` and a table of departures.
    SendTrain {
        /// The train's name, in its probes too.
        id: u32,
        /// The flow on which to send it.
        flow: u16,
    },
    /// Begins a load. Answered by `LoadReady`. Flows 0 to `streams - 1` carry it.
    LoadBegin(LoadPlan),
    /// Reverse: the next segment, which takes over at once from whatever runs. Answered at its end
    /// by `LoadSent`.
    LoadSegment(LoadSegment),
    /// Forward: no more packets will leave. Answered by the last `LoadStatus` and `LoadDone`.
    /// Reverse: stop now. Answered by `LoadDone`.
    LoadEnd {
        /// Which load.
        id: u32,
    },
    /// Begins a transfer. Answered by `TransferReady`; then the client opens the data connections.
    TransferBegin(TransferPlan),
    /// Reverse: the next segment. Answered at its end by `TransferSent`.
    TransferSegment(TransferSegment),
    /// Forward: all data connections are shut down for writing. Reverse: stop now. Answered by
    /// `TransferDone`.
    TransferEnd {
        /// Which transfer.
        id: u32,
    },
    /// From version 2 on: how is the server's host set up, and what did it count since the last
    /// such question? Answered by `HostReported`. One at a time, and not in the middle of a test.
    AskHost,
    /// Still here.
    Alive,
    /// Leaves.
    Bye,
}

/// From the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// Answer to `Hello`.
    Welcome {
        /// The session's version: [`crate::agreed`].
        version: u16,
        /// For the proofs.
        nonce: Nonce,
        /// What comes next: `Session` at once, or a `Prove` by the client.
        auth: Auth,
    },
    /// The client is in.
    Session {
        /// The session's public number, for the datagrams of the address validation.
        session: u64,
        /// Proves that other sockets belong to the session.
        token: Token,
        /// The server's proof, where a key is asked for:
        /// [`Psk::server_proof`](crate::Psk::server_proof).
        proof: Option<Proof>,
        /// What the session may do.
        limits: SessionLimits,
        /// What the server's host can do.
        host: HostFacts,
    },
    /// No.
    Refused {
        /// Why, for programs.
        code: RefusalCode,
        /// The train, load or transfer that is refused or broken off; `None`: a slot, or the whole
        /// connection.
        id: Option<u32>,
        /// Why, for people. At most 512 octets.
        text: String,
    },
    /// The slot is the session's, until released.
    GrantedScheduling {
        /// Which.
        kind: SlotKind,
    },
    /// The session waits for the slot; sent again when the place changes.
    Queued {
        /// Which.
        kind: SlotKind,
        /// Sessions that come before, plus one.
        place: u32,
    },
    /// The slot is no longer the session's.
    Released {
        /// Which.
        kind: SlotKind,
    },
    /// The receiver is ready for the train.
    Armed {
        /// Which train.
        id: u32,
    },
    /// The train is over; a table of arrivals follows in the next frame.
    TrainResult(TrainResult),
    /// The train has left; a table of departures follows in the next frame.
    TrainLeft {
        /// Which train.
        id: u32,
        /// Where the departure stamps come from.
        stamps: StampSource,
        /// How well the plan was kept.
        pacing: Pacing,
        /// Packets that the server's host refused to send.
        send_failures: u32,
    },
    /// Forward: the receiver is ready for the load. Reverse: the sender waits for the first
    /// segment.
    LoadReady {
        /// Which load.
        id: u32,
    },
    /// Forward: what arrived in one interval.
    LoadStatus(LoadStatus),
    /// Reverse: what left in one segment.
    LoadSent(LoadSent),
    /// The load is over and nothing of it is left at the server.
    LoadDone {
        /// Which load.
        id: u32,
    },
    /// Data connections may come.
    TransferReady {
        /// Which transfer.
        id: u32,
    },
    /// Reverse: samples of one stream since the last ones; at most [`TransferSent::MAX_SAMPLES`].
    TransferSamples {
        /// Which transfer.
        id: u32,
        /// Which of its streams, from 0.
        stream: u16,
        /// The samples, oldest first.
        samples: Vec<TcpSample>,
    },
    /// Reverse: a segment is over.
    TransferSent(TransferSent),
    /// Forward: what was read since the transfer began; sent every so often, and before
    /// `TransferDone`.
    TransferReceived(TransferReceived),
    /// The transfer is over and its connections are closed.
    TransferDone {
        /// Which transfer.
        id: u32,
    },
    /// Answer to `AskHost`.
    HostReported(Box<HostSettings>),
    /// Still here.
    Alive,
}

impl Check for ClientMessage {
    fn check(&self) -> Result<(), MessageError> {
        match self {
            Self::ExpectTrain(train) => train.check(),
            Self::LoadBegin(plan) => plan.check(),
            Self::LoadSegment(segment) => segment.check(),
            Self::TransferBegin(plan) => plan.check(),
            Self::TransferSegment(segment) => segment.check(),
            Self::TrainSent { packets, .. } => check::packets(*packets),
            Self::Slot { kind, beside, lease } => {
                check::ensure("beside", beside.is_none() || *kind == SlotKind::Load)?;
                check::ensure("lease", lease.is_none() || *kind == SlotKind::Load)
            }
            Self::Hello { key_name, .. } => key_name.as_deref().map_or(Ok(()), check::key_name),
            Self::Prove { .. }
            | Self::Release { .. }
            | Self::SendTrain { .. }
            | Self::LoadEnd { .. }
            | Self::TransferEnd { .. }
            | Self::AskHost
            | Self::Alive
            | Self::Bye => Ok(()),
        }
    }
}

impl Check for ServerMessage {
    fn check(&self) -> Result<(), MessageError> {
        match self {
            Self::Session { host, .. } => host.check(),
            Self::Refused { text: words, .. } => text("text", words),
            Self::TrainResult(result) => result.check(),
            Self::LoadStatus(status) => status.check(),
            Self::LoadSent(sent) => sent.check(),
            Self::TransferSamples { samples, .. } => {
                short("samples", samples.len(), TransferSent::MAX_SAMPLES)?;
                samples.iter().try_for_each(Check::check)
            }
            Self::TransferSent(sent) => sent.check(),
            Self::TransferReceived(received) => received.check(),
            Self::HostReported(settings) => settings.check(),
            Self::Welcome { .. }
            | Self::GrantedScheduling { .. }
            | Self::Queued { .. }
            | Self::Released { .. }
            | Self::Armed { .. }
            | Self::TrainLeft { .. }
            | Self::LoadReady { .. }
            | Self::LoadDone { .. }
            | Self::TransferReady { .. }
            | Self::TransferDone { .. }
            | Self::Alive => Ok(()),
        }
    }
}

fn parse<'a, M: Deserialize<'a> + Check>(body: &'a [u8]) -> Result<M, MessageError> {
    let message: M = serde_json::from_slice(body).map_err(|error| {
        // The parser's words may quote the peer at length.
        MessageError::Syntax(error.to_string().chars().take(200).collect())
    })?;
    message.check()?;
    Ok(message)
}

fn frame(message: &impl Serialize) -> Vec<u8> {
    let body = serde_json::to_vec(message).expect("messages hold nothing that JSON cannot");
    encode_frame(FrameKind::Json, &body).expect("lists and texts are bounded well below the frame's cap")
}

impl ClientMessage {
    /// Wants a slot of this kind, and nothing more.
    pub const fn slot(kind: SlotKind) -> Self {
        Self::Slot { kind, beside: None, lease: None }
    }

    /// Reads the body of a JSON frame.
    pub fn parse(body: &[u8]) -> Result<Self, MessageError> {
        parse(body)
    }

    /// The whole frame.
    pub fn frame(&self) -> Vec<u8> {
        frame(self)
    }
}

impl ServerMessage {
    /// Reads the body of a JSON frame.
    pub fn parse(body: &[u8]) -> Result<Self, MessageError> {
        parse(body)
    }

    /// The whole frame.
    pub fn frame(&self) -> Vec<u8> {
        frame(self)
    }

    /// A refusal whose text is cut to what the protocol allows.
    pub fn refused(code: RefusalCode, id: Option<u32>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        while text.len() > check::MAX_TEXT {
            text.pop();
        }
        Self::Refused { code, id, text }
    }
}

#[cfg(test)]
mod tests;
