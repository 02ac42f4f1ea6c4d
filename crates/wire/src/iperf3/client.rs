//! The order of a test as its client sees it.

use super::inbox::{Inbox, MOST_RESULT_OCTETS, TooLong};
use super::json::JsonError;
use super::results::Results;
use super::state::{ErrorNumber, State};

/// What the server wants now.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientOrder {
    /// Send the parameters.
    SendParameters,
    /// Open the streams, one behind the other.
    OpenStreams,
    /// Clocks start.
    Start,
    /// Senders send, until the client says that the test is over.
    Run,
    /// Send what was counted.
    SendResults,
    /// What the server counted.
    TakeResults(Results),
    /// Say [`State::Done`], and close.
    Finish,
}

/// Why a test cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientFault {
    /// It runs another test.
    #[error("the server is busy with another test")]
    Busy,
    /// It says what is wrong.
    #[error("the server refuses: {number}")]
    Refused {
        /// What is wrong.
        number: ErrorNumber,
        /// The system's number of it; 0 where there is none.
        system: u32,
    },
    /// It ended the test.
    #[error("the server ended the test")]
    Terminated,
    /// It said something that has no place here.
    #[error("the server sent {octet}, which has no place {during}")]
    Unexpected {
        /// What came.
        octet: u8,
        /// Where in the test.
        during: &'static str,
    },
    /// It announced more than any results are.
    #[error("the server announced results of {octets} octets")]
    TooLong {
        /// How many.
        octets: u32,
    },
    /// Results that make no sense.
    #[error("the server's results: {0}")]
    Results(#[from] JsonError),
    /// It closed the connection.
    #[error("the server closed the connection {during}")]
    Closed {
        /// Where in the test.
        during: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Cookie,
    Parameters,
    Streams,
    Start,
    Running,
    Results,
    Counted,
    Finished,
    /// The number of an error follows.
    Failing,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Cookie => "after the greeting",
            Self::Parameters => "after the parameters",
            Self::Streams => "while streams are opened",
            Self::Start => "before the test",
            Self::Running => "during the test",
            Self::Results | Self::Counted => "while results are exchanged",
            Self::Finished => "after the test",
            Self::Failing => "in an error",
        }
    }
}

/// The client's side of the control connection.
#[derive(Debug, Clone)]
pub struct ClientSide {
    inbox: Inbox,
    stage: Stage,
    failed: Stage,
}

impl ClientSide {
    /// Behind the cookie, which the caller sends.
    pub fn new() -> Self {
        Self { inbox: Inbox::default(), stage: Stage::Cookie, failed: Stage::Cookie }
    }

    /// Octets came. The caller asks for all orders before it brings more.
    pub fn push(&mut self, octets: &[u8]) {
        self.inbox.push(octets);
    }

    /// What is to be done; `None`: wait for more octets.
    pub fn order(&mut self) -> Result<Option<ClientOrder>, ClientFault> {
        match self.stage {
            Stage::Results => return self.results(),
            Stage::Failing => return self.failing(false).map_or(Ok(None), Err),
            _ => {}
        }
        let Some(octet) = self.inbox.octet() else {
            return Ok(None);
        };
        let said = State::from_octet(octet);
        let (stage, order) = match (self.stage, said) {
            (_, Some(State::AccessDenied)) => return Err(ClientFault::Busy),
            (_, Some(State::ServerTerminate)) => return Err(ClientFault::Terminated),
            (_, Some(State::ServerError)) => {
                self.failed = self.stage;
                self.stage = Stage::Failing;
                return self.order();
            }
            (Stage::Cookie, Some(State::ParameterExchange)) => (Stage::Parameters, ClientOrder::SendParameters),
            (Stage::Parameters, Some(State::CreateStreams)) => (Stage::Streams, ClientOrder::OpenStreams),
            (Stage::Streams, Some(State::TestStart)) => (Stage::Start, ClientOrder::Start),
            (Stage::Start, Some(State::TestRunning)) => (Stage::Running, ClientOrder::Run),
            (Stage::Running, Some(State::ExchangeResults)) => (Stage::Results, ClientOrder::SendResults),
            (Stage::Counted, Some(State::DisplayResults)) => (Stage::Finished, ClientOrder::Finish),
            (during, _) => {
                return Err(ClientFault::Unexpected { octet, during: during.name() });
            }
        };
        self.stage = stage;
        Ok(Some(order))
    }

    /// The server closed its side: why the test is over, unless it was finished.
    pub fn closed(&mut self) -> Option<ClientFault> {
        match self.stage {
            Stage::Finished => None,
            Stage::Failing => self.failing(true),
            stage => Some(ClientFault::Closed { during: stage.name() }),
        }
    }

    fn results(&mut self) -> Result<Option<ClientOrder>, ClientFault> {
        let frame = self.inbox.frame(MOST_RESULT_OCTETS);
        let frame = frame.map_err(|TooLong(octets)| ClientFault::TooLong { octets })?;
        let Some(frame) = frame else { return Ok(None) };
        let results = Results::parse(&frame)?;
        self.stage = Stage::Counted;
        Ok(Some(ClientOrder::TakeResults(results)))
    }

    /// Two numbers follow an error; stock servers up to 3.17 close behind the first where the
    /// parameters were at fault.
    fn failing(&mut self, closed: bool) -> Option<ClientFault> {
        if self.inbox.waiting() < 8 && !closed {
            return None;
        }
        let Some(number) = self.inbox.word() else {
            return Some(ClientFault::Closed { during: self.failed.name() });
        };
        Some(ClientFault::Refused { number: ErrorNumber(number), system: self.inbox.word().unwrap_or(0) })
    }
}

impl Default for ClientSide {
    fn default() -> Self {
        Self::new()
    }
}
