//! Socket options by level and number, as octets.

#![expect(
    unsafe_code,
    reason = "getsockopt and setsockopt take raw pointers; several options have no safe wrapper anywhere"
)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets an option from its octets (host order).
pub(crate) fn set(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `value` is valid for reads of `length` octets for the whole call, and the kernel only
    // reads it.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option that is an `int`.
pub(crate) fn set_int(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set(fd, level, name, &value.to_ne_bytes())
}

/// Reads an option into `value`; how many octets the kernel wrote, never more than `value` holds.
pub(crate) fn get(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &mut [u8]) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `value` is valid for writes of `length` octets, and the kernel writes no more than it
    // is told there is.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length) };
    if result == 0 {
        Ok(usize::try_from(length).map_or(value.len(), |length| length.min(value.len())))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads an option that is an `int`.
pub(crate) fn get_int(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut octets = [0; size_of::<c_int>()];
    get(fd, level, name, &mut octets)?;
    Ok(c_int::from_ne_bytes(octets))
}
