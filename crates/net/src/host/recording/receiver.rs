//! The receiving program: sleeps until packets come.

use std::io;
use std::sync::atomic::AtomicBool;

use crate::receive::Receiver;
use crate::socket::ProbeSocket;

/// Of each packet, by its number: the kernel's stamp, and when the program had it.
pub(super) type Arrivals = Vec<Option<(i64, i64)>>;

pub(super) fn run(socket: &ProbeSocket, deadline_ns: i64, over: &AtomicBool) -> io::Result<Arrivals> {
    let mut receiver = Receiver::new(socket, 64);
    let mut came: Arrivals = Vec::new();
    receiver.receive_until(socket, deadline_ns, over, |datagram| {
        let number = datagram.payload.first_chunk().map(|octets| u32::from_be_bytes(*octets));
        if let (Some(index), Some(kernel_ns)) =
            (number.and_then(|seq| usize::try_from(seq).ok()), datagram.seen.kernel_ns)
            && index < MOST_PACKETS
        {
            if came.len() <= index {
                came.resize(index + 1, None);
            }
            came[index] = Some((kernel_ns, datagram.seen.user_ns));
        }
        true
    })?;
    Ok(came)
}

/// A stray packet's number must not take memory: more than an hour's recording sends.
const MOST_PACKETS: usize = 40_000_000;
