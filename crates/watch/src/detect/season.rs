//! What is usual at this hour: hour of the week, shrunk to hour of the day, shrunk to nothing.
//!
//! Each hour of the last four weeks leaves its median. Deviations from the median of all are
//! averaged per hour of day and per hour of week. An average counts as far as the hours differ by
//! more than chance explains: `w = b / (b + v/n)`, where `b` is the variance between hours, `v`
//! within one hour over the weeks, `n` its count (James and Stein's estimate).
//!
//! A season is never quite right: one evening is busier than another. For each hour of the day, the
//! values of the past weeks say how far the others of their slot would have missed them. What that
//! is beyond twice the variance of the middle hour is the season's error at that hour. What all
//! hours miss is noise, and the chart sees it in its own history.

use std::collections::VecDeque;

use narrows_stat::{median, quantile};
use serde::{Deserialize, Serialize};

use crate::time::Local;

/// The season of one series, learned as it runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Season {
    hour: i64,
    values: Vec<f32>,
    medians: VecDeque<(i64, f32)>,
    table: Vec<f64>,
    table_day: i64,
    weekly: bool,
    /// Per hour of the day.
    #[serde(default)]
    errors: Vec<f64>,
}

impl Season {
    /// Takes in a value at `local`, on the detector's scale. Returns by how much what is usual now
    /// moved, if the table was learned anew: a new day does that.
    pub fn take(&mut self, local: Local, y: f64) -> Option<f64> {
        let mut moved = None;
        if local.hour() != self.hour {
            self.close_hour();
            self.hour = local.hour();
            if local.day != self.table_day {
                let before = self.at(local);
                self.table_day = local.day;
                self.learn();
                moved = Some(self.at(local) - before);
            }
        }
        if self.values.len() < MOST_PER_HOUR {
            self.values.push(single(y));
        }
        moved
    }

    /// The usual deviation from the level at `local`; linear between the middles of hours.
    pub fn at(&self, local: Local) -> f64 {
        if self.table.is_empty() {
            return 0.0;
        }
        let within = f64::from(local.second % 3600) / 3600.0 - 0.5;
        let here = local.hour_of_week();
        let beside = if within < 0.0 { here + HOURS - 1 } else { here + 1 } % HOURS;
        self.table[here] * (1.0 - within.abs()) + self.table[beside] * within.abs()
    }

    /// Standard deviation, from day to day, of what is usual at this hour of the day.
    pub fn error_at(&self, local: Local) -> f64 {
        self.errors.get(local.hour_of_week() % 24).copied().unwrap_or_default()
    }

    /// Whether hours of the week are known, not only those of the day.
    pub const fn is_weekly(&self) -> bool {
        self.weekly
    }

    /// The level changed by `by` at `at`: hours before count as if they had been at the new level.
    pub fn shift(&mut self, by: f64, at: Local) {
        for (_, median) in self.medians.iter_mut().filter(|(hour, _)| *hour < at.hour()) {
            *median = single(f64::from(*median) + by);
        }
    }

    fn close_hour(&mut self) {
        let values: Vec<f64> = self.values.drain(..).map(f64::from).collect();
        if values.len() >= LEAST_PER_HOUR
            && let Some(median) = median(&values)
        {
            self.medians.push_back((self.hour, single(median)));
        }
        while self.medians.front().is_some_and(|(hour, _)| *hour + KEPT_HOURS <= self.hour) {
            self.medians.pop_front();
        }
    }

    fn learn(&mut self) {
        let days = self.medians.back().zip(self.medians.front()).map_or(0, |(last, first)| (last.0 - first.0 + 1) / 24);
        self.weekly = days >= WEEKLY_DAYS;
        if days < FIRST_DAYS {
            self.table.clear();
            self.errors.clear();
            return;
        }
        let all: Vec<f64> = self.medians.iter().map(|(_, median)| f64::from(*median)).collect();
        let middle = median(&all).unwrap_or_default();
        let rest: Vec<(i64, f64)> =
            self.medians.iter().map(|(hour, median)| (*hour, f64::from(*median) - middle)).collect();
        let daily = Shrunk::of(&rest, 24);
        let beyond: Vec<(i64, f64)> =
            rest.iter().map(|(hour, rest)| (*hour, rest - daily.means[slot(*hour, 24)])).collect();
        let weekly = self.weekly.then(|| Shrunk::of(&beyond, HOURS));
        let misses = weekly.as_ref().map_or_else(|| daily.misses(&rest), |weekly| weekly.misses(&beyond));
        self.errors = errors(&rest, &misses);
        let (daily, weekly) = (daily.means, weekly.map_or(vec![0.0; HOURS], |weekly| weekly.means));
        // Hour 0 of the local calendar was that of a Thursday; the table begins on Monday.
        self.table = (0..HOURS).map(|hour| daily[hour % 24] + weekly[(hour + HOURS - 72) % HOURS]).collect();
        let mean = self.table.iter().sum::<f64>() / HOURS as f64;
        self.table.iter_mut().for_each(|one| *one -= mean);
    }
}

/// Per hour of the day, the spread of `misses` beyond that of the hour in the middle. What nine of
/// ten keep to tells the spread: an hour after a false alarm may be far off.
fn errors(rest: &[(i64, f64)], misses: &[f64]) -> Vec<f64> {
    let mut hours = vec![Vec::new(); 24];
    for ((hour, _), miss) in rest.iter().zip(misses) {
        hours[slot(*hour, 24)].push(miss.abs());
    }
    let spread = |misses: &Vec<f64>| quantile(misses, NINE_IN_TEN).unwrap_or_default() / NORMAL_90;
    let squares: Vec<f64> = hours.iter().map(|misses| spread(misses).powi(2)).collect();
    let usual = median(&squares).unwrap_or_default();
    squares.iter().map(|square| (square - BY_CHANCE * usual).max(0.0).sqrt()).collect()
}

/// Means per slot of a period, each shrunk to zero as far as chance explains it.
struct Shrunk {
    slots: Vec<Vec<f64>>,
    means: Vec<f64>,
    weight: f64,
}

impl Shrunk {
    fn of(rest: &[(i64, f64)], period: usize) -> Self {
        let mut slots = vec![Vec::new(); period];
        for (hour, value) in rest {
            slots[slot(*hour, period)].push(*value);
        }
        let medians: Vec<f64> = slots.iter().map(|values| median(values).unwrap_or_default()).collect();
        let weight = weight(&slots, &medians);
        Self { slots, means: medians.into_iter().map(|median| median * weight).collect(), weight }
    }

    /// By how much the others of its slot miss each value.
    fn misses(&self, rest: &[(i64, f64)]) -> Vec<f64> {
        let missed = |(hour, value): &(i64, f64)| {
            value - self.weight * without(&self.slots[slot(*hour, self.slots.len())], *value)
        };
        rest.iter().map(missed).collect()
    }
}

/// The share of the variance of `means` that the scatter within slots does not explain.
fn weight(slots: &[Vec<f64>], means: &[f64]) -> f64 {
    let (mut within, mut freedom) = (0.0, 0.0);
    for (values, mean) in slots.iter().zip(means) {
        within += values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        freedom += values.len().saturating_sub(1) as f64;
    }
    let period = slots.len() as f64;
    let between = means.iter().map(|mean| mean * mean).sum::<f64>() / period;
    if freedom < 1.0 || between <= 0.0 {
        return 0.0;
    }
    let count = slots.iter().map(Vec::len).sum::<usize>() as f64 / period;
    (between - within / freedom / count).max(0.0) / between
}

/// The median of the others.
fn without(values: &[f64], one: f64) -> f64 {
    let mut others = values.to_vec();
    if let Some(own) = others.iter().position(|other| other.total_cmp(&one).is_eq()) {
        others.swap_remove(own);
    }
    median(&others).unwrap_or_default()
}

fn slot(hour: i64, period: usize) -> usize {
    usize::try_from(hour.rem_euclid(i64::try_from(period).unwrap_or(1))).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, reason = "seven digits are enough for a median, and half the memory")]
fn single(value: f64) -> f32 {
    value as f32
}

const HOURS: usize = 168;
/// Four weeks.
const KEPT_HOURS: i64 = 4 * 168;

/// A season of the day from then on.
const FIRST_DAYS: i64 = 3;

/// A season of the week from then on.
const WEEKLY_DAYS: i64 = 14;

/// Variances of four weeks differ by a third from hour to hour by chance; beyond twice the middle
/// one is more than that.
const BY_CHANCE: f64 = 2.0;
const NINE_IN_TEN: f64 = 0.9;
/// A normal value is nearer to its mean in nine of ten cases, in standard deviations.
const NORMAL_90: f64 = 1.645;

const LEAST_PER_HOUR: usize = 1;
const MOST_PER_HOUR: usize = 720;

#[cfg(test)]
mod tests {
    use super::*;

    /// `days` of one value every ten minutes.
    fn learned(days: i64, value: impl Fn(Local) -> f64) -> Season {
        let mut season = Season::default();
        for step in 0..days * 144 {
            let local = Local { day: 20_000 + step / 144, second: u32::try_from(step % 144).unwrap() * 600 };
            season.take(local, value(local));
        }
        season
    }

    #[test]
    fn a_daily_swing_is_learned() {
        let season = learned(6, |local| 50.0 + if local.second / 3600 == 20 { -24.0 } else { 0.0 });
        let evening = Local { day: 20_006, second: 20 * 3600 + 1800 };
        assert!((season.at(evening) + 23.0).abs() < 0.1, "{}", season.at(evening));
        assert!((season.at(Local { day: 20_006, second: 1800 }) - 1.0).abs() < 0.1);
    }

    #[test]
    fn a_weekend_is_learned_from_the_second_week_on() {
        let weekend = |local: Local| if local.weekday() >= 5 { 20.0 } else { 0.0 };
        let (short, long) = (learned(10, weekend), learned(21, weekend));
        let saturday =
            (0..7).map(|day| Local { day: 20_021 + day, second: 43_200 }).find(|one| one.weekday() == 5).unwrap();
        let monday = Local { day: saturday.day + 2, ..saturday };
        assert!((long.at(saturday) - long.at(monday) - 20.0).abs() < 1.0);
        assert!((short.at(saturday) - short.at(monday)).abs() < 1e-9);
    }

    #[test]
    fn an_hour_that_differs_from_day_to_day_is_known_less_well() {
        let mut random = narrows_stat::SplitMix64::new(4);
        // Evenings are 8 to 12 below the rest; all hours have a noise of half a unit.
        let days: Vec<f64> = (0..21).map(|_| 8.0 + 4.0 * random.next_unit()).collect();
        let noise: Vec<f64> = (0..21 * 144).map(|_| random.next_unit() - 0.5).collect();
        let season = learned(21, |local| {
            let day = usize::try_from(local.day - 20_000).unwrap();
            let evening = if local.second / 3600 == 20 { days[day] } else { 0.0 };
            50.0 - evening + noise[day * 144 + (local.second / 600) as usize]
        });
        let error = |hour: u32| season.error_at(Local { day: 20_021, second: hour * 3600 });
        // Even over 4 has a spread of 1.15; of a slot's two or three others a mean adds to it.
        assert!((0.9..2.2).contains(&error(20)), "{}", error(20));
        assert!((0..24).filter(|hour| *hour != 20).all(|hour| error(hour) < 0.25));
    }

    #[test]
    fn noise_is_no_season() {
        let mut random = narrows_stat::SplitMix64::new(3);
        let noise: Vec<f64> = (0..21 * 144).map(|_| random.next_unit()).collect();
        let season = learned(21, |local| {
            noise[usize::try_from((local.day - 20_000) * 144).unwrap() + (local.second / 600) as usize]
        });
        let largest = season.table.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
        assert!(largest < 0.15, "{largest}");
    }
}
