//! What a notice says.

use narrows_watch::alert::NoticeKind;
use narrows_watch::{Claim, WallTime};
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
    /// Not before this.
    #[serde(rename = "since_low_ms")]
    pub since_low: Option<WallTime>,
    /// Not after this.
    #[serde(rename = "since_high_ms")]
    pub since_high: Option<WallTime>,
    /// How long it fired, in milliseconds, once that is over.
    pub lasted_ms: Option<u64>,
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
    /// Whether it is an estimate or a bound.
    pub claim: Claim,
    /// The value.
    pub value: f64,
    /// Lower end of its 90 % interval.
    pub low: f64,
    /// Upper end of its 90 % interval.
    pub high: f64,
    /// `bit/s`, `ns` or `ppm`.
    pub unit: String,
    /// What is usual at this hour of the week, or was before the change; where that is known.
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
            since_low: Some(at),
            since_high: Some(at),
            lasted_ms: None,
            text: format!("{from}: this is a test of narrows; nothing is wrong."),
            value: None,
            cause: None,
            page: None,
        };
        let text = format!("{from}: the test of narrows is over.");
        let resolved = Self { state: NoticeKind::Resolved, lasted_ms: Some(0), text, ..firing.clone() };
        [firing, resolved]
    }
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
            since_low: Some(WallTime::from_millis(1_795_545_680_000)),
            since_high: Some(WallTime::from_millis(1_795_545_760_000)),
            lasted_ms: None,
            text: "office: available 22 Mbit/s (19..25), usual Tue 20:00: 61, since 19:42 (+-40 s). \
                   Cause: queue at hop 4; route, capacity unchanged."
                .to_owned(),
            value: Some(Value {
                signal: "available".to_owned(),
                claim: Claim::Estimate,
                value: 22.2e6,
                low: 19e6,
                high: 25.1e6,
                unit: "bit/s".to_owned(),
                usual: Some(61e6),
            }),
            cause: Some("queue at hop 4".to_owned()),
            page: Some("http://127.0.0.1:8621/target/office".to_owned()),
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
}
