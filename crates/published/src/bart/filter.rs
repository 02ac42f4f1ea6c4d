//! The Kalman filter over the strain line.

/// State `x = (a, b)` of the line `strain = a u + b`, where `u` is a train's rate over the highest
/// one, and its covariance.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    x: [f64; 2],
    /// Symmetric: `[aa, ab, bb]`.
    p: [f64; 3],
    /// Process noise of both, per train.
    q: f64,
    /// By how much the noise is scaled up for now, since innovations were larger than they should
    /// be.
    agility: f64,
}

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Took {
    /// The state has moved.
    Yes,
    /// The state would have left what is possible; it stays, only its error grows.
    No,
}

impl Filter {
    /// Through two congested trains `(u, strain)`, as TOPP draws the line; `P = I`. `None` unless
    /// they give a line that rises and crosses zero between 0 and 1.
    pub(super) fn through(first: (f64, f64), second: (f64, f64), q: f64) -> Option<Self> {
        let a = (second.1 - first.1) / (second.0 - first.0);
        let x = [a, first.1 - a * first.0];
        possible(x).then_some(Self { x, p: [1.0, 0.0, 1.0], q, agility: 1.0 })
    }

    /// Where the line crosses zero: what is available, as a share of the highest rate.
    pub(super) fn crossing(&self) -> f64 {
        -self.x[1] / self.x[0]
    }

    /// Capacity of the tight link, in the same share: `a = 1/C`.
    pub(super) fn capacity(&self) -> f64 {
        1.0 / self.x[0]
    }

    /// Standard error of the crossing by the delta formula:
    /// `var(A) = (var b + A^2 var a + 2 A cov)/a^2`.
    pub(super) fn error(&self) -> f64 {
        let crossing = self.crossing();
        let [aa, ab, bb] = self.p;
        let variance = (bb + crossing * crossing * aa + 2.0 * crossing * ab).max(0.0);
        variance.sqrt() / self.x[0]
    }

    /// What a train at `u` should show.
    pub(super) fn expected(&self, u: f64) -> f64 {
        self.x[0] * u + self.x[1]
    }

    /// One train: strain and its variance.
    pub(super) fn take(&mut self, u: f64, strain: f64, variance: f64) -> Took {
        let noise = self.q * self.agility;
        let prior = [self.p[0] + noise, self.p[1], self.p[2] + noise];
        // P h, with h = (u, 1).
        let ph = [prior[0] * u + prior[1], prior[1] * u + prior[2]];
        let total = ph[0] * u + ph[1] + variance;
        let innovation = strain - self.expected(u);
        // Innovations beyond three deviations: the line has moved by more than the noise allows
        // for.
        self.agility = if innovation * innovation > 9.0 * total {
            (self.agility * 10.0).min(MOST_AGILE)
        } else {
            (self.agility * 0.5).max(1.0)
        };
        let gain = [ph[0] / total, ph[1] / total];
        let next = [self.x[0] + gain[0] * innovation, self.x[1] + gain[1] * innovation];
        let bounded = |value: f64| value.clamp(0.0, 1.0);
        if !(total > 0.0 && possible(next)) {
            self.p = [bounded(prior[0]), prior[1].clamp(-1.0, 1.0), bounded(prior[2])];
            return Took::No;
        }
        self.x = next;
        // (I - K h) P, whose off-diagonal terms are equal for this K.
        self.p = [prior[0] - gain[0] * ph[0], prior[1] - gain[0] * ph[1], prior[2] - gain[1] * ph[1]];
        Took::Yes
    }

    /// The same state in terms of a highest rate that is `factor` as high.
    pub(super) fn rescale(&mut self, factor: f64) {
        self.x[0] *= factor;
        self.p[0] *= factor * factor;
        self.p[1] *= factor;
    }
}

/// The line rises, and crosses zero between 0 and 1.
fn possible(x: [f64; 2]) -> bool {
    let crossing = -x[1] / x[0];
    x[0].is_finite() && x[0] > 0.0 && crossing > 0.0 && crossing < 1.0
}

/// Most by which process noise is scaled up.
const MOST_AGILE: f64 = 1e4;

#[cfg(test)]
mod tests {
    use super::*;

    /// `strain = (r + X)/C - 1` of a link with C = 0.8 and X = 0.3 of the highest rate.
    fn strain(u: f64) -> f64 {
        (u + 0.3) / 0.8 - 1.0
    }

    #[test]
    fn two_trains_give_the_fluid_line() {
        let filter = Filter::through((0.6, strain(0.6)), (0.9, strain(0.9)), 1e-4).unwrap();
        assert!((filter.crossing() - 0.5).abs() < 1e-12, "{filter:?}");
        assert!((filter.capacity() - 0.8).abs() < 1e-12);
        assert_eq!(Filter::through((0.6, 0.2), (0.9, 0.1), 1e-4), None, "falls");
        assert_eq!(Filter::through((0.6, 0.2), (0.6, 0.1), 1e-4), None, "upright");
    }

    /// One step by hand: x = (1, -1/2), P = I, no process noise, u = 1, R = 1, strain 0.8. s = 3, K
    /// = (1/3, 1/3), innovation 0.3.
    #[test]
    fn one_step_by_hand() {
        let mut filter = Filter::through((0.5, 0.0), (1.0, 0.5), 0.0).unwrap();
        assert_eq!(filter.take(1.0, 0.8, 1.0), Took::Yes);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(filter.x[0], 1.1);
        close(filter.x[1], -0.4);
        close(filter.p[0], 2.0 / 3.0);
        close(filter.p[1], -1.0 / 3.0);
        close(filter.p[2], 2.0 / 3.0);
        let crossing: f64 = 0.4 / 1.1;
        close(filter.crossing(), crossing);
        let variance = 2.0 / 3.0 + crossing * crossing * 2.0 / 3.0 - 2.0 * crossing / 3.0;
        close(filter.error(), variance.sqrt() / 1.1);
    }

    #[test]
    fn what_is_impossible_is_rejected_and_scaling_keeps_the_rate() {
        let mut filter = Filter::through((0.5, 0.0), (1.0, 0.5), 1e-4).unwrap();
        let before = filter.crossing();
        assert_eq!(filter.take(1.0, -9.0, 1e-6), Took::No);
        assert!((filter.crossing() - before).abs() < 1e-12);
        filter.rescale(2.0);
        assert!((filter.crossing() - before / 2.0).abs() < 1e-12);
        assert!((filter.capacity() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn it_follows_a_line_that_moves() {
        let mut filter = Filter::through((0.6, strain(0.6)), (0.9, strain(0.9)), 1e-4).unwrap();
        for step in 0..200 {
            let u = 0.55 + 0.4 * f64::from(step % 7) / 7.0;
            let moved = |u: f64| (u + 0.5) / 0.8 - 1.0;
            filter.take(u, moved(u), 1e-5);
        }
        assert!((filter.crossing() - 0.3).abs() < 0.01, "{filter:?}");
        assert!(filter.error() < 0.05, "{filter:?}");
    }
}
