//! What single calls cost, one value per call.

use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;

use narrows_host_profile::Rows;

use super::super::bench::{PAYLOAD, loopback};
use crate::clock;
use crate::socket::{ProbeSocket, SocketOptions};
use crate::sys::receive::Slots;
use crate::sys::send;

const BLOCKS: usize = 1000;
/// Readings of one block, whose mean counts: one alone is shorter than what it resolves.
const READINGS: u32 = 100;
const ROUNDS: usize = 60;
const PACKETS: usize = 32;
/// On a busy machine each part ends after this.
const MOST_NS: i64 = 500_000_000;

/// Times of one reading of the clock.
pub(super) fn clock_reads() -> Vec<i64> {
    let deadline = clock::now_ns() + MOST_NS;
    let mut means = Vec::with_capacity(BLOCKS);
    while means.len() < BLOCKS {
        let begun = clock::now_ns();
        for _ in 0..READINGS {
            black_box(clock::now_ns());
        }
        let ended = clock::now_ns();
        let took = ended - begun;
        if took < Rows::THRESHOLD_NS {
            means.push(took / i64::from(READINGS));
        }
        if ended > deadline {
            break;
        }
    }
    means
}

/// Times of calls that take one packet that waits.
pub(super) fn receives() -> io::Result<Vec<i64>> {
    let remote = ProbeSocket::bind(loopback(), &SocketOptions::default())?;
    let near = ProbeSocket::connected(remote.local()?, &SocketOptions::default())?;
    let payload = [1; PAYLOAD];
    let mut slots = Slots::new(1, 2048);
    let mut times = Vec::with_capacity(ROUNDS * PACKETS);
    let deadline = clock::now_ns() + MOST_NS;
    for _ in 0..ROUNDS {
        for _ in 0..PACKETS {
            send::send_plain(near.as_fd(), &payload)?;
        }
        loop {
            let begun = clock::now_ns();
            if !slots.receive(remote.as_fd(), false).is_ok_and(|count| count > 0) {
                break;
            }
            let took = clock::now_ns() - begun;
            if took < Rows::THRESHOLD_NS {
                times.push(took);
            }
        }
        if clock::now_ns() > deadline {
            break;
        }
    }
    Ok(times)
}
