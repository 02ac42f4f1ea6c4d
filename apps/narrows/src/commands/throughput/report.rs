//! The answer of a transfer, and its report files.

use std::time::Duration;

use narrows_net::iperf3::{Finished, StreamPart, TestOptions};
use narrows_report::redaction::Redaction;
use narrows_report::{AnswerLine, ReportFile, Target, Transfer, TransferFile};
use narrows_units::{BitRate, Direction, Layer, Octets, format_duration};
use narrows_wire::iperf3::Transport;
use serde_json::Value;

use super::ThroughputArgs;
use super::limit::Judge;
use super::metrics::Metrics;
use super::streams::{Both, both};
use crate::environment;

/// What a transfer came to, one entry per direction.
pub(super) fn transfers(
    finished: &Finished,
    options: &TestOptions,
    judge: &Judge,
    metrics: Option<&Metrics>,
) -> Vec<Transfer> {
    let all = both(finished);
    let ways = [true, false].map(|sends| all.iter().filter(|one| one.sends == sends).collect::<Vec<_>>());
    let mut transfers = Vec::new();
    for these in ways.into_iter().filter(|these| !these.is_empty()) {
        let first = transfers.is_empty();
        let limited_by =
            if first { judge.whole(finished).limited_by } else { judge.reverse(finished).and_then(|it| it.limited_by) };
        // The round trip was taken of the first way.
        let delay = metrics.filter(|_| first).map(Metrics::delay);
        transfers.push(Transfer { limited_by, delay, ..one_way(finished, options, &these) });
    }
    transfers
}

fn one_way(finished: &Finished, options: &TestOptions, these: &[&Both<'_>]) -> Transfer {
    let udp = options.parameters.transport != Transport::Tcp;
    let sum = |of: fn(&Both<'_>) -> u64| these.iter().map(|one| of(one)).sum::<u64>();
    // A receiver that says how long it received is believed.
    let span = these.iter().find_map(|one| one.received.span_seconds);
    let time = span.and_then(|(from, to)| Duration::try_from_secs_f64(to - from).ok());
    let length = finished.span.1.saturating_sub(finished.span.0);
    let time = time.filter(|time| !time.is_zero()).unwrap_or(length);
    Transfer {
        direction: if these.iter().any(|one| one.sends) { Direction::Forward } else { Direction::Reverse },
        rate_bps: BitRate::over(sum(|one| one.received.octets), time).map_or(0, BitRate::bps),
        layer: if udp { Layer::UdpPayload } else { Layer::TcpPayload },
        time,
        lost: udp.then(|| (sum(|one| one.received.lost), sum(|one| one.sent.datagrams))),
        delay: None,
        limited_by: None,
    }
}

pub(super) fn answer(transfers: &[Transfer]) -> Vec<AnswerLine> {
    transfers.iter().flat_map(Transfer::answer).collect()
}

/// The document with its answer, under the part that is ours, and without names where those are
/// hidden.
pub(super) fn with_answer(mut document: Value, answer: &[AnswerLine], redaction: Option<&Redaction>) -> Value {
    if let (Some(Value::Object(narrows)), Ok(lines)) = (document.get_mut("narrows"), serde_json::to_value(answer)) {
        narrows.insert("answer".to_owned(), lines);
    }
    if let Some(redaction) = redaction {
        redaction.value(&mut document);
    }
    document
}

/// What hides the names of a test.
pub(super) fn redaction(args: &ThroughputArgs) -> Redaction {
    let target = Target { name: args.host.clone(), address: None, port: None };
    let mut redaction = Redaction::of_target(&target);
    redaction.hide_this_host(&environment::hostname());
    redaction
}

/// Writes the report files that were asked for.
pub(super) fn file(
    args: &ThroughputArgs,
    finished: &Finished,
    transfers: &[Transfer],
    (started_at, document): (String, &Value),
    command: &str,
) -> ReportFile {
    let redact = args.files.redact();
    let connected = finished.outline.streams.first().map(|stream| stream.remote.ip());
    let address = connected.filter(|address| !redact && !address.is_unspecified());
    let name = if redact { redaction(args).text(&args.host) } else { args.host.clone() };
    let octets = both(finished).iter().map(|one| one.sent.octets).sum();
    let (rates, windows) = series(finished);
    let file = TransferFile {
        target: Target { name, address, port: None },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: Some(started_at),
        answer: answer(transfers),
        octets,
        seconds: finished.span.1.saturating_sub(finished.span.0).as_secs_f64(),
        results: figures(document, transfers),
        rates,
        windows,
        json: document.to_string(),
    };
    ReportFile::of_transfer(file, command)
}

/// Names and points of series.
type Lines = Vec<(String, Vec<(f64, f64)>)>;

/// Rates by interval and windows by sample, per stream.
fn series(finished: &Finished) -> (Lines, Lines) {
    let name = |id: u32| format!("stream {id}");
    let parts = || finished.parts.iter();
    let ids = finished.outline.streams.iter().map(|stream| stream.id);
    let mut rates = Lines::new();
    let mut windows = Lines::new();
    for id in ids {
        let of_stream = |streams: &'_ [StreamPart]| streams.iter().find(|stream| stream.to.id == id).cloned();
        let mut points = Vec::new();
        let mut window = Vec::new();
        for part in parts() {
            let Some(stream) = of_stream(&part.streams) else { continue };
            let octets = stream.to.octets.saturating_sub(stream.from.octets);
            let rate = BitRate::over(octets, part.to.saturating_sub(part.from)).map_or(0.0, BitRate::as_f64);
            points.push((part.to.as_secs_f64() * 1e9, rate));
            let tcp = stream.to.tcp.map(|tcp| f64::from(tcp.cwnd_segments) * f64::from(tcp.mss_octets));
            window.extend(tcp.map(|octets| (part.to.as_secs_f64() * 1e9, octets)));
        }
        rates.push((name(id), points));
        if !window.is_empty() {
            windows.push((format!("{}, window", name(id)), window));
        }
    }
    (rates, windows)
}

/// Every figure of ours, by name.
fn figures(document: &Value, transfers: &[Transfer]) -> Vec<(String, String)> {
    let mut figures = Vec::new();
    for transfer in transfers {
        let way = if transfer.direction == Direction::Reverse { "received" } else { "sent" };
        figures.push((format!("payload {way}, rate"), BitRate::from_bps(transfer.rate_bps).to_string()));
        figures.push((format!("payload {way}, time"), format_duration(transfer.time)));
        if let Some((lost, datagrams)) = transfer.lost {
            figures.push((format!("packets {way}, lost"), format!("{lost} of {datagrams}")));
        }
    }
    let parts = [("rfc6349", "RFC 6349"), ("loaded_rtt", "round trip"), ("foreign_rtt", "other connections")];
    for (part, title) in parts {
        let Some(fields) = document["narrows"][part].as_object() else { continue };
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            figures.push((format!("{title}, {}", spelled(name)), printed(name, value)));
        }
    }
    for name in ["limited_by", "limited_by_bidir_reverse", "ended_by", "responsiveness_rpm"] {
        let value = &document["narrows"][name];
        if !value.is_null() {
            figures.push((spelled(name), printed(name, value)));
        }
    }
    figures
}

/// A key as words; the value has the unit.
fn spelled(name: &str) -> String {
    let units = ["_ns", "_bps", "_octets", "_percent", "_ms", "_rpm"];
    let name = units.into_iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    name.replace('_', " ")
}

fn printed(name: &str, value: &Value) -> String {
    match (value, value.as_f64()) {
        (Value::String(text), _) => text.clone(),
        (_, Some(number)) if name.ends_with("_ns") => {
            format_duration(Duration::try_from_secs_f64(number.max(0.0) / 1e9).unwrap_or_default())
        }
        (_, Some(number)) if name.ends_with("_bps") => {
            BitRate::from_bps_f64(number).map_or_else(|| number.to_string(), |rate| rate.to_string())
        }
        (Value::Number(number), _) if name.ends_with("_octets") => {
            number.as_u64().map_or_else(|| number.to_string(), |octets| Octets::new(octets).to_string())
        }
        (_, Some(number)) => {
            let unit = [("_percent", " %"), ("_ms", " ms"), ("_rpm", " a minute")];
            let unit = unit.into_iter().find(|(ending, _)| name.ends_with(ending)).map_or("", |(_, unit)| unit);
            if number.fract() == 0.0 { format!("{number:.0}{unit}") } else { format!("{number:.2}{unit}") }
        }
        _ => value.to_string(),
    }
}
