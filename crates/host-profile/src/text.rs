//! The file: TOML with a line of explanation above each distribution.

use std::fmt::Write as _;

use crate::error::ProfileError;
use crate::profile::HostProfile;
use crate::quantiles::Quantiles;

impl HostProfile {
    /// Reads a profile from the text of a file, and checks it.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        // A file of another version is told apart before its keys are looked at.
        let table: toml::Table = toml::from_str(text).map_err(|error| ProfileError::Syntax(error.to_string()))?;
        match table.get("schema").and_then(toml::Value::as_str) {
            Some(crate::SCHEMA) => {}
            found => {
                let found = found.unwrap_or("nothing").to_owned();
                return Err(ProfileError::Schema { found, expected: crate::SCHEMA });
            }
        }
        let profile: Self = toml::from_str(text).map_err(|error| ProfileError::Syntax(error.to_string()))?;
        profile.check()
    }

    /// The text of its file.
    pub fn to_toml(&self) -> String {
        let mut text = String::from("# A host profile: see docs/guide/host.md. Times are nanoseconds.\n");
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let _ = writeln!(text, "schema = {}", quoted(&self.schema));
        let _ = writeln!(text, "name = {}\nabout = {}", quoted(&self.name), quoted(&self.about));
        let ends = match self.ends {
            crate::Ends::One => "one",
            crate::Ends::Both => "both",
        };
        let _ = writeln!(text, "ends = \"{ends}\"  # \"both\": sender, receiver and path on one machine");
        let _ = writeln!(text, "virtual_interface = {}", self.virtual_interface);
        let _ = writeln!(text, "percents = {:?}", self.percents);
        let recorded = &self.recorded;
        let _ = writeln!(text, "\n[recorded]\nat = {}\nseconds = {:?}", quoted(&recorded.at), recorded.seconds);
        let _ = writeln!(text, "over = {}\nmachine = {}", quoted(&recorded.over), quoted(&recorded.machine));
        if let Some(share) = recorded.busy_share {
            let _ = writeln!(text, "busy_share = {share:?}  # of the processors' time, by other programs");
        }
        for section in ["clock", "send", "receive"] {
            let _ = writeln!(text, "\n[{section}]");
            for (key, quantiles, what) in self.parts() {
                if let Some(key) = key.strip_prefix(section).and_then(|key| key.strip_prefix('.')) {
                    let _ = writeln!(text, "# {what}\n{key} = {}", inline(quantiles));
                }
            }
            self.rest_of(section, &mut text);
        }
        self.stalls_to(&mut text);
        text
    }

    /// What of a section is no distribution.
    fn rest_of(&self, section: &str, text: &mut String) {
        if section == "clock" {
            let _ = writeln!(text, "# not measured: drawn evenly for each simulated host");
            let _ = writeln!(text, "frequency_error_ppm = {:?}", self.clock.frequency_error_ppm);
        } else if section == "receive" {
            let _ = writeln!(
                text,
                "# packets that come during a stall are stamped after it; else stalls delay programs alone"
            );
            let _ = writeln!(text, "stamps_wait = {}", self.receive.stamps_wait);
            let _ = writeln!(text, "rest_ns = {}", self.receive.rest_ns);
        }
    }

    fn stalls_to(&self, text: &mut String) {
        let stalls = &self.stalls;
        let _ = writeln!(
            text,
            "\n[stalls]\nthreshold_ns = {}\nburst_gap_ns = {}",
            stalls.threshold_ns, stalls.burst_gap_ns
        );
        if stalls.states.is_empty() {
            let _ = writeln!(text, "states = {{}}  # no stall was seen");
        }
        for (state, sojourn) in &stalls.states {
            let next: Vec<String> =
                sojourn.next.iter().map(|(next, count)| format!("{} = {count}", next.key())).collect();
            let _ = writeln!(text, "\n[stalls.states.{}]", state.key());
            let _ = writeln!(text, "lasting_ns = {}", inline(&sojourn.lasting_ns));
            let _ = writeln!(text, "next = {{ {} }}", next.join(", "));
        }
    }
}

fn inline(quantiles: &Quantiles) -> String {
    let at: Vec<String> = quantiles.at.iter().map(i64::to_string).collect();
    format!("{{ count = {}, at = [{}] }}", quantiles.count, at.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::ends::Ends;
    use crate::profile::{ClockProfile, HostProfile, ReceiveProfile, Recorded, SendProfile};
    use crate::quantiles::{PERCENTS, Quantiles};
    use crate::stalls::{Span, StallProfile};

    fn profile() -> HostProfile {
        let some = |value: i64| Quantiles::of((1..50).map(|k| k * value)).unwrap();
        let stalls = [Span { from: 100, to: 250 }, Span { from: 300, to: 420 }];
        HostProfile {
            schema: crate::SCHEMA.to_owned(),
            name: "test".to_owned(),
            about: "a \"test\" \\ of\nlines".to_owned(),
            ends: Ends::One,
            virtual_interface: true,
            percents: PERCENTS.to_vec(),
            recorded: Recorded {
                at: "2026-01-01T00:00:00Z".to_owned(),
                seconds: 30.0,
                over: "loopback".to_owned(),
                machine: "two processors".to_owned(),
                busy_share: Some(0.25),
            },
            clock: ClockProfile { read_ns: some(1), frequency_error_ppm: [-20.0, 20.0] },
            send: SendProfile { pacing_ns: some(2), stamp_ns: some(3), stamp_rested_ns: some(4), call_ns: some(5) },
            receive: ReceiveProfile {
                stamp_ns: some(6),
                stamp_rested_ns: some(7),
                inside_ns: some(8),
                batch_packets: some(9),
                wake_ns: some(10),
                wake_rested_ns: some(11),
                call_ns: some(12),
                stamps_wait: false,
                rest_ns: 2_000_000,
            },
            stalls: StallProfile::of(&[Span { from: 0, to: 10_000 }], &stalls, None, (50, 60)),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let profile = profile();
        assert_eq!(HostProfile::from_toml(&profile.to_toml()), Ok(profile.clone()));
        let calm = StallProfile { states: std::collections::BTreeMap::new(), ..profile.stalls.clone() };
        let calm = HostProfile { stalls: calm, ..profile };
        assert_eq!(HostProfile::from_toml(&calm.to_toml()), Ok(calm));
    }

    /// Each error names the key, and says what to do.
    #[test]
    fn refusals_name_the_key() {
        let text = profile().to_toml();
        for (from, to, word) in [
            ("host-profile/1", "host-profile/2", "host-profile/2"),
            ("schema = ", "scheme = ", "schema"),
            ("name = \"test\"", "name = \"a/b\"", "name: "),
            ("percents = [0.0, ", "percents = [0.5, ", "percents: "),
            ("percents = [", "percent = [", "percent"),
            ("[-20.0, 20.0]", "[20.0, -20.0]", "clock.frequency_error_ppm"),
            ("rest_ns = 2000000", "rest_ns = 0", "receive.rest_ns"),
            ("pacing_ns = { count = 49, at = [2, ", "pacing_ns = { count = 49, at = [900, ", "send.pacing_ns"),
            ("pacing_ns = { count = 49, at = [2, ", "pacing_ns = { count = 49, at = [", "send.pacing_ns"),
            ("pacing_ns = { count = 49, at = [2, ", "pacing_ns = { count = 49, at = [-2, ", "send.pacing_ns"),
            ("ends = \"one\"", "ends = \"both\"", "one clock"),
            ("threshold_ns = 50", "threshold_ns = 0", "stalls.threshold_ns"),
            ("next = { stalled = 1 }", "next = { stalled = 9000000000000000 }", "next"),
            ("next = { stalled = 1 }", "next = { both = 1 }", "stalls.states"),
        ] {
            let broken = text.replacen(from, to, 1);
            assert_ne!(broken, text, "{from} is not in the file");
            let error = HostProfile::from_toml(&broken).unwrap_err().to_string();
            assert!(error.contains(word), "{word} is not in: {error}");
        }
        assert!(HostProfile::from_toml("x = [").unwrap_err().to_string().contains("cannot be read"));
    }
}
