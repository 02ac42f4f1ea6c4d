//! What requests ask with.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use narrows_fleet::keys::Name;
use narrows_record::Range;
use narrows_site::Problem;
use narrows_units::Metric;

use super::App;

/// The query of a request; keys that a route does not know are ignored.
pub(crate) struct Asked {
    pairs: BTreeMap<String, String>,
    now_ms: i64,
}

impl FromRequestParts<App> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let read = axum::extract::Query::<BTreeMap<String, String>>::try_from_uri(&parts.uri);
        let axum::extract::Query(pairs) = read.map_err(|error| Problem::bad_request(&error.body_text()))?;
        Ok(Self { pairs, now_ms: app.hub().now() })
    }
}

impl Asked {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.pairs.get(key).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(crate) fn name(&self, key: &str) -> Result<Option<Name>, Problem> {
        self.text(key)
            .map(|text| text.parse().map_err(|error| Problem::bad_request(&format!("`{key}`: {error}"))))
            .transpose()
    }

    pub(crate) fn host(&self, key: &str) -> Result<Name, Problem> {
        self.name(key)?.ok_or_else(|| Problem::bad_request(&format!("`{key}` is missing")))
    }

    /// A count between 1 and `most`.
    pub(crate) fn count(&self, key: &str, default: usize, most: usize) -> Result<usize, Problem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let count = text.parse().ok().filter(|count| (1..=most).contains(count));
        count.ok_or_else(|| Problem::bad_request(&format!("`{key}` is between 1 and {most}")))
    }

    /// The cursor of an answer before; it stands in the place of times.
    pub(crate) fn cursor(&self, key: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        if self.text("since").or(self.text("until")).is_some() {
            return Err(Problem::bad_request(&format!("`{key}` goes without `since` and `until`")));
        }
        let wrong = || Problem::bad_request(&format!("`{key}` is the number that an answer before gave"));
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// `since` and `until`, the last day if nothing is said.
    pub(crate) fn range(&self) -> Result<Range, Problem> {
        let of = |key: &str, default: &str| {
            let text = self.text(key).unwrap_or(default);
            let wrong = || Problem::bad_request(&format!("`{key}` is Unix ms, RFC 3339, or an age such as 24h"));
            time(text, self.now_ms).ok_or_else(wrong)
        };
        let range = Range { since_ms: of("since", "24h")?, until_ms: of("until", "now")?.saturating_add(1) };
        let fits = range.since_ms < range.until_ms;
        fits.then_some(range).ok_or_else(|| Problem::bad_request("`since` is not before `until`"))
    }

    /// `metric`: a short word of the pages, or the name of any metric.
    pub(crate) fn metric(&self, default: Metric) -> Result<Metric, Problem> {
        let Some(text) = self.text("metric") else { return Ok(default) };
        let short = SHORT.into_iter().find(|(short, _)| *short == text).map(|(_, metric)| metric);
        let long = || Metric::ALL.into_iter().find(|metric| metric.name() == text);
        short.or_else(long).ok_or_else(|| {
            let names = SHORT.map(|(short, _)| short).into_iter().chain(Metric::ALL.map(Metric::name));
            Problem::bad_request(&format!("`metric` is one of {}", names.collect::<Vec<_>>().join(", ")))
        })
    }
}

/// The time that a text means; `None` if it means nothing.
fn time(text: &str, now_ms: i64) -> Option<i64> {
    if text == "now" {
        return Some(now_ms);
    }
    let ago = |age: Duration| now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    text.parse().ok().or_else(|| age(text).map(ago)).or_else(|| narrows_units::parse_rfc_3339(text))
}

/// `90s`, `24h`, `7d`, `2w`.
fn age(text: &str) -> Option<Duration> {
    let days = text.strip_suffix('d').or_else(|| text.strip_suffix('w'));
    let in_days = days.and_then(|count| count.parse::<u32>().ok()).map(|count| {
        let days = if text.ends_with('w') { 7 } else { 1 };
        Duration::from_secs(86_400) * days * count.min(36_500)
    });
    in_days.or_else(|| narrows_units::parse_duration(text).ok())
}

const SHORT: [(&str, Metric); 4] = [
    ("available", Metric::AvailableIpCapacity),
    ("capacity", Metric::IpCapacity),
    ("rtt", Metric::RoundTripTime),
    ("throughput", Metric::TcpAchievableSingle),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_of_time_are_read() {
        let now = 1_795_476_600_000;
        let of = |text: &str| time(text, now);
        assert_eq!(of("1795476600000"), Some(now));
        assert_eq!([of("24h"), of("1d"), of("2w")], [1, 1, 14].map(|days| Some(now - days * 86_400_000)));
        assert_eq!(of("2026-11-23T23:30:00Z"), Some(now));
        assert_eq!([of("yesterday"), of("d"), of("")], [None; 3]);
    }
}
