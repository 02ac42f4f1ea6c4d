//! TCP options of the control connection, whose words are few and cross queues that the measurement
//! or other traffic fills.

use std::ffi::c_int;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use narrows_wire::IDLE_LIMIT;
use socket2::SockRef;

use crate::sys::option;

/// The kernel ends a connection of whose octets nothing arrives for so long. Both ends speak of
/// silence earlier than that, each by its own limit; a shorter time would end the session while
/// words are still on their way through a full queue.
pub(crate) const GIVEN_UP_AFTER: Duration = IDLE_LIMIT;

/// The kernel's own limit, in place of some fifteen minutes.
pub(crate) fn give_up_late(stream: &impl AsFd) -> io::Result<()> {
    SockRef::from(stream).set_tcp_user_timeout(Some(GIVEN_UP_AFTER))
}

/// A lost word goes again soon, however often it is lost: TCP doubles its wait each time. Where a
/// queue drops every other packet, the fifth try would come after three seconds, the sixth after
/// six.
pub(crate) fn retry_often(stream: &impl AsFd) {
    // Either is a help and no more: kernels before 6.15 do not know the second.
    let _ = SockRef::from(stream).set_tcp_thin_linear_timeouts(true);
    let _ = option::set_int(stream.as_fd(), libc::IPPROTO_TCP, TCP_RTO_MAX_MS, LONGEST_WAIT_MS);
}

/// `linux/tcp.h`; libc does not have it yet.
const TCP_RTO_MAX_MS: c_int = 44;
/// The least that the kernel takes.
const LONGEST_WAIT_MS: c_int = 1000;
