//! How well a run kept to its plan, so that a stalled machine is never mistaken for the path.

use std::fmt;
use std::time::Duration;

use narrows_scenario::PathDirection;
use narrows_sim::DropCause;

use crate::plan::Side;

/// What one run of a real-time path, or of one link, says about itself. Times are nanoseconds.
///
/// *Late* is the time from the planned release of a packet to the beginning of the call that hands
/// it to the receiving kernel. A *look* is the moment at which the thread looks whether the hosts
/// have sent anything: a packet waits unseen from its sending to the next look, and the path counts
/// its arrival from there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimingReport {
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
    pub poll_gap_p99_ns: u64,
    /// The longest time between two looks.
    pub poll_gap_worst_ns: u64,
    /// Times that the thread stood still for over 100 µs: the machine had something else to do.
    pub stalls: u64,
    /// How long it stood still in all of them.
    pub stalled_ns: u64,
    /// Packets that the sender's and the receiver's kernel dropped before we could take them.
    pub kernel_drops: [u64; 2],
    /// Packets that a receiving kernel refused, and failures to read from a device.
    pub refusals: u64,
    /// Packets to addresses that nobody on the path has (router solicitations of the kernels, for
    /// example). They were not carried.
    pub unroutable_packets: u64,
    /// ICMP errors and echo replies of virtual routers.
    pub router_answers: u64,
    /// What the path itself dropped, as it should. Cross traffic is not counted.
    pub dropped: Vec<Dropped>,
}

/// Packets that one hop dropped for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Which way they went.
    pub way: PathDirection,
    /// The hop, from 0.
    pub hop: usize,
    /// Why.
    pub cause: DropCause,
    /// How many.
    pub packets: u64,
}

impl TimingReport {
    /// Most that half of the releases may be late: a tenth of the time that a 1500-octet packet
    /// takes at 100 Mbit/s.
    pub const LATE_P50_NS: u64 = 10_000;
    /// Most that 99 % of the releases may be late.
    pub const LATE_P99_NS: u64 = 100_000;
    /// Largest share of the run, in thousandths, for which the thread may stand still.
    pub const STALLED_PER_MILLE: u64 = 10;

    /// Whether what the hosts saw was the path rather than this machine: half of the releases were
    /// at most 10 µs late, 99 % at most 100 µs, the thread stood still for at most 1 % of the time,
    /// and no kernel dropped or refused anything. The thresholds are ours: they lie some 10 times
    /// above what a quiet machine does, and below what changes a rate of 100 Mbit/s by a percent
    /// over a train of 100 packets. Methods that look at single gaps should look at the numbers
    /// themselves.
    pub fn timing_valid(&self) -> bool {
        let allowed = self.ran.as_nanos() * u128::from(Self::STALLED_PER_MILLE) / 1000;
        self.late_p50_ns <= Self::LATE_P50_NS
            && self.late_p99_ns <= Self::LATE_P99_NS
            && u128::from(self.stalled_ns) <= allowed
            && self.kernel_drops == [0, 0]
            && self.refusals == 0
    }

    /// One account of several links that were played at once: counts are sums, and every time is
    /// the worst of any link, so that it kept time only if each link did. `ran` is what it says
    /// without any.
    pub(crate) fn joined(links: Vec<Self>, ran: Duration) -> Self {
        let nothing = Self {
            ran,
            accepted: 0,
            releases: 0,
            late_p50_ns: 0,
            late_p99_ns: 0,
            late_worst_ns: 0,
            late_over_100us: 0,
            poll_gap_p99_ns: 0,
            poll_gap_worst_ns: 0,
            stalls: 0,
            stalled_ns: 0,
            kernel_drops: [0, 0],
            refusals: 0,
            unroutable_packets: 0,
            router_answers: 0,
            dropped: Vec::new(),
        };
        let join = |mut all: Self, link: Self| {
            let [first, second] = link.kernel_drops;
            // The shortest run and the longest standstill: the strictest share.
            all.ran = all.ran.min(link.ran);
            all.accepted += link.accepted;
            all.releases += link.releases;
            all.late_p50_ns = all.late_p50_ns.max(link.late_p50_ns);
            all.late_p99_ns = all.late_p99_ns.max(link.late_p99_ns);
            all.late_worst_ns = all.late_worst_ns.max(link.late_worst_ns);
            all.late_over_100us += link.late_over_100us;
            all.poll_gap_p99_ns = all.poll_gap_p99_ns.max(link.poll_gap_p99_ns);
            all.poll_gap_worst_ns = all.poll_gap_worst_ns.max(link.poll_gap_worst_ns);
            // One thread plays all links: its stalls are the same in each report.
            all.stalls = all.stalls.max(link.stalls);
            all.stalled_ns = all.stalled_ns.max(link.stalled_ns);
            all.kernel_drops = [all.kernel_drops[0] + first, all.kernel_drops[1] + second];
            all.refusals += link.refusals;
            all.unroutable_packets += link.unroutable_packets;
            all.router_answers += link.router_answers;
            for dropped in link.dropped {
                all.add_dropped(dropped);
            }
            all
        };
        links.into_iter().reduce(join).unwrap_or(nothing)
    }

    fn add_dropped(&mut self, new: Dropped) {
        let same = |old: &&mut Dropped| (old.way, old.hop, old.cause) == (new.way, new.hop, new.cause);
        match self.dropped.iter_mut().find(same) {
            Some(old) => old.packets += new.packets,
            None => self.dropped.push(new),
        }
    }

    /// Packets that the path dropped.
    pub fn packets_dropped(&self) -> u64 {
        self.dropped.iter().map(|dropped| dropped.packets).sum()
    }
}

impl fmt::Display for TimingReport {
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
            micros(self.poll_gap_worst_ns),
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
        let verdict = if self.timing_valid() {
            "timing valid"
        } else {
            "timing not valid: part of what the hosts saw comes from this machine"
        };
        write!(f, "{verdict}")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn good() -> TimingReport {
        TimingReport {
            ran: Duration::from_secs(10),
            accepted: 1000,
            releases: 1000,
            late_p50_ns: 200,
            late_p99_ns: 25_000,
            late_worst_ns: 3_000_000,
            late_over_100us: 3,
            poll_gap_p99_ns: 3_000,
            poll_gap_worst_ns: 3_000_000,
            stalls: 4,
            stalled_ns: 9_000_000,
            kernel_drops: [0, 0],
            refusals: 0,
            unroutable_packets: 5,
            router_answers: 0,
            dropped: Vec::new(),
        }
    }

    #[test]
    fn each_threshold_is_a_threshold() {
        assert!(good().timing_valid());
        let broken: [fn(&mut TimingReport); 5] = [
            |run| run.late_p50_ns = 10_001,
            |run| run.late_p99_ns = 100_001,
            |run| run.stalled_ns = 100_000_001,
            |run| run.kernel_drops = [0, 1],
            |run| run.refusals = 1,
        ];
        for (index, breaks) in broken.iter().enumerate() {
            let mut run = good();
            breaks(&mut run);
            assert!(!run.timing_valid(), "threshold {index}");
        }
    }

    #[test]
    fn joined_it_timing_valid_only_if_each_did() {
        let joined = |links| TimingReport::joined(links, Duration::from_secs(7));
        assert_eq!(joined(Vec::new()).ran, Duration::from_secs(7));
        assert_eq!(joined(vec![good()]), good());
        assert!(joined(vec![good(), good()]).timing_valid());
        let broken: [fn(&mut TimingReport); 5] = [
            |run| run.late_p50_ns = 10_001,
            |run| run.late_p99_ns = 100_001,
            // 2 % of its own second, and little of the others' ten.
            |run| (run.ran, run.stalled_ns) = (Duration::from_secs(1), 20_000_000),
            |run| run.kernel_drops = [0, 1],
            |run| run.refusals = 1,
        ];
        for breaks in broken {
            let mut bad = good();
            breaks(&mut bad);
            assert!(!bad.timing_valid());
            for links in [vec![good(), bad.clone(), good()], vec![bad, good(), good()]] {
                assert!(!joined(links).timing_valid());
            }
        }
    }

    #[test]
    fn joined_counts_are_sums() {
        let drop_on = |hop, packets| Dropped { way: PathDirection::Forward, hop, cause: DropCause::Queue, packets };
        let mut first = good();
        first.dropped = vec![drop_on(0, 3)];
        let mut second = good();
        second.dropped = vec![drop_on(0, 4), drop_on(1, 5)];
        second.late_worst_ns = 5_000_000;
        let joined = TimingReport::joined(vec![first, second], Duration::ZERO);
        assert_eq!((joined.accepted, joined.releases, joined.stalls), (2000, 2000, 4));
        assert_eq!(joined.dropped, [drop_on(0, 7), drop_on(1, 5)]);
        assert_eq!(joined.late_worst_ns, 5_000_000);
    }

    #[test]
    fn prints_its_verdict() {
        assert_eq!(
            good().to_string(),
            "1000 packets released in 10.0 s; late by 0.2 µs (p50), 25.0 µs (p99), 3000.0 µs (worst); 3 over 100 µs\n\
             stood still 4 times, 9.0 ms in all; longest time between looks 3000.0 µs\n\
             timing valid"
        );
    }
}
