//! From trains to available bandwidth: `s = (R - A)/C` over all trains near the turning point, with
//! as much or as little as is known of `C`. Pure, and usable without the method's machine.

use super::begins::{Yielded, under_either};
use super::fit::{MOST, PASSES, PAST, RESOLUTION, ROUNDS, conditional_fit, is_above, lengths};
use super::levels::NORMAL;
use super::quantiles::{ConditionalFit, beyond, quantile, turning_points};
use super::train::TrainSlope;

/// Trains further above the estimate than this overload the narrow link by far, whichever is tight
/// (ours).
const FAR: f64 = 0.45;
/// Trains down to this far below the estimate count (ours).
const BELOW: f64 = 0.2;
/// Share of probability in the tight link being the narrow one, before the trains have spoken
/// (ours: weak, so that two far trains outweigh it).
const ONE_LINK: f64 = 0.4;
/// The tight link is at least this and at most that many times as fast as the narrow one (ours).
const OTHER: (f64, f64) = (0.9, 10.0);
/// Several links of equal room look like one that is at least this many times as fast as the narrow
/// one; and the share of probability in that (ours).
const SEVERAL: (f64, f64) = (0.3, 0.1);
const SEVERAL_GRID: u32 = 40;
/// The least of two normal values lies `1/sqrt(pi)` deviations below their mean in the mean; how
/// much more the interval allows for where more links are alike (ours: of three it is 0.85).
const LEAST_OF_TWO: f64 = 0.564;
const LEAST_OF_MORE: f64 = 0.5;
/// Capacities tried.
const GRID: u32 = 120;
/// What a run ends by is wider than the trains' spread says by this share and what that spread is
/// of the path's rate, up to a limit (ours).
const HEAVY: (f64, f64) = (1.05, 1.6);
/// An interval is this share of what the trains' spread says, more by so many times what that
/// spread is of the path's rate, up to the same limit; and these shares of the floor and of what a
/// twentieth of the probability in capacities puts beyond (ours, so that somewhat more than nine of
/// ten hold the truth beside Poisson traffic and TCP in the simulator: trains see a part of the
/// time that counts, and their spread has the noise of their delays in it).
const LIGHT: (f64, f64) = (0.6, 2.1);
pub(super) const SURE: f64 = 0.625;
const CREDIBLE: f64 = 0.7;
/// The error of all trains is at least this share of what delays that wander within them make of it
/// (ours: blocks of a train share their ends).
const WITHIN: f64 = 0.8;
/// Spread of single trains from which no value is certain, as a share of the path's rate (ours).
const BURSTY: f64 = 0.15;
/// The same for what the trains say more with what lies between their backlogged periods (ours).
const IDLE_MORE: f64 = 0.08;
/// Idle periods alone read high by up to this share of the path's rate beside packets that come one
/// by one (ours: decision 15's 1 to 3 %).
const IDLE_BIAS: f64 = 0.03;
/// From this spread of single trains on, as a share of the path's rate, what lies between their
/// backlogged periods counts, and all of it from the second on (ours: packets of one size that come
/// at random stay below the first).
const WHOLE: (f64, f64) = (0.3, 0.45);
/// From this share of what is believed on, what others may have backed off is no reason to say
/// less, but one not to be sure (ours).
const HINT: f64 = 0.5;
/// Up to this spread of single trains the queues that stood tell what others backed off, as a share
/// of the path's rate (ours): behind a burst nobody sends for a while, and the queue that it left
/// stands.
const LEVELS: f64 = 0.1;
/// No more than this share of what the trains say is taken off for what others backed off (ours):
/// behind queues much longer than the round trips of transfers the line through what they leave
/// bends.
const MOST_GIVEN: f64 = 0.5;

/// What is known of the tight link's capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Capacity {
    /// It is this, bit/s.
    Known(f64),
    /// The narrow link's is this, with this relative standard error; the tight link may be another.
    Narrow {
        /// bit/s.
        rate: f64,
        /// Relative.
        error: f64,
    },
}

impl Capacity {
    /// The centre of what is known.
    pub(crate) fn rate(self) -> f64 {
        match self {
            Self::Known(rate) | Self::Narrow { rate, .. } => rate,
        }
    }
}

/// What the trains say together. Rates in bit/s.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PooledEstimate {
    /// Available bandwidth.
    pub(crate) available: f64,
    /// Its standard error: of the trains' spread, and of the capacity.
    pub(crate) spread_error: f64,
    pub(crate) capacity_error: f64,
    /// Degrees of freedom behind the former.
    pub(crate) dof: f64,
    /// The tight link's capacity, and its standard error.
    pub(crate) capacity: f64,
    pub(crate) capacity_own_error: f64,
    /// Share of probability that the tight link is the narrow one, now.
    pub(crate) one_link: f64,
    /// Estimates of the single trains, with the begin of each (index into what was given).
    pub(crate) per_train: Vec<(usize, f64)>,
    /// Standard deviation of one train of mean length around the common line, bit/s.
    pub(crate) train_spread: f64,
    /// The path's rate.
    pub(crate) scale: f64,
    /// Mean overload of the trains.
    pub(crate) overload: f64,
    /// How far below and above `available` the capacities that are possible put the turning point:
    /// a twentieth of the probability lies beyond.
    pub(crate) by_capacity: (f64, f64),
    /// How much more the trains found than others leave without them.
    pub(crate) yielded: Option<Yielded>,
    /// Probability that several links have as much room as the tight one, times the spread of one
    /// train: each link's room varies by itself, and a train finds the least of them.
    pub(crate) several: f64,
    /// How much more all of the trains say, what lies between their backlogged periods included,
    /// beyond what that reads high anyway.
    pub(crate) idle_more: f64,
}

impl PooledEstimate {
    /// By how much the mean's error is more than what independent trains would have. Where bursts
    /// have no typical size, a few trains seldom meet the largest, and the variance of a mean falls
    /// more slowly than with the inverse of their number.
    fn heavy(&self) -> f64 {
        (HEAVY.0 + self.train_spread / self.scale).min(HEAVY.1)
    }

    /// Trains disagree by more than a tenth of the path's rate or so, or say another thing when
    /// what lies between their backlogged periods counts: bursts.
    pub(crate) fn is_bursty(&self) -> bool {
        self.train_spread > BURSTY * self.scale || self.idle_more > IDLE_MORE * self.scale
    }

    /// No more is available than the tight link carries, whatever the trains' spread says.
    pub(crate) fn most(&self) -> f64 {
        (self.capacity + 2.0 * self.capacity_own_error).max(MOST * self.scale)
    }

    /// How much of it others backed off within the trains: what the begins read less, but for what
    /// chance makes of that.
    pub(crate) fn backed_off(&self) -> f64 {
        let most = MOST_GIVEN * self.available;
        self.yielded.map_or(0.0, |yielded| yielded.beyond_chance().min(most))
    }

    /// Half of the interval that nine tenths of means of so many trains would have.
    fn by_spread(&self) -> f64 {
        let t = narrows_stat::student_t_quantile(0.95, self.dof.max(1.0)).unwrap_or(6.31);
        t * self.spread_error
    }

    /// The lower and the upper half of the interval: beside what the spread and the capacity make
    /// of it, down to what the begins say, and up to what all of the trains say.
    pub(crate) fn halves(&self, floor: f64) -> (f64, f64) {
        let (from, by) = LIGHT;
        let spread = self.by_spread() * (from + by * self.train_spread / self.scale).min(HEAVY.1);
        let spread = spread.hypot(SURE * floor);
        let credible = if self.is_bursty() { 1.0 } else { CREDIBLE };
        let (below, above) = (credible * self.by_capacity.0, credible * self.by_capacity.1);
        let low = spread.hypot(below);
        let high = spread.hypot(above).hypot(self.idle_more).hypot(LEAST_OF_MORE * self.several);
        // From what is left without the others' answer to what the trains found with it.
        let without = self
            .yielded
            .filter(|yielded| yielded.by_chance() > HINT)
            .map(|yielded| yielded.less + (NORMAL * yielded.error).hypot(below).hypot(SURE * floor));
        (without.map_or(low, |without| low.max(without)), high)
    }

    /// By what a run goes on or ends: Student's for the spread, normal for the capacity, and a
    /// floor.
    pub(crate) fn half_width(&self, floor: f64) -> f64 {
        (self.by_spread() * self.heavy()).hypot(NORMAL * self.capacity_error).hypot(floor)
    }
}

/// The narrow link's rate: what trains sent at once come out at, else from trains that overloaded
/// it by far, `C = (R - A)/s`. Never below what came through, and never above twice that: a train
/// at `R >= C` comes out at half of `C` or more. `None` where there is no such train.
pub(crate) fn narrow(trains: &[TrainSlope], available: f64) -> Option<Capacity> {
    let fastest = fastest(trains)?;
    let of_path = || trains.iter().filter(|train| !train.receiver_bound);
    let at_once: Vec<(f64, f64)> = of_path()
        .filter(|train| train.growth.is_infinite())
        .map(|train| (train.rate_out, train.packets as f64))
        .collect();
    // Between the ends of few batches, a packet more or less in the last one shows.
    let coarse = trains
        .iter()
        .filter(|train| train.growth.is_infinite() && train.batch.is_some())
        .map(|train| 1.0 / train.burst_ends.max(1) as f64)
        .fold(0.0, f64::max);
    let by_slope = of_path()
        .filter(|train| train.rate.is_finite() && train.rate >= available + FAR * fastest && train.growth > 0.0)
        // Noise of the rate is that of the traffic of others while the train comes out.
        .map(|train| ((train.rate - available) / train.growth, train.packets as f64));
    let rates: Vec<(f64, f64)> = if at_once.is_empty() { by_slope.collect() } else { at_once };
    let weight: f64 = rates.iter().map(|(_, weight)| weight).sum();
    if rates.is_empty() {
        return None;
    }
    let rate = rates.iter().map(|(rate, weight)| rate * weight).sum::<f64>() / weight;
    let rate = rate.clamp(0.97 * fastest, 2.0 * fastest);
    let load = (1.0 - available / rate).clamp(0.0, 1.0);
    // So many packets of others come out among `weight` of ours; they are random.
    let error = (load / weight.max(1.0)).sqrt().max(coarse).clamp(0.01, 0.3);
    Some(Capacity::Narrow { rate, error })
}

/// How fast the variance of delays grows within trains, seconds.
pub(crate) fn wander<'a>(trains: impl Iterator<Item = &'a TrainSlope>) -> f64 {
    let backlogged = trains.filter(|train| train.backlogged_time > 0.0);
    let of: Vec<f64> = backlogged.map(|train| train.growth_error.powi(2) * train.backlogged_time).collect();
    narrows_stat::mean(&of).filter(|wander| wander.is_finite()).unwrap_or(0.0)
}

/// Highest arrival rate: what the narrow link lets through at least.
pub(crate) fn fastest(trains: &[TrainSlope]) -> Option<f64> {
    trains.iter().map(|train| train.rate_out).reduce(f64::max)
}

/// Trains that the narrow link lets through, and not far below the turning point: there delays are
/// steadier than the model says.
fn near(trains: &[TrainSlope], (lowest, available): (f64, f64), scale: f64, idle: f64) -> Vec<(usize, &TrainSlope)> {
    let top = (PASSES * scale).max(available + PAST * scale);
    let range = (lowest - (BELOW + idle) * scale)..=top;
    trains
        .iter()
        .enumerate()
        .filter(|(_, train)| !train.met_burst && train.rate.is_finite())
        .filter(|(_, train)| train.backlogged_time > 0.0 && range.contains(&train.rate))
        .collect()
}

/// Estimates from all trains; `start` is where the turning point is believed to be, `scale` the
/// path's rate. `None` while no train has overloaded the path near the turning point.
pub(crate) fn pooled(trains: &[TrainSlope], start: f64, scale: f64, capacity: Capacity) -> Option<PooledEstimate> {
    let backlogged = fit_all(trains, start, scale, capacity, 0.0)?;
    let (from, to) = WHOLE;
    let idle = ((backlogged.train_spread / scale - from) / (to - from)).clamp(0.0, 1.0);
    let all = fit_all(trains, start, scale, capacity, 1.0).map_or(backlogged.available, |all| all.available);
    if idle <= 0.0 {
        let idle_more = (all - backlogged.available - IDLE_BIAS * scale).max(0.0);
        return Some(PooledEstimate { idle_more, ..backlogged });
    }
    let Some(whole) = fit_all(trains, start, scale, capacity, idle) else {
        return Some(backlogged);
    };
    // Idle moments are alike, bursts are not: few trains that met few of them would agree by
    // chance.
    Some(PooledEstimate {
        spread_error: whole.spread_error.max(backlogged.spread_error),
        capacity_error: whole.capacity_error.max(backlogged.capacity_error),
        train_spread: whole.train_spread.max(backlogged.train_spread),
        idle_more: (all - whole.available - IDLE_BIAS * scale).max(0.0),
        ..whole
    })
}

/// The same with what lies between the backlogged periods counting by `idle` of its time.
fn fit_all(trains: &[TrainSlope], start: f64, scale: f64, capacity: Capacity, idle: f64) -> Option<PooledEstimate> {
    let (mut available, mut lowest) = (start, start);
    let mut result = None;
    for _ in 0..ROUNDS {
        // A train that counted once goes on to: few trains far above may put the turning point so
        // low that others count, which put it up again, and so on without an end.
        lowest = available.min(lowest);
        let near = near(trains, (lowest, available), scale, idle);
        let Some(found) = posterior(&near, available, scale, capacity, idle) else {
            break;
        };
        let settled = (found.available - available).abs() <= 1e-4 * scale;
        available = found.available;
        result = Some(found);
        if settled {
            break;
        }
    }
    result
}

/// A Bayesian fit of a line with a turning point (ours): `s_j = max(0, R_j - A)/C + e_j`, where the
/// errors are those of random walks, so that their variances go with the inverse of the trains'
/// lengths. `A` has a flat prior and the common variance Jeffreys' (both drop out in closed form,
/// given which trains are above the turning point); `C` is on a grid, whose prior is a mixture:
/// either the narrow link's, as far as that is known, or any faster one.
fn posterior(
    near: &[(usize, &TrainSlope)],
    start: f64,
    scale: f64,
    capacity: Capacity,
    idle: f64,
) -> Option<PooledEstimate> {
    let weights = lengths(near, idle);
    let mut grid: Vec<ConditionalFit> = Vec::new();
    let mut add = |candidate: f64, log_prior: f64, narrow: bool| {
        let found = conditional_fit(near, &weights, start, scale, candidate, idle);
        grid.extend(found.map(|(available, variance, log_likelihood)| ConditionalFit {
            capacity: candidate,
            log_weight: log_prior + log_likelihood,
            available,
            variance,
            narrow,
        }));
    };
    match capacity {
        Capacity::Known(rate) => add(rate, 0.0, true),
        Capacity::Narrow { rate, error } => {
            for step in 0..=24 {
                let z = f64::from(step) / 6.0 - 2.0;
                // 14.36 is the sum of the bell over these steps.
                add(rate * (error * z).exp(), (ONE_LINK / 14.36).ln() - z * z / 2.0, true);
            }
            // Several links with equal room grow the delay together, as one slower link does.
            let (low, high) = (SEVERAL.0.ln(), OTHER.0.ln());
            for step in 0..SEVERAL_GRID {
                let at = low + (high - low) * (f64::from(step) + 0.5) / f64::from(SEVERAL_GRID);
                add(rate * at.exp(), (SEVERAL.1 / f64::from(SEVERAL_GRID)).ln(), false);
            }
            // A link so many times as fast is tight only if the traffic of others leaves one part
            // in so many of it.
            let (low, high) = (OTHER.0.ln(), OTHER.1.ln());
            let step_of = (high - low) / f64::from(GRID);
            let whole = ((-low).exp() - (-high).exp()) / step_of;
            for step in 0..=GRID {
                let at = low + step_of * f64::from(step);
                add(rate * at.exp(), ((1.0 - ONE_LINK) / whole).ln() - at, false);
            }
        }
    }
    average(&grid, near, (scale, capacity.rate()), &weights, idle)
}

/// The mean over the grid; `scale` is the path's rate, `narrow` what is known best of the tight
/// link's capacity.
fn average(
    grid: &[ConditionalFit],
    near: &[(usize, &TrainSlope)],
    (scale, narrow): (f64, f64),
    lengths: &[f64],
    idle: f64,
) -> Option<PooledEstimate> {
    let most = grid.iter().map(|conditional_fit| conditional_fit.log_weight).reduce(f64::max)?;
    let weights: Vec<f64> = grid.iter().map(|conditional_fit| (conditional_fit.log_weight - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mean = |of: &dyn Fn(&ConditionalFit) -> f64| {
        grid.iter().zip(&weights).map(|(conditional_fit, weight)| weight * of(conditional_fit)).sum::<f64>() / sum
    };
    let turning_points = turning_points(grid, &weights);
    // The median: the mean would lean to where little probability reaches far, for faster links put
    // the turning point lower, never higher.
    let available = quantile(&turning_points, sum, 0.5)?;
    let capacity = mean(&|conditional_fit| conditional_fit.capacity);
    if !(available.is_finite() && capacity.is_finite() && capacity > 0.0) {
        return None;
    }
    let variance = mean(&|conditional_fit| conditional_fit.variance);
    let several = mean(&|conditional_fit| if conditional_fit.capacity < OTHER.0 * narrow { 1.0 } else { 0.0 });
    let above: Vec<&(usize, &TrainSlope)> =
        near.iter().filter(|(_, train)| is_above(train, available, scale, idle)).collect();
    let overload = above.iter().map(|(_, train)| train.rate - available).sum::<f64>() / above.len().max(1) as f64;
    // How delays wander within trains is known better than how few trains differ: those may agree
    // by chance.
    let within = wander(above.iter().map(|(_, train)| *train));
    let time: f64 = above.iter().map(|(_, train)| train.backlogged_time).sum();
    let by_wander = WITHIN * capacity * (within / time).sqrt();
    let spread_error = if by_wander.is_finite() { variance.sqrt().max(by_wander) } else { variance.sqrt() };
    let per_train = above.iter().map(|(index, train)| (*index, train.whole(capacity, idle).0.max(0.0)));
    let train_spread = (variance * above.len() as f64).sqrt().max(RESOLUTION * scale);
    Some(PooledEstimate {
        available: available + LEAST_OF_TWO * several * train_spread,
        several: several * train_spread,
        spread_error,
        capacity_error: mean(&|conditional_fit| (conditional_fit.available - available).powi(2)).sqrt(),
        dof: narrows_stat::weighted_dof(lengths).min(above.len().saturating_sub(1) as f64),
        capacity,
        capacity_own_error: mean(&|conditional_fit| (conditional_fit.capacity - capacity).powi(2)).sqrt(),
        one_link: mean(&|conditional_fit| if conditional_fit.narrow { 1.0 } else { 0.0 }),
        per_train: per_train.collect(),
        train_spread,
        overload,
        scale,
        by_capacity: beyond(&turning_points, sum, available),
        yielded: under_either(near, [capacity, narrow], train_spread <= LEVELS * scale),
        idle_more: 0.0,
    })
}
