//! Curves of several trains together.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::curve::Curve;
use super::pooled::PooledEstimate;

/// Curves off by more than this many robust standard deviations count less (Huber).
const HUBER: f64 = 2.0;

/// Their weighted mean. `None` below two.
pub(super) fn pooled(curves: &[(Stamp<Sender>, Duration, Curve)], scale: f64) -> Option<PooledEstimate> {
    if curves.len() < 2 {
        return None;
    }
    let each: Vec<f64> = curves.iter().map(|(_, _, curve)| curve.available).collect();
    let middle = narrows_stat::median(&each)?;
    let spread = (1.4826 * narrows_stat::mad(&each)?).max(1e-3 * scale);
    let weights: Vec<f64> = each.iter().map(|value| (HUBER * spread / (value - middle).abs()).min(1.0)).collect();
    let total: f64 = weights.iter().sum();
    let available = each.iter().zip(&weights).map(|(a, w)| a * w).sum::<f64>() / total;
    let squares: f64 = each.iter().zip(&weights).map(|(a, w)| w * (a - available).powi(2)).sum();
    let dof = (total - 1.0).max(0.5);
    let capacities: Vec<f64> = curves.iter().map(|(_, _, curve)| curve.capacity).collect();
    let capacity = narrows_stat::median(&capacities)?;
    let capacity_own_error =
        1.2533 * narrows_stat::variance_sample(&capacities)?.sqrt() / (capacities.len() as f64).sqrt();
    Some(PooledEstimate {
        available,
        spread_error: (squares / dof / total).sqrt(),
        capacity_error: 0.0,
        dof,
        capacity,
        capacity_own_error,
        one_link: 0.0,
        per_train: each.iter().copied().enumerate().collect(),
        train_spread: (squares / dof).sqrt(),
        overload: 0.0,
        scale,
        by_capacity: (0.0, 0.0),
        yielded: None,
        several: 0.0,
        idle_more: 0.0,
    })
}
