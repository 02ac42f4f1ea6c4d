//! `PACKET_RX_RING` (`TPACKET_V2`): frames that the kernel writes into memory shared with us, so
//! that taking one is no system call.

#![expect(
    unsafe_code,
    reason = "the ring is memory that the kernel writes to at any time; mmap and the hand-over of slots have no safe wrapper"
)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::option;

/// What the kernel needs around a frame in its slot: header, address, room to align the IP header.
const AROUND_OCTETS: usize = libc::TPACKET2_HDRLEN + 32;
const ALIGNMENT: usize = 64;
/// Slots lie in blocks of memory that is contiguous for the kernel.
const BLOCK_OCTETS: usize = 1 << 16;
/// The sender's address stands behind the header, aligned to 16.
const ADDRESS_AT: usize = 32;

/// The shared memory. The socket must live as long as frames should come.
#[derive(Debug)]
pub(crate) struct Slots {
    base: NonNull<u8>,
    octets: usize,
    slot_octets: usize,
    snap_octets: usize,
    per_block: usize,
    count: usize,
    block: usize,
    place: usize,
}

// SAFETY: the mapping belongs to this value alone and is reachable from any thread.
unsafe impl Send for Slots {}

/// A frame in its slot.
#[derive(Debug)]
pub(crate) struct Filled<'a> {
    pub(crate) header: libc::tpacket2_hdr,
    /// `PACKET_HOST`, `PACKET_OUTGOING` and so on.
    pub(crate) kind: u8,
    pub(crate) octets: &'a [u8],
}

impl Slots {
    /// Makes a ring of at least `frames` slots on a packet socket, each for `snap_octets` of a
    /// frame.
    pub(crate) fn map(fd: BorrowedFd<'_>, frames: usize, snap_octets: usize) -> io::Result<Self> {
        let version = c_int::try_from(libc::tpacket_versions::TPACKET_V2 as u32).unwrap_or(1);
        option::set_int(fd, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        let slot_octets = snap_octets
            .checked_add(AROUND_OCTETS)
            .filter(|octets| *octets <= BLOCK_OCTETS)
            .ok_or(io::ErrorKind::InvalidInput)?
            .next_multiple_of(ALIGNMENT);
        let per_block = BLOCK_OCTETS / slot_octets;
        let blocks = frames.div_ceil(per_block).max(1);
        let number = |value: usize| u32::try_from(value).map_err(|_| io::ErrorKind::InvalidInput);
        let request = [number(BLOCK_OCTETS)?, number(blocks)?, number(slot_octets)?, number(blocks * per_block)?];
        // `struct tpacket_req`: block size, blocks, frame size, frames.
        let request = request.map(u32::to_ne_bytes).concat();
        option::set(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let octets = blocks * BLOCK_OCTETS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                octets,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, octets, slot_octets, snap_octets, per_block, count: blocks * per_block, block: 0, place: 0 })
    }

    /// How many frames it holds.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether a frame waits.
    pub(crate) fn is_filled(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Shows the next frame, if there is one, and gives its slot back.
    #[inline]
    pub(crate) fn take<R>(&mut self, see: impl FnOnce(Filled<'_>) -> R) -> Option<R> {
        if !self.is_filled() {
            return None;
        }
        let slot = self.slot();
        // SAFETY: the status word, read with acquire ordering, says that the slot is ours until we
        // write it back: the kernel has finished this header and does not change it. The slot
        // begins at a multiple of 64, enough for the structure.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        // SAFETY: within the slot, as above; `sockaddr_ll` is integers alone.
        let address = unsafe { slot.add(ADDRESS_AT).cast::<libc::sockaddr_ll>().read() };
        let begin = usize::from(header.tp_mac).min(self.slot_octets);
        let length = usize::try_from(header.tp_snaplen)
            .unwrap_or(usize::MAX)
            .min(self.slot_octets - begin)
            // The kernel fills the slot, which is rounded up.
            .min(self.snap_octets);
        // SAFETY: begin and length stay within the slot, which is ours until its status is written
        // below; the borrow ends with `see`.
        let octets = unsafe { std::slice::from_raw_parts(slot.add(begin).as_ptr(), length) };
        let result = see(Filled { header, kind: address.sll_pkttype, octets });
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.place += 1;
        if self.place == self.per_block {
            (self.place, self.block) = (0, self.block + 1);
            if self.block * self.per_block == self.count {
                self.block = 0;
            }
        }
        Some(result)
    }

    fn slot(&self) -> NonNull<u8> {
        let offset = self.block * BLOCK_OCTETS + self.place * self.slot_octets;
        // SAFETY: block and place stay below their counts, so the offset is within the mapping.
        unsafe { self.base.add(offset) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: each slot begins with its 32-bit status, aligned to 64, which both sides only
        // touch as a whole; the mapping lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.slot().cast().as_ptr()) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: this value made the mapping, of this length, and nothing borrows from it any
        // more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.octets) };
    }
}
