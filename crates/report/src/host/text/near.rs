//! This host: what it says of itself, what was measured, and what is not known.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_diagnose::host::{CardFacts, Costs, Inventory, Pacer, Spread};
use narrows_units::format_duration;

use super::super::NearHost;
use super::super::table::table;
use super::{bps, unknown as nothing};

/// Nanoseconds for people.
pub(super) fn time(ns: u64) -> String {
    format_duration(Duration::from_nanos(ns))
}

fn or_unknown<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(nothing, ToString::to_string)
}

pub(super) fn inventory(out: &mut String, host: &Inventory) {
    let processor = &host.processor;
    let _ = writeln!(
        out,
        "host {}: Linux {}, {} of {} processors ({}), {}",
        or_unknown(host.hostname.as_ref()),
        or_unknown(host.kernel.as_ref()),
        or_unknown(processor.allowed.as_ref()),
        or_unknown(processor.online.as_ref()),
        processor.model.as_deref().unwrap_or("model unknown"),
        match (host.machine.hypervisor, &host.machine.product) {
            (Some(true), Some(product)) => format!("virtual: {product}"),
            (Some(true), None) => "virtual".to_owned(),
            (Some(false), _) => "no hypervisor seen".to_owned(),
            (None, Some(product)) => product.clone(),
            (None, None) => "hypervisor unknown".to_owned(),
        }
    );
    let steady = match processor.steady_counter {
        Some(true) => ", steady cycle counter",
        Some(false) => ", cycle counter NOT steady",
        None => "",
    };
    let idle = processor.idle_states.iter().filter(|state| !state.disabled).map(|state| state.exit_ns).max();
    let _ = writeln!(
        out,
        "clock {}{steady}; governor {}; {} to wake from the deepest idle state; {} NUMA node(s)",
        or_unknown(processor.clock_source.as_ref()),
        or_unknown(processor.governor.as_ref()),
        idle.map_or_else(nothing, time),
        or_unknown(processor.numa_nodes.as_ref()),
    );
    if let Some(quota) = processor.quota {
        let _ =
            writeln!(out, "control group: {quota:.2} processors, held back {} times", processor.throttled.unwrap_or(0));
    }
    match &host.card {
        Some(card) => self::card(out, card),
        None => out.push_str("no interface towards the path\n"),
    }
    settings(out, host);
}

fn card(out: &mut String, card: &CardFacts) {
    let _ = writeln!(
        out,
        "interface {}: {}{}, {}, MTU {}, discipline {}",
        card.name,
        card.driver.as_ref().map_or_else(|| "driver unknown".to_owned(), |driver| format!("driver {driver}")),
        if card.is_virtual { ", no wire of its own" } else { "" },
        card.rate_bps.map_or_else(|| "link rate unknown".to_owned(), |rate| format!("link {}", bps(rate))),
        or_unknown(card.mtu.as_ref()),
        or_unknown(card.qdisc.as_ref()),
    );
    let mut parts = Vec::new();
    if let Some(set) = card.coalescing {
        let adaptive = if set.adaptive_receive { ", adaptive" } else { "" };
        parts.push(format!(
            "receive interrupts held back {} µs or {} frames{adaptive}",
            set.receive_us, set.receive_frames
        ));
    }
    if let Some(seen) = card.seen_coalescing.as_ref().and_then(|seen| seen.period_ns) {
        parts.push(format!("packets were seen in batches every {}", time(seen)));
    }
    if let Some(rings) = card.rings {
        parts.push(format!(
            "rings {} of {} / {} of {}",
            rings.receive, rings.receive_max, rings.transmit, rings.transmit_max
        ));
    }
    if let Some(channels) = card.channels {
        parts.push(format!("queues {}", channels.combined.max(channels.receive)));
    }
    if let Some(pcie) = &card.pcie {
        parts.push(format!("slot {} x{}", pcie.transfers, pcie.width.trim_start_matches('x')));
    }
    let on: Vec<&str> = card.offloads.iter().filter(|offload| offload.on).map(|offload| offload.name).collect();
    if !on.is_empty() {
        parts.push(format!("offloads {}", on.join(" ")));
    }
    if let Some(stamps) = card.stamps {
        parts.push(if stamps.hardware_receive { "stamps by the card" } else { "no stamps by the card" }.to_owned());
    }
    if !parts.is_empty() {
        let _ = writeln!(out, "  {}", parts.join("; "));
    }
}

fn settings(out: &mut String, host: &Inventory) {
    let (tcp, counters) = (&host.tcp, &host.counters);
    let most = |triple: Option<[u64; 3]>| or_unknown(triple.map(|[.., most]| most).as_ref());
    let _ = writeln!(
        out,
        "TCP {}; buffers up to {} / {} octets (rmem_max {}, wmem_max {}); busy polling {} µs",
        or_unknown(tcp.congestion_control.as_ref()),
        most(tcp.receive_memory),
        most(tcp.send_memory),
        or_unknown(tcp.receive_buffer_max.as_ref()),
        or_unknown(tcp.send_buffer_max.as_ref()),
        or_unknown(tcp.busy_read_us.as_ref()),
    );
    let card = host.card.as_ref();
    let reported = [
        ("by full backlogs", counters.softirq_dropped),
        ("by full UDP buffers", counters.udp_receive_buffer_errors),
        ("by full TCP backlogs", counters.tcp_backlog_drops),
        ("by the interface on receiving", card.and_then(|card| card.receive_drops)),
        ("for want of descriptors", card.and_then(|card| card.receive_fifo_errors)),
        ("by the interface on sending", card.and_then(|card| card.send_drops)),
    ];
    let some: Vec<String> = reported
        .iter()
        .filter_map(|(what, count)| count.filter(|count| *count > 0).map(|count| format!("{count} {what}")))
        .collect();
    let squeezed = counters.softirq_squeezed.unwrap_or(0);
    let dropped = if some.is_empty() { "none".to_owned() } else { some.join(", ") };
    let _ = writeln!(out, "packets dropped here since it started: {dropped}; softirqs cut short: {squeezed}");
}

pub(super) fn costs(out: &mut String, costs: &Costs) {
    out.push_str("\nCosts, measured on loopback:\n");
    let mut rows = vec![["", "least", "median", "p99", "most"].map(str::to_owned)];
    rows.extend(calls(costs));
    rows.extend(timing(costs));
    table(out, &rows);
    let copied =
        costs.memory_copy_octets_per_second.map_or_else(nothing, |octets| format!("{:.1} GB/s", octets as f64 / 1e9));
    let loopback = &costs.loopback;
    let rate = |rate: Option<u64>| rate.map_or_else(nothing, bps);
    let _ = writeln!(
        out,
        "  the clock resolves {}; memory is copied at {copied}; loopback carries {} by TCP, {} by UDP, {} by UDP cut by the kernel",
        costs.clock_resolution_ns.map_or_else(nothing, time),
        rate(loopback.tcp_bps),
        rate(loopback.udp_bps),
        rate(loopback.udp_segments_bps),
    );
}

/// A cost's row, or that it is unknown.
fn row(name: String, spread: Option<Spread>) -> [String; 5] {
    match spread {
        Some(spread) => [name, time(spread.min_ns), time(spread.median_ns), time(spread.p99_ns), time(spread.max_ns)],
        None => [name, nothing(), String::new(), String::new(), String::new()],
    }
}

fn calls(costs: &Costs) -> Vec<[String; 5]> {
    let listed = [
        ("reading the clock", costs.clock_read),
        ("the same by a system call", costs.clock_system_call),
        ("reading the cycle counter", costs.cycle_counter),
        ("between two readings", costs.clock_gaps),
        ("an empty system call", costs.system_call),
        ("yielding the processor", costs.yield_processor),
        ("to a thread on the same processor", costs.switch_same_processor),
        ("to a thread on another processor", costs.switch_other_processor),
        ("send, per packet", costs.send),
        ("send, of 64 at once", costs.send_batch),
        ("send, cut by the kernel", costs.send_segments),
        ("receive, per packet", costs.receive),
        ("receive, of 64 at once", costs.receive_batch),
        ("receive, merged by the kernel", costs.receive_merged),
    ];
    listed.into_iter().map(|(name, spread)| row(name.to_owned(), spread)).collect()
}

fn timing(costs: &Costs) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for sleep in &costs.sleeps {
        rows.push(row(
            format!("late after sleeping {} (slack {})", time(sleep.requested_ns), time(sleep.slack_ns)),
            Some(sleep.overshoot),
        ));
    }
    for pacing in costs.pacing.iter().filter(|pacing| pacing.error.is_some()) {
        let way = match pacing.pacer {
            Pacer::Spin => "spinning",
            Pacer::Sleep => "sleeping",
            Pacer::DepartureTimes => "by the kernel's discipline",
        };
        let kept = if pacing.kept == Some(true) { "" } else { ", a train NOT kept" };
        rows.push(row(format!("gaps of {} off, {way}{kept}", time(pacing.gap_ns.unwrap_or(0))), pacing.error));
    }
    for stamp in costs.stamps.iter().filter(|stamp| stamp.delay.is_some()) {
        rows.push(row(
            format!("send to stamp of the {}", if stamp.source == "user" { "program" } else { stamp.source }),
            stamp.delay,
        ));
    }
    rows
}

/// What this host does not tell, and why what was not measured was not.
pub(super) fn unknown(out: &mut String, host: &NearHost) {
    let (inventory, processor) = (&host.inventory, &host.inventory.processor);
    let mut missing: Vec<&str> = Vec::new();
    let mut check = |known: bool, what| {
        if !known {
            missing.push(what);
        }
    };
    check(processor.governor.is_some(), "frequency governor");
    check(!processor.idle_states.is_empty(), "idle states");
    check(processor.clock_source.is_some(), "clock source");
    check(inventory.machine.hypervisor.is_some(), "hypervisor");
    check(processor.pressure_ratio.is_some(), "processor pressure");
    if let Some(card) = &inventory.card {
        check(card.driver.is_some(), "driver");
        check(card.rate_bps.is_some(), "link rate");
        check(card.coalescing.is_some(), "interrupt coalescing");
        check(card.rings.is_some(), "rings");
        check(card.pcie.is_some(), "slot");
        check(card.stamps.is_some(), "stamps by the card");
        check(card.qdisc.is_some(), "queueing discipline");
    } else {
        check(false, "interface");
    }
    if !missing.is_empty() {
        let _ = writeln!(out, "\nUnknown (this system does not tell): {}", missing.join(", "));
    }
    for pacing in &host.costs.pacing {
        if let Some(why) = &pacing.unknown {
            let _ = writeln!(out, "Unknown (departure times, SO_TXTIME): {why}");
        }
    }
    for stamp in &host.costs.stamps {
        if let Some(why) = &stamp.unknown {
            let _ = writeln!(out, "Unknown ({} stamps): {why}", stamp.source);
        }
    }
}
