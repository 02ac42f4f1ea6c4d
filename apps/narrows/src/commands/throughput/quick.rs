//! What quick mode did to a test: printed, and in JSON.

use narrows_measure::tcp::Stop;
use narrows_units::BitRate;
use serde_json::{Value, json};

/// A test that might end early.
#[derive(Debug, Clone)]
pub(super) struct Quickened {
    /// Why it could; `None`: it ran its length.
    pub(super) stop: Option<Stop>,
    /// When the measured window began.
    pub(super) from_seconds: Option<f64>,
    pub(super) ended_seconds: f64,
    pub(super) planned_seconds: f64,
    /// Payload sent, retransmissions included.
    pub(super) octets: u64,
    pub(super) ramp_end: Option<&'static str>,
    /// What 20 s would have shown, slow start counted, payload bit/s.
    pub(super) over_20_s_bps: Option<f64>,
}

impl Quickened {
    fn saved(&self) -> f64 {
        if self.stop.is_none() || self.planned_seconds <= 0.0 {
            return 0.0;
        }
        (1.0 - self.ended_seconds / self.planned_seconds).max(0.0)
    }

    /// The machine contract's `quick`.
    pub(super) fn json(&self) -> Value {
        let stopped = self.stop.as_ref().map(|_| self.ended_seconds);
        json!({
            "stopped_at_seconds": stopped,
            "octets": self.octets,
            "saved_ratio": self.saved(),
            "risk": self.stop.as_ref().map(|stop| stop.risk),
            "window_from_seconds": self.from_seconds,
            "held_by": self.stop.as_ref().map(|stop| stop.held.name()),
            "ramp_end": self.ramp_end,
            "over_20_s_bps": self.over_20_s_bps.map(f64::round),
        })
    }

    /// A line for people.
    pub(super) fn text(&self) -> String {
        match (&self.stop, self.from_seconds) {
            (Some(stop), Some(from)) => format!(
                "ended after {:.2} s: the rate since {from:.2} s stands, held by {}; saved {:.0} % of {:.0} s; 20 s may \
                 differ by {:.1} %{}\n",
                self.ended_seconds,
                stop.held.name(),
                100.0 * self.saved(),
                self.planned_seconds,
                100.0 * stop.risk,
                self.over_20_s_bps
                    .map_or_else(String::new, |bps| format!(", and would show {} with slow start", rate(bps))),
            ),
            _ => "ran its whole length: no limit of the rate was found\n".to_owned(),
        }
    }
}

fn rate(bps: f64) -> BitRate {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float saturates, and no rate is negative"
    )]
    BitRate::from_bps(bps.max(0.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use narrows_measure::tcp::Held;
    use narrows_units::Stamp;

    use super::*;

    fn quickened(stop: Option<Stop>) -> Quickened {
        Quickened {
            from_seconds: stop.as_ref().map(|_| 0.4),
            stop,
            ended_seconds: 1.5,
            planned_seconds: 10.0,
            octets: 1_000_000,
            ramp_end: Some("loss"),
            over_20_s_bps: Some(88.4e6),
        }
    }

    #[test]
    fn what_was_saved_and_what_is_risked() {
        let stop = Stop {
            from: Stamp::from_nanos(400_000_000),
            to: Stamp::from_nanos(1_400_000_000),
            bps: 90e6,
            parts_bps: vec![90e6; 5],
            held: Held::Link,
            risk: 0.02,
        };
        let early = quickened(Some(stop));
        let json = early.json();
        assert_eq!(json["stopped_at_seconds"], 1.5);
        assert_eq!(json["octets"], 1_000_000);
        assert!((json["saved_ratio"].as_f64().unwrap() - 0.85).abs() < 1e-9);
        assert_eq!(json["risk"], 0.02);
        let text = early.text();
        let expected = "saved 85 % of 10 s; 20 s may differ by 2.0 %, and would show 88.4 Mbit/s with slow start\n";
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(json["over_20_s_bps"], 88_400_000.0);
        let whole = quickened(None);
        assert!(whole.json()["stopped_at_seconds"].is_null() && whole.json()["saved_ratio"] == 0.0);
        assert!(whole.text().starts_with("ran its whole length"));
    }
}
