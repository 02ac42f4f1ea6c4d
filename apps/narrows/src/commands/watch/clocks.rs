//! The clocks of a process that runs for months: steps of the wall clock, sleep, the local zone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_net::clock;
use narrows_watch::{BootTime, ClockStep, Moment, WallTime, Zone};

/// What a clock did between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    /// The machine slept.
    Slept(Duration),
    /// The wall clock was set.
    Stepped(ClockStep),
}

/// One look at all three clocks, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockReading {
    pub(super) monotonic: i64,
    pub(super) boot: i64,
    pub(super) wall: i64,
}

/// Notices what they do.
pub(super) struct Clocks {
    last: ClockReading,
    read: Box<dyn FnMut() -> ClockReading>,
}

impl ClockReading {
    pub(super) fn now() -> Self {
        Self { monotonic: clock::now_ns(), boot: clock::boot_ns(), wall: clock::wall_ns() }
    }

    pub(super) fn moment(self) -> Moment {
        Moment {
            boot: BootTime::from_millis(u64::try_from(self.boot / 1_000_000).unwrap_or(0)),
            wall: WallTime::from_millis(self.wall.div_euclid(1_000_000)),
        }
    }
}

/// Now, on both clocks of the schedule.
pub(super) fn now() -> Moment {
    ClockReading::now().moment()
}

impl Clocks {
    /// Those of this machine.
    pub(super) fn new() -> Self {
        Self::read_by(ClockReading::now)
    }

    /// Others: a test sets them as it likes.
    pub(super) fn read_by(mut read: impl FnMut() -> ClockReading + 'static) -> Self {
        Self { last: read(), read: Box::new(read) }
    }

    /// When they were looked at last.
    pub(super) fn looked(&self) -> Moment {
        self.last.moment()
    }

    /// Now, and what happened since the last look. Nothing that carries a time may be taken in
    /// between: it would be told by the wrong clock.
    pub(super) fn look(&mut self) -> (Moment, Vec<Jump>) {
        let now = (self.read)();
        (now.moment(), self.jumps(now))
    }

    fn jumps(&mut self, now: ClockReading) -> Vec<Jump> {
        let last = std::mem::replace(&mut self.last, now);
        let slept = (now.boot - last.boot) - (now.monotonic - last.monotonic);
        let expected = last.wall + (now.boot - last.boot);
        let mut jumps = Vec::new();
        if slept > SLEEP_NS {
            jumps.push(Jump::Slept(Duration::from_nanos(slept.unsigned_abs())));
        }
        if (now.wall - expected).abs() > STEP_NS {
            let wall = |ns: i64| WallTime::from_millis(ns.div_euclid(1_000_000));
            jumps.push(Jump::Stepped(ClockStep { from: wall(expected), to: wall(now.wall) }));
        }
        jumps
    }
}

/// The zone that `TZ` or `/etc/localtime` names; UTC if neither can be read.
pub(crate) fn local_zone() -> Zone {
    let named = std::env::var("TZ").ok().map(|name| name.trim_start_matches(':').to_owned());
    let path = match named.as_deref() {
        None => PathBuf::from("/etc/localtime"),
        Some("") => return Zone::fixed(0),
        Some(name) => Path::new("/usr/share/zoneinfo").join(name),
    };
    std::fs::read(path).ok().and_then(|octets| zone(&octets)).unwrap_or(Zone::fixed(0))
}

/// The table of a file of RFC 9636, in its version 2 or later.
fn zone(octets: &[u8]) -> Option<Zone> {
    let (_, rest) = block(octets, 4)?;
    let (zone, _) = block(rest, 8)?;
    Some(zone)
}

/// One header with its data, whose times have `width` octets; and what follows.
fn block(octets: &[u8], width: usize) -> Option<(Zone, &[u8])> {
    const HEADER: usize = 44;
    let version = *octets.strip_prefix(b"TZif")?.first()?;
    if version < b'2' {
        return None;
    }
    let count = |index: usize| {
        let at = 20 + 4 * index;
        Some(u32::from_be_bytes(*octets.get(at..)?.first_chunk()?) as usize)
    };
    let [ut, standard, leaps, times, types, letters] =
        [count(0)?, count(1)?, count(2)?, count(3)?, count(4)?, count(5)?];
    let data = octets.get(HEADER..)?;
    let (stamps, data) = data.split_at_checked(times.checked_mul(width)?)?;
    let (indices, data) = data.split_at_checked(times)?;
    let (offsets, data) = data.split_at_checked(types.checked_mul(6)?)?;
    let offset =
        |index: u8| -> Option<i32> { Some(i32::from_be_bytes(*offsets.get(usize::from(index) * 6..)?.first_chunk()?)) };
    let seconds = |stamp: &[u8]| match width {
        8 => stamp.first_chunk().map(|octets| i64::from_be_bytes(*octets)),
        _ => stamp.first_chunk().map(|octets| i64::from(i32::from_be_bytes(*octets))),
    };
    let changes = stamps
        .chunks_exact(width)
        .zip(indices)
        .map(|(stamp, index)| Some((WallTime::from_millis(seconds(stamp)?.saturating_mul(1000)), offset(*index)?)));
    let changes: Option<Vec<_>> = changes.collect();
    let rest = letters.checked_add(leaps.checked_mul(width + 4)?)?.checked_add(standard)?.checked_add(ut)?;
    Some((Zone::with_changes(offset(0)?, changes?), data.get(rest..)?))
}

const SLEEP_NS: i64 = 1_000_000_000;
const STEP_NS: i64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_and_steps_are_told_apart() {
        const SECOND: i64 = 1_000_000_000;
        let mut clocks = Clocks::read_by(|| ClockReading { monotonic: 0, boot: 0, wall: 50 * SECOND });
        let at = |monotonic: i64, boot: i64, wall: i64| ClockReading {
            monotonic: monotonic * SECOND,
            boot: boot * SECOND,
            wall: wall * SECOND,
        };
        assert!(clocks.jumps(at(1, 1, 51)).is_empty());
        // An hour of sleep: the wall clock goes on.
        assert_eq!(clocks.jumps(at(2, 3602, 3652)), [Jump::Slept(Duration::from_secs(3600))]);
        let wall = |seconds: i64| WallTime::from_millis(seconds * 1000);
        let step = ClockStep { from: wall(3653), to: wall(100) };
        assert_eq!(clocks.jumps(at(3, 3603, 100)), [Jump::Stepped(step)]);
        assert!(clocks.jumps(at(4, 3604, 101)).is_empty());
    }

    /// Two changes, of which the second goes back; version 1 has no data, as slim files have it.
    #[test]
    fn a_table_of_rfc_9636_is_read() {
        let header = |times: u32, types: u32| {
            let mut octets = b"TZif2".to_vec();
            octets.extend([0; 15]);
            for count in [0, 0, 0, times, types, 4] {
                octets.extend(count.to_be_bytes());
            }
            octets
        };
        let mut octets = header(0, 1);
        octets.extend([0; 6]);
        octets.extend(b"UTC\0");
        octets.extend(header(2, 2));
        for time in [1_000_i64, 2_000] {
            octets.extend(time.to_be_bytes());
        }
        octets.extend([1, 0]);
        for offset in [3600_i32, 7200] {
            octets.extend(offset.to_be_bytes());
            octets.extend([0, 0]);
        }
        octets.extend(b"CET\0");
        octets.extend(b"\nCET-1\n");
        let expected = Zone::with_changes(
            3600,
            vec![(WallTime::from_millis(1_000_000), 7200), (WallTime::from_millis(2_000_000), 3600)],
        );
        assert_eq!(zone(&octets), Some(expected));
        for length in 0..octets.len() - 7 {
            assert_eq!(zone(&octets[..length]), None, "{length}");
        }
        assert_eq!(zone(b"TZif"), None);
    }
}
