//! `SO_TXTIME`: a packet says when it should leave; the disciplines `fq` and `etf` keep to it,
//! others do not look.

#![expect(unsafe_code, reason = "sendmsg with this kind of ancillary data has no safe wrapper")]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::option;

const SO_TXTIME: c_int = 61;
const SCM_TXTIME: c_int = SO_TXTIME;
const HEADER_OCTETS: usize = size_of::<libc::cmsghdr>();
const ALIGNMENT: usize = size_of::<usize>();

/// One message with a 64-bit time, aligned as the kernel reads it.
#[repr(C, align(8))]
struct Control([u8; HEADER_OCTETS + 8]);

/// Lets messages of this socket carry departure times of `CLOCK_MONOTONIC`, the one clock that
/// needs no privilege.
pub(crate) fn enable(fd: BorrowedFd<'_>) -> io::Result<()> {
    // `struct sock_txtime`: the clock, and flags.
    let value = [libc::CLOCK_MONOTONIC.to_ne_bytes(), 0i32.to_ne_bytes()].concat();
    option::set(fd, libc::SOL_SOCKET, SO_TXTIME, &value)
}

/// Sends one message on a connected socket, to leave at this time.
pub(crate) fn send_at(fd: BorrowedFd<'_>, payload: &[u8], at_ns: u64) -> io::Result<()> {
    let mut control = Control([0; HEADER_OCTETS + 8]);
    let length = control.0.len();
    control.0[..ALIGNMENT].copy_from_slice(&length.to_ne_bytes());
    control.0[ALIGNMENT..ALIGNMENT + 4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    control.0[ALIGNMENT + 4..HEADER_OCTETS].copy_from_slice(&SCM_TXTIME.to_ne_bytes());
    control.0[HEADER_OCTETS..].copy_from_slice(&at_ns.to_ne_bytes());
    let mut vector = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
    // SAFETY: `msghdr` is a C structure of integers and pointers, for all of which zero is a valid
    // value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = ptr::null_mut();
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = length as _;
    // SAFETY: the message points to one vector, one payload and one control block with their true
    // lengths, all of which outlive the call; the kernel only reads through them.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    /// Loopback has no discipline: the message leaves at once, whole.
    #[test]
    fn a_message_with_a_time_is_sent() {
        let remote = UdpSocket::bind("127.0.0.1:0").unwrap();
        remote.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(remote.local_addr().unwrap()).unwrap();
        enable(near.as_fd()).unwrap();
        let at = u64::try_from(crate::clock::now_ns()).unwrap() + 1_000_000;
        send_at(near.as_fd(), b"later", at).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(remote.recv(&mut buffer).unwrap(), 5);
        assert_eq!(&buffer[..5], b"later");
    }
}
