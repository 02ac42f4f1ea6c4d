//! `SIOCETHTOOL`: settings of an interface that are one number each.

#![expect(
    unsafe_code,
    reason = "this ioctl takes a pointer within a structure and has no safe wrapper"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Sets one such value of an interface in the namespace of the socket.
pub(crate) fn set(socket: BorrowedFd<'_>, interface: &str, command: u32, data: u32) -> io::Result<()> {
    let mut value = Value { command, data };
    // SAFETY: `ifreq` is a C structure of integers, octets and pointers, for all of which zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, octet) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = libc::c_char::from_ne_bytes([octet]);
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the kernel reads and writes one `ifreq`, and through it one `Value`, which is as long as these commands say; both
    // outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
