//! `SO_ATTACH_FILTER`: the kernel drops what a classic packet filter refuses before it costs
//! anything.

#![expect(unsafe_code, reason = "the option's value holds a pointer to the program; nothing safe makes one")]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// One instruction of a classic packet filter, as `struct sock_filter` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterInstruction {
    /// What to do.
    pub code: u16,
    /// Instructions to pass over if a test holds.
    pub if_true: u8,
    /// Instructions to pass over if it does not.
    pub if_false: u8,
    /// Operand.
    pub operand: u32,
}

/// Attaches a program to a socket.
pub(crate) fn attach(fd: BorrowedFd<'_>, program: &[FilterInstruction]) -> io::Result<()> {
    let mut instructions: Vec<libc::sock_filter> = program
        .iter()
        .map(|instruction| libc::sock_filter {
            code: instruction.code,
            jt: instruction.if_true,
            jf: instruction.if_false,
            k: instruction.operand,
        })
        .collect();
    let value = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: instructions.as_mut_ptr(),
    };
    let length = libc::socklen_t::try_from(size_of_val(&value)).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel reads `length` octets of `value`, which names `instructions` with their
    // right number; both outlive the call, and the kernel keeps a copy of its own, which it checks
    // before it runs it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET as c_int,
            libc::SO_ATTACH_FILTER,
            (&raw const value).cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
