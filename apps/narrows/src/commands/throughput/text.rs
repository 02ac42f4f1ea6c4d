//! A test as text: a line per interval and stream, sums, and what limited it.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_net::iperf3::{Finished, Outline, Part, Snapshot, TestOptions};
use narrows_units::{BitRate, Octets, format_duration};
use narrows_wire::iperf3::Transport;

use super::ThroughputArgs;
use super::limit::LimitVerdict;
use super::streams::both;

/// Writing to a string cannot fail.
fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{what}");
}

pub(super) fn header(args: &ThroughputArgs, options: &TestOptions, outline: &Outline) -> String {
    let mut text = String::new();
    for stream in outline.streams.iter().filter(|stream| stream.near.port() > 0) {
        let way = if stream.sends { "to" } else { "from" };
        line(&mut text, format_args!("[{:3}] {} {way} {}", stream.id, stream.near, stream.remote));
    }
    if let Some(title) = &args.title {
        line(&mut text, format_args!("{title}"));
    }
    let columns = if options.parameters.transport == Transport::Tcp {
        "retr  window     rtt        limited by"
    } else {
        "packets  lost  jitter     limited by"
    };
    line(&mut text, format_args!("[ ID] interval         octets      rate           {columns}"));
    text
}

pub(super) fn interval(part: &Part, verdict: &LimitVerdict, options: &TestOptions) -> String {
    let mut text = String::new();
    let seconds = part.to.saturating_sub(part.from);
    let (from, to) = (part.from.as_secs_f64(), part.to.as_secs_f64());
    let many = part.streams.len() > 1;
    for stream in &part.streams {
        let octets = stream.to.octets.saturating_sub(stream.from.octets);
        let rate = BitRate::over(octets, seconds).unwrap_or(BitRate::ZERO);
        let last = if many { "" } else { verdict.limited_by.unwrap_or("-") };
        let omitted = if part.omitted { "  (omitted)" } else { "" };
        line(
            &mut text,
            format_args!(
                "[{:3}] {from:6.2}-{to:<6.2} s  {:>10}  {:>13}  {}{last}{omitted}",
                stream.to.id,
                Octets::new(octets).to_string(),
                rate.to_string(),
                columns(&stream.from, &stream.to)
            ),
        );
    }
    if many {
        for sends in [true, false] {
            let these = part.streams.iter().filter(|stream| stream.to.sends == sends);
            let octets: Vec<u64> = these.map(|stream| stream.to.octets.saturating_sub(stream.from.octets)).collect();
            if octets.is_empty() {
                continue;
            }
            let octets: u64 = octets.iter().sum();
            let rate = BitRate::over(octets, seconds).unwrap_or(BitRate::ZERO);
            let way = if sends { "sent" } else { "received" };
            let last = if sends || options.parameters.flow == narrows_wire::iperf3::Flow::Reverse {
                verdict.limited_by.unwrap_or("-")
            } else {
                ""
            };
            line(
                &mut text,
                format_args!(
                    "[SUM] {from:6.2}-{to:<6.2} s  {:>10}  {:>13}  {way}  {last}",
                    Octets::new(octets).to_string(),
                    rate.to_string()
                ),
            );
        }
    }
    text
}

fn columns(from: &Snapshot, to: &Snapshot) -> String {
    if let Some(tcp) = to.tcp {
        let before = from.tcp.map_or(0, |tcp| tcp.retransmitted_segments);
        let window = u64::from(tcp.cwnd_segments).saturating_mul(tcp.mss_octets.into());
        return format!(
            "{:>4}  {:>9}  {:>9}  ",
            tcp.retransmitted_segments.saturating_sub(before),
            Octets::new(window).to_string(),
            format_duration(tcp.rtt)
        );
    }
    if let Some(counts) = to.arrivals {
        let before = from.arrivals.unwrap_or_default();
        return format!(
            "{:>7}  {:>4}  {:>9}  ",
            counts.distinct.saturating_sub(before.distinct),
            counts.lost().saturating_sub(before.lost()),
            format_duration(Duration::from_secs_f64(counts.jitter_seconds.clamp(0.0, 1e6)))
        );
    }
    if to.datagrams > 0 {
        return format!("{:>7}                   ", to.datagrams.saturating_sub(from.datagrams));
    }
    String::new()
}

pub(super) fn summary(finished: &Finished, verdict: &LimitVerdict, options: &TestOptions) -> String {
    let mut text = String::new();
    let length = finished.span.1.saturating_sub(finished.span.0);
    let udp = options.parameters.transport != Transport::Tcp;
    let all = both(finished);
    for sends in [true, false] {
        let these: Vec<_> = all.iter().filter(|one| one.sends == sends).collect();
        if these.is_empty() {
            continue;
        }
        let sent: u64 = these.iter().map(|one| one.sent.octets).sum();
        let received: u64 = these.iter().map(|one| one.received.octets).sum();
        // A receiver that says how long it received is believed.
        let span = these.iter().find_map(|one| one.received.span_seconds);
        let time = span.and_then(|(from, to)| Duration::try_from_secs_f64(to - from).ok());
        let time = time.filter(|time| !time.is_zero()).unwrap_or(length);
        let rate = BitRate::over(received, time).unwrap_or(BitRate::ZERO);
        let way = if sends { "this host sent" } else { "the server sent" };
        line(
            &mut text,
            format_args!(
                "{way} {}, {} arrived: {rate} over {}",
                Octets::new(sent),
                Octets::new(received),
                format_duration(time)
            ),
        );
        if udp {
            let datagrams: u64 = these.iter().map(|one| one.sent.datagrams).sum();
            let lost: u64 = these.iter().map(|one| one.received.lost).sum();
            line(&mut text, format_args!("  lost {lost} of {datagrams} packets"));
        } else if let Some(again) = these.iter().map(|one| one.sent.retransmits).sum::<Option<u64>>() {
            line(&mut text, format_args!("  {again} segments sent again"));
        }
    }
    for (id, spacing) in &finished.spacing {
        let (Some(median), Some(high)) = (spacing.quantile(0.5), spacing.quantile(0.99)) else {
            continue;
        };
        let plan = if spacing.planned().is_zero() {
            "as fast as goes".to_owned()
        } else {
            format!("every {} as planned", format_duration(spacing.planned()))
        };
        line(
            &mut text,
            format_args!(
                "  stream {id}: {} packet(s) {plan}; gaps p50 {}, p99 {}, longest {}",
                spacing.group(),
                format_duration(median),
                format_duration(high),
                format_duration(spacing.most())
            ),
        );
    }
    line(&mut text, format_args!("limited by: {}", verdict.limited_by.unwrap_or("unknown to this side")));
    if let Some(output) = &finished.theirs.server_output {
        let output = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        line(&mut text, format_args!("server's output:\n{output}"));
    }
    text
}
