//! Quantiles of the available rate over the grid of tight capacities.

/// One capacity and what the trains say under it.
pub(super) struct ConditionalFit {
    pub(super) capacity: f64,
    pub(super) log_weight: f64,
    pub(super) available: f64,
    pub(super) variance: f64,
    pub(super) narrow: bool,
}

/// The turning points of the grid with their weights, lowest first.
pub(super) fn turning_points(grid: &[ConditionalFit], weights: &[f64]) -> Vec<(f64, f64)> {
    let mut turning_points: Vec<(f64, f64)> =
        grid.iter().map(|conditional_fit| conditional_fit.available).zip(weights.iter().copied()).collect();
    turning_points.sort_by(|a, b| a.0.total_cmp(&b.0));
    turning_points
}

/// The turning point below which `share` of the probability lies; `turning_points` as
/// [`turning_points`] gives them, `sum` their weight.
pub(super) fn quantile(turning_points: &[(f64, f64)], sum: f64, share: f64) -> Option<f64> {
    let mut below = 0.0;
    let found = turning_points.iter().find(|(_, weight)| {
        below += weight;
        below >= share * sum
    });
    found.map(|(turning_point, _)| turning_point.max(0.0))
}

/// How far below and above `available` a twentieth of the probability begins.
pub(super) fn beyond(turning_points: &[(f64, f64)], sum: f64, available: f64) -> (f64, f64) {
    let at = |share: f64| quantile(turning_points, sum, share).unwrap_or(available);
    ((available - at(0.05)).max(0.0), (at(0.95) - available).max(0.0))
}
