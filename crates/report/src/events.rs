//! The lines of `--json-stream`: one event each, as JSON.
//!
//! `{"event":"…","schema":"narrows.event/1","at_ns":…,"data":{…}}`; its schema is
//! [`crate::schema::EVENT`]. `start` holds the plan, `stage` says that a stage began, ended or
//! runs again, `progress` is a probe that came back or a note, `interval` an interval of a transfer
//! or of a watch, `hop` what is known of a hop, `end` the whole document of the command.

use narrows_probe::progress::{Progress, StageEnded, Timed};
use serde_json::{Value, json};

use crate::document::Problem;
use crate::schema::EVENT_NAME;

/// The line of an event; `None` of those that have none: the end has a document, which comes with
/// [`end`].
pub fn line(event: &Timed) -> Option<String> {
    let (name, data) = match &event.progress {
        Progress::Plan(plan) => ("start", value(plan)),
        Progress::StageBegan(began) => ("stage", with("state", "began", value(began))),
        Progress::StageEnded(ended) => ("stage", with("state", "ended", value(ended))),
        Progress::Repeated(repeated) => ("stage", with("state", "repeated", value(repeated))),
        Progress::Sample(sample) => ("progress", value(sample)),
        Progress::Note(text) => ("progress", json!({ "note": text })),
        Progress::Interval(interval) => ("interval", with("of", "transfer", value(interval))),
        Progress::Watch(point) => ("interval", with("of", "watch", value(point))),
        Progress::Hop(hop) => ("hop", value(hop)),
        Progress::Ended => return None,
    };
    Some(written(name, event.at_ns, &data.to_string()))
}

/// The event of a line, to follow a run that was recorded; `None` of lines that are none. The last
/// line's document is left out.
pub fn parse(line: &str) -> Option<Timed> {
    let whole: Value = serde_json::from_str(line).ok()?;
    let data = whole.get("data")?.clone();
    let word = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
    let (state, of, note) = (word("state"), word("of"), word("note"));
    let progress = match whole.get("event")?.as_str()? {
        "start" => Progress::Plan(read(data)?),
        "stage" => match state?.as_str() {
            "began" => Progress::StageBegan(read(data)?),
            "ended" => Progress::StageEnded(read(data)?),
            _ => Progress::Repeated(read(data)?),
        },
        "progress" => match note {
            Some(text) => Progress::Note(text),
            None => Progress::Sample(read(data)?),
        },
        "interval" if of? == "watch" => Progress::Watch(read(data)?),
        "interval" => Progress::Interval(read(data)?),
        "hop" => Progress::Hop(read(data)?),
        "end" | "error" => Progress::Ended,
        _ => return None,
    };
    Some(Timed { at_ns: whole.get("at_ns")?.as_u64()?, progress })
}

fn read<T: serde::de::DeserializeOwned>(data: Value) -> Option<T> {
    serde_json::from_value(data).ok()
}

/// The last line: a command's document, which is JSON.
pub fn end(at_ns: u64, document: &str) -> String {
    written("end", at_ns, document.trim_end())
}

/// The last line of a run that failed before it had a document.
pub fn error(at_ns: u64, problem: &Problem) -> String {
    written("error", at_ns, &value(problem).to_string())
}

fn written(name: &str, at_ns: u64, data: &str) -> String {
    format!("{{\"event\":\"{name}\",\"schema\":\"{EVENT_NAME}\",\"at_ns\":{at_ns},\"data\":{data}}}")
}

fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_else(|error| json!({ "error": error.to_string() }))
}

fn with(name: &str, text: &str, mut data: Value) -> Value {
    if let Value::Object(fields) = &mut data {
        fields.insert(name.to_owned(), text.into());
    }
    data
}

/// A stage that is over, in one line.
pub fn stage_line(ended: &StageEnded) -> String {
    let name = crate::names::title(ended.metric);
    let print = |value| crate::text::print(ended.metric, value);
    let (Some(value), Some(low), Some(high)) = (ended.value, ended.low, ended.high) else {
        return format!("{name} inconclusive");
    };
    let claim = crate::text::claimed(ended.verdict, print(value), (low != high).then(|| (print(low), print(high))));
    format!("{name} {claim}")
}
