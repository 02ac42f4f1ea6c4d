//! Steps of a test, one signed octet each on the control connection; and the numbers of errors.

use std::fmt;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Server: all streams are there; clocks start.
    TestStart,
    /// Server: senders send.
    TestRunning,
    /// Client: the test is over.
    TestEnd,
    /// Server: say what you want.
    ParameterExchange,
    /// Server: open the streams.
    CreateStreams,
    /// Server: it ends the test.
    ServerTerminate,
    /// Client: it ends the test.
    ClientTerminate,
    /// Server: say what you counted.
    ExchangeResults,
    /// Server: done.
    DisplayResults,
    /// Client: done.
    Done,
    /// Server: busy, or the cookie is wrong.
    AccessDenied,
    /// Server: an error, whose number follows.
    ServerError,
}

const STATES: [(State, u8); 12] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParameterExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::Done, 16),
    (State::AccessDenied, 0xff),
    (State::ServerError, 0xfe),
];

impl State {
    /// The octet on the wire.
    pub fn octet(self) -> u8 {
        STATES.iter().find(|(state, _)| *state == self).map_or(0, |(_, octet)| *octet)
    }

    /// The state of an octet; `None` for one that no side may send.
    pub fn from_octet(octet: u8) -> Option<Self> {
        STATES.iter().find(|(_, known)| *known == octet).map(|(state, _)| *state)
    }
}

/// Number of an error as iperf3 counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorNumber(pub u32);

impl ErrorNumber {
    /// The test would last too long.
    pub const DURATION: Self = Self(5);
    /// Too many streams.
    pub const STREAMS: Self = Self(6);
    /// Blocks of an impossible length.
    pub const BLOCK: Self = Self(7);
    /// The rates asked for are too much in sum.
    pub const TOTAL_RATE: Self = Self(27);
    /// The parameters make no sense.
    pub const PARAMETERS: Self = Self(114);
    /// Name or password is wrong, or missing.
    pub const AUTH: Self = Self(142);
    /// A congestion control that there is not.
    pub const CONGESTION: Self = Self(134);
    /// A stream did not come.
    pub const STREAM_ACCEPT: Self = Self(204);
}

impl fmt::Display for ErrorNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            5 => "the test would last too long",
            6 => "too many parallel streams",
            7 => "the block length is impossible",
            8 => "the socket buffer is impossible",
            20 => "the UDP block length is impossible",
            27 => "the total rate asked for is above the server's limit",
            28 => "the total rate was above the server's limit",
            102 => "the server cannot listen",
            114 => "the server could not read the parameters",
            117 => "the server could not read the results",
            119 => "the client ended the test",
            124 | 130 => "the server cannot set the window",
            134 => "the server does not have that congestion control",
            140 => "the server cannot pace",
            142 => "name or password was not accepted",
            200..=208 => "the server could not set up a stream",
            _ => return write!(f, "iperf3 error {}", self.0),
        };
        write!(f, "{text} (iperf3 error {})", self.0)
    }
}
