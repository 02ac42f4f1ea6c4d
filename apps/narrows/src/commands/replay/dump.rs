//! Raw rows, for people's own tools.

use std::fmt::Write as _;

use narrows_probe::Refusal;
use narrows_probe::probes::{
    Arrival, CapturedPacket, Fate, HopReplyKind, LoadReport, PacketPlan, Probe, TcpSample, Train, Transport,
};
use narrows_trace::{Answer, Request, Run};
use narrows_units::nanos;
use serde_json::{Map, Value, json};

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// One table for all kinds of rows; cells that do not apply are empty.
    Csv,
    /// One JSON object per row and line, with the keys that its kind has.
    Json,
}

/// Columns of the table, in order. All times are nanoseconds; `received_ns` and `turned_ns` are on
/// the receiver's clock.
const COLUMNS: [&str; 43] = [
    "run",
    "step",
    "kind",
    "id",
    "seq",
    "asked_at_ns",
    "planned_gap_ns",
    "hop_limit",
    "ip_octets",
    "departed_ns",
    "fate",
    "received_ns",
    "returned_ns",
    "turned_ns",
    "from",
    "reply_ip_octets",
    "reply",
    "asked_rate_bps",
    "stream",
    "from_ns",
    "to_ns",
    "packets",
    "octets",
    "lost",
    "reordered",
    "duplicates",
    "local_drops",
    "delay_least_ns",
    "delay_mean_ns",
    "delay_most_ns",
    "at_ns",
    "rtt_ns",
    "mss_octets",
    "cwnd_segments",
    "ssthresh_segments",
    "in_flight_segments",
    "acked_octets",
    "retransmitted_segments",
    "delivery_rate_bps",
    "source",
    "destination",
    "transport",
    "text",
];

type Row = Map<String, Value>;

pub(super) fn text<'a>(runs: impl Iterator<Item = (usize, &'a Run)>, form: Form) -> String {
    let mut out = String::new();
    if form == Form::Csv {
        out.push_str(&COLUMNS.join(","));
        out.push('\n');
    }
    for (number, run) in runs {
        for (step, exchange) in (1usize..).zip(&run.exchanges) {
            for row in rows(&exchange.asked, &exchange.answer) {
                let mut whole = Row::new();
                whole.insert("run".to_owned(), number.into());
                whole.insert("step".to_owned(), step.into());
                whole.insert("asked_at_ns".to_owned(), exchange.read.1.nanos().into());
                whole.extend(row);
                print(&mut out, &whole, form);
            }
        }
    }
    out
}

fn print(out: &mut String, row: &Row, form: Form) {
    match form {
        Form::Json => {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", Value::from(row.clone()));
        }
        Form::Csv => {
            let cells = COLUMNS.map(|column| match row.get(column) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => quoted(text),
                Some(other) => other.to_string(),
            });
            out.push_str(&cells.join(","));
            out.push('\n');
        }
    }
}

/// As RFC 4180 has it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn rows(asked: &Request, answer: &Answer) -> Vec<Row> {
    match (asked, answer) {
        (Request::Probe(Probe::Train(train)), Answer::Train(report)) => {
            let packets = train.packets.iter().zip(&report.arrivals);
            packets.map(|(plan, row)| packet(train, *plan, row)).collect()
        }
        (Request::Probe(Probe::Load(load)), Answer::Load(report)) => statuses(load.rate.bps(), report),
        (_, Answer::Transfer(report)) => {
            let streams = (0usize..).zip(&report.streams);
            let samples =
                streams.flat_map(|(stream, of)| (0usize..).zip(&of.samples).map(move |(seq, s)| (stream, seq, s)));
            samples.map(|(stream, seq, of)| sample(stream, seq, of)).collect()
        }
        (_, Answer::Capture(report)) => (0usize..).zip(&report.packets).map(|(seq, of)| captured(seq, of)).collect(),
        (_, Answer::Refused(refusal)) => vec![object(json!({"kind": "refused", "text": refused(*refusal)}))],
        (_, Answer::Fault(text)) => vec![object(json!({"kind": "fault", "text": text}))],
        (Request::Wait { until }, Answer::TimerFired) => vec![object(json!({"kind": "wait", "to_ns": until.nanos()}))],
        _ => Vec::new(),
    }
}

fn object(value: Value) -> Row {
    match value {
        Value::Object(row) => row,
        _ => Row::new(),
    }
}

fn packet(train: &Train, plan: PacketPlan, row: &Arrival) -> Row {
    let mut out = object(json!({
        "kind": "packet",
        "id": train.id.0,
        "seq": row.seq,
        "planned_gap_ns": nanos(plan.gap),
        "hop_limit": plan.hop_limit,
        "ip_octets": row.ip_octets,
        "departed_ns": row.departed.nanos(),
    }));
    out.extend(object(match row.fate {
        Fate::Received(at) => json!({"fate": "received", "received_ns": at.nanos()}),
        Fate::Echoed { returned, turned } => json!({
            "fate": "echoed",
            "returned_ns": returned.nanos(),
            "turned_ns": turned.map(narrows_units::Stamp::nanos),
        }),
        Fate::Answered(reply) => json!({
            "fate": "answered",
            "returned_ns": reply.returned.nanos(),
            "from": reply.from.to_string(),
            "reply_ip_octets": reply.reply_ip_octets,
            "reply": match reply.kind {
                HopReplyKind::TimeExceeded => "time_exceeded".to_owned(),
                HopReplyKind::PortUnreachable => "port_unreachable".to_owned(),
                HopReplyKind::TcpAnswer => "tcp_answer".to_owned(),
                HopReplyKind::PacketTooBig { mtu: Some(mtu) } => format!("packet_too_big {mtu}"),
                HopReplyKind::PacketTooBig { mtu: None } => "packet_too_big".to_owned(),
                HopReplyKind::Unreachable { code } => format!("unreachable {code}"),
            },
        }),
        Fate::Lost => json!({"fate": "lost"}),
    }));
    out
}

fn statuses(asked_rate: u64, report: &LoadReport) -> Vec<Row> {
    let statuses = (0usize..).zip(&report.statuses);
    let mut rows = vec![object(json!({
        "kind": "load",
        "asked_rate_bps": asked_rate,
        "from_ns": report.began.nanos(),
        "to_ns": report.ended.nanos(),
        "packets": report.sent_packets,
        "octets": report.sent_ip_octets,
    }))];
    rows.extend(statuses.map(|(seq, status)| {
        let delay = status.delay_above_min;
        object(json!({
            "kind": "load_status",
            "seq": seq,
            "from_ns": status.from.nanos(),
            "to_ns": status.to.nanos(),
            "packets": status.packets,
            "octets": status.ip_octets,
            "lost": status.lost,
            "reordered": status.reordered,
            "duplicates": status.duplicates,
            "local_drops": status.local_drops,
            "delay_least_ns": delay.map(|(least, _, _)| nanos(least)),
            "delay_mean_ns": delay.map(|(_, mean, _)| nanos(mean)),
            "delay_most_ns": delay.map(|(_, _, most)| nanos(most)),
        }))
    }));
    rows
}

fn sample(stream: usize, seq: usize, of: &TcpSample) -> Row {
    object(json!({
        "kind": "tcp_sample",
        "stream": stream,
        "seq": seq,
        "at_ns": of.at.nanos(),
        "rtt_ns": nanos(of.rtt),
        "mss_octets": of.mss_octets,
        "cwnd_segments": of.cwnd_segments,
        "ssthresh_segments": of.ssthresh_segments,
        "in_flight_segments": of.in_flight_segments,
        "acked_octets": of.acked_octets,
        "retransmitted_segments": of.retransmitted_segments,
        "delivery_rate_bps": of.delivery_rate.map(|(rate, _)| rate.bps()),
    }))
}

fn captured(seq: usize, of: &CapturedPacket) -> Row {
    object(json!({
        "kind": "captured",
        "seq": seq,
        "at_ns": of.at.nanos(),
        "source": of.source.to_string(),
        "destination": of.destination.to_string(),
        "ip_octets": of.ip_octets,
        "transport": match of.transport {
            Transport::Tcp(_) => "tcp".to_owned(),
            Transport::Udp => "udp".to_owned(),
            Transport::Other(protocol) => protocol.to_string(),
        },
    }))
}

fn refused(refusal: Refusal) -> String {
    match refusal {
        Refusal::TooLarge { max_ip_octets } => format!("larger than {max_ip_octets} octets"),
        Refusal::TooSmall { min_ip_octets } => format!("smaller than {min_ip_octets} octets"),
        Refusal::NotOffered => "not offered".to_owned(),
        Refusal::ForbiddenByPeer => "forbidden by the peer".to_owned(),
    }
}
