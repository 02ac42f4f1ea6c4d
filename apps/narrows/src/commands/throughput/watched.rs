//! A test as those see it who follow it: a screen, or readers of a stream.

use std::time::Duration;

use narrows_net::iperf3::{Part, StreamPart, TestOptions};
use narrows_probe::probes::TcpSample;
use narrows_probe::progress::{Interval, Plan, RatePoint, StreamInterval};
use narrows_units::{Layer, nanos};
use narrows_wire::iperf3::Transport;

use super::ThroughputArgs;
use super::limit::LimitVerdict;
use crate::progress::{StreamTo, Wanted};

impl ThroughputArgs {
    /// Where the progress goes.
    pub(super) fn progress(&self) -> Wanted<'_> {
        Wanted {
            quiet: true,
            stream: self.json_stream.then_some(StreamTo(self.output.as_deref())),
            screen: self.screen.wanted(self.json || self.json_stream || self.get_server_output),
        }
    }
}

/// What is going to be measured.
pub(super) fn announced(args: &ThroughputArgs) -> Plan {
    let transport = match (args.udp, &args.congestion) {
        (true, _) => "UDP".to_owned(),
        (false, Some(congestion)) => format!("TCP {congestion}"),
        (false, None) => "TCP".to_owned(),
    };
    let streams = if args.parallel == 1 { "1 stream".to_owned() } else { format!("{} streams", args.parallel) };
    let direction = match (args.reverse, args.bidir) {
        (true, _) => "reverse",
        (_, true) => "both directions",
        _ => "forward",
    };
    let by_amount = args.bytes.is_some() || args.blockcount.is_some();
    let most = args.omit.saturating_add(args.length());
    Plan {
        command: "throughput".to_owned(),
        target: args.host.clone(),
        details: format!("{transport}, {streams}, {direction}"),
        most_ns: Some(nanos(most)).filter(|_| !by_amount && !args.length().is_zero()),
        ..Plan::default()
    }
}

/// An interval.
pub(super) fn interval(part: &Part, verdict: &LimitVerdict, options: &TestOptions) -> Interval {
    let tcp = options.parameters.transport == Transport::Tcp;
    let (from_ns, to_ns) = (nanos(part.from), nanos(part.to));
    let streams: Vec<StreamInterval> = part.streams.iter().map(stream).collect();
    Interval {
        from_ns,
        to_ns,
        omitted: part.omitted,
        limited_by: verdict.limited_by.map(str::to_owned),
        layer: if tcp { Layer::TcpPayload } else { Layer::UdpPayload },
        points: points(part, &streams),
        streams,
    }
}

fn stream(part: &StreamPart) -> StreamInterval {
    let (from, to) = (&part.from, &part.to);
    let resent = |tcp: Option<TcpSample>| tcp.map_or(0, |tcp| tcp.retransmitted_segments);
    let again = to.tcp.map(|now| now.retransmitted_segments.saturating_sub(resent(from.tcp)).into());
    let lost = to.arrivals.map(|now| now.lost().saturating_sub(from.arrivals.unwrap_or_default().lost()));
    StreamInterval {
        id: to.id,
        sends: to.sends,
        octets: to.octets.saturating_sub(from.octets),
        again: again.or(lost),
        window_octets: to.tcp.map(|tcp| u64::from(tcp.cwnd_segments).saturating_mul(tcp.mss_octets.into())),
        rtt_ns: to.tcp.map(|tcp| nanos(tcp.rtt)),
    }
}

/// The samples of all streams of the counted direction together; without any, the interval itself.
fn points(part: &Part, streams: &[StreamInterval]) -> Vec<RatePoint> {
    let sends = part.streams.iter().any(|stream| stream.to.sends);
    let counted: Vec<&StreamPart> = part.streams.iter().filter(|stream| stream.to.sends == sends).collect();
    let count = counted.iter().map(|stream| stream.samples.len()).min().unwrap_or(0);
    let whole = || RatePoint {
        to_ns: nanos(part.to),
        span_ns: nanos(part.to.saturating_sub(part.from)),
        octets: streams.iter().filter(|stream| stream.sends == sends).map(|stream| stream.octets).sum(),
        again: streams.iter().filter(|stream| stream.sends == sends).filter_map(|stream| stream.again).sum(),
        rtt_ns: streams.iter().find_map(|stream| stream.rtt_ns),
    };
    if count < 2 {
        return vec![whole()];
    }
    let began = counted.iter().filter_map(|stream| stream.samples.first()).map(|sample| sample.at.nanos()).min();
    let since = |sample: &TcpSample| {
        let ns = sample.at.nanos().saturating_sub(began.unwrap_or(0));
        nanos(part.from.saturating_add(Duration::from_nanos(u64::try_from(ns).unwrap_or(0))))
    };
    let point = |place: usize| {
        let pairs = || counted.iter().map(|stream| (&stream.samples[place - 1], &stream.samples[place]));
        let rtts: Vec<u64> = pairs().map(|(_, now)| nanos(now.rtt)).collect();
        let span = pairs().map(|(before, now)| nanos(now.at.since(before.at))).max().unwrap_or(0);
        RatePoint {
            to_ns: pairs().map(|(_, now)| since(now)).max().unwrap_or(0),
            span_ns: span,
            octets: pairs().map(|(before, now)| now.acked_octets.saturating_sub(before.acked_octets)).sum(),
            again: pairs()
                .map(|(before, now)| {
                    u64::from(now.retransmitted_segments.saturating_sub(before.retransmitted_segments))
                })
                .sum(),
            rtt_ns: rtts.iter().sum::<u64>().checked_div(narrows_units::to_u64(rtts.len())),
        }
    };
    (1..count).map(point).filter(|point| point.span_ns > 0).collect()
}
