//! Whole frames of one interface, through a ring of packets in memory shared with the kernel.
//!
//! Shapes: a [`PacketRing`] is bound to one interface of the namespace in which it is opened. [`PacketRing::receive`] looks into
//! shared memory and makes no system call; [`PacketRing::send`] makes one per frame, [`PacketRing::send_batch`] one per batch. Frames
//! begin at the Ethernet header. Needs `CAP_NET_RAW` in the user namespace that owns the network namespace.
//!
//! The ring is `TPACKET_V2`: version 3 hands over whole blocks, which holds single frames back by a timeout. Sending has no ring on
//! purpose: through a veth pair the kernel gives slots of a transmit ring back while the receiver still reads from them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::sys::ring::{Filled, Slots};
use crate::sys::{bind, option, send};

/// How a ring is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingOptions {
    /// Frames that it holds, at least; what comes while it is full is dropped and counted.
    pub frames: usize,
    /// Octets of each frame that are kept, Ethernet header included.
    pub snap_octets: usize,
    /// Whether frames that this host sends over the interface are seen, too.
    pub outgoing: bool,
}

/// A packet socket with its ring.
#[derive(Debug)]
pub struct PacketRing {
    // Before the socket: unmapped first.
    slots: Slots,
    socket: OwnedFd,
    received: u64,
    dropped: u64,
}

/// A frame as it lies in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingFrame<'a> {
    /// From the Ethernet header on, without FCS; without the outermost VLAN tag, which the kernel takes off.
    pub octets: &'a [u8],
    /// Octets that it had without that tag; more than `octets` if it was cut.
    pub whole_octets: usize,
    /// The VLAN tag that was taken off: protocol (such as `0x8100`) and control information.
    pub vlan: Option<(u16, u16)>,
    /// When the kernel took it in: seconds and nanoseconds of its real-time clock.
    pub stamp: (u32, u32),
    /// The transport checksum is not computed yet; whoever sends the frame on must do so.
    pub checksum_partial: bool,
    /// This host sent it.
    pub outgoing: bool,
}

/// Frames since the ring was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingCounts {
    /// Put into the ring.
    pub received: u64,
    /// Dropped because it was full.
    pub dropped: u64,
}

impl PacketRing {
    /// Most octets of a frame that a ring can keep.
    pub const MOST_SNAP_OCTETS: usize = 65_000;

    /// Opens a ring on an interface of the calling thread's namespace.
    pub fn open(interface: &str, options: &RingOptions) -> io::Result<Self> {
        // Without a protocol nothing is received before the ring stands and the interface is chosen.
        let family = AddressFamily::Packet;
        let socket = socket(
            family,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            None,
        )?;
        let fd = socket.as_fd();
        if !options.outgoing {
            option::set_int(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        // Straight to the device: a queueing discipline would be one more queue than anybody asked for.
        option::set_int(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        let slots = Slots::map(fd, options.frames, options.snap_octets)?;
        bind::to_interface(fd, nix::net::if_::if_nametoindex(interface)?)?;
        Ok(Self {
            slots,
            socket,
            received: 0,
            dropped: 0,
        })
    }

    /// Frames that it holds.
    pub fn capacity(&self) -> usize {
        self.slots.count()
    }

    /// Whether a frame waits. No system call.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.slots.is_filled()
    }

    /// Shows the next frame, if one waits, and gives its place back to the kernel. No system call.
    #[inline]
    pub fn receive<R>(&mut self, see: impl FnOnce(RingFrame<'_>) -> R) -> Option<R> {
        self.slots.take(|filled| see(RingFrame::of(&filled)))
    }

    /// Sends one frame, now: the receiving interface has it, or has dropped it, when this returns.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send::send_plain(self.socket.as_fd(), frame)
    }

    /// Sends frames back to back, as many as one system call takes (64 at most); how many. An error means that none was sent.
    pub fn send_batch<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        send::send_many(self.socket.as_fd(), frames)
    }

    /// What it received and dropped since it was opened.
    pub fn counts(&mut self) -> io::Result<RingCounts> {
        let mut octets = [0; 8];
        // `struct tpacket_stats`: frames, dropped ones included, and dropped ones, both since the last reading.
        option::get(
            self.socket.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            &mut octets,
        )?;
        let [a, b, c, d, e, f, g, h] = octets;
        let (seen, dropped) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
        self.received += u64::from(seen.saturating_sub(dropped));
        self.dropped += u64::from(dropped);
        Ok(RingCounts {
            received: self.received,
            dropped: self.dropped,
        })
    }
}

impl AsFd for PacketRing {
    /// Becomes readable when a frame waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<'a> RingFrame<'a> {
    fn of(filled: &Filled<'a>) -> Self {
        let header = &filled.header;
        let has = |flag: u32| header.tp_status & flag != 0;
        let vlan = has(libc::TP_STATUS_VLAN_VALID).then(|| {
            let protocol = if has(libc::TP_STATUS_VLAN_TPID_VALID) {
                header.tp_vlan_tpid
            } else {
                0x8100
            };
            (protocol, header.tp_vlan_tci)
        });
        Self {
            octets: filled.octets,
            whole_octets: usize::try_from(header.tp_len).unwrap_or(usize::MAX),
            vlan,
            stamp: (header.tp_sec, header.tp_nsec),
            checksum_partial: has(libc::TP_STATUS_CSUMNOTREADY),
            outgoing: filled.kind == libc::PACKET_OUTGOING,
        }
    }
}
