//! The order of a test as its server sees it, behind the cookie.

use super::inbox::{Inbox, MOST_PARAMETER_OCTETS, TooLong};
use super::json::JsonError;
use super::parameters::{MOST_STREAMS, Parameters};
use super::results::Results;
use super::state::State;

/// What the client said.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOrder {
    /// What it wants.
    Parameters(Box<Parameters>),
    /// The test is over.
    End,
    /// What it counted.
    Results(Results),
    /// It has all it wants.
    Done,
    /// It ended the test before its time.
    Terminate,
}

/// Why a test cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerFault {
    /// It said something that has no place here.
    #[error("the client sent {octet} out of turn")]
    Unexpected {
        /// What came.
        octet: u8,
    },
    /// It announced more than is taken.
    #[error("the client announced {octets} octets")]
    TooLong {
        /// How many.
        octets: u32,
    },
    /// Parameters that make no sense.
    #[error("the client's parameters: {0}")]
    Parameters(#[source] JsonError),
    /// Results that make no sense.
    #[error("the client's results: {0}")]
    Results(#[source] JsonError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Parameters,
    Running,
    Results,
    Counted,
    Finished,
}

/// Results of a client: a frame's head, and this per stream (ours; stock clients send some 250
/// octets of each).
const RESULT_OCTETS: usize = 1_024;

/// The server's side of the control connection.
#[derive(Debug, Clone)]
pub struct ServerSide {
    inbox: Inbox,
    stage: Stage,
}

impl ServerSide {
    /// Behind the cookie, and behind [`State::ParameterExchange`], which the caller sends.
    pub fn new() -> Self {
        Self { inbox: Inbox::default(), stage: Stage::Parameters }
    }

    /// Octets came. The caller takes all orders before it brings more.
    pub fn push(&mut self, octets: &[u8]) {
        self.inbox.push(octets);
    }

    /// What the client said; `None`: wait for more octets.
    pub fn order(&mut self) -> Result<Option<ServerOrder>, ServerFault> {
        let too_long = |TooLong(octets)| ServerFault::TooLong { octets };
        match self.stage {
            Stage::Parameters => {
                let Some(frame) = self.inbox.frame(MOST_PARAMETER_OCTETS).map_err(too_long)? else {
                    return Ok(None);
                };
                let parameters = Parameters::parse(&frame).map_err(ServerFault::Parameters)?;
                self.stage = Stage::Running;
                Ok(Some(ServerOrder::Parameters(Box::new(parameters))))
            }
            Stage::Results => {
                let most = RESULT_OCTETS * (2 + 2 * usize::from(MOST_STREAMS));
                let Some(frame) = self.inbox.frame(most).map_err(too_long)? else {
                    return Ok(None);
                };
                let results = Results::parse(&frame).map_err(ServerFault::Results)?;
                self.stage = Stage::Counted;
                Ok(Some(ServerOrder::Results(results)))
            }
            Stage::Running | Stage::Counted | Stage::Finished => self.step(),
        }
    }

    fn step(&mut self) -> Result<Option<ServerOrder>, ServerFault> {
        let Some(octet) = self.inbox.octet() else {
            return Ok(None);
        };
        let (stage, order) = match (self.stage, State::from_octet(octet)) {
            (Stage::Running, Some(State::TestEnd)) => (Stage::Results, ServerOrder::End),
            (Stage::Counted, Some(State::Done)) => (Stage::Finished, ServerOrder::Done),
            (_, Some(State::ClientTerminate)) => (Stage::Finished, ServerOrder::Terminate),
            _ => return Err(ServerFault::Unexpected { octet }),
        };
        self.stage = stage;
        Ok(Some(order))
    }
}

impl Default for ServerSide {
    fn default() -> Self {
        Self::new()
    }
}
