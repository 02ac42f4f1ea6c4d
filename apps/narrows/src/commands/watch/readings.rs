//! A minute of pulses as values of three signals.

use std::time::Duration;

use narrows_store::records::{PulseMinute, Sample};
use narrows_watch::{Claim, Reading, Signal, WallTime};
use uuid::Uuid;

/// The end of the minute: its values are of then.
pub(super) fn end(minute: &PulseMinute) -> WallTime {
    minute.minute.after(Duration::from_secs(60))
}

/// Least round trip, queueing and loss; without answers only the loss.
pub(super) fn of_minute(minute: &PulseMinute, host_busy: bool) -> Vec<(Signal, Reading)> {
    let reading = |value: f64, low: f64, high: f64| Reading {
        loaded: minute.loaded,
        host_busy,
        ..Reading::estimate(end(minute), value, low, high)
    };
    let times: Vec<f64> = minute.round_trips_ns.iter().map(|time| *time as f64).collect();
    let mut readings = Vec::new();
    let quantile = |share| narrows_stat::quantile(&times, share);
    if let Some((least, late)) = quantile(0.0).zip(quantile(0.95)) {
        readings.push((Signal::LeastRoundTrip, reading(least, least, least)));
        readings.push((Signal::Queueing, reading(late - least, late - least, late - least)));
    }
    if minute.sent > 0 {
        let share = f64::from(minute.lost) / f64::from(minute.sent);
        let [low, high] = interval(share, f64::from(minute.sent));
        readings.push((Signal::Loss, reading(share * 1e6, low * 1e6, high * 1e6)));
    }
    readings
}

/// Wilson's interval of a share, 90 %.
fn interval(share: f64, count: f64) -> [f64; 2] {
    const Z: f64 = 1.645;
    let square = Z * Z / count;
    let middle = share + square / 2.0;
    let half = Z * (share * (1.0 - share) / count + square / (4.0 * count)).sqrt();
    [((middle - half) / (1.0 + square)).clamp(0.0, share), ((middle + half) / (1.0 + square)).clamp(share, 1.0)]
}

/// As it is kept.
pub(super) fn sample(reading: &Reading, run: Option<Uuid>) -> Sample {
    let known = |value: f64| (reading.claim != Claim::Inconclusive).then_some(value);
    Sample {
        at: reading.at,
        value: known(reading.value),
        low: known(reading.low),
        high: known(reading.high),
        claim: reading.claim,
        loaded: reading.loaded,
        host_busy: reading.host_busy,
        run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(sent: u32, round_trips_ns: Vec<u64>) -> PulseMinute {
        let lost = sent - u32::try_from(round_trips_ns.len()).unwrap();
        PulseMinute { minute: WallTime::from_millis(60_000), sent, lost, loaded: false, round_trips_ns }
    }

    #[test]
    fn a_minute_has_three_values() {
        let times = (0..57).map(|step| 1_000_000 + step * 1000).collect();
        let readings = of_minute(&minute(60, times), false);
        let signals: Vec<Signal> = readings.iter().map(|(signal, _)| *signal).collect();
        assert_eq!(signals, [Signal::LeastRoundTrip, Signal::Queueing, Signal::Loss]);
        assert!(readings.iter().all(|(_, reading)| reading.usable() && reading.at.millis() == 120_000));
        assert!((readings[0].1.value - 1e6).abs() < 1.0 && (50e3..57e3).contains(&readings[1].1.value));
        let loss = readings[2].1;
        assert!((loss.value - 50_000.0).abs() < 1.0 && loss.low < 25_000.0 && loss.high > 100_000.0, "{loss:?}");
    }

    #[test]
    fn a_silent_minute_is_a_loss_alone() {
        let readings = of_minute(&minute(60, Vec::new()), true);
        assert_eq!(readings.len(), 1);
        assert!((readings[0].1.value - 1e6).abs() < 1.0 && !readings[0].1.usable());
        assert_eq!(sample(&readings[0].1, None).value, Some(readings[0].1.value));
    }
}
