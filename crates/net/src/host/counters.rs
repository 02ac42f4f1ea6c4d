//! What this host counts, read before and after a measurement.

use std::fs;

use narrows_diagnose::advice::HostEnvironment;

use super::{Interface, Steal, text};

/// A reading, in the calling thread's network namespace.
#[derive(Debug, Clone, Default)]
pub struct CounterReading {
    steal: Option<Steal>,
    /// Ticks of each processor: in software interrupts, and all.
    processors: Vec<(u64, u64)>,
    fragments: Option<u64>,
    buffer_drops: Option<u64>,
    backlog_drops: Option<u64>,
    ring_drops: Option<u64>,
    damaged_frames: Option<u64>,
}

impl CounterReading {
    /// Reads them now, those of `interface` among them.
    pub fn now(interface: Option<&Interface>) -> Self {
        let folder = interface.and_then(|interface| Interface::folder(&interface.name, interface.index));
        let sum = |files: &[&str]| {
            let values = files.iter().filter_map(|file| {
                let text = fs::read_to_string(folder.as_ref()?.join("statistics").join(file)).ok()?;
                text.trim().parse::<u64>().ok()
            });
            values.reduce(u64::saturating_add)
        };
        let of_thread = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        let snmp = of_thread("snmp");
        Self {
            steal: Steal::read(),
            processors: text::softirq_ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()),
            fragments: text::counter(&snmp, "Ip", "FragCreates"),
            buffer_drops: text::counter(&snmp, "Udp", "RcvbufErrors"),
            backlog_drops: text::softnet(&of_thread("softnet_stat")).map(|[_, dropped, _]| dropped),
            ring_drops: sum(&["rx_missed_errors", "rx_fifo_errors"]),
            damaged_frames: sum(&["rx_crc_errors", "rx_length_errors", "rx_frame_errors", "collisions"]),
        }
    }

    /// Puts what was counted between two readings into `environment`.
    pub fn until(&self, later: &Self, environment: &mut HostEnvironment) {
        let grown = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        let steal = self.steal.as_ref().zip(later.steal.as_ref());
        environment.steal_ratio = steal.and_then(|(before, after)| before.share_until(after)).map(f64::from);
        let processors = self.processors.iter().zip(&later.processors);
        let shares = processors.filter_map(|(before, after)| {
            let all = after.1.checked_sub(before.1).filter(|&ticks| ticks > 0)?;
            Some(after.0.saturating_sub(before.0) as f64 / all as f64)
        });
        environment.softirq_share = shares.reduce(f64::max);
        let counted = &mut environment.counted;
        counted.fragments = grown(self.fragments, later.fragments);
        counted.buffer_drops = grown(self.buffer_drops, later.buffer_drops);
        counted.ring_drops = grown(self.ring_drops, later.ring_drops);
        counted.backlog_drops = grown(self.backlog_drops, later.backlog_drops);
        counted.damaged_frames = grown(self.damaged_frames, later.damaged_frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_become_shares() {
        let before = CounterReading {
            processors: vec![(0, 1000), (10, 1000)],
            ring_drops: Some(3),
            ..CounterReading::default()
        };
        let after = CounterReading {
            processors: vec![(5, 1100), (105, 1100)],
            ring_drops: Some(10),
            ..CounterReading::default()
        };
        let mut environment = HostEnvironment::default();
        before.until(&after, &mut environment);
        assert_eq!(environment.softirq_share, Some(0.95));
        assert_eq!(environment.counted.ring_drops, Some(7));
        assert_eq!(environment.counted.fragments, None, "what was not read is not zero");
    }

    /// Every Linux counts datagrams, fragments and backlogs; loopback has statistics, too.
    #[test]
    fn this_host_counts() {
        let lo = Interface::with_address([127, 0, 0, 1].into());
        let reading = CounterReading::now(lo.as_ref());
        assert!(reading.fragments.is_some() && reading.buffer_drops.is_some() && reading.backlog_drops.is_some());
        assert_eq!(reading.ring_drops, Some(0));
        assert!(!reading.processors.is_empty());
        assert_eq!(CounterReading::now(None).ring_drops, None);
    }
}
