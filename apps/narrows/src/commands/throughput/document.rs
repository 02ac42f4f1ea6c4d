//! The JSON that iperf3's readers know: `start`, `intervals`, `end`; and `narrows`, which holds
//! what it has no place for.

use narrows_net::iperf3::{Finished, Part, Snapshot, StreamPart, TestOptions};
use narrows_units::nanos;
use narrows_wire::iperf3::{Flow, StreamResult, Transport};
use serde_json::{Map, Value, json};

use super::ThroughputArgs;
use super::limit::{Judge, LimitVerdict};
use super::metrics::Metrics;
use super::own::{Beside, Ending};
use super::quick::Quickened;
use super::streams::{Both, both};
use crate::moment::Moment;

/// What iperf3's account has no place for.
type More<'a> = (&'a Beside, Option<&'a Metrics>);

/// The whole document.
pub(super) fn build(
    args: &ThroughputArgs,
    options: &TestOptions,
    finished: &Finished,
    judge: &Judge,
    started_at: Moment,
    more: More<'_>,
) -> Value {
    let mut document = Map::new();
    document.insert("start".to_owned(), start(args, options, finished, started_at));
    let intervals: Vec<Value> = finished.parts.iter().map(|part| interval(part, &judge.part(part), options)).collect();
    document.insert("intervals".to_owned(), intervals.into());
    document.insert("end".to_owned(), end(finished, options));
    match &finished.theirs.server_output {
        Some(Value::String(text)) => {
            document.insert("server_output_text".to_owned(), text.as_str().into());
        }
        Some(output) => {
            document.insert("server_output_json".to_owned(), output.clone());
        }
        None => {}
    }
    if let Some(title) = &args.title {
        document.insert("title".to_owned(), title.as_str().into());
    }
    if let Some(extra) = &args.extra_data {
        document.insert("extra_data".to_owned(), extra.as_str().into());
    }
    let mut narrows = narrows(finished, &judge.whole(finished), more);
    if let (Some(reverse), Value::Object(fields)) = (judge.reverse(finished), &mut narrows) {
        fields.insert("limited_by_bidir_reverse".to_owned(), reverse.limited_by.into());
        fields.insert("evidence_bidir_reverse".to_owned(), reverse.evidence);
    }
    document.insert("narrows".to_owned(), narrows);
    Value::Object(document)
}

fn start(args: &ThroughputArgs, options: &TestOptions, finished: &Finished, started_at: Moment) -> Value {
    let parameters = &options.parameters;
    let outline = &finished.outline;
    let connected: Vec<Value> = outline
        .streams
        .iter()
        .filter(|stream| stream.near.port() > 0)
        .map(|stream| {
            json!({
                "socket": stream.id,
                "local_host": stream.near.ip(), "local_port": stream.near.port(),
                "remote_host": stream.remote.ip(), "remote_port": stream.remote.port(),
            })
        })
        .collect();
    let first = outline.streams.first();
    let system = nix::sys::utsname::uname().map_or_else(
        |_| String::new(),
        |name| {
            let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
            parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
        },
    );
    let block = if parameters.block_octets > 0 { Some(parameters.block_octets) } else { block_of(finished) };
    json!({
        "connected": connected,
        "version": concat!("narrows ", env!("CARGO_PKG_VERSION")),
        "system_info": system,
        "timestamp": {
            "time": started_at.rfc_9110(),
            "timesecs": started_at.unix_seconds(),
        },
        "connecting_to": { "host": args.host, "port": options.port },
        "cookie": outline.cookie,
        "tcp_mss_default": first.and_then(|stream| stream.mss_octets),
        "target_bitrate": parameters.rate_bps,
        "fq_rate": parameters.fq_rate_bps,
        "sock_bufsize": parameters.window_octets.unwrap_or(0),
        "sndbuf_actual": first.and_then(|stream| stream.send_buffer_octets),
        "rcvbuf_actual": first.and_then(|stream| stream.receive_buffer_octets),
        "test_start": {
            "protocol": if parameters.transport == Transport::Tcp { "TCP" } else { "UDP" },
            "num_streams": parameters.streams,
            "blksize": block,
            "omit": options.omit.as_secs_f64(),
            "duration": if amount(options) { 0.0 } else { options.duration.as_secs_f64() },
            "bytes": parameters.octets,
            "blocks": parameters.blocks,
            "reverse": i32::from(parameters.flow == Flow::Reverse),
            "bidir": i32::from(parameters.flow == Flow::Both),
            "tos": parameters.tos,
            "target_bitrate": parameters.rate_bps,
            "fqrate": parameters.fq_rate_bps,
        },
    })
}

fn amount(options: &TestOptions) -> bool {
    options.parameters.octets > 0 || options.parameters.blocks > 0
}

/// Payload of a datagram, where the path chose it.
fn block_of(finished: &Finished) -> Option<u32> {
    let last = finished.parts.last()?;
    let sender = last.streams.iter().find(|stream| stream.to.sends && stream.to.datagrams > 0)?;
    u32::try_from(sender.to.octets.checked_div(sender.to.datagrams)?).ok()
}

/// Sums of one direction: seconds from and to, and octets.
struct Span {
    from: f64,
    to: f64,
}

impl Span {
    fn row(&self, octets: u64, sender: bool) -> Map<String, Value> {
        let seconds = self.to - self.from;
        let bps = if seconds > 0.0 { octets as f64 * 8.0 / seconds } else { 0.0 };
        let fields = [
            ("start", self.from.into()),
            ("end", self.to.into()),
            ("seconds", seconds.into()),
            ("bytes", octets.into()),
            ("bits_per_second", bps.into()),
            ("sender", sender.into()),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn put(row: &mut Map<String, Value>, fields: &[(&str, Value)]) {
    for (name, value) in fields {
        row.insert((*name).to_owned(), value.clone());
    }
}

fn interval(part: &Part, verdict: &LimitVerdict, options: &TestOptions) -> Value {
    let span = Span { from: part.from.as_secs_f64(), to: part.to.as_secs_f64() };
    let udp = options.parameters.transport != Transport::Tcp;
    let streams: Vec<Value> = part.streams.iter().map(|stream| stream_row(stream, &span, part.omitted, udp)).collect();
    let mut row = Map::new();
    row.insert("streams".to_owned(), streams.into());
    let both = options.parameters.flow == Flow::Both;
    let main = options.parameters.flow != Flow::Reverse;
    let mut sum = |name: &str, sends: bool| {
        let streams: Vec<&StreamPart> = part.streams.iter().filter(|stream| stream.to.sends == sends).collect();
        let octets = streams.iter().map(|stream| passed(stream, |at| at.octets)).sum();
        let mut sum = span.row(octets, sends);
        put(&mut sum, &counts(&streams, udp, sends));
        put(&mut sum, &[("omitted", part.omitted.into())]);
        row.insert(name.to_owned(), Value::Object(sum));
    };
    sum("sum", main);
    if both {
        sum("sum_bidir_reverse", false);
    }
    row.insert("narrows".to_owned(), json!({ "limited_by": verdict.limited_by, "evidence": verdict.evidence }));
    Value::Object(row)
}

fn passed(stream: &StreamPart, of: fn(&Snapshot) -> u64) -> u64 {
    of(&stream.to).saturating_sub(of(&stream.from))
}

fn retransmits(stream: &StreamPart) -> Option<u64> {
    let of = |at: &Snapshot| at.tcp.map(|tcp| tcp.retransmitted_segments);
    Some(of(&stream.to)?.saturating_sub(of(&stream.from)?).into())
}

/// What several streams counted beside octets.
fn counts(streams: &[&StreamPart], udp: bool, sends: bool) -> Vec<(&'static str, Value)> {
    let sum = |of: fn(&Snapshot) -> u64| streams.iter().map(|stream| passed(stream, of)).sum::<u64>();
    match (udp, sends) {
        (false, true) => {
            let known: Vec<u64> = streams.iter().filter_map(|stream| retransmits(stream)).collect();
            vec![("retransmits", known.iter().sum::<u64>().into())]
        }
        (false, false) => Vec::new(),
        (true, true) => vec![("packets", sum(|at| at.datagrams).into())],
        (true, false) => {
            let packets = sum(|at| at.arrivals.map_or(0, |counts| counts.highest));
            let lost = sum(|at| at.arrivals.map_or(0, |counts| counts.lost()));
            let jitter = streams.iter().filter_map(|stream| stream.to.arrivals).map(|counts| counts.jitter_seconds);
            let jitter = jitter.sum::<f64>() / streams.len().max(1) as f64;
            losses(jitter, lost, packets)
        }
    }
}

fn losses(jitter: f64, lost: u64, packets: u64) -> Vec<(&'static str, Value)> {
    let percent = if packets > 0 { 100.0 * lost as f64 / packets as f64 } else { 0.0 };
    vec![
        ("jitter_ms", (jitter * 1e3).into()),
        ("lost_packets", lost.into()),
        ("packets", packets.into()),
        ("lost_percent", percent.into()),
    ]
}

fn stream_row(stream: &StreamPart, span: &Span, omitted: bool, udp: bool) -> Value {
    let mut row = span.row(passed(stream, |at| at.octets), stream.to.sends);
    put(&mut row, &[("socket", stream.to.id.into()), ("omitted", omitted.into())]);
    put(&mut row, &counts(&[stream], udp, stream.to.sends));
    if let Some(tcp) = stream.to.tcp {
        let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let window = u64::from(tcp.cwnd_segments).saturating_mul(tcp.mss_octets.into());
        put(
            &mut row,
            &[
                ("snd_cwnd", window.into()),
                ("snd_wnd", tcp.peer_window_octets.into()),
                ("rtt", micros(tcp.rtt).into()),
                ("rttvar", micros(tcp.rtt_var).into()),
            ],
        );
    }
    Value::Object(row)
}

fn end(finished: &Finished, options: &TestOptions) -> Value {
    let all = both(finished);
    let udp = options.parameters.transport != Transport::Tcp;
    let mut end = Map::new();
    let streams: Vec<Value> = all.iter().map(|one| end_row(one, finished, udp)).collect();
    end.insert("streams".to_owned(), streams.into());
    let main = options.parameters.flow != Flow::Reverse;
    let mut directions = vec![(main, "")];
    if options.parameters.flow == Flow::Both {
        directions.push((false, "_bidir_reverse"));
    }
    for (sends, suffix) in directions {
        let these: Vec<&Both<'_>> = all.iter().filter(|one| one.sends == sends).collect();
        let (sent, received) = sums(&these, finished, udp);
        if udp {
            end.insert(format!("sum{suffix}"), received.clone().into());
        }
        end.insert(format!("sum_sent{suffix}"), sent.into());
        end.insert(format!("sum_received{suffix}"), received.into());
    }
    let (ours, theirs) = (&finished.ours, &finished.theirs);
    end.insert(
        "cpu_utilization_percent".to_owned(),
        json!({
            "host_total": ours.cpu.total, "host_user": ours.cpu.user, "host_system": ours.cpu.system,
            "remote_total": theirs.cpu.total, "remote_user": theirs.cpu.user, "remote_system": theirs.cpu.system,
        }),
    );
    let (sender, receiver) = if main { (ours, theirs) } else { (theirs, ours) };
    for (name, side) in [("sender_tcp_congestion", sender), ("receiver_tcp_congestion", receiver)] {
        if let Some(congestion) = &side.congestion {
            end.insert(name.to_owned(), congestion.as_str().into());
        }
    }
    Value::Object(end)
}

/// While this side counted; a peer that says when it did is believed.
fn span_of(finished: &Finished, counted: &StreamResult) -> Span {
    let (from, to) = (finished.span.0.as_secs_f64(), finished.span.1.as_secs_f64());
    let theirs = counted.span_seconds.map(|(from, to)| to - from).filter(|&length| length > 0.0);
    Span { from: 0.0, to: theirs.unwrap_or(to - from) }
}

fn end_row(one: &Both<'_>, finished: &Finished, udp: bool) -> Value {
    let socket = ("socket", Value::from(one.id));
    if udp {
        let mut row = span_of(finished, one.sent).row(one.sent.octets, one.sends);
        put(&mut row, &losses(one.received.jitter_seconds, one.received.lost, one.sent.datagrams));
        put(&mut row, &[socket]);
        return json!({ "udp": row });
    }
    let mut sent = span_of(finished, one.sent).row(one.sent.octets, one.sends);
    put(&mut sent, &[socket.clone(), ("retransmits", one.sent.retransmits.into())]);
    put(&mut sent, &extremes(finished, one.id));
    let mut received = span_of(finished, one.received).row(one.received.octets, one.sends);
    put(&mut received, &[socket]);
    json!({ "sender": sent, "receiver": received })
}

/// Extremes of a connection over the intervals that count.
fn extremes(finished: &Finished, id: u32) -> Vec<(&'static str, Value)> {
    let parts = finished.parts.iter().filter(|part| !part.omitted);
    let samples: Vec<_> = parts
        .flat_map(|part| part.streams.iter().filter(|stream| stream.to.id == id))
        .flat_map(|stream| &stream.samples)
        .collect();
    let rtts: Vec<u64> = samples.iter().map(|tcp| u64::try_from(tcp.rtt.as_micros()).unwrap_or(0)).collect();
    let Some(count) = u64::try_from(rtts.len()).ok().filter(|&count| count > 0) else {
        return Vec::new();
    };
    let window = samples.iter().map(|tcp| u64::from(tcp.cwnd_segments).saturating_mul(tcp.mss_octets.into())).max();
    vec![
        ("max_snd_cwnd", window.into()),
        ("max_rtt", rtts.iter().max().copied().into()),
        ("min_rtt", rtts.iter().min().copied().into()),
        ("mean_rtt", (rtts.iter().sum::<u64>() / count).into()),
    ]
}

fn sums(these: &[&Both<'_>], finished: &Finished, udp: bool) -> (Map<String, Value>, Map<String, Value>) {
    let sum = |of: fn(&Both<'_>) -> u64| these.iter().map(|one| of(one)).sum::<u64>();
    let sends = these.first().is_some_and(|one| one.sends);
    let span = |of: for<'b> fn(&'b Both<'_>) -> &'b StreamResult| {
        these.first().map_or(Span { from: 0.0, to: 0.0 }, |one| span_of(finished, of(one)))
    };
    let mut sent = span(|one| one.sent).row(sum(|one| one.sent.octets), sends);
    let mut received = span(|one| one.received).row(sum(|one| one.received.octets), sends);
    if udp {
        let (packets, lost) = (sum(|one| one.sent.datagrams), sum(|one| one.received.lost));
        let jitter = these.iter().map(|one| one.received.jitter_seconds).sum::<f64>() / these.len().max(1) as f64;
        put(&mut sent, &losses(0.0, 0, packets));
        put(&mut received, &losses(jitter, lost, packets));
    } else {
        let known: Option<u64> = these.iter().map(|one| one.sent.retransmits).sum();
        put(&mut sent, &[("retransmits", known.into())]);
    }
    (sent, received)
}

fn narrows(finished: &Finished, verdict: &LimitVerdict, (beside, metrics): More<'_>) -> Value {
    let spacing: Vec<Value> = finished
        .spacing
        .iter()
        .map(|(id, spacing)| {
            json!({
                "socket": id,
                "packets_at_once": spacing.group(),
                "planned_ns": nanos(spacing.planned()),
                "gap_ns_p50": spacing.quantile(0.5).map(nanos),
                "gap_ns_p99": spacing.quantile(0.99).map(nanos),
                "gap_ns_max": nanos(spacing.most()),
                "unrecovered_ns": spacing.unrecovered().map(nanos),
            })
        })
        .collect();
    let mut document = json!({
        "limited_by": verdict.limited_by,
        "evidence": verdict.evidence,
        // `null`: an early end was not wanted.
        "quick": beside.quick.as_ref().map(Quickened::json),
        "interrupted": finished.interrupted,
        // `null`: a stock peer's test.
        "ended_by": beside.ending.map(Ending::name),
        "spacing": spacing,
    });
    if let (Some(Value::Object(more)), Value::Object(fields)) = (metrics.map(Metrics::json), &mut document) {
        fields.extend(more);
    }
    document
}
