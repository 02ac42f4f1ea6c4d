//! Where the turning point is, roughly: the rate out becomes the next rate in (FAC2's feedback,
//! accelerated).

use super::train::TrainSlope;

/// The next rate, from the last trains (newest last). `None` once the newest has not overloaded the
/// path.
///
/// In `y = 1/R` the map from rate in to rate out is affine, `y_out = 1/C + u y_in`, so two trains
/// give its fixed point `1/A` (Aitken's process); kept to half of the plain step's result, for two
/// short trains can put the fixed point anywhere. A single train that grew its delays gives a point
/// of the same line through `C`, if that is known from a train sent at once.
pub(super) fn next_rate(trains: &[TrainSlope]) -> Option<f64> {
    let last = trains.last()?;
    if last.is_quiet() {
        return None;
    }
    let plain = last.rate_out;
    let accelerated = trains.len().checked_sub(2).and_then(|index| {
        let before = &trains[index];
        let (x0, y0) = (1.0 / before.rate_in, 1.0 / before.rate_out);
        let (x1, y1) = (1.0 / last.rate_in, 1.0 / last.rate_out);
        let utilisation = (y1 - y0) / (x1 - x0);
        let fixed = (1.0 - utilisation) / (y1 - utilisation * x1);
        (utilisation.is_finite() && utilisation < 1.0 && fixed > 0.0).then_some(fixed)
    });
    Some(accelerated.map_or(plain, |rate| rate.clamp(plain / 2.0, plain)))
}
