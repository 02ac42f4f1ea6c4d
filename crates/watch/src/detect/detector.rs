//! One signal of one target: readings in, changes out.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_stat::{autocorrelation_lag1, mean, median};
use narrows_units::{rounded, rounded_signed, to_u32, to_usize};
use serde::{Deserialize, Serialize};

use super::baseline::{Baseline, Spread, WARM_UP};
use super::change_time::{ChangePoint, change_point};
use super::chart::{Chart, RATE_PER_SIDE, Score, Side};
use super::score::{from_scale, large, least_spread, scaled, to_scale};
use super::season::Season;
use super::sudden::{Residual, Sudden, sudden};
use super::windows::{KNOWN_HISTORY, Windows};
use crate::signal::{Claim, Reading, Signal};
use crate::time::{ClockStep, Local, WallTime};

/// A change of a signal's level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Of what.
    pub signal: Signal,
    /// To where.
    pub side: Side,
    /// What would be usual now, in the signal's unit.
    pub before: f64,
    /// The level since the change, in the signal's unit.
    pub after: f64,
    /// The change lies after this instant, with 95 % confidence.
    pub at_low: WallTime,
    /// Its most likely instant.
    pub at: WallTime,
    /// The change lies before this instant, with 95 % confidence.
    pub at_high: WallTime,
    /// When it was detected.
    pub found: WallTime,
}

impl Change {
    /// Whether it is large enough for anybody to care: 5 % of the capacity (of the rate before, if
    /// that is unknown), 10 % and 1 ms of a time, 0.5 % of loss.
    pub fn matters(&self, capacity_bps: Option<f64>) -> bool {
        let size = (self.after - self.before).abs();
        match self.signal {
            Signal::AvailableForward | Signal::AvailableReverse | Signal::Capacity => {
                size >= 0.05 * capacity_bps.unwrap_or(self.before.max(self.after))
            }
            Signal::LeastRoundTrip => size >= 0.1 * self.before && size >= 1e6,
            Signal::Queueing => size >= 0.1 * self.before + 1e6,
            Signal::Loss => size >= 5000.0,
        }
    }
}

/// Finds changes of one signal. All of its state survives a restart through serde.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Detector<C = Windows> {
    signal: Signal,
    cadence: Duration,
    baseline: Baseline,
    spread: Spread,
    season: Season,
    chart: C,
    recent: VecDeque<Recent>,
    history: VecDeque<i8>,
    history_day: i64,
    independent: f64,
    held_until: Option<WallTime>,
    last: Option<WallTime>,
}

/// How far a detector is from knowing what is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learning {
    /// The values so far.
    pub values: u32,
    /// The values that it takes.
    pub of: u32,
}

/// A value since the last change.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Recent {
    at: WallTime,
    residual: Residual,
}

impl Detector {
    /// For values about every `cadence`.
    pub fn new(signal: Signal, cadence: Duration) -> Self {
        Self::with_chart(signal, cadence, Windows::default())
    }
}

impl<C: Chart> Detector<C> {
    /// With another chart, for comparisons.
    pub fn with_chart(signal: Signal, cadence: Duration, chart: C) -> Self {
        Self {
            signal,
            cadence,
            baseline: Baseline::default(),
            spread: Spread::default(),
            season: Season::default(),
            chart,
            recent: VecDeque::new(),
            history: VecDeque::new(),
            history_day: 0,
            independent: 1.0,
            held_until: None,
            last: None,
        }
    }

    /// Takes a reading in. Readings that are disturbed, inconclusive or not newer than the last
    /// have no effect.
    pub fn push(&mut self, reading: &Reading, local: Local) -> Option<Change> {
        if !reading.usable() || self.last.is_some_and(|last| reading.at <= last) {
            return None;
        }
        self.last = Some(reading.at);
        self.calibrate_daily(local);
        let scaled = scaled(self.signal, reading);
        let exact = reading.claim == Claim::Estimate;
        if exact && let Some(moved) = self.season.take(local, scaled.y) {
            self.baseline.shift(-moved);
        }
        let residual = scaled.y - self.season.at(local);
        let (up, down) = (reading.claim != Claim::AtMost, reading.claim != Claim::AtLeast);
        let one = Residual { value: residual, sd: scaled.sd, up, down };
        self.remember(Recent { at: reading.at, residual: one });
        if let Some(found) = self.sudden(local) {
            return self.left_its_range(found, local, reading.at);
        }
        if self.baseline.count() < WARM_UP as f64 && self.history.is_empty() {
            self.warm_up(exact, residual, scaled.sd);
            return None;
        }
        if self.held_until.is_some_and(|until| reading.at < until) {
            return None;
        }
        let allowance = ALLOWED * self.season.error_at(local) / self.sd(one.sd);
        let score = Score { allowance, ..self.score(one) };
        self.keep_history(score.z);
        let alarm = self.chart.push(score, self.level_error());
        if let Some(side) = alarm {
            return self.changed(side, local, reading.at);
        }
        if exact {
            self.spread.take(residual - self.baseline.level(), scaled.sd);
            if self.chart.fraction() < FROZEN_FROM {
                self.baseline.take(residual, REACH * self.sd(scaled.sd), self.memory());
            }
        }
        None
    }

    /// What is usual at `local`, in the signal's unit; `None` while warming up.
    pub fn usual(&self, local: Local) -> Option<f64> {
        (!self.history.is_empty()).then(|| from_scale(self.signal, self.baseline.level() + self.season.at(local)))
    }

    /// How far it is from knowing what is usual; `None` once it does.
    pub fn learning(&self) -> Option<Learning> {
        let values = to_u32(to_usize(rounded(self.baseline.count())));
        self.history.is_empty().then_some(Learning { values, of: to_u32(WARM_UP) })
    }

    /// No chart runs until then: the machine slept, so values may be odd.
    pub fn hold_until(&mut self, until: WallTime) {
        self.held_until = Some(until);
        self.chart.clear();
    }

    /// The clock was set: values that come are still newer than those that came.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        step.shift(self.recent.iter_mut().map(|one| &mut one.at).chain(&mut self.held_until).chain(&mut self.last));
    }

    /// Another path: the level is learned anew, spread and thresholds stay.
    pub fn new_baseline(&mut self) {
        self.baseline = Baseline::default();
        self.history.clear();
        self.recent.clear();
        self.season = Season::default();
        self.chart.clear();
    }

    /// The chart, for its statistic and its thresholds.
    pub const fn chart(&self) -> &C {
        &self.chart
    }

    fn warm_up(&mut self, exact: bool, residual: f64, sd: f64) {
        if !exact {
            return;
        }
        self.baseline.take(residual, f64::INFINITY, WARM_UP as f64);
        self.spread.take(residual - self.baseline.level(), sd);
        if self.baseline.count() >= WARM_UP as f64 {
            let residuals: Vec<f64> = self.recent.iter().map(|one| one.residual.value).collect();
            self.baseline = Baseline::new(median(&residuals).unwrap_or(residual), WARM_UP as f64);
            self.spread = Spread::default();
            for one in &self.recent {
                self.spread.take(one.residual.value - self.baseline.level(), one.residual.sd);
            }
            self.keep_history(0.0);
        }
    }

    fn remember(&mut self, value: Recent) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(value);
    }

    fn sd(&self, claimed: f64) -> f64 {
        self.spread.total(claimed).max(least_spread(self.signal, self.baseline.level()))
    }

    fn score(&self, Residual { value, sd, up, down }: Residual) -> Score {
        let z = ((value - self.baseline.level()) / self.sd(sd)).clamp(-CLIP, CLIP);
        let z = if (z > 0.0 && !up) || (z < 0.0 && !down) { 0.0 } else { z };
        Score { z, allowance: 0.0, up, down }
    }

    /// Of a level that is younger than its memory; an older one's error is part of the history
    /// that sets the threshold.
    fn level_error(&self) -> f64 {
        let count = self.baseline.count().max(1.0);
        if count < self.memory() { count.sqrt().recip() } else { 0.0 }
    }

    fn memory(&self) -> f64 {
        if self.season.is_weekly() { MEMORY } else { WARM_UP as f64 }
    }

    /// Scores as eighths of a bit: fourteen days are 20 kB.
    fn keep_history(&mut self, z: f64) {
        let most = to_usize(u64::from(HISTORY_DAYS) * 86_400 / self.cadence.as_secs().max(1));
        while self.history.len() >= most.max(LEAST_HISTORY) {
            self.history.pop_front();
        }
        self.history.push_back(i8::try_from(rounded_signed(z * STEPS)).unwrap_or_default());
    }

    fn calibrate_daily(&mut self, local: Local) {
        if local.day == self.history_day || self.history.len() < LEAST_HISTORY {
            return;
        }
        self.history_day = local.day;
        let scores: Vec<f64> = self.history.iter().map(|one| f64::from(*one) / STEPS).collect();
        self.chart.calibrate(&scores, self.cadence.as_secs_f64() * RATE_PER_SIDE);
        let memory = autocorrelation_lag1(&scores).unwrap_or_default().clamp(0.0, 0.95);
        self.independent = (1.0 - memory) / (1.0 + memory);
    }

    fn changed(&mut self, side: Side, local: Local, found: WallTime) -> Option<Change> {
        let scores: Vec<f64> = self.recent.iter().map(|one| self.score(one.residual).z).collect();
        self.chart.clear();
        let point = change_point(&scores, side, self.independent)?;
        self.change(side, point, local, found)
    }

    /// While the chart has no history to go by.
    fn sudden(&self, local: Local) -> Option<Sudden> {
        if self.history.len() >= KNOWN_HISTORY || self.held_until.is_some_and(|until| self.last < Some(until)) {
            return None;
        }
        let values: Vec<Residual> = self.recent.iter().map(|one| one.residual).collect();
        let season = self.season.at(local);
        sudden(&values, |level| large(self.signal, level + season))
    }

    /// The newest values are the new level, and those before were the old one.
    fn left_its_range(&mut self, sudden: Sudden, local: Local, found: WallTime) -> Option<Change> {
        let Sudden { side, level, old, new } = sudden;
        self.baseline = Baseline::new(level, self.baseline.count());
        self.chart.clear();
        self.change(side, ChangePoint { low: old + 1, best: new, high: new }, local, found)
    }

    fn change(&mut self, side: Side, point: ChangePoint, local: Local, found: WallTime) -> Option<Change> {
        let recent: Vec<Recent> = self.recent.iter().copied().collect();
        let since: Vec<f64> = recent[point.best..].iter().map(|one| one.residual.value).collect();
        let level = if since.len() < 10 { median(&since) } else { mean(&since) }?;
        let season = self.season.at(local);
        let before = from_scale(self.signal, self.baseline.level() + season);
        let time = |index: usize| recent[index].at;
        let previous = |index: usize| index.checked_sub(1).map_or_else(|| self.before_recent(&recent), time);
        let (last_old, first_new) = (previous(point.best), time(point.best));
        let change = Change {
            signal: self.signal,
            side,
            before,
            after: from_scale(self.signal, level + season),
            at_low: previous(point.low),
            at: WallTime::from_millis(last_old.millis() + (first_new.millis() - last_old.millis()) / 2),
            at_high: time(point.high),
            found,
        };
        let since_s = (found.millis() - first_new.millis()) / 1000;
        self.season.shift(level - self.baseline.level(), local.earlier_by(since_s));
        self.baseline = Baseline::new(level, since.len() as f64);
        self.recent.drain(..point.best);
        Some(change)
    }

    /// The newest instant that is known to lie before the oldest value.
    fn before_recent(&self, recent: &[Recent]) -> WallTime {
        let first = recent.first().map_or(0, |one| one.at.millis());
        WallTime::from_millis(first - i64::try_from(self.cadence.as_millis()).unwrap_or(i64::MAX))
    }

    /// The level that a value on the signal's own scale would have to leave: for tests and pages.
    pub fn score_of(&self, value: f64, local: Local) -> f64 {
        let value = to_scale(self.signal, value) - self.season.at(local);
        self.score(Residual { value, sd: 0.0, up: true, down: true }).z
    }
}

/// Scores beyond are no better evidence of a lasting change.
const CLIP: f64 = 4.0;

/// Of what is usual at an hour, so many of its standard deviations from day to day are no evidence:
/// on one day in 160 an hour lies further on that side.
const ALLOWED: f64 = 2.5;

/// The level is frozen while a chart is above this share of its threshold.
const FROZEN_FROM: f64 = 0.5;

/// A value moves the level as if it lay no farther off, in spreads.
const REACH: f64 = 2.0;

/// The level's memory in values, once the week's season is known; before, it follows the hour.
const MEMORY: f64 = 240.0;

/// Values in which the instant of a change is sought.
const RECENT: usize = 240;

const HISTORY_DAYS: u32 = 14;
const LEAST_HISTORY: usize = 720;
const STEPS: f64 = 31.0;
