//! From one thread to another and back.

use std::io::{self, Read, Write};
use std::thread;

use narrows_diagnose::host::{Costs, Spread};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::MOST_NS;
use crate::clock;

const ROUNDS: usize = 500;

pub(super) fn measure(costs: &mut Costs) {
    let allowed = allowed();
    if let Some(first) = allowed.first() {
        costs.switch_same_processor = ping_pong(*first, *first).ok().flatten();
    }
    if let [first, second, ..] = allowed.as_slice() {
        costs.switch_other_processor = ping_pong(*first, *second).ok().flatten();
    }
}

/// Processors that this thread may use, ascending.
fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &set)?;
    Ok(())
}

/// Half of a round trip of one octet through two pipes.
fn ping_pong(here: usize, there: usize) -> io::Result<Option<Spread>> {
    let (mut to_read, mut to_write) = io::pipe()?;
    let (mut back_read, mut back_write) = io::pipe()?;
    let answering = thread::spawn(move || -> io::Result<()> {
        pin(there)?;
        let mut octet = [0];
        // Ends when the other side closes its end.
        while to_read.read(&mut octet)? > 0 {
            back_write.write_all(&octet)?;
        }
        Ok(())
    });
    // In a thread of its own: the caller keeps its processors.
    let asking = thread::spawn(move || -> io::Result<Vec<f64>> {
        pin(here)?;
        let mut octet = [7];
        let mut halves = Vec::with_capacity(ROUNDS);
        let deadline = clock::now_ns().saturating_add(MOST_NS);
        while halves.len() < ROUNDS {
            let begun = clock::now_ns();
            if begun > deadline && !halves.is_empty() {
                break;
            }
            to_write.write_all(&octet)?;
            back_read.read_exact(&mut octet)?;
            halves.push(clock::now_ns().saturating_sub(begun) as f64 / 2.0);
        }
        Ok(halves)
    });
    let panicked = || io::Error::other("a measuring thread panicked");
    let halves = asking.join().map_err(|_| panicked())??;
    answering.join().map_err(|_| panicked())??;
    Ok(Spread::of(&halves))
}
