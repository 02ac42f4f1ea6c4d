//! Simulated minutes of available bandwidth, with every kind of noise that a chart must bear.

use narrows_stat::{SplitMix64, normal_quantile};
use narrows_watch::{Claim, Local, Reading, WallTime, Zone};

/// What the noise of a series is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    White,
    Correlated,
    HeavyTails,
    Diurnal,
    Gaps,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::White, Self::Correlated, Self::HeavyTails, Self::Diurnal, Self::Gaps];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::White => "white noise",
            Self::Correlated => "AR(1), 0.6",
            Self::HeavyTails => "Pareto dips",
            Self::Diurnal => "day, week, AR(1) 0.3",
            Self::Gaps => "the same, gaps, bounds",
        }
    }
}

/// A reading, and the local time that goes with it.
pub(crate) type Value = (Reading, Local);

/// The mean level, bit/s.
pub(crate) const LEVEL: f64 = 60e6;

/// Standard deviation of the noise of every kind, bit/s.
pub(crate) const SIGMA: f64 = 3e6;

pub(crate) struct Source {
    random: SplitMix64,
    memory: f64,
    weather: f64,
    weather_day: i64,
}

impl Source {
    fn normal(&mut self) -> f64 {
        normal_quantile(self.random.next_unit().clamp(1e-12, 1.0 - 1e-12)).unwrap_or(0.0)
    }

    /// Unit variance and mean zero.
    fn noise(&mut self, kind: Kind) -> f64 {
        let memory = match kind {
            Kind::White | Kind::HeavyTails => 0.0,
            Kind::Correlated => 0.6,
            Kind::Diurnal | Kind::Gaps => 0.3,
        };
        let fresh = if kind == Kind::HeavyTails {
            // Pareto of shape 3: mean 1.5, standard deviation 0.866.
            let pareto = (1.0 - self.random.next_unit()).max(1e-12).powf(-1.0 / 3.0);
            (1.5 - pareto) / 0.866
        } else {
            self.normal()
        };
        self.memory = memory * self.memory + (1.0_f64 - memory * memory).sqrt() * fresh;
        self.memory
    }

    /// Usual deviation at this hour: a dip of five spreads in working days' evenings, of two in
    /// nights, each day a little different.
    fn season(&mut self, kind: Kind, local: Local) -> f64 {
        if !matches!(kind, Kind::Diurnal | Kind::Gaps) {
            return 0.0;
        }
        if local.day != self.weather_day {
            self.weather_day = local.day;
            self.weather = 1.0 + 0.1 * self.normal();
        }
        let hour = f64::from(local.second) / 3600.0;
        let evening = (-((hour - 20.0) / 2.5).powi(2)).exp();
        let noon = (-((hour - 13.0) / 3.0).powi(2)).exp();
        let weekend = local.weekday() >= 5;
        -self.weather * (4.0 * evening + if weekend { 0.5 } else { 2.0 } * noon)
    }
}

/// `days` of a series; `None` where a value is missing.
pub(crate) fn series(kind: Kind, seed: u64, days: i64) -> Vec<Option<Value>> {
    let mut source = Source { random: SplitMix64::new(seed), memory: 0.0, weather: 1.0, weather_day: 0 };
    let zone = Zone::fixed(3600);
    let start = 1_767_225_600_000_i64;
    let mut gap = 0_u32;
    (0..days * 1440)
        .map(|minute| {
            let at = WallTime::from_millis(start + minute * 60_000);
            let local = zone.local(at);
            let value = LEVEL + SIGMA * (source.season(kind, local) + source.noise(kind));
            let mut reading = Reading::estimate(at, value, value - 0.8 * SIGMA, value + 0.8 * SIGMA);
            if kind == Kind::Gaps {
                if source.random.next_unit() < 1.0 / 2880.0 {
                    gap = 60;
                }
                gap = gap.saturating_sub(1);
                let chance = source.random.next_unit();
                if gap > 0 || chance < 0.1 {
                    return None;
                }
                reading.loaded = chance < 0.12;
                if chance > 0.95 {
                    reading.claim = Claim::AtLeast;
                    reading.value -= SIGMA;
                    reading.low = reading.value;
                }
            }
            Some((reading, local))
        })
        .collect()
}

/// The same value after a change by `shift` bit/s.
pub(crate) fn shifted((mut reading, local): Value, shift: f64) -> Value {
    reading.value += shift;
    reading.low += shift;
    reading.high += shift;
    (reading, local)
}
