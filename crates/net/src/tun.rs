//! Interfaces whose packets a program reads and writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use crate::sys;

/// What is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunLayer {
    /// IP packets (TUN).
    Ip,
    /// Ethernet frames (TAP).
    Ethernet,
}

/// An interface of the kernel's, seen from its other end. It comes down and without addresses, and
/// goes with this value. Packets come complete: the kernel has segmented them and computed their
/// checksums. No call waits.
#[derive(Debug)]
pub struct Tun(File);

impl Tun {
    /// Makes the interface in the network namespace of the calling thread.
    pub fn create(interface: &str, layer: TunLayer) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let kind = match layer {
            TunLayer::Ip => libc::IFF_TUN,
            TunLayer::Ethernet => libc::IFF_TAP,
        };
        let flags = libc::c_short::try_from(kind | libc::IFF_NO_PI).map_err(io::Error::other)?;
        sys::tun::attach(file.as_fd(), interface, flags)?;
        Ok(Self(file))
    }

    /// Takes the next packet that the kernel sent; [`io::ErrorKind::WouldBlock`] where there is
    /// none.
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(into)
    }

    /// Hands a packet to the kernel, as if it came in by the interface.
    #[inline]
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        (&self.0).write(packet).map(drop)
    }
}
