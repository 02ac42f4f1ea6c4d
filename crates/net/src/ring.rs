//! Whole frames of one interface, through a ring of packets in memory shared with the kernel.
//!
//! Shapes: a [`PacketRing`] is bound to one interface of the namespace in which it is opened.
//! [`PacketRing::receive`] looks into shared memory and makes no system call; [`PacketRing::send`]
//! makes one per frame, [`PacketRing::send_batch`] one per batch. Frames begin at the Ethernet
//! header. Needs `CAP_NET_RAW` in the user namespace that owns the network namespace.
//!
//! The ring is `TPACKET_V2`: version 3 hands over whole blocks, which holds single frames back by a
//! timeout. Sending has no ring on purpose: through a veth pair the kernel gives slots of a
//! transmit ring back while the receiver still reads from them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

pub use crate::sys::filter::FilterInstruction;
use crate::sys::ring::{Filled, Slots};
use crate::sys::{bind, filter, option, send};

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
    /// From the Ethernet header on, without FCS; without the outermost VLAN tag, which the kernel
    /// takes off.
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
        Self::open_filtered(interface, options, None)
    }

    /// The same, with a filter that is in place before the first frame can come.
    pub fn open_filtered(
        interface: &str,
        options: &RingOptions,
        program: Option<&[FilterInstruction]>,
    ) -> io::Result<Self> {
        // Without a protocol nothing is received before the ring stands and the interface is
        // chosen.
        let family = AddressFamily::Packet;
        let socket = socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)?;
        let fd = socket.as_fd();
        if !options.outgoing {
            option::set_int(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        // Straight to the device: a queueing discipline would be one more queue than anybody asked
        // for.
        option::set_int(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        let slots = Slots::map(fd, options.frames, options.snap_octets)?;
        if let Some(program) = program {
            filter::attach(fd, program)?;
        }
        bind::to_interface(fd, nix::net::if_::if_nametoindex(interface)?)?;
        Ok(Self { slots, socket, received: 0, dropped: 0 })
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

    /// Has the interface hand over frames to other stations, too, until the ring is dropped.
    pub fn receive_all_stations(&self, interface: &str) -> io::Result<()> {
        let index = nix::net::if_::if_nametoindex(interface)?;
        let index = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
        // `struct packet_mreq`: interface, kind, length of an address, the address, which this kind
        // has none of.
        let mut request = [0; 16];
        let kind = u16::try_from(libc::PACKET_MR_PROMISC).map_err(|_| io::ErrorKind::InvalidInput)?;
        request[..4].copy_from_slice(&index.to_ne_bytes());
        request[4..6].copy_from_slice(&kind.to_ne_bytes());
        option::set(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// What became of the socket since the last time, such as that its interface went down or away.
    pub fn take_error(&self) -> io::Result<()> {
        match option::get_int(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }

    /// Sends one frame, now: the receiving interface has it, or has dropped it, when this returns.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send::send_plain(self.socket.as_fd(), frame)
    }

    /// Sends frames back to back, as many as one system call takes (64 at most); how many. An error
    /// means that none was sent.
    pub fn send_batch<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        send::send_many(self.socket.as_fd(), frames)
    }

    /// What it received and dropped since it was opened.
    pub fn counts(&mut self) -> io::Result<RingCounts> {
        let mut octets = [0; 8];
        // `struct tpacket_stats`: frames, dropped ones included, and dropped ones, both since the
        // last reading.
        option::get(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut octets)?;
        let (numbers, _) = octets.as_chunks::<4>();
        let &[seen, dropped] = numbers else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (seen, dropped) = (u32::from_ne_bytes(seen), u32::from_ne_bytes(dropped));
        self.received += u64::from(seen.saturating_sub(dropped));
        self.dropped += u64::from(dropped);
        Ok(RingCounts { received: self.received, dropped: self.dropped })
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
            let protocol = if has(libc::TP_STATUS_VLAN_TPID_VALID) { header.tp_vlan_tpid } else { 0x8100 };
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

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn options(frames: usize, snap_octets: usize) -> RingOptions {
        RingOptions { frames, snap_octets, outgoing: false }
    }

    /// Datagrams over `lo`, in a namespace where nobody else sends.
    fn alone(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
                let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
                assert!(up.unwrap().success());
                std::fs::write("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "1").unwrap();
                work();
            });
        });
    }

    /// Receiving on `lo` is done when the call returns, but for a processor that is very busy.
    fn settle() {
        crate::clock::sleep_until_ns(crate::clock::now_ns() + 50_000_000);
    }

    fn send(count: usize, octets: usize) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let payload = vec![7; octets];
        for _ in 0..count {
            socket.send_to(&payload, socket.local_addr().unwrap()).unwrap();
        }
        settle();
    }

    #[test]
    #[ignore = "lab: needs namespaces"]
    fn frames_come_in_order_with_size_and_stamp_and_are_cut_where_asked() {
        alone(|| {
            let mut ring = PacketRing::open("lo", &options(16, 60)).unwrap();
            assert!(!ring.is_waiting());
            // More than twice around a small ring.
            let capacity = ring.capacity();
            for round in 0..3 {
                for size in 0..capacity - 1 {
                    send_one(100 + size);
                }
                settle();
                let mut last = (0, 0);
                for size in 0..capacity - 1 {
                    let (whole, kept, stamp, outgoing) = ring
                        .receive(|frame| (frame.whole_octets, frame.octets.to_vec(), frame.stamp, frame.outgoing))
                        .unwrap();
                    assert_eq!(whole, 42 + 100 + size, "round {round}");
                    assert_eq!((kept.len(), &kept[12..14]), (60, &[8, 0][..]));
                    assert!(stamp >= last && !outgoing);
                    last = stamp;
                }
                assert_eq!(ring.receive(|_| ()), None);
            }
            let expected = 3 * u64::try_from(capacity - 1).unwrap();
            let counts = ring.counts().unwrap();
            assert_eq!((counts.received, counts.dropped), (expected, 0));
        });
    }

    fn send_one(octets: usize) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&vec![7; octets], socket.local_addr().unwrap()).unwrap();
    }

    #[test]
    #[ignore = "lab: needs namespaces"]
    fn a_full_ring_drops_and_counts() {
        alone(|| {
            let mut ring = PacketRing::open("lo", &options(1, 9_000)).unwrap();
            let capacity = ring.capacity();
            send(capacity + 5, 1_000);
            assert_eq!(std::iter::from_fn(|| ring.receive(|_| ())).count(), capacity);
            let counts = ring.counts().unwrap();
            assert_eq!((counts.received, counts.dropped), (u64::try_from(capacity).unwrap(), 5));
            // It goes on as before.
            send(2, 1_000);
            assert_eq!(std::iter::from_fn(|| ring.receive(|_| ())).count(), 2);
        });
    }

    #[test]
    #[ignore = "lab: needs namespaces"]
    fn batches_are_sent_and_outgoing_frames_seen_where_asked() {
        alone(|| {
            let both = RingOptions { outgoing: true, ..options(64, 2_000) };
            let mut all = PacketRing::open("lo", &both).unwrap();
            let frames: Vec<Vec<u8>> = (0..70).map(|size| vec![0; 60 + size]).collect();
            let sent = all.send_batch(frames.iter().map(Vec::as_slice)).unwrap();
            assert_eq!(sent, 64, "as many as one call takes");
            all.send(&frames[69]).unwrap();
            settle();
            let mut sizes = Vec::new();
            while let Some(frame) = all.receive(|frame| (frame.whole_octets, frame.outgoing)) {
                sizes.push(frame);
            }
            // Frames that a packet socket sends past the queueing discipline are seen by nobody on
            // their way out.
            let expected: Vec<(usize, bool)> = (0..64).chain([69]).map(|size| (60 + size, false)).collect();
            assert_eq!(sizes, expected);
            send(1, 500);
            let mut ways = Vec::new();
            while let Some(outgoing) = all.receive(|frame| frame.outgoing) {
                ways.push(outgoing);
            }
            ways.sort_unstable();
            assert_eq!(ways, [false, true]);
        });
    }

    #[test]
    fn what_no_ring_can_be_is_refused() {
        let too_long = options(16, 70_000);
        // Without privilege the socket is refused before.
        assert!(PacketRing::open("lo", &too_long).is_err());
        assert!(PacketRing::open("nobody", &options(16, 100)).is_err());
    }
}
