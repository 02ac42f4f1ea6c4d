//! The control connection, read without ever waiting longer than asked.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use narrows_wire::iperf3::State;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::clock;

/// Longest that a peer may take to take what it is sent.
const WRITE_NS: i64 = 5_000_000_000;

#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
}

/// What reading came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    Octets(usize),
    Nothing,
    Closed,
}

impl Link {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Waits for octets until `deadline_ns` (monotonic).
    pub(super) fn hear(&mut self, room: &mut [u8], deadline_ns: i64) -> Incoming {
        loop {
            match self.stream.read(room) {
                Ok(0) => return Incoming::Closed,
                Ok(read) => return Incoming::Octets(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Incoming::Closed,
            }
            if !self.wait(PollFlags::POLLIN, deadline_ns) {
                return Incoming::Nothing;
            }
        }
    }

    pub(super) fn say(&mut self, state: State) -> io::Result<()> {
        self.send(&[state.octet()])
    }

    pub(super) fn send(&mut self, mut octets: &[u8]) -> io::Result<()> {
        let deadline = clock::now_ns() + WRITE_NS;
        while !octets.is_empty() {
            match self.stream.write(octets) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => octets = &octets[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wait(PollFlags::POLLOUT, deadline) {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// `false` if time ran out.
    fn wait(&self, wanted: PollFlags, deadline_ns: i64) -> bool {
        let left = u64::try_from(deadline_ns.saturating_sub(clock::now_ns())).unwrap_or(0);
        if left == 0 {
            return false;
        }
        // Rounded up, so that a wait does not become a spin within the last millisecond.
        let millis = left.div_ceil(1_000_000);
        let timeout = u16::try_from(millis).map_or(PollTimeout::from(u16::MAX), PollTimeout::from);
        let mut fds = [PollFd::new(self.stream.as_fd(), wanted)];
        // An interrupted wait is looked at again by the caller.
        poll(&mut fds, timeout).is_ok()
    }
}
