//! For people.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_units::{BitRate, format_duration};

use super::{FlowReport, Report};
use crate::control::Transport;
use crate::histogram::Distribution;

/// Flows that are shown one by one; of more only the totals are.
const SHOWN: usize = 32;

impl Report {
    /// A few lines per flow, then the totals.
    pub fn text(&self) -> String {
        let mut text = format!("traffic to {}, {}\n", self.sink, time(self.duration_ns));
        if self.interrupted {
            text.push_str("interrupted: this is what is known\n");
        }
        for (index, flow) in self.flows.iter().enumerate().take(SHOWN) {
            describe(&mut text, index, flow, self.same_clock);
        }
        if self.flows.len() > SHOWN {
            let _ = writeln!(text, "… and {} flows more; --json has all", self.flows.len() - SHOWN);
        }
        for total in self.totals() {
            let _ = writeln!(
                text,
                "total of {} flow(s), {} layer: asked {}, planned {}, achieved {}, received {}",
                total.flows,
                if total.layer == "ip" { "IP" } else { "TCP payload" },
                rate(total.requested_bps),
                rate(total.planned_bps),
                rate(Some(total.achieved_bps)),
                rate(total.received_bps),
            );
        }
        if let Some(drops) = self.local_drops.filter(|drops| *drops > 0) {
            let _ = writeln!(
                text,
                "the sink's host dropped {drops} packets because its buffer was full: not the network's loss"
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

fn describe(text: &mut String, index: usize, flow: &FlowReport, same_clock: bool) {
    let layer = match flow.transport {
        Transport::Udp => "UDP, rates at the IP layer",
        Transport::Tcp => "TCP, rates of payload",
    };
    let _ = writeln!(text, "flow {index}: {} ({layer})", flow.name);
    let _ = writeln!(
        text,
        "  asked {}, planned {}, achieved {}, received {}",
        rate(flow.requested_bps),
        rate(flow.planned_bps),
        rate(flow.achieved_bps),
        rate(flow.received_bps),
    );
    if let Some(tcp) = &flow.sent.tcp {
        let _ = writeln!(
            text,
            "  {}: {} segments retransmitted, smallest round trip {}",
            tcp.congestion,
            tcp.retransmitted_segments,
            tcp.min_rtt_ns.map_or("unknown".to_owned(), time),
        );
    }
    if let (Some(late), Some(gap)) = (&flow.sent.late_ns, &flow.sent.gap_ns) {
        let _ = writeln!(
            text,
            "  sent {} packets; late: median {}, p99 {}, at most {}; gaps: mean {}, deviation {}",
            flow.sent.packets,
            signed(late.p50),
            signed(late.p99),
            signed(late.max),
            fraction(gap.mean),
            fraction(gap.deviation),
        );
    }
    describe_odd(text, flow);
    describe_received(text, flow, same_clock);
}

fn describe_odd(text: &mut String, flow: &FlowReport) {
    let odd = [
        (flow.sent.refused_packets, "refused by this host"),
        (flow.sent.raised_packets, "raised to the smallest that can be sent"),
        (flow.sent.cut_packets, "more because longer ones were cut to the MTU"),
    ];
    for (packets, what) in odd.into_iter().filter(|(packets, _)| *packets > 0) {
        let _ = writeln!(text, "  {packets} packets {what}");
    }
}

fn describe_received(text: &mut String, flow: &FlowReport, same_clock: bool) {
    let Some(received) = &flow.received else {
        text.push_str("  what arrived is not known\n");
        return;
    };
    if flow.transport == Transport::Tcp {
        return;
    }
    let _ = writeln!(
        text,
        "  received {} packets; lost {} ({:.3} %), duplicates {}, out of order {}",
        received.packets,
        received.lost,
        100.0 * received.loss_ratio().unwrap_or(0.0),
        received.duplicates,
        received.reordering.packets,
    );
    if let Some(delay) = &received.one_way_delay_ns {
        let _ = writeln!(text, "  one-way delay: {}", quantiles(delay));
    }
    if let Some(variation) = &received.delay_variation_ns {
        let offset = if same_clock { "" } else { " (two clocks: the delay itself is not known)" };
        let _ = writeln!(text, "  above the smallest delay: {}{offset}", quantiles(variation));
    }
    if let Some(jitter) = &received.jitter_ns {
        let _ = writeln!(text, "  jitter (RFC 3550): {}, at most {}", fraction(jitter.last), fraction(jitter.max));
    }
}

fn quantiles(reported: &Distribution) -> String {
    format!(
        "least {}, median {}, p95 {}, p99 {}, most {}",
        signed(reported.min),
        signed(reported.p50),
        signed(reported.p95),
        signed(reported.p99),
        signed(reported.max)
    )
}

fn rate(bps: Option<u64>) -> String {
    bps.map_or("–".to_owned(), |bps| BitRate::from_bps(bps).to_string())
}

fn time(ns: u64) -> String {
    format_duration(Duration::from_nanos(ns))
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", time(ns.unsigned_abs()))
}

fn fraction(ns: f64) -> String {
    format_duration(Duration::try_from_secs_f64(ns.max(0.0) / 1e9).unwrap_or_default())
}
