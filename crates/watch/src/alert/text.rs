//! An alert in one line: `office: available 22 Mbit/s (19..25), usual Tue 20:00: 61, since 19:42
//! (+-40 s). Cause: queue at hop 4; route, capacity unchanged.`

use std::fmt;

use crate::explain::{Explanation, Interval};
use crate::signal::{Claim, Reading, Signal};
use crate::time::{Local, WallTime, Zone};

/// What is usual at the time of the alert.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usual {
    /// The hour.
    pub local: Local,
    /// The value, in the signal's unit.
    pub value: f64,
}

/// All that an alert's line says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlertText<'a> {
    /// The target's name.
    pub target: &'a str,
    /// What.
    pub signal: Signal,
    /// The newest value.
    pub reading: &'a Reading,
    /// What would be usual; `None` while that is not known.
    pub usual: Option<Usual>,
    /// When it changed; `None` if no change was found.
    pub since: Option<Interval>,
    /// The reader's time zone.
    pub zone: &'a Zone,
    /// Why; `None` if no change was found.
    pub explanation: Option<&'a Explanation>,
}

impl fmt::Display for AlertText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reading { value, low, high, claim, .. } = *self.reading;
        let (scale, unit) = scale(self.signal, value);
        let name = self.signal.name().replace('_', " ");
        match claim {
            Claim::Estimate => {
                write!(
                    f,
                    "{}: {name} {} {unit} ({}..{})",
                    self.target,
                    short(value / scale),
                    short(low / scale),
                    short(high / scale)
                )?;
            }
            Claim::AtLeast => write!(f, "{}: {name} at least {} {unit}", self.target, short(value / scale))?,
            Claim::AtMost => write!(f, "{}: {name} at most {} {unit}", self.target, short(value / scale))?,
            Claim::Inconclusive => write!(f, "{}: {name} inconclusive", self.target)?,
        }
        if let Some(usual) = self.usual {
            let hour = Local { second: usual.local.second / 3600 * 3600, ..usual.local };
            write!(f, ", usual {}: {}", hour.clock(), short(usual.value / scale))?;
        }
        if let Some(since) = self.since {
            let half = since.high.since(since.low) / 2;
            let local = self.zone.local(since.low.after(half));
            let clock = local.clock();
            let today = local.day == self.zone.local(self.reading.at).day;
            let clock = if today { clock.split(' ').next_back().unwrap_or_default() } else { &clock };
            write!(f, ", since {clock} (+-{})", margin(since.low, since.high))?;
        }
        f.write_str(".")?;
        let Some(explanation) = self.explanation else { return Ok(()) };
        write!(f, " Cause: {}", explanation.cause)?;
        if !explanation.unchanged.is_empty() {
            write!(f, "; {} unchanged", explanation.unchanged.join(", "))?;
        }
        f.write_str(".")
    }
}

/// The unit in which a value has one to three digits before its point.
fn scale(signal: Signal, value: f64) -> (f64, &'static str) {
    let steps: &[(f64, &str)] = match signal {
        Signal::AvailableForward | Signal::AvailableReverse | Signal::Capacity => {
            &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")]
        }
        Signal::LeastRoundTrip | Signal::Queueing => &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
        Signal::Loss => &[(1e4, "%")],
    };
    let last = steps[steps.len() - 1];
    steps.iter().copied().find(|(scale, _)| value.abs() >= *scale).unwrap_or(last)
}

fn short(value: f64) -> String {
    let text = if value.abs() >= 9.95 { format!("{value:.0}") } else { format!("{value:.1}") };
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn margin(low: WallTime, high: WallTime) -> String {
    let seconds = high.since(low).as_millis().div_ceil(2000);
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Cause;

    /// Tuesday 24 November 2026, 20:05 in Berlin.
    const NOW: i64 = 1_795_547_100_000;

    fn text(since: Option<Interval>, explanation: Option<&Explanation>) -> String {
        let zone = Zone::fixed(3600);
        let at = WallTime::from_millis(NOW);
        let reading = Reading::estimate(at, 22.2e6, 19e6, 25.1e6);
        let usual = Some(Usual { local: zone.local(at), value: 61e6 });
        let signal = Signal::AvailableForward;
        AlertText { target: "office", signal, reading: &reading, usual, since, zone: &zone, explanation }.to_string()
    }

    #[test]
    fn the_line_of_the_design() {
        let middle = NOW - 23 * 60_000;
        let since =
            Interval { low: WallTime::from_millis(middle - 40_000), high: WallTime::from_millis(middle + 40_000) };
        let explanation = Explanation {
            cause: Cause::CrossTraffic { hop: 4 },
            unchanged: vec!["route".to_owned(), "capacity".to_owned()],
        };
        assert_eq!(
            text(Some(since), Some(&explanation)),
            "office: available 22 Mbit/s (19..25), usual Tue 20:00: 61, since 19:42 (+-40 s). \
             Cause: queue at hop 4; route, capacity unchanged."
        );
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(text(None, None), "office: available 22 Mbit/s (19..25), usual Tue 20:00: 61.");
    }

    #[test]
    fn a_change_of_yesterday_names_the_day() {
        let day = 86_400_000;
        let since =
            Interval { low: WallTime::from_millis(NOW - day), high: WallTime::from_millis(NOW - day + 600_000) };
        assert!(text(Some(since), None).contains("since Mon 20:10 (+-5 min)"), "{}", text(Some(since), None));
    }
}
