//! Listening on an interface: the heads of all frames, with the kernel's stamps.
//!
//! Shapes: a [`Listener`] is a [`PacketRing`] set up for that: frames of both ways, cut to their
//! headers, through a filter that the kernel runs. [`Listener::wait`] sleeps until there is
//! something, [`Listener::receive`] shows it. An interface that goes away ends the listening with
//! [`Incoming::Gone`]; what came before is still there.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::ring::{FilterInstruction, PacketRing, RingCounts, RingFrame, RingOptions};
use crate::sys::ethtool;

/// Octets of a frame that are kept: Ethernet with two tags, IPv6 with extension headers, TCP with
/// all options.
pub const HEAD_OCTETS: usize = 192;
/// Frames that wait while the program is busy elsewhere: 25 ms at 10 Gbit/s of full frames.
const FRAMES: usize = 1 << 15;

/// How to listen.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListenOptions<'a> {
    /// Only frames that it lets pass.
    pub filter: Option<&'a [FilterInstruction]>,
    /// Frames to other stations, too.
    pub all_stations: bool,
}

/// An interface that is listened to.
#[derive(Debug)]
pub struct Listener {
    ring: PacketRing,
    interface: String,
}

/// What waiting came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming {
    /// There are frames.
    Frames,
    /// Nothing came in time.
    Silence,
    /// The interface is down or gone.
    Gone,
}

/// What frames of an interface begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heading {
    /// An Ethernet header.
    Ethernet,
    /// An Ethernet header, and every frame passes twice: when it is sent, and when it is received.
    Loopback,
    /// An IP header.
    Ip,
    /// Something else: the kernel's number for it.
    Other(u16),
}

impl Listener {
    /// Begins to listen.
    pub fn open(interface: &str, options: &ListenOptions<'_>) -> io::Result<Self> {
        let ring = RingOptions { frames: FRAMES, snap_octets: HEAD_OCTETS, outgoing: true };
        let ring = PacketRing::open_filtered(interface, &ring, options.filter)?;
        if options.all_stations {
            ring.receive_all_stations(interface)?;
        }
        Ok(Self { ring, interface: interface.to_owned() })
    }

    /// Waits until there is a frame, or for so long.
    pub fn wait(&self, longest: Duration) -> io::Result<Incoming> {
        if self.ring.is_waiting() {
            return Ok(Incoming::Frames);
        }
        let timeout = PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.ring.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        if self.ring.is_waiting() {
            return Ok(Incoming::Frames);
        }
        match self.ring.take_error() {
            Ok(()) if !self.is_there() => Ok(Incoming::Gone),
            Ok(()) => Ok(Incoming::Silence),
            Err(error) if is_gone(&error) => Ok(Incoming::Gone),
            Err(error) => Err(error),
        }
    }

    /// Shows the next frame, if one waits.
    #[inline]
    pub fn receive<R>(&mut self, see: impl FnOnce(RingFrame<'_>) -> R) -> Option<R> {
        self.ring.receive(see)
    }

    /// Frames since the beginning, and those that found the ring full.
    pub fn counts(&mut self) -> io::Result<RingCounts> {
        self.ring.counts()
    }

    fn is_there(&self) -> bool {
        nix::net::if_::if_nametoindex(self.interface.as_str()).is_ok()
    }
}

impl Heading {
    /// Of an interface.
    pub fn of(interface: &str) -> Self {
        let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0));
        let kind = socket.ok().and_then(|socket| ethtool::hardware_type(socket.as_fd(), interface).ok());
        match kind {
            // What cannot be found out is most likely Ethernet.
            Some(1) | None => Self::Ethernet,
            Some(772) => Self::Loopback,
            // No header; raw IP; PPP and tunnels, of which packet sockets show the inside.
            Some(65_534 | 519 | 512 | 768 | 769 | 776 | 778) => Self::Ip,
            Some(other) => Self::Other(other),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO | libc::ENETUNREACH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_interface_is_refused() {
        assert!(Listener::open("nobody", &ListenOptions::default()).is_err());
        assert_eq!(Heading::of("nobody"), Heading::Ethernet);
        assert_eq!(Heading::of("lo"), Heading::Loopback);
    }
}
