//! What was measured of a host. `None`: it could not be measured here, so it is unknown.

use serde::Serialize;

/// Low, usual and high values of one cost, nanoseconds. Verdicts go by the median, margins by the
/// 99th percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The least.
    pub min_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The most.
    pub max_ns: u64,
}

impl Spread {
    /// Of at least one value; negative ones (a clock that stepped) count as zero.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = narrows_stat::Sorted::from_slice(values).ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped at zero; the cast saturates above"
        )]
        let whole = |value: f64| value.max(0.0).round() as u64;
        Some(Self {
            min_ns: whole(sorted.min()),
            median_ns: whole(sorted.median()),
            p99_ns: whole(sorted.quantile(0.99)?),
            max_ns: whole(sorted.max()),
        })
    }

    /// 99th percentile less median: what the literature calls the noise of a stamp.
    pub fn noise_ns(&self) -> u64 {
        self.p99_ns.saturating_sub(self.median_ns)
    }
}

/// How late a sleep ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SleepRow {
    /// The thread's timer slack.
    pub slack_ns: u64,
    /// How long was asked for.
    pub requested_ns: u64,
    /// How much longer it took.
    pub overshoot: Spread,
}

/// By what departures are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacer {
    /// Sleep, and spin for the last of it.
    Spin,
    /// Sleep alone.
    Sleep,
    /// Departure times given to the kernel (`SO_TXTIME`), kept by the discipline `fq` or `etf`.
    DepartureTimes,
}

/// How well a way to pace keeps a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PacingRow {
    /// Which way.
    pub pacer: Pacer,
    /// The gap that was asked for.
    pub gap_ns: Option<u64>,
    /// How far gaps were off, either way; `None` if it was not measured.
    pub error: Option<Spread>,
    /// The train would pass the check that every train must (see `narrows_net::pace::check`).
    pub kept: Option<bool>,
    /// Why it was not measured.
    pub unknown: Option<String>,
}

/// How noisy stamps of one kind are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StampRow {
    /// Whose: `user`, `kernel`, `hardware`.
    pub source: &'static str,
    /// From the call that sent a packet over loopback to its receive stamp.
    pub delay: Option<Spread>,
    /// 99th percentile less median of that.
    pub noise_ns: Option<u64>,
    /// Why it is not known.
    pub unknown: Option<String>,
}

/// What was got through the loopback interface: the host's own work without any card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Loopback {
    /// One TCP connection, sender and receiver in a thread each.
    pub tcp_bps: Option<u64>,
    /// Processor time of the sending thread for each octet of it, picoseconds. On loopback that
    /// thread also does the kernel's receiving.
    pub tcp_send_ps_per_octet: Option<u64>,
    /// Processor time of the receiving thread for each octet of it, picoseconds.
    pub tcp_receive_ps_per_octet: Option<u64>,
    /// Full-size datagrams, one per call, as fast as they go.
    pub udp_bps: Option<u64>,
    /// The same cut by the kernel out of long ones (`UDP_SEGMENT`).
    pub udp_segments_bps: Option<u64>,
}

/// Everything that was measured, in less than three seconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Costs {
    /// One reading of the clock.
    pub clock_read: Option<Spread>,
    /// The same by a system call, past the vDSO.
    pub clock_system_call: Option<Spread>,
    /// One reading of the processor's cycle counter.
    pub cycle_counter: Option<Spread>,
    /// Smallest non-zero difference of two readings.
    pub clock_resolution_ns: Option<u64>,
    /// Differences of readings one right after the other, for a fifth of a second: what is above
    /// the median was taken from the program.
    pub clock_gaps: Option<Spread>,
    /// 99.9th percentile of those.
    pub clock_gap_p999_ns: Option<u64>,
    /// A call of an empty function; the median, as it is of the order of a nanosecond.
    pub call_ns: Option<f64>,
    /// An empty system call.
    pub system_call: Option<Spread>,
    /// Giving the processor up and getting it back.
    pub yield_processor: Option<Spread>,
    /// From one thread to another on the same processor.
    pub switch_same_processor: Option<Spread>,
    /// From one thread to another on the next processor.
    pub switch_other_processor: Option<Spread>,
    /// Octets copied per second in memory, far beyond the caches: the best of a few.
    pub memory_copy_octets_per_second: Option<u64>,
    /// The worst of them.
    pub memory_copy_lowest_octets_per_second: Option<u64>,
    /// Sending one full-size datagram in a call of its own.
    pub send: Option<Spread>,
    /// Per datagram of 64 in one `sendmmsg`.
    pub send_batch: Option<Spread>,
    /// Per datagram cut by the kernel out of one buffer (`UDP_SEGMENT`).
    pub send_segments: Option<Spread>,
    /// Receiving one datagram that waits.
    pub receive: Option<Spread>,
    /// Per datagram of 64 in one `recvmmsg`.
    pub receive_batch: Option<Spread>,
    /// Per datagram, of those that the kernel hands over merged (`UDP_GRO`).
    pub receive_merged: Option<Spread>,
    /// How late sleeps end.
    pub sleeps: Vec<SleepRow>,
    /// How well departures keep their plan.
    pub pacing: Vec<PacingRow>,
    /// How noisy receive stamps are.
    pub stamps: Vec<StampRow>,
    /// What loopback carried.
    pub loopback: Loopback,
}

impl Costs {
    /// Octets that memory moves per second, reads and writes counted: each copied octet is read
    /// once and written once.
    pub fn memory_octets_per_second(&self) -> Option<f64> {
        self.memory_copy_octets_per_second.map(|copied| 2.0 * copied as f64)
    }

    /// Least processor time for each octet sent, seconds: the cheapest of the ways to send that
    /// were measured.
    pub fn send_seconds_per_octet(&self) -> Option<f64> {
        /// IP octets of the datagrams that were measured.
        const DATAGRAM: f64 = 1500.0;
        let datagram = |spread: Option<Spread>| spread.map(|spread| spread.median_ns as f64 * 1e-9 / DATAGRAM);
        [
            datagram(self.send),
            datagram(self.send_batch),
            datagram(self.send_segments),
            self.loopback.tcp_send_ps_per_octet.map(|ps| ps as f64 * 1e-12),
        ]
        .into_iter()
        .flatten()
        .filter(|cost| *cost > 0.0)
        .min_by(f64::total_cmp)
    }

    /// The same for receiving.
    pub fn receive_seconds_per_octet(&self) -> Option<f64> {
        const DATAGRAM: f64 = 1500.0;
        let datagram = |spread: Option<Spread>| spread.map(|spread| spread.median_ns as f64 * 1e-9 / DATAGRAM);
        [
            datagram(self.receive),
            datagram(self.receive_batch),
            datagram(self.receive_merged),
            self.loopback.tcp_receive_ps_per_octet.map(|ps| ps as f64 * 1e-12),
        ]
        .into_iter()
        .flatten()
        .filter(|cost| *cost > 0.0)
        .min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        let values: Vec<f64> = (1..=101).map(f64::from).collect();
        let spread = Spread::of(&values).unwrap();
        assert_eq!((spread.min_ns, spread.median_ns, spread.max_ns), (1, 51, 101));
        assert_eq!((spread.p99_ns, spread.noise_ns()), (100, 49));
        assert_eq!(Spread::of(&[-5.0]).unwrap().max_ns, 0);
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[f64::NAN]), None);
    }

    #[test]
    fn the_cheapest_way_counts() {
        let flat = |ns| Spread::of(&[ns]);
        let mut costs = Costs { send: flat(1500.0), send_segments: flat(60.0), ..Costs::default() };
        let near = |value: Option<f64>, expected: f64| assert!((value.unwrap() / expected - 1.0).abs() < 1e-9);
        near(costs.send_seconds_per_octet(), 60e-9 / 1500.0);
        costs.loopback.tcp_send_ps_per_octet = Some(20);
        near(costs.send_seconds_per_octet(), 20e-12);
        assert_eq!(costs.receive_seconds_per_octet(), None);
        assert_eq!(Costs::default().memory_octets_per_second(), None);
    }
}
