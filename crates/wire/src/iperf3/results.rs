//! What each side counted.

use serde_json::{Map, Value, json};

use super::json::{Fields, JsonError};
use super::parameters::MOST_STREAMS;

/// CPU time that a side used, in percent of the test's time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cpu {
    /// All of it.
    pub total: f64,
    /// In the program.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

/// One stream, as one side saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamResult {
    /// Its number, the same on both sides.
    pub id: u32,
    /// Payload octets: sent by a sender, received by a receiver, without what was omitted.
    pub octets: u64,
    /// Segments sent again; `None` where unknown.
    pub retransmits: Option<u64>,
    /// Jitter, seconds.
    pub jitter_seconds: f64,
    /// Datagrams missed, those in the omitted time included.
    pub lost: u64,
    /// Those in the omitted time; `None` where a side does not say.
    pub lost_omitted: Option<u64>,
    /// Datagrams sent, or the highest number received; those in the omitted time included.
    pub datagrams: u64,
    /// Those in the omitted time; `None` where a side does not say.
    pub datagrams_omitted: Option<u64>,
    /// When counting began and ended, seconds since the test began; `None` where a side does not
    /// say.
    pub span_seconds: Option<(f64, f64)>,
}

/// What a side says at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Results {
    /// CPU that it used.
    pub cpu: Cpu,
    /// It sends, and knows what was sent again; `None`: it only receives.
    pub knows_retransmits: Option<bool>,
    /// Congestion control that it really used.
    pub congestion: Option<String>,
    /// Its own output, if it was asked for: a text, or JSON.
    pub server_output: Option<Value>,
    /// One per stream.
    pub streams: Vec<StreamResult>,
}

/// Counters above this are no counters.
const MOST: i64 = i64::MAX;

impl Results {
    /// The counts of a stream.
    pub fn stream(&self, id: u32) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == id)
    }

    /// Reads what the peer sent.
    pub fn parse(octets: &[u8]) -> Result<Self, JsonError> {
        let mut fields = Fields::parse(octets)?;
        let percent = |name| fields.real(name).map(Option::unwrap_or_default);
        let cpu = Cpu {
            total: percent("cpu_util_total")?,
            user: percent("cpu_util_user")?,
            system: percent("cpu_util_system")?,
        };
        let knows = fields.signed("sender_has_retransmits")?;
        let congestion = fields.text("congestion_used", 64)?;
        let text = fields.take("server_output_text").filter(Value::is_string);
        let server_output = fields.take("server_output_json").or(text);
        let Some(Value::Array(streams)) = fields.take("streams") else {
            return Err(JsonError::Missing("streams"));
        };
        if streams.len() > 2 * usize::from(MOST_STREAMS) {
            return Err(JsonError::TooManyStreams);
        }
        let streams = streams.into_iter().map(stream).collect::<Result<_, _>>()?;
        Ok(Self {
            cpu,
            knows_retransmits: knows.filter(|&knows| knows >= 0).map(|knows| knows > 0),
            congestion,
            server_output,
            streams,
        })
    }

    /// The text that says all this.
    pub fn to_json(&self) -> String {
        let knows = self.knows_retransmits.map_or(-1, i64::from);
        let streams: Vec<Value> = self.streams.iter().map(as_json).collect();
        let mut fields = Map::new();
        fields.insert("cpu_util_total".to_owned(), self.cpu.total.into());
        fields.insert("cpu_util_user".to_owned(), self.cpu.user.into());
        fields.insert("cpu_util_system".to_owned(), self.cpu.system.into());
        fields.insert("sender_has_retransmits".to_owned(), knows.into());
        if let Some(name) = &self.congestion {
            fields.insert("congestion_used".to_owned(), name.as_str().into());
        }
        match &self.server_output {
            Some(Value::String(text)) => {
                fields.insert("server_output_text".to_owned(), text.as_str().into());
            }
            Some(output) => {
                fields.insert("server_output_json".to_owned(), output.clone());
            }
            None => {}
        }
        fields.insert("streams".to_owned(), streams.into());
        Value::Object(fields).to_string()
    }
}

fn as_json(stream: &StreamResult) -> Value {
    // Stock programs read these as doubles: none may be written with an exponent, and -1 stands for
    // "unknown".
    let count = |value: u64| i64::try_from(value).unwrap_or(MOST);
    let (start, end) = stream.span_seconds.unwrap_or_default();
    json!({
        "id": stream.id,
        "bytes": count(stream.octets),
        "retransmits": stream.retransmits.map_or(-1, count),
        "jitter": stream.jitter_seconds,
        "errors": count(stream.lost),
        "omitted_errors": count(stream.lost_omitted.unwrap_or(0)),
        "packets": count(stream.datagrams),
        "omitted_packets": count(stream.datagrams_omitted.unwrap_or(0)),
        "start_time": start,
        "end_time": end,
    })
}

fn stream(value: Value) -> Result<StreamResult, JsonError> {
    let Value::Object(fields) = value else {
        return Err(JsonError::NotAnObject);
    };
    let fields = Fields(fields);
    let needed = |name| fields.signed(name)?.ok_or(JsonError::Missing(name));
    let count = |name| fields.count(name, u64::MAX);
    let some = |name| count(name)?.ok_or(JsonError::Missing(name));
    let jitter_seconds = fields.real("jitter")?.ok_or(JsonError::Missing("jitter"))?;
    // Stock receivers may count more found again than missed.
    let lost = u64::try_from(needed("errors")?).unwrap_or(0);
    let span = (fields.real("start_time")?, fields.real("end_time")?);
    Ok(StreamResult {
        id: fields.count("id", u32::MAX)?.ok_or(JsonError::Missing("id"))?,
        octets: some("bytes")?,
        retransmits: u64::try_from(needed("retransmits")?).ok(),
        jitter_seconds: jitter_seconds.max(0.0),
        lost,
        lost_omitted: fields.signed("omitted_errors")?.map(|lost| u64::try_from(lost).unwrap_or(0)),
        datagrams: some("packets")?,
        datagrams_omitted: count("omitted_packets")?,
        span_seconds: span.0.zip(span.1),
    })
}
