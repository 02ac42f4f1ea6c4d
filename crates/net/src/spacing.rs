//! How evenly packets left, told in little room however long that goes on.

use std::time::Duration;

/// How evenly datagrams left: times between the beginnings of sends, in logarithmic classes of a
/// sixteenth octave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spacing {
    classes: Vec<u64>,
    count: u64,
    most_ns: u64,
    planned_ns: u64,
    group: u64,
    unrecovered_ns: Option<u64>,
}

/// Packets that are due more often than this leave in groups (ours: below what a busy host's timer
/// and system calls allow).
const GROUP_NS: u64 = 10_000;

/// How many packets, at most `most`, leave at a time where each has `gap_ns`; as many as may be
/// where none has any.
pub fn group(gap_ns: Option<u64>, most: usize) -> usize {
    let group = gap_ns.map_or(most, |gap| usize::try_from(GROUP_NS.div_ceil(gap.max(1))).unwrap_or(most));
    group.clamp(1, most.max(1))
}

const SUB: u32 = 4;
const CLASSES: usize = 64 << SUB;

impl Spacing {
    pub(crate) fn new(planned_ns: u64, group: usize) -> Self {
        Self { classes: vec![0; CLASSES], planned_ns, group: group as u64, ..Self::default() }
    }

    fn class(nanos: u64) -> usize {
        let nanos = nanos.max(1);
        let octave = nanos.ilog2();
        let part = if octave >= SUB { nanos >> (octave - SUB) } else { nanos << (SUB - octave) };
        let part = part & ((1 << SUB) - 1);
        usize::try_from((u64::from(octave) << SUB) | part).unwrap_or(0)
    }

    /// Middle of a class.
    fn nanos(class: usize) -> u64 {
        let (octave, part) = (class >> SUB, class & ((1 << SUB) - 1));
        let value = (((1 << SUB) + part) as f64 + 0.5) / f64::from(1u32 << SUB);
        let octave = i32::try_from(octave).unwrap_or(0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturating")]
        let nanos = (value * 2f64.powi(octave)) as u64;
        nanos
    }

    pub(crate) fn note(&mut self, nanos: u64) {
        self.count += 1;
        self.most_ns = self.most_ns.max(nanos);
        if let Some(class) = self.classes.get_mut(Self::class(nanos)) {
            *class += 1;
        }
    }

    /// Time between sends as planned; zero where there was no rate to keep.
    pub fn planned(&self) -> Duration {
        Duration::from_nanos(self.planned_ns)
    }

    /// Datagrams of each send.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// Time that was lost and not made up for; `None` where only the sender knows, and that is not
    /// this host.
    pub fn unrecovered(&self) -> Option<Duration> {
        self.unrecovered_ns.map(Duration::from_nanos)
    }

    pub(crate) fn give_up(&mut self, nanos: u64) {
        self.unrecovered_ns = Some(nanos);
    }

    /// The same of a sender that planned so: `group` packets every `planned_ns`.
    #[must_use]
    pub(crate) fn planned_as(self, planned_ns: u64, group: usize) -> Self {
        Self { planned_ns, group: group as u64, ..self }
    }

    /// How many times between sends were seen.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A quantile of the times between sends, within three percent; `None` before the second send.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count is one")]
        let rank = (self.count as f64 * share.clamp(0.0, 1.0)) as u64;
        let mut below = 0;
        let class = self.classes.iter().position(|&count| {
            below += count;
            count > 0 && below > rank.min(self.count.saturating_sub(1))
        });
        class.map(|class| Duration::from_nanos(Self::nanos(class)))
    }

    /// The longest time between sends.
    pub fn most(&self) -> Duration {
        Duration::from_nanos(self.most_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_what_was_noted() {
        let mut spacing = Spacing::new(1_000, 1);
        assert_eq!((spacing.quantile(0.5), spacing.unrecovered()), (None, None));
        for _ in 0..99 {
            spacing.note(1_000);
        }
        spacing.note(50_000);
        let within = |share: f64, nanos: f64| {
            let found = spacing.quantile(share).map_or(0.0, |time| time.as_secs_f64() * 1e9);
            assert!((found / nanos - 1.0).abs() < 0.04, "{share}: {found}");
        };
        within(0.5, 1_000.0);
        within(0.98, 1_000.0);
        within(1.0, 50_000.0);
        assert_eq!(spacing.most(), Duration::from_micros(50));
        assert_eq!(spacing.count(), 100);
    }

    #[test]
    fn what_is_too_close_leaves_in_groups() {
        // 1500 octets at 1 Gbit/s; at 10 Gbit/s; and as fast as goes.
        for (gap, expected) in [(Some(12_000), 1), (Some(1_200), 9), (None, 44), (Some(0), 44)] {
            assert_eq!(group(gap, 44), expected, "{gap:?}");
        }
        assert_eq!(group(None, 0), 1);
    }
}
