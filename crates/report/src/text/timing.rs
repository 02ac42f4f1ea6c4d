//! The line that says how well a path that was played here kept its plan.

use std::time::Duration;

use narrows_units::{Metric, format_duration};

use super::brief;
use crate::timing::{StageTimingRow, TimingReport};

impl TimingReport {
    /// One line, in ASCII: valid or not, what was repeated, and what must not be judged.
    pub fn verdict(&self) -> String {
        let named = |stages: &[&StageTimingRow]| stages.iter().map(|stage| name(stage.stage)).collect::<Vec<_>>();
        let invalid: Vec<_> = self.stages.iter().filter(|stage| !stage.valid).collect();
        let repeated: Vec<_> = self.stages.iter().filter(|stage| stage.attempts > 1).collect();
        let (which, judged) = match (invalid.first(), repeated.as_slice()) {
            (None, _) if !self.timing_valid => return "invalid: do not judge by this run".to_owned(),
            (None, []) => {
                let late = format_duration(Duration::from_nanos(self.late_ns_p99)).replace('µ', "u");
                return format!("valid; 99 % of packets at most {late} late");
            }
            (None, repeated) => {
                let count = match repeated.len() {
                    1 => "1 stage".to_owned(),
                    several => format!("{several} stages"),
                };
                return format!("valid; {count} repeated ({})", named(repeated).join(", "));
            }
            (Some(first), _) if invalid.iter().all(|stage| stage.attempts == first.attempts) => {
                (format!("{} after {}", named(&invalid).join(", "), tries(first.attempts)), invalid.len())
            }
            (Some(_), _) => {
                let each = invalid.iter().map(|stage| format!("{} ({})", name(stage.stage), tries(stage.attempts)));
                (each.collect::<Vec<_>>().join(", "), invalid.len())
            }
        };
        let lines = if judged == 1 { "that line" } else { "those lines" };
        format!("invalid for {which}: do not judge {lines}")
    }
}

fn tries(count: u32) -> String {
    if count == 1 { "1 try".to_owned() } else { format!("{count} tries") }
}

fn name(metric: Metric) -> &'static str {
    match metric {
        // A comma would read as two stages.
        Metric::TcpAchievableSingle => "TCP",
        Metric::TcpStreamsToFill => "streams",
        other => brief::name(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::tests::report;

    const CAPACITY: Metric = Metric::IpCapacity;
    const UDP: Metric = Metric::UdpAchievable;

    #[test]
    fn the_line_names_what_was_repeated_and_what_is_not_to_be_judged() {
        let line = |stages: &[(Metric, u32, bool)]| report(stages).verdict();
        assert_eq!(line(&[(CAPACITY, 1, true), (UDP, 1, true)]), "valid; 99 % of packets at most 20.99 us late");
        assert_eq!(line(&[(CAPACITY, 2, true), (UDP, 1, true)]), "valid; 1 stage repeated (capacity)");
        assert_eq!(line(&[(CAPACITY, 2, true), (UDP, 3, true)]), "valid; 2 stages repeated (capacity, UDP)");
        assert_eq!(
            line(&[(CAPACITY, 2, true), (UDP, 3, false)]),
            "invalid for UDP after 3 tries: do not judge that line"
        );
        assert_eq!(
            line(&[(CAPACITY, 2, false), (UDP, 2, false)]),
            "invalid for capacity, UDP after 2 tries: do not judge those lines"
        );
        assert_eq!(
            line(&[(CAPACITY, 1, false), (Metric::TcpAchievableSingle, 3, false)]),
            "invalid for capacity (1 try), TCP (3 tries): do not judge those lines"
        );
    }
}
