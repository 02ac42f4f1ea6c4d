//! Lines of Influx's line protocol, one per value, event and alert.
//!
//! What may stand where is in
//! <https://docs.influxdata.com/influxdb3/core/reference/line-protocol/>. Tags are sorted by their
//! keys, as it advises; an empty one is left out, as it demands.

use narrows_notify::NoticeBody;
use narrows_store::records::{Basis, Event};
use narrows_units::rounded_signed;
use narrows_watch::{Claim, Reading, Signal, WallTime};

use crate::commands::history::word;

/// The value of a field.
enum Field {
    Whole(i64),
    Text(String),
    Flag(bool),
}

/// A value of a signal, in its unit.
pub(super) fn value(source: &str, target: &str, signal: Signal, reading: &Reading, basis: Basis) -> String {
    let tags = [
        ("basis", word(&basis)),
        ("signal", signal.name().to_owned()),
        ("source", source.to_owned()),
        ("target", target.to_owned()),
        ("unit", signal.unit().to_owned()),
    ];
    let known = |value: f64| (reading.claim != Claim::Inconclusive).then(|| Field::Whole(rounded_signed(value)));
    let fields = [
        ("value", known(reading.value)),
        ("low", known(reading.low)),
        ("high", known(reading.high)),
        ("claim", Some(Field::Text(word(&reading.claim)))),
        ("loaded", Some(Field::Flag(reading.loaded))),
        ("host_busy", Some(Field::Flag(reading.host_busy))),
    ];
    point("narrows", &tags, fields, reading.at)
}

/// Something that happened; the time is that at which it did, not that at which it was found.
pub(super) fn event(source: &str, target: &str, event: &Event) -> String {
    let tags = [
        ("event", event.kind.clone()),
        ("signal", event.signal.map(|signal| signal.name().to_owned()).unwrap_or_default()),
        ("source", source.to_owned()),
        ("target", target.to_owned()),
    ];
    let text = |text: &Option<String>| text.clone().map(Field::Text);
    let fields = [
        ("text", Some(Field::Text(event.text.clone()))),
        ("before", text(&event.before)),
        ("after", text(&event.after)),
        ("cause", text(&event.cause)),
    ];
    point("narrows_event", &tags, fields, event.at)
}

/// A notice about an alert.
pub(super) fn notice(source: &str, body: &NoticeBody) -> String {
    let tags = [("rule", body.rule.clone()), ("source", source.to_owned()), ("target", body.target.clone())];
    let fields = [
        ("state", Some(Field::Text(body.state_name().to_owned()))),
        ("text", Some(Field::Text(body.text.clone()))),
        ("cause", body.cause.clone().map(Field::Text)),
    ];
    point("narrows_alert", &tags, fields, body.at)
}

fn point<const FIELDS: usize>(
    measurement: &str,
    tags: &[(&str, String)],
    fields: [(&str, Option<Field>); FIELDS],
    at: WallTime,
) -> String {
    let tags = tags.iter().map(|(key, value)| (key, key_text(value))).filter(|(_, value)| !value.is_empty());
    let of = tags.fold(measurement.to_owned(), |of, (key, value)| of + "," + key + "=" + &value);
    let fields = fields.into_iter().filter_map(|(key, field)| Some(format!("{key}={}", field_text(&field?))));
    let fields: Vec<String> = fields.collect();
    // Nanoseconds, which is what readers expect unless they are told otherwise.
    let nanos = at.millis().saturating_mul(1_000_000);
    format!("{of} {} {nanos}\n", fields.join(","))
}

/// The value of a tag: not quoted, but escaped.
fn key_text(text: &str) -> String {
    let plain = printable(text);
    // The protocol has no way to end with one.
    let plain = plain.trim_end_matches('\\');
    plain.chars().fold(String::new(), |mut out, letter| {
        if matches!(letter, ',' | '=' | ' ') {
            out.push('\\');
        }
        out.push(letter);
        out
    })
}

fn field_text(field: &Field) -> String {
    match field {
        Field::Whole(number) => format!("{number}i"),
        Field::Flag(flag) => flag.to_string(),
        Field::Text(text) => format!("\"{}\"", printable(text).replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// A line is a point: no text may break it.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::watch::events;

    const AT: WallTime = WallTime::from_millis(1_795_547_100_007);

    #[test]
    fn a_value_is_a_point_with_sorted_tags_and_whole_numbers() {
        let reading = Reading::estimate(AT, 22.4e6, 19e6, 25e6);
        assert_eq!(
            value("here", "office", Signal::AvailableForward, &reading, Basis::Server),
            "narrows,basis=server,signal=available,source=here,target=office,unit=bit/s \
             value=22400000i,low=19000000i,high=25000000i,claim=\"estimate\",loaded=false,host_busy=false \
             1795547100007000000\n"
        );
        let unknown = Reading { claim: Claim::Inconclusive, loaded: true, ..reading };
        assert_eq!(
            value("here", "office", Signal::Loss, &unknown, Basis::Single),
            "narrows,basis=single,signal=loss,source=here,target=office,unit=ppm \
             claim=\"inconclusive\",loaded=true,host_busy=false 1795547100007000000\n"
        );
    }

    #[test]
    fn what_has_a_meaning_is_escaped() {
        for (text, tag) in [
            ("far office", "far\\ office"),
            ("a,b=c", "a\\,b\\=c"),
            ("x\ny\u{7f}z", "x\\ y\\ z"),
            ("C:\\net", "C:\\net"),
            ("ends\\\\", "ends"),
            ("quo\"te", "quo\"te"),
            ("Büro", "Büro"),
        ] {
            assert_eq!(key_text(text), tag, "{text}");
        }
        for (text, field) in [
            ("plain, a=b", "\"plain, a=b\""),
            ("a \"quote\"", "\"a \\\"quote\\\"\""),
            ("C:\\net\\", "\"C:\\\\net\\\\\""),
            ("two\r\nlines", "\"two  lines\""),
        ] {
            assert_eq!(field_text(&Field::Text(text.to_owned())), field, "{text}");
        }
    }

    #[test]
    fn events_and_alerts_are_points_too() {
        let mut woke = events::now(None, "woke", AT, "this host slept for 9 s".to_owned());
        assert_eq!(
            event("here", "", &woke),
            "narrows_event,event=woke,source=here text=\"this host slept for 9 s\" 1795547100007000000\n"
        );
        (woke.signal, woke.before, woke.cause) = (Some(Signal::Loss), Some("1 %".to_owned()), Some("x".to_owned()));
        assert_eq!(
            event("here", "a b", &woke),
            "narrows_event,event=woke,signal=loss,source=here,target=a\\ b \
             text=\"this host slept for 9 s\",before=\"1 %\",cause=\"x\" 1795547100007000000\n"
        );
        let [firing, _] = NoticeBody::tests("here", AT);
        assert_eq!(
            notice("here", &firing),
            "narrows_alert,rule=test,source=here,target=here \
             state=\"firing\",text=\"here: this is a test of narrows; nothing is wrong.\" 1795547100007000000\n"
        );
    }
}
