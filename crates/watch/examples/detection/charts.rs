//! Charts to compare with. Each gives a statistic for every value; an alarm is where it is above a
//! threshold, which the program sets to equal false alarms.

use std::collections::VecDeque;

/// A method: values in, a statistic out.
pub(crate) trait Statistic {
    fn push(&mut self, value: f64) -> f64;
}

/// `[Page54]`, allowance 0.5, one threshold for all series.
#[derive(Default)]
pub(crate) struct TwoSidedCusum(f64, f64);

impl Statistic for TwoSidedCusum {
    fn push(&mut self, z: f64) -> f64 {
        let z = z.clamp(-4.0, 4.0);
        self.0 = (self.0 + z - 0.5).max(0.0);
        self.1 = (self.1 - z - 0.5).max(0.0);
        self.0.max(self.1)
    }
}

/// Generalised likelihood ratio over windows of growing length, at least four values.
#[derive(Default)]
pub(crate) struct PlainWindows(VecDeque<f64>);

impl Statistic for PlainWindows {
    fn push(&mut self, z: f64) -> f64 {
        if self.0.len() == 128 {
            self.0.pop_back();
        }
        self.0.push_front(z.clamp(-4.0, 4.0));
        let (mut sum, mut best) = (0.0_f64, 0.0_f64);
        for (count, z) in (1_u32..).zip(&self.0) {
            sum += z;
            if count >= 4 && (count < 16 || count % 8 == 0) {
                best = best.max(sum * sum / (2.0 * f64::from(count)));
            }
        }
        best
    }
}

/// Two values in a row beyond the threshold, on one side.
#[derive(Default)]
pub(crate) struct TwoInARow(f64);

impl Statistic for TwoInARow {
    fn push(&mut self, z: f64) -> f64 {
        let last = std::mem::replace(&mut self.0, z);
        if last * z > 0.0 { last.abs().min(z.abs()) } else { 0.0 }
    }
}

/// Page-Hinkley as streaming libraries have it: the mean is that of all values so far.
#[derive(Default)]
pub(crate) struct PageHinkley {
    count: f64,
    mean: f64,
    up: f64,
    down: f64,
}

impl Statistic for PageHinkley {
    fn push(&mut self, value: f64) -> f64 {
        self.count += 1.0;
        self.mean += (value - self.mean) / self.count;
        self.up = (self.up + value - self.mean - 0.25).max(0.0);
        self.down = (self.down - value + self.mean - 0.25).max(0.0);
        self.up.max(self.down)
    }
}

/// `SmokePing`'s Medratio: the median of the last 5 values over that of the 60 before.
#[derive(Default)]
pub(crate) struct Medratio(VecDeque<f64>);

impl Statistic for Medratio {
    fn push(&mut self, value: f64) -> f64 {
        self.0.push_back(value);
        if self.0.len() <= 65 {
            return 0.0;
        }
        self.0.pop_front();
        let all: Vec<f64> = self.0.iter().copied().collect();
        let (old, new) = all.split_at(60);
        // Values come in spreads from the level, which is 20 spreads above zero.
        let median = |values: &[f64]| (narrows_stat::median(values).unwrap_or(0.0) + 20.0).max(0.1);
        (median(new) / median(old)).ln().abs()
    }
}

/// Bayesian online change detection `[AdamsMacKay07]`: normal values of unknown mean and variance,
/// one change in 30 days. The statistic is the log odds that the newest change is less than 60
/// values old.
pub(crate) struct RunLengths {
    runs: VecDeque<Run>,
}

#[derive(Clone, Copy)]
struct Run {
    weight: f64,
    kappa: f64,
    mean: f64,
    alpha: f64,
    beta: f64,
    /// ln(gamma(alpha + 1/2) / gamma(alpha)).
    ratio: f64,
}

const PRIOR: Run = Run { weight: 0.0, kappa: 0.1, mean: 0.0, alpha: 1.0, beta: 1.0, ratio: -0.120_782 };

impl Default for RunLengths {
    fn default() -> Self {
        Self { runs: VecDeque::from([Run { weight: 1.0, ..PRIOR }]) }
    }
}

impl Run {
    fn density(&self, value: f64) -> f64 {
        let scale = 2.0 * self.beta * (1.0 + 1.0 / self.kappa);
        let off = (value - self.mean).powi(2) / scale;
        (self.ratio - (self.alpha + 0.5) * off.ln_1p()).exp() / (std::f64::consts::PI * scale).sqrt()
    }

    fn take(&mut self, value: f64) {
        let off = value - self.mean;
        self.beta += self.kappa * off * off / (2.0 * (self.kappa + 1.0));
        self.mean += off / (self.kappa + 1.0);
        self.kappa += 1.0;
        // gamma(a+1)/gamma(a+1/2) = (a / ratio) without logarithms of gamma.
        self.ratio = self.alpha.ln() - self.ratio;
        self.alpha += 0.5;
    }
}

impl Statistic for RunLengths {
    fn push(&mut self, value: f64) -> f64 {
        const HAZARD: f64 = 1.0 / 43_200.0;
        let mut ended = 0.0;
        for run in &mut self.runs {
            let joint = run.weight * run.density(value);
            ended += joint * HAZARD;
            run.weight = joint * (1.0 - HAZARD);
            run.take(value);
        }
        let mut fresh = PRIOR;
        fresh.weight = ended;
        self.runs.push_front(fresh);
        let total: f64 = self.runs.iter().map(|run| run.weight).sum::<f64>().max(1e-300);
        for run in &mut self.runs {
            run.weight /= total;
        }
        // The longest run stands for all that are as long or longer.
        self.runs.retain(|run| run.weight > 1e-7 || run.kappa < 3.0);
        while self.runs.len() > 400 {
            self.runs.pop_back();
        }
        let young: f64 = self.runs.iter().filter(|run| run.kappa < 60.0).map(|run| run.weight).sum();
        (young.max(1e-12) / (1.0 - young).max(1e-12)).ln()
    }
}
