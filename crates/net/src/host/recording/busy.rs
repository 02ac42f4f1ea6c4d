//! How busy other programs keep the processors.

use std::fs;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

/// Processor time that was used by now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyReading {
    /// By this program, seconds.
    own: f64,
    /// By all, and all that there was, ticks.
    used: u64,
    all: u64,
    ticks_per_second: f64,
}

impl BusyReading {
    /// Reads it; `None` where the system does not tell.
    pub fn read() -> Option<Self> {
        let (used, all) = ticks(&fs::read_to_string("/proc/stat").ok()?)?;
        let own = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?;
        let ticks_per_second = sysconf(SysconfVar::CLK_TCK).ok()?.filter(|ticks| *ticks > 0)?;
        let own = std::time::Duration::from(own).as_secs_f64();
        Some(Self { own, used, all, ticks_per_second: ticks_per_second as f64 })
    }

    /// Share of the processors' time that others used from then to `later`, rounded to a
    /// thousandth.
    pub fn share_until(&self, later: &Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)? as f64;
        let used = later.used.checked_sub(self.used)? as f64;
        let own = (later.own - self.own) * self.ticks_per_second;
        Some((((used - own) / all).clamp(0.0, 1.0) * 1000.0).round() / 1000.0)
    }
}

/// The first line of `/proc/stat`: ticks that were not idle, and all.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    /// User, nice, system, idle, iowait, irq, softirq, steal; guests are counted in the first ones.
    const COLUMNS: usize = 8;
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(COLUMNS).map_while(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)?.checked_add(*ticks.get(4)?)?;
    let all = ticks.iter().try_fold(0u64, |sum, ticks| sum.checked_add(*ticks))?;
    Some((all - idle, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(ticks("cpu  10 0 5 80 5 0 0 0 7 7\ncpu0 1 1 1 1 1"), Some((15, 100)));
        for hostile in ["", "cpu 1 2", "cpu0 1 2 3 4 5 6 7 8", "cpu 18446744073709551615 1 1 1 1"] {
            assert_eq!(ticks(hostile), None, "{hostile:?}");
        }
        let at = |own, used, all| BusyReading { own, used, all, ticks_per_second: 100.0 };
        // 60 of 200 ticks were used, 20 of them by us.
        assert_eq!(at(1.0, 0, 0).share_until(&at(1.2, 60, 200)), Some(0.2));
        assert_eq!(at(1.0, 0, 5).share_until(&at(1.2, 0, 5)), None);
        assert!(BusyReading::read().is_some());
    }
}
