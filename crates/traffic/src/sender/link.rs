//! The control connection, from the sender's end.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_net::clock;

use crate::control::{
    Accepted, Announce, End, Lines, PROTOCOL, REPLY_OCTETS, Reply, Request, Statistics, Transport, WaitEnd,
    clock_identity, is_passing, say, understood,
};
use crate::error::TrafficError;

/// An accepted session.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    sink: SocketAddr,
    accepted: Accepted,
    clock: u64,
}

/// How long a sink may take to accept a connection, and to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to sum up, after it has waited for what was on its way.
const SUMMING_UP: Duration = Duration::from_secs(15);

impl Link {
    pub(super) fn open(sink: SocketAddr, interval_ns: i64, flows: Vec<Transport>) -> Result<Self, TrafficError> {
        let stream = TcpStream::connect_timeout(&sink, TIMEOUT).map_err(|source| match source.kind() {
            io::ErrorKind::ConnectionRefused => TrafficError::NotListening { peer: sink },
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => TrafficError::Silent { peer: sink, waited: TIMEOUT },
            _ => TrafficError::Unreachable { peer: sink, source },
        })?;
        let clock = clock_identity();
        let cookies = flows.len();
        let announce = Request::Announce(Announce {
            protocol: PROTOCOL.to_owned(),
            clock,
            interval_ns: u64::try_from(interval_ns).unwrap_or(0),
            flows,
        });
        say(&stream, &announce).map_err(|source| TrafficError::Unreachable { peer: sink, source })?;
        match hear(&stream, sink, TIMEOUT)? {
            Reply::Accepted(accepted) if accepted.cookies.len() == cookies => {
                Ok(Self { stream, sink, accepted, clock })
            }
            Reply::Refused { why } => Err(TrafficError::Refused { peer: sink, why }),
            _ => Err(TrafficError::Protocol { peer: sink, what: "it neither accepts nor refuses".to_owned() }),
        }
    }

    pub(super) fn sink(&self) -> SocketAddr {
        self.sink
    }

    pub(super) fn cookies(&self) -> &[u32] {
        &self.accepted.cookies
    }

    pub(super) fn token(&self) -> u64 {
        self.accepted.token
    }

    pub(super) fn same_clock(&self) -> bool {
        self.accepted.clock == self.clock
    }

    /// The sink has not closed the connection.
    pub(super) fn alive(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return false;
        }
        let alive = match self.stream.peek(&mut [0]) {
            // It speaks unasked only when it ends the session.
            Ok(_) => false,
            Err(error) => is_passing(&error),
        };
        self.stream.set_nonblocking(false).is_ok() && alive
    }

    /// Says how many packets each flow sent; what arrived of them.
    pub(super) fn end(&self, sent: Vec<u64>) -> Result<Statistics, TrafficError> {
        // A sink that was stopped has said its last word already; then this fails, and the word is
        // heard all the same.
        let _ = say(&self.stream, &Request::End(End { sent }));
        match hear(&self.stream, self.sink, SUMMING_UP)? {
            Reply::Statistics(statistics) => Ok(statistics),
            Reply::Refused { why } => Err(TrafficError::Refused { peer: self.sink, why }),
            Reply::Accepted(_) => Err(TrafficError::Protocol { peer: self.sink, what: "it accepts twice".to_owned() }),
        }
    }
}

fn hear(stream: &TcpStream, peer: SocketAddr, timeout: Duration) -> Result<Reply, TrafficError> {
    let deadline = clock::now_ns() + clock::nanos(timeout);
    match Lines::new(REPLY_OCTETS).next(stream, deadline, &AtomicBool::new(false)) {
        WaitEnd::Line(line) => understood(&line).map_err(|what| TrafficError::Protocol { peer, what }),
        WaitEnd::Closed => Err(TrafficError::Closed { peer }),
        WaitEnd::Nothing => Err(TrafficError::Silent { peer, waited: timeout }),
        WaitEnd::TooLong => Err(TrafficError::Protocol { peer, what: "its answer is endless".to_owned() }),
    }
}
