//! How well a run kept to its plan, so that a stalled machine is never mistaken for the path.

use std::fmt;
use std::time::Duration;

use scenario::Way;
use sim::DropCause;

use crate::plan::Side;

/// What one run of the real-time path says about itself. Times are nanoseconds.
///
/// *Late* is the time from the planned release of a packet to the beginning of the call that hands it to the receiving kernel. A
/// *look* is the moment at which the thread looks whether the hosts have sent anything: a packet waits unseen from its sending to the
/// next look, and the path counts its arrival from there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Honesty {
    /// How long it ran.
    pub ran: Duration,
    /// Packets taken from the hosts for the path.
    pub accepted: u64,
    /// Packets handed to the hosts.
    pub releases: u64,
    /// Half of them were later than this.
    pub late_p50_ns: u64,
    /// One in a hundred was later than this.
    pub late_p99_ns: u64,
    /// The latest.
    pub late_worst_ns: u64,
    /// Releases later than 100 µs.
    pub late_over_100us: u64,
    /// One in a hundred looks came longer than this after the one before.
    pub look_gap_p99_ns: u64,
    /// The longest time between two looks.
    pub look_gap_worst_ns: u64,
    /// Times that the thread stood still for over 100 µs: the machine had something else to do.
    pub stalls: u64,
    /// How long it stood still in all of them.
    pub stalled_ns: u64,
    /// Packets that the sender's and the receiver's kernel dropped before we could take them.
    pub kernel_drops: [u64; 2],
    /// Packets that a receiving kernel refused, and failures to read from a device.
    pub refusals: u64,
    /// Packets to addresses that nobody on the path has (router solicitations of the kernels, for example). They were not carried.
    pub strays: u64,
    /// ICMP errors and echo replies of virtual routers.
    pub router_answers: u64,
    /// What the path itself dropped, as it should. Cross traffic is not counted.
    pub dropped: Vec<Dropped>,
}

/// Packets that one hop dropped for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Which way they went.
    pub way: Way,
    /// The hop, from 0.
    pub hop: usize,
    /// Why.
    pub cause: DropCause,
    /// How many.
    pub packets: u64,
}

impl Honesty {
    /// Most that half of the releases may be late: a tenth of the time that a 1500-octet packet takes at 100 Mbit/s.
    pub const LATE_P50_NS: u64 = 10_000;
    /// Most that 99 % of the releases may be late.
    pub const LATE_P99_NS: u64 = 100_000;
    /// Largest share of the run, in thousandths, for which the thread may stand still.
    pub const STALLED_PER_MILLE: u64 = 10;

    /// Whether what the hosts saw was the path rather than this machine: half of the releases were at most 10 µs late, 99 % at most
    /// 100 µs, the thread stood still for at most 1 % of the time, and no kernel dropped or refused anything. The thresholds are ours:
    /// they lie some 10 times above what a quiet machine does, and below what changes a rate of 100 Mbit/s by a percent over a train
    /// of 100 packets. Methods that look at single gaps should look at the numbers themselves.
    pub fn kept_time(&self) -> bool {
        let allowed = self.ran.as_nanos() * u128::from(Self::STALLED_PER_MILLE) / 1000;
        self.late_p50_ns <= Self::LATE_P50_NS
            && self.late_p99_ns <= Self::LATE_P99_NS
            && u128::from(self.stalled_ns) <= allowed
            && self.kernel_drops == [0, 0]
            && self.refusals == 0
    }

    /// Several reports as one: the worst of each number, the sum of each count, the longest time, drops of all in their order. It
    /// kept time if each did, or if there was none; `ran` is what it says without any.
    pub(crate) fn joined(reports: Vec<Self>, ran: Duration) -> Self {
        let nothing = Self {
            ran,
            accepted: 0,
            releases: 0,
            late_p50_ns: 0,
            late_p99_ns: 0,
            late_worst_ns: 0,
            late_over_100us: 0,
            look_gap_p99_ns: 0,
            look_gap_worst_ns: 0,
            stalls: 0,
            stalled_ns: 0,
            kernel_drops: [0, 0],
            refusals: 0,
            strays: 0,
            router_answers: 0,
            dropped: Vec::new(),
        };
        let join = |mut one: Self, other: Self| {
            one.ran = one.ran.max(other.ran);
            one.accepted += other.accepted;
            one.releases += other.releases;
            one.late_p50_ns = one.late_p50_ns.max(other.late_p50_ns);
            one.late_p99_ns = one.late_p99_ns.max(other.late_p99_ns);
            one.late_worst_ns = one.late_worst_ns.max(other.late_worst_ns);
            one.late_over_100us += other.late_over_100us;
            one.look_gap_p99_ns = one.look_gap_p99_ns.max(other.look_gap_p99_ns);
            one.look_gap_worst_ns = one.look_gap_worst_ns.max(other.look_gap_worst_ns);
            // One thread plays all links: its stalls are the same in each report.
            one.stalls = one.stalls.max(other.stalls);
            one.stalled_ns = one.stalled_ns.max(other.stalled_ns);
            one.kernel_drops = [0, 1].map(|end| one.kernel_drops[end] + other.kernel_drops[end]);
            one.refusals += other.refusals;
            one.strays += other.strays;
            one.router_answers += other.router_answers;
            one.dropped.extend(other.dropped);
            one
        };
        reports.into_iter().reduce(join).unwrap_or(nothing)
    }

    /// Packets that the path dropped.
    pub fn packets_dropped(&self) -> u64 {
        self.dropped.iter().map(|dropped| dropped.packets).sum()
    }
}

impl fmt::Display for Honesty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        writeln!(
            f,
            "{} packets released in {:.1} s; late by {:.1} µs (p50), {:.1} µs (p99), {:.1} µs (worst); {} over 100 µs",
            self.releases,
            self.ran.as_secs_f64(),
            micros(self.late_p50_ns),
            micros(self.late_p99_ns),
            micros(self.late_worst_ns),
            self.late_over_100us,
        )?;
        writeln!(
            f,
            "stood still {} times, {:.1} ms in all; longest time between looks {:.1} µs",
            self.stalls,
            self.stalled_ns as f64 / 1e6,
            micros(self.look_gap_worst_ns),
        )?;
        let [sender, receiver] = self.kernel_drops;
        if sender + receiver + self.refusals > 0 {
            writeln!(
                f,
                "lost outside the path: {sender} in the {}'s kernel, {receiver} in the {}'s; {} refused",
                Side::Sender.name(),
                Side::Receiver.name(),
                self.refusals,
            )?;
        }
        let verdict = if self.kept_time() {
            "kept time"
        } else {
            "did not keep time: what the hosts saw is partly this machine"
        };
        write!(f, "{verdict}")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn good() -> Honesty {
        Honesty {
            ran: Duration::from_secs(10),
            accepted: 1000,
            releases: 1000,
            late_p50_ns: 200,
            late_p99_ns: 25_000,
            late_worst_ns: 3_000_000,
            late_over_100us: 3,
            look_gap_p99_ns: 3_000,
            look_gap_worst_ns: 3_000_000,
            stalls: 4,
            stalled_ns: 9_000_000,
            kernel_drops: [0, 0],
            refusals: 0,
            strays: 5,
            router_answers: 0,
            dropped: Vec::new(),
        }
    }

    #[test]
    fn each_threshold_is_a_threshold() {
        assert!(good().kept_time());
        let broken: [fn(&mut Honesty); 5] = [
            |run| run.late_p50_ns = 10_001,
            |run| run.late_p99_ns = 100_001,
            |run| run.stalled_ns = 100_000_001,
            |run| run.kernel_drops = [0, 1],
            |run| run.refusals = 1,
        ];
        for (index, breaks) in broken.iter().enumerate() {
            let mut run = good();
            breaks(&mut run);
            assert!(!run.kept_time(), "threshold {index}");
        }
    }

    #[test]
    fn prints_its_verdict() {
        assert_eq!(
            good().to_string(),
            "1000 packets released in 10.0 s; late by 0.2 µs (p50), 25.0 µs (p99), 3000.0 µs (worst); 3 over 100 µs\n\
             stood still 4 times, 9.0 ms in all; longest time between looks 3000.0 µs\n\
             kept time"
        );
    }
}
