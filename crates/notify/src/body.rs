//! What a notice says.

use narrows_watch::WallTime;
use narrows_watch::alert::NoticeKind;
use serde::{Deserialize, Serialize};

/// All that a channel may tell about one notice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoticeBody {
    /// The rule that fired.
    pub rule: String,
    /// The target's name.
    pub target: String,
    /// Its host as the settings have it.
    pub host: String,
    /// What happened.
    pub state: NoticeKind,
    /// When the notice was made, in milliseconds since 1970.
    #[serde(rename = "at_ms")]
    pub at: WallTime,
    /// When the state began.
    #[serde(rename = "since_ms")]
    pub since: Option<WallTime>,
    /// One line that says all of it.
    pub text: String,
    /// The measured value; a silent target or a new route has none.
    #[serde(flatten)]
    pub value: Option<Value>,
    /// The cause as a sentence.
    pub cause: Option<String>,
    /// The page that shows more.
    pub page: Option<String>,
}

/// A measured value in a notice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The signal's name, as rules write it.
    pub signal: String,
    /// The value.
    pub value: f64,
    /// Lower end of its 90 % interval.
    pub low: f64,
    /// Upper end of its 90 % interval.
    pub high: f64,
    /// `bit/s`, `ns` or `ppm`.
    pub unit: String,
    /// What is usual at this hour of the week, where that is known.
    pub usual: Option<f64>,
}

impl NoticeBody {
    /// A few words: `FIRING office: uplink-low`.
    pub fn title(&self) -> String {
        format!("{} {}: {}", self.state_name().to_uppercase(), self.target, self.rule)
    }

    /// The machine name of the state.
    pub const fn state_name(&self) -> &'static str {
        match self.state {
            NoticeKind::Firing => "firing",
            NoticeKind::Repeated => "repeated",
            NoticeKind::Resolved => "resolved",
            NoticeKind::Flapping => "flapping",
        }
    }

    /// A firing notice, and the one that resolves it, by which somebody tests a channel.
    pub fn tests(from: &str, at: WallTime) -> [Self; 2] {
        let firing = Self {
            rule: "test".to_owned(),
            target: from.to_owned(),
            host: from.to_owned(),
            state: NoticeKind::Firing,
            at,
            since: Some(at),
            text: format!("{from}: this is a test of narrows; nothing is wrong."),
            value: None,
            cause: None,
            page: None,
        };
        let text = format!("{from}: the test of narrows is over.");
        let resolved = Self { state: NoticeKind::Resolved, text, ..firing.clone() };
        [firing, resolved]
    }
}

/// RFC 3339 with milliseconds: `2026-11-24T18:42:00.000Z`.
pub(crate) fn rfc_3339(time: WallTime) -> String {
    let millis = time.millis();
    let (days, of_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    // Years that begin in March have their leap day last; 719 468 days lie before 1970.
    let days = days + 719_468;
    let (cycle, of_cycle) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_years = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * of_years + of_years / 4 - of_years / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = cycle * 400 + of_years + i64::from(month <= 2);
    let (second, millis) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What the design's example says.
    pub(crate) fn example() -> NoticeBody {
        NoticeBody {
            rule: "uplink-low".to_owned(),
            target: "office".to_owned(),
            host: "office.example".to_owned(),
            state: NoticeKind::Firing,
            at: WallTime::from_millis(1_795_547_100_000),
            since: Some(WallTime::from_millis(1_795_545_720_000)),
            text: "office: available 22 Mbit/s (19..25), usual Tue 20:00: 61, since 19:42 (+-40 s). \
                   Cause: queue at hop 4; route, capacity unchanged."
                .to_owned(),
            value: Some(Value {
                signal: "available".to_owned(),
                value: 22.2e6,
                low: 19e6,
                high: 25.1e6,
                unit: "bit/s".to_owned(),
                usual: Some(61e6),
            }),
            cause: Some("queue at hop 4".to_owned()),
            page: Some("http://127.0.0.1:8621/targets/office".to_owned()),
        }
    }

    #[test]
    fn what_the_outbox_keeps_is_read_back() {
        let silent = NoticeBody { value: None, cause: None, page: None, since: None, ..example() };
        for body in [example(), silent] {
            let text = serde_json::to_string(&body).unwrap();
            assert_eq!(serde_json::from_str::<NoticeBody>(&text).unwrap(), body, "{text}");
        }
    }

    /// `date -u -d @SECONDS` says the same.
    #[test]
    fn times_are_those_of_the_calendar() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_769_850_300_007, "2026-01-31T09:05:00.007Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc_3339(WallTime::from_millis(millis)), text);
        }
    }
}
