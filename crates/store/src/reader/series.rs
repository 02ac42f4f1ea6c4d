//! Points of a series: hours where hours do, else minutes, else what was stored last.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_watch::schedule::TargetId;
use narrows_watch::{Claim, Signal, WallTime};
use rusqlite::{Connection, params};

use super::Reader;
use crate::error::Result;
use crate::names::{PULSE, variant};
use crate::records::{Basis, Point, PulseMinute, Span};
use crate::roll_up::{HOURS, MINUTES, Tier, pulse_summaries, pulses, sample_summaries, stored};
use crate::summary::{Summary, by_interval};

impl Reader {
    /// At most `points` points of a signal.
    pub fn series(&self, target: TargetId, signal: Signal, span: Span, points: usize) -> Result<Vec<Point>> {
        let (since, until) = (span.since.millis(), span.until.millis());
        let points = i64::try_from(points.max(1)).unwrap_or(i64::MAX);
        // Rounded up, so that no point is one too many.
        let interval = (until.saturating_sub(since).max(1) - 1) / points + 1;
        self.ask(|connection| {
            let (mut found, is_of_pulses) = parts(connection, target, signal, (since, until), interval)?;
            if i64::try_from(found.len()).unwrap_or(i64::MAX) > points {
                found = by_interval(&found, since, interval);
            }
            Ok(found.into_iter().map(|part| of_signal(part, signal, is_of_pulses).point()).collect())
        })
    }

    /// A point for each `every` of a time in which something was measured. Points begin at
    /// multiples of it since 1970.
    pub fn series_every(&self, target: TargetId, signal: Signal, span: Span, every: Duration) -> Result<Vec<Point>> {
        let (since, until) = (span.since.millis(), span.until.millis());
        let interval = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
        self.ask(|connection| {
            let (found, is_of_pulses) = parts(connection, target, signal, (since, until), interval)?;
            let found = by_interval(&found, since.div_euclid(interval) * interval, interval);
            Ok(found.into_iter().map(|part| of_signal(part, signal, is_of_pulses).point()).collect())
        })
    }

    /// The newest usable point of a signal at `at`, if there was one in the 24 hours before.
    pub fn at(&self, target: TargetId, signal: Signal, at: WallTime) -> Result<Option<Point>> {
        self.ask(|connection| {
            let span = (at.millis() - DAY_MS, at.millis() + 1);
            let (found, is_of_pulses) = parts(connection, target, signal, span, 1)?;
            let last = found.into_iter().rfind(|part| part.n > 0);
            Ok(last.map(|part| of_signal(part, signal, is_of_pulses).point()))
        })
    }

    /// The newest usable point of each signal.
    pub fn newest(&self, target: TargetId) -> Result<BTreeMap<Signal, Point>> {
        self.ask(|connection| {
            let mut newest = BTreeMap::new();
            for signal in Signal::ALL {
                let mut best: Option<Summary> = None;
                for origin in origins(connection, target, signal)? {
                    let last = origin.last(connection)?;
                    let last = last.map(|part| if origin.is_of_pulses { of_pulses(part, signal) } else { part });
                    best = best.into_iter().chain(last.filter(|part| part.n > 0)).max_by_key(|part| part.at);
                }
                newest.extend(best.map(|part| (signal, part.point())));
            }
            Ok(newest)
        })
    }

    /// Every round trip of a time, as far as it is still kept.
    pub fn pulses(&self, target: TargetId, span: Span) -> Result<Vec<PulseMinute>> {
        self.ask(|connection| {
            let mut found = Vec::new();
            for (series, _) in numbers(connection, target, PULSE)? {
                found.extend(pulses(connection, series, span.since.millis(), span.until.millis())?);
            }
            Ok(found)
        })
    }
}

/// What is known of a signal in a time, in its order, about as fine as `interval`; and whether that
/// is of pulses.
fn parts(
    connection: &Connection,
    target: TargetId,
    signal: Signal,
    (since, until): (i64, i64),
    interval: i64,
) -> Result<(Vec<Summary>, bool)> {
    let origins = origins(connection, target, signal)?;
    let is_of_pulses = origins.iter().any(|origin| origin.is_of_pulses);
    let mut found = Vec::new();
    for origin in origins {
        found.extend(origin.parts(connection, since, until, interval)?);
    }
    found.sort_by_key(|part| part.at);
    Ok((found, is_of_pulses))
}

fn of_signal(part: Summary, signal: Signal, is_of_pulses: bool) -> Summary {
    if is_of_pulses { of_pulses(part, signal) } else { part }
}

/// A series in the file, and whether it holds pulses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    series: i64,
    basis: Option<Basis>,
    is_of_pulses: bool,
    /// Counts of round trips are wanted as well.
    pub(super) with_sketch: bool,
}

/// The series of a signal; the pulses, if it has none of its own and is one of round trips.
fn origins(connection: &Connection, target: TargetId, signal: Signal) -> Result<Vec<Origin>> {
    let origin = |is_of_pulses| move |(series, basis)| Origin { series, basis, is_of_pulses, with_sketch: false };
    let own: Vec<_> = numbers(connection, target, signal.name())?.into_iter().map(origin(false)).collect();
    let is_of_round_trips = matches!(signal, Signal::LeastRoundTrip | Signal::Queueing | Signal::Loss);
    if own.is_empty() && is_of_round_trips {
        return Ok(numbers(connection, target, PULSE)?.into_iter().map(origin(true)).collect());
    }
    Ok(own)
}

/// The series of pulses of a target, with counts of round trips.
pub(super) fn pulse_origins(connection: &Connection, target: TargetId) -> Result<Vec<Origin>> {
    let all = numbers(connection, target, PULSE)?.into_iter();
    Ok(all.map(|(series, basis)| Origin { series, basis, is_of_pulses: true, with_sketch: true }).collect())
}

/// The series of a signal, and from where each was measured.
fn numbers(connection: &Connection, target: TargetId, signal: &str) -> Result<Vec<(i64, Option<Basis>)>> {
    let sql = "select id, basis from series where target = ?1 and signal = ?2 order by id";
    let mut read = connection.prepare_cached(sql)?;
    let rows =
        read.query_map(params![target.number(), signal], |row| Ok((row.get(0)?, variant(&row.get::<_, String>(1)?))))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Origin {
    /// What is known of a time, about as fine as `interval`, in the order of time.
    pub(super) fn parts(self, connection: &Connection, since: i64, until: i64, interval: i64) -> Result<Vec<Summary>> {
        let found = self.rows(connection, since, until, interval)?;
        Ok(found.into_iter().map(|part| Summary { basis: self.basis, ..part }).collect())
    }

    fn rows(self, connection: &Connection, since: i64, until: i64, interval: i64) -> Result<Vec<Summary>> {
        let hours_until = if interval >= HOURS.interval {
            HOURS.watermark(connection)?.unwrap_or(i64::MIN)
        } else {
            // Finer rows are deleted first: hours stand for those.
            HOURS.floor(self.first_fine(connection)?.unwrap_or(i64::MAX))
        };
        let mut found = Vec::new();
        // The hour in which the time begins reaches into it, if hours stand for it at all.
        if hours_until > since {
            found = self.stored(connection, HOURS, HOURS.floor(since), hours_until.min(until))?;
            for part in &mut found {
                part.at = part.at.max(since);
            }
        }
        let hours_until = hours_until.clamp(since, until);
        if !self.is_of_pulses {
            found.extend(sample_summaries(connection, self.series, hours_until, until)?);
            return Ok(found);
        }
        let minutes_until = MINUTES.watermark(connection)?.unwrap_or(i64::MIN).clamp(hours_until, until);
        found.extend(self.stored(connection, MINUTES, hours_until, minutes_until)?);
        found.extend(pulse_summaries(connection, self.series, minutes_until, until)?);
        Ok(found)
    }

    fn stored(self, connection: &Connection, tier: Tier, since: i64, until: i64) -> Result<Vec<Summary>> {
        stored(connection, self.series, tier, since, until, self.with_sketch)
    }

    /// When the rows begin that are finer than hours.
    fn first_fine(self, connection: &Connection) -> Result<Option<i64>> {
        let first = |sql: &str| -> rusqlite::Result<Option<i64>> {
            connection.prepare_cached(sql)?.query_row([self.series], |row| row.get(0))
        };
        if !self.is_of_pulses {
            return Ok(first("select min(at) from sample where series = ?1")?);
        }
        let pulse = first("select min(minute) from pulse where series = ?1")?;
        let minute = first("select min(at) from rollup where series = ?1 and tier = 60")?;
        Ok(pulse.into_iter().chain(minute).min())
    }

    /// The newest row that counts.
    fn last(self, connection: &Connection) -> Result<Option<Summary>> {
        let sql = if self.is_of_pulses {
            "select minute from pulse where series = ?1 and sent > lost order by minute desc limit 1"
        } else {
            "select at from sample where series = ?1 and value is not null and claim < 3 and flags = 0
                order by at desc limit 1"
        };
        let mut read = connection.prepare_cached(sql)?;
        let mut rows = read.query([self.series])?;
        let Some(at) = rows.next()?.map(|row| row.get::<_, i64>(0)).transpose()? else { return Ok(None) };
        let of = if self.is_of_pulses { pulse_summaries } else { sample_summaries };
        let last = of(connection, self.series, at, at + 1)?.pop();
        Ok(last.map(|part| Summary { basis: self.basis, ..part }))
    }
}

/// What pulses say of a signal.
fn of_pulses(part: Summary, signal: Signal) -> Summary {
    let Summary { n, lost, low, high, min, .. } = part;
    match signal {
        Signal::Loss => {
            let sent = n.saturating_add(lost);
            let share = (sent > 0).then(|| f64::from(lost) / f64::from(sent) * 1e6);
            let claim = if sent > 0 { Claim::Estimate } else { Claim::Inconclusive };
            Summary { n: sent, mean: share, low: share, high: share, min: share, max: share, claim, ..part }
        }
        Signal::Queueing => {
            let queueing = high.zip(low).map(|(high, low)| high - low);
            Summary { mean: queueing, low: queueing, high: queueing, min: queueing, max: queueing, ..part }
        }
        // The least of a minute is no mean of anything: its interval is itself.
        _ => Summary { mean: low, high: low, min, max: low, ..part },
    }
}

const DAY_MS: i64 = 86_400_000;
