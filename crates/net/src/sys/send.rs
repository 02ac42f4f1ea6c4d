//! `sendmmsg`: many messages in one call, each with its own hop limit or segment size.

#![expect(
    unsafe_code,
    reason = "sendmmsg takes raw pointers; the safe wrappers allocate for each call, which a paced sender cannot afford"
)]

use std::ffi::c_int;
use std::io;
use std::num::NonZeroU8;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Most messages of one call.
pub(crate) const BATCH: usize = 64;

/// One message for a connected socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) payload: &'a [u8],
    /// Hop limit of this packet alone.
    pub(crate) hop_limit: Option<NonZeroU8>,
    /// The kernel cuts the payload into datagrams of this many octets (`UDP_SEGMENT`).
    pub(crate) segment_octets: Option<u16>,
}

const HEADER_OCTETS: usize = size_of::<libc::cmsghdr>();
const ALIGNMENT: usize = size_of::<usize>();
/// Two messages of at most eight octets of data.
const CONTROL_OCTETS: usize = 2 * (HEADER_OCTETS + 8);

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_OCTETS], usize);

impl Control {
    fn of(message: &Message<'_>, ipv6: bool) -> Self {
        let mut control = Self([0; CONTROL_OCTETS], 0);
        if let Some(limit) = message.hop_limit {
            let value = c_int::from(limit.get()).to_ne_bytes();
            if ipv6 {
                control.push(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &value);
            } else {
                control.push(libc::IPPROTO_IP, libc::IP_TTL, &value);
            }
        }
        if let Some(octets) = message.segment_octets {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &octets.to_ne_bytes());
        }
        control
    }

    fn push(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        let at = self.1;
        let length = HEADER_OCTETS + data.len();
        self.0[at..at + ALIGNMENT].copy_from_slice(&length.to_ne_bytes());
        self.0[at + ALIGNMENT..at + ALIGNMENT + 4].copy_from_slice(&level.to_ne_bytes());
        self.0[at + ALIGNMENT + 4..at + HEADER_OCTETS].copy_from_slice(&kind.to_ne_bytes());
        self.0[at + HEADER_OCTETS..at + length].copy_from_slice(data);
        self.1 = at + length.next_multiple_of(ALIGNMENT);
    }
}

/// Sends up to [`BATCH`] messages back to back; how many the kernel took. An error means that it
/// took none.
pub(crate) fn send(fd: BorrowedFd<'_>, messages: &[Message<'_>], ipv6: bool) -> io::Result<usize> {
    if let [Message { payload, hop_limit: None, segment_octets: None }] = messages {
        return send_plain(fd, payload).map(|()| 1);
    }
    let messages = &messages[..messages.len().min(BATCH)];
    let mut controls = [Control([0; CONTROL_OCTETS], 0); BATCH];
    let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
    let mut headers = [EMPTY_HEADER; BATCH];
    let parts = messages.iter().zip(&mut controls).zip(&mut vectors).zip(&mut headers);
    for (((message, control), vector), header) in parts {
        *control = Control::of(message, ipv6);
        vector.iov_base = message.payload.as_ptr().cast_mut().cast();
        vector.iov_len = message.payload.len();
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        if control.1 > 0 {
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = control.1 as _;
        }
    }
    let vlen = u32::try_from(messages.len()).expect("a batch is at most 64");
    // SAFETY: each of the first `vlen` headers points to one payload and one control block with
    // their true lengths, all of which outlive the call; the kernel only reads through them
    // (`iov_base` is mutable for the sake of receiving).
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), vlen, libc::MSG_DONTWAIT as _) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Sends up to [`BATCH`] plain messages back to back; how many the kernel took. An error means that
/// it took none.
pub(crate) fn send_many<'a>(fd: BorrowedFd<'_>, payloads: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
    let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
    let mut headers = [EMPTY_HEADER; BATCH];
    let mut vlen = 0;
    for ((payload, vector), header) in payloads.zip(&mut vectors).zip(&mut headers) {
        vector.iov_base = payload.as_ptr().cast_mut().cast();
        vector.iov_len = payload.len();
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        vlen += 1;
    }
    // SAFETY: each of the first `vlen` headers points to one vector and through it to one payload
    // with its true length, all of which outlive the call ('a does, and the arrays are ours); the
    // kernel only reads the payloads.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), vlen, libc::MSG_DONTWAIT as _) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Sends one message, without blocking.
pub(crate) fn send_plain(fd: BorrowedFd<'_>, payload: &[u8]) -> io::Result<()> {
    // SAFETY: `payload` is valid for reads of its length for the whole call, and the kernel only
    // reads it.
    let sent = unsafe { libc::send(fd.as_raw_fd(), payload.as_ptr().cast(), payload.len(), libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends octets of a file from its page cache, without copying them; how many the kernel took.
pub(crate) fn send_file(fd: BorrowedFd<'_>, file: BorrowedFd<'_>, from: usize, count: usize) -> io::Result<usize> {
    let mut offset = libc::off_t::try_from(from).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: both descriptors are open for the whole call, and the kernel reads and writes one
    // offset, which is ours.
    let sent = unsafe { libc::sendfile(fd.as_raw_fd(), file.as_raw_fd(), &raw mut offset, count) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// A header that points nowhere.
const EMPTY_HEADER: libc::mmsghdr = {
    // SAFETY: `mmsghdr` is a C structure of integers and pointers, for all of which the all-zero
    // pattern is a valid value.
    unsafe { std::mem::zeroed() }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_blocks_read_back() {
        let message = Message { payload: &[], hop_limit: NonZeroU8::new(7), segment_octets: Some(1000) };
        let control = Control::of(&message, false);
        let found = crate::sys::control::Ancillary::parse(&control.0[..control.1]);
        assert_eq!(found.hop_limit, Some(7));
        assert_eq!(control.1, 2 * (HEADER_OCTETS + 8));
    }
}
