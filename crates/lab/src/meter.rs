//! Counts what a node's devices receive, every 10 ms: the truth beside cross traffic that real
//! hosts carry.

use std::io::{self, Read, Seek};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_net::clock;
use narrows_scenario::{Counted, Crossed};
use narrows_units::nanos;

use super::error::LabError;
use super::node::Node;

/// What a node's devices had received at some time of the path, since they came up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Reading {
    at_ns: u64,
    packets: u64,
    ip_octets: u64,
}

/// Octets of an Ethernet header, which a device counts too.
const ETHERNET_OCTETS: u64 = 14;

/// Reads a node's counters until it is dropped.
#[derive(Debug)]
pub struct Meter {
    stop: Arc<AtomicBool>,
    readings: Arc<Mutex<Vec<Reading>>>,
    thread: Option<JoinHandle<()>>,
}

impl Meter {
    /// Of this node. The path's clock shows `path_time` now; packets took `behind` from the link
    /// that is counted to the node.
    pub(crate) fn start(node: &Node, path_time: Duration, behind: Duration) -> Result<Self, LabError> {
        let (stop, readings) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let began_ns = clock::now_ns() - clock::nanos(path_time) + clock::nanos(behind);
        let (stopped, read) = (Arc::clone(&stop), Arc::clone(&readings));
        let thread = node.spawn_thread(move || {
            // Without its file a thread has nothing to count; a later reader sees no readings.
            let Ok(mut file) = std::fs::File::open("/proc/thread-self/net/dev") else { return };
            let mut next_ns = clock::now_ns();
            while !stopped.load(Ordering::Relaxed) {
                let at_ns = u64::try_from(clock::now_ns() - began_ns).unwrap_or(0);
                if let Ok((packets, ip_octets)) = received(&mut file) {
                    let reading = Reading { at_ns, packets, ip_octets };
                    read.lock().unwrap_or_else(PoisonError::into_inner).push(reading);
                }
                next_ns = (next_ns + clock::nanos(Counted::EVERY)).max(clock::now_ns());
                clock::sleep_until_ns(next_ns);
            }
        })?;
        Ok(Self { stop, readings, thread: Some(thread) })
    }

    /// What crossed in each interval since the path's time zero. Packets between two readings are
    /// spread evenly.
    pub fn crossed(&self) -> Vec<Crossed> {
        intervals(&self.readings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked counts no more either.
            let _ = thread.join();
        }
    }
}

/// Packets and IP octets that all devices but the loopback have received (`proc_pid_net(5)`).
fn received(file: &mut std::fs::File) -> io::Result<(u64, u64)> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(sum_of(&text))
}

fn sum_of(text: &str) -> (u64, u64) {
    let mut sum = (0, 0);
    for (name, numbers) in text.lines().filter_map(|line| line.split_once(':')) {
        let mut fields = numbers.split_whitespace().map_while(|field| field.parse::<u64>().ok());
        if let (Some(octets), Some(packets)) = (fields.next(), fields.next())
            && name.trim() != "lo"
        {
            sum.0 += packets;
            sum.1 += octets.saturating_sub(packets * ETHERNET_OCTETS);
        }
    }
    sum
}

fn intervals(readings: &[Reading]) -> Vec<Crossed> {
    let every = nanos(Counted::EVERY);
    let mut intervals: Vec<Crossed> = Vec::new();
    for pair in readings.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let packets = to.packets.saturating_sub(from.packets);
        let octets = to.ip_octets.saturating_sub(from.ip_octets);
        for packet in 0..packets {
            let at_ns = from.at_ns + (to.at_ns - from.at_ns) * (2 * packet + 1) / (2 * packets);
            let Ok(interval) = usize::try_from(at_ns / every) else { continue };
            // Octets that do not divide evenly are in the first packets.
            let size = octets / packets + u64::from(packet < octets % packets);
            if intervals.len() <= interval {
                intervals.resize_with(interval + 1, Crossed::default);
            }
            intervals[interval].add(u16::try_from(size).unwrap_or(u16::MAX));
        }
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_but_the_loopback_are_summed() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n    lo:  999   9 0 0\n\
                    path0: 15140      10    0    0\n path1:  114 1 0\n";
        assert_eq!(sum_of(text), (11, 15_000 + 100));
    }

    /// Ten packets of together 10 003 octets between 5 and 25 ms: one each 2 ms from 6 ms on, so
    /// two in the first interval, five in the second, three in the third; three of them are an
    /// octet longer.
    #[test]
    fn packets_between_two_readings_are_spread() {
        const MS: u64 = 1_000_000;
        let reading = |ms, packets, ip_octets| Reading { at_ns: ms * MS, packets, ip_octets };
        let found = intervals(&[reading(5, 7, 700), reading(25, 17, 10_703), reading(35, 17, 10_703)]);
        let mut expected = vec![Crossed::default(); 3];
        for (interval, size) in
            [0, 0, 1, 1, 1, 1, 1, 2, 2, 2].into_iter().zip([1001, 1001, 1001].into_iter().chain([1000; 7]))
        {
            expected[interval].add(size);
        }
        assert_eq!(found, expected);
    }
}
