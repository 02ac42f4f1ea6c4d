//! `recvmmsg`: many messages, their senders and their ancillary data in one call.

#![expect(
    unsafe_code,
    reason = "recvmmsg takes raw pointers and has no safe wrapper that reads every kind of ancillary data"
)]

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::control::{Ancillary, CONTROL_OCTETS, Control, address};

/// Most messages of one call.
pub(crate) const BATCH: usize = 64;

const NAME_OCTETS: usize = size_of::<libc::sockaddr_in6>();
const NAME_LENGTH: libc::socklen_t = 28;
const _: () = assert!(NAME_LENGTH as usize == NAME_OCTETS);

/// One received message; its payload stays in the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    /// Octets that the message has; more than the slot holds if it was cut.
    pub(crate) octets: usize,
    pub(crate) from: Option<SocketAddr>,
    pub(crate) ancillary: Ancillary,
}

/// Room for up to [`BATCH`] messages, reused from call to call.
pub(crate) struct Slots {
    slot_octets: usize,
    payloads: Vec<u8>,
    names: Vec<[u8; NAME_OCTETS]>,
    controls: Vec<Control>,
    messages: Vec<Message>,
}

impl Slots {
    /// Room for `count` messages (at most [`BATCH`], at least one) of `slot_octets` each.
    pub(crate) fn new(count: usize, slot_octets: usize) -> Self {
        let count = count.clamp(1, BATCH);
        Self {
            slot_octets,
            payloads: vec![0; count * slot_octets],
            names: vec![[0; NAME_OCTETS]; count],
            controls: vec![Control::EMPTY; count],
            messages: Vec::with_capacity(count),
        }
    }

    /// Takes what waits, without blocking. With `errors`, from the error queue. How many messages
    /// there are now.
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>, errors: bool) -> io::Result<usize> {
        self.messages.clear();
        let count = self.names.len();
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        let mut headers = [EMPTY_HEADER; BATCH];
        let room = self.payloads.chunks_mut(self.slot_octets.max(1));
        let parts = vectors.iter_mut().zip(&mut headers).zip(room).zip(self.names.iter_mut().zip(&mut self.controls));
        for (((vector, header), payload), (name, control)) in parts {
            vector.iov_base = payload.as_mut_ptr().cast();
            vector.iov_len = payload.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = name.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = NAME_LENGTH;
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL_OCTETS as _;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC | if errors { libc::MSG_ERRQUEUE } else { 0 };
        let vlen = u32::try_from(count).expect("a batch is at most 64");
        // SAFETY: the first `count` headers point to `count` distinct payload slots, names and
        // control blocks, each with its true length, all of which outlive the call (they are
        // borrowed mutably by `self`); there are at least `count` headers.
        let received =
            unsafe { libc::recvmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), vlen, flags as _, ptr::null_mut()) };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        for ((header, name), control) in headers.iter().zip(&self.names).zip(&self.controls).take(received) {
            let named = usize::try_from(header.msg_hdr.msg_namelen).unwrap_or(0).min(NAME_OCTETS);
            #[allow(clippy::unnecessary_cast, reason = "the field's type differs between C libraries")]
            let controlled = (header.msg_hdr.msg_controllen as usize).min(CONTROL_OCTETS);
            self.messages.push(Message {
                octets: header.msg_len as usize,
                from: address(&name[..named]),
                ancillary: Ancillary::parse(&control.0[..controlled]),
            });
        }
        Ok(received)
    }

    /// The messages of the last call, with as much of each payload as its slot held.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Message, &[u8])> + '_ {
        self.messages
            .iter()
            .zip(self.payloads.chunks(self.slot_octets.max(1)))
            .map(|(message, slot)| (message, &slot[..message.octets.min(slot.len())]))
    }
}

/// A header that points nowhere.
const EMPTY_HEADER: libc::mmsghdr = {
    // SAFETY: `mmsghdr` is a C structure of integers and pointers, for all of which the all-zero
    // pattern is a valid value.
    unsafe { std::mem::zeroed() }
};
