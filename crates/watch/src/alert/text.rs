//! An alert in one line: `office: available 22 Mbit/s (19..25), usual Tue 20:00: 61, since 19:42
//! (+-40 s). Cause: queue at hop 4; route, capacity unchanged.`

use std::fmt;
use std::time::Duration;

use crate::explain::{Explanation, Interval};
use crate::signal::{Claim, Reading, Signal};
use crate::time::{Local, WallTime, Zone};

/// What is usual at the time of the alert.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usual {
    /// The hour; `None` of a level that is too young to be usual at any hour.
    pub local: Option<Local>,
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
        let is_known = claim != Claim::Inconclusive;
        let of = self.usual.filter(|_| !is_known).map_or(value, |usual| usual.value);
        let (scale, unit) = scale(self.signal, of);
        let name = self.signal.name().replace('_', " ");
        match claim {
            Claim::Estimate => {
                write!(f, "{}: {name} {} {unit}", self.target, short(value / scale))?;
                if low < high {
                    write!(f, " ({}..{})", short(low / scale), short(high / scale))?;
                }
            }
            Claim::AtLeast => write!(f, "{}: {name} at least {} {unit}", self.target, short(value / scale))?,
            Claim::AtMost => write!(f, "{}: {name} at most {} {unit}", self.target, short(value / scale))?,
            Claim::Inconclusive => write!(f, "{}: {name} inconclusive", self.target)?,
        }
        if let Some(usual) = self.usual {
            match usual.local {
                Some(local) => {
                    let hour = Local { second: local.second / 3600 * 3600, ..local };
                    write!(f, ", usual {}: {}", hour.clock(), short(usual.value / scale))?;
                }
                None => write!(f, ", before: {}", short(usual.value / scale))?,
            }
            if !is_known {
                write!(f, " {unit}")?;
            }
        }
        if let Some(since) = self.since {
            write!(f, ", {}", since_text(since, self.reading.at, self.zone))?;
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

/// When something began, for people who read it at `now`: `since 19:42 (+-40 s)`.
pub fn since_text(since: Interval, now: WallTime, zone: &Zone) -> String {
    let half = since.high.since(since.low) / 2;
    let clock = clock(zone, since.low.after(half), now);
    if since.low < since.high {
        return format!("since {clock} (+-{})", long(Duration::from_secs(margin_s(since))));
    }
    format!("since {clock}")
}

/// How long something lasted, for people who read it at `now`: `It lasted 23 min, from 19:42 to
/// 20:05.`
pub fn lasted_text(over: Interval, now: WallTime, zone: &Zone) -> String {
    let [from, until] = [over.low, over.high].map(|at| clock(zone, at, now));
    format!("It lasted {}, from {from} to {until}.", long(over.high.since(over.low)))
}

/// The hour, with its day if that is not the day of `now`.
fn clock(zone: &Zone, at: WallTime, now: WallTime) -> String {
    let local = zone.local(at);
    let clock = local.clock();
    let today = local.day == zone.local(now).day;
    if today { clock.split(' ').next_back().unwrap_or_default().to_owned() } else { clock }
}

/// Half of the interval, rounded up.
fn margin_s(since: Interval) -> u64 {
    let millis = since.high.since(since.low).as_millis();
    u64::try_from(millis.div_ceil(2000)).unwrap_or(u64::MAX)
}

/// A time in the unit of which it has at least two.
fn long(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    match units.into_iter().find(|(unit, _)| seconds >= 2 * unit) {
        Some((unit, name)) => format!("{} {name}", seconds.div_ceil(unit)),
        None => format!("{seconds} s"),
    }
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
        let usual = Some(Usual { local: Some(zone.local(at)), value: 61e6 });
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
    fn a_young_level_is_usual_at_no_hour() {
        let (zone, at) = (Zone::fixed(0), WallTime::from_millis(NOW));
        let (signal, reading) = (Signal::AvailableForward, Reading::estimate(at, 22.2e6, 19e6, 25.1e6));
        let usual = Some(Usual { local: None, value: 61e6 });
        let text =
            AlertText { target: "lab", signal, reading: &reading, usual, since: None, zone: &zone, explanation: None };
        assert_eq!(text.to_string(), "lab: available 22 Mbit/s (19..25), before: 61.");
    }

    #[test]
    fn a_change_of_yesterday_names_the_day() {
        let day = 86_400_000;
        let since =
            Interval { low: WallTime::from_millis(NOW - day), high: WallTime::from_millis(NOW - day + 600_000) };
        assert!(text(Some(since), None).contains("since Mon 20:10 (+-5 min)"), "{}", text(Some(since), None));
    }

    #[test]
    fn a_value_that_is_its_own_interval_has_none() {
        let (zone, at) = (Zone::fixed(0), WallTime::from_millis(NOW));
        let (signal, reading) = (Signal::LeastRoundTrip, Reading::estimate(at, 32e3, 32e3, 32e3));
        let text = AlertText {
            target: "lab",
            signal,
            reading: &reading,
            usual: None,
            since: None,
            zone: &zone,
            explanation: None,
        };
        assert_eq!(text.to_string(), "lab: least round trip 32 us.");
    }

    #[test]
    fn a_time_that_is_known_has_no_margin() {
        let at = WallTime::from_millis(NOW - 23 * 60_000);
        let text = text(Some(Interval { low: at, high: at }), None);
        assert!(text.ends_with(", since 19:42."), "{text}");
    }

    #[test]
    fn what_is_over_says_how_long_it_lasted() {
        let zone = Zone::fixed(3600);
        let now = WallTime::from_millis(NOW);
        let over = |seconds: i64| {
            lasted_text(Interval { low: WallTime::from_millis(NOW - seconds * 1000), high: now }, now, &zone)
        };
        assert_eq!(over(23 * 60), "It lasted 23 min, from 19:42 to 20:05.");
        assert_eq!(over(90), "It lasted 90 s, from 20:03 to 20:05.");
        assert_eq!(over(30 * 3600), "It lasted 30 h, from Mon 14:05 to 20:05.");
        assert_eq!(over(3 * 86_400), "It lasted 3 d, from Sat 20:05 to 20:05.");
    }

    #[test]
    fn an_inconclusive_value_says_what_would_be_usual() {
        let (zone, at) = (Zone::fixed(3600), WallTime::from_millis(NOW));
        let reading = Reading { claim: Claim::Inconclusive, ..Reading::estimate(at, 0.0, 0.0, 0.0) };
        let usual = Some(Usual { local: Some(zone.local(at)), value: 61e6 });
        let signal = Signal::AvailableForward;
        let text =
            AlertText { target: "lab", signal, reading: &reading, usual, since: None, zone: &zone, explanation: None };
        assert_eq!(text.to_string(), "lab: available inconclusive, usual Tue 20:00: 61 Mbit/s.");
    }
}
