//! What to do about it: rules over the results, each with its evidence and a command.
//!
//! The rules and their thresholds are netest's idea (`[Netest03]` §IV) brought to today's kernels; each names the figures that
//! triggered it. A rule that lacks a figure says nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use units::{BitRate, Metric, Octets};

use crate::document::Document;
use crate::rows::MetricRow;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It is what limits the result now.
    Limiting,
    /// It would be the next limit, or makes the result less sure.
    Warning,
    /// Good to know.
    Hint,
}

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Machine name of the rule.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is the case, and what to do.
    pub text: String,
    /// The figures that triggered it, with their units in the names.
    pub evidence: BTreeMap<&'static str, serde_json::Value>,
    /// A command that does it, where there is one; to be run by the user.
    pub command: Option<String>,
}

type Rule = fn(&Document) -> Option<Advice>;

/// Every rule, first limits first.
const RULES: &[Rule] = &[
    host_limited,
    receive_buffer,
    send_buffer,
    window_scaling,
    shallow_queue,
    parallel_streams,
    receive_batching,
    local_drops,
    shaped,
    path_mtu,
    clocksource,
    steal,
    virtual_interface,
    too_short,
    nothing_available,
];

/// All advice that a document gives rise to, most severe first.
pub fn advise(document: &Document) -> Vec<Advice> {
    let mut advice: Vec<Advice> = RULES.iter().filter_map(|rule| rule(document)).collect();
    advice.sort_by_key(|advice| advice.severity);
    advice
}

macro_rules! evidence {
    ($($name:literal : $value:expr),* $(,)?) => {
        BTreeMap::from([$(($name, serde_json::json!($value))),*])
    };
}

fn value(document: &Document, metric: Metric) -> Option<u64> {
    document.row(metric)?.value
}

/// Octets in flight that fill what is available over the round trip; what window and buffers must hold.
fn available_product(document: &Document) -> Option<(u64, u64)> {
    let rtt_ns = value(document, Metric::RoundTripTime)?;
    let rate = value(document, Metric::AvailableIpCapacity).or(value(document, Metric::IpCapacity))?;
    let octets = u128::from(rate) * u128::from(rtt_ns) / 8_000_000_000;
    Some((u64::try_from(octets).ok()?, rtt_ns))
}

fn host_limited(document: &Document) -> Option<Advice> {
    let row = document.metrics.iter().find(|row| {
        use estimate::Limit;
        matches!(row.limited_by, Some(Limit::Sender | Limit::Receiver)) && row.value.is_some()
    })?;
    let who = row.limited_by?.to_string();
    Some(Advice {
        id: "host_limited",
        severity: Severity::Limiting,
        text: format!(
            "the {who} is slower than the path: {} is a bound set by that host; free a processor there, or repeat from a faster host",
            row.metric
        ),
        evidence: evidence! { "metric": row.metric, "value": row.value, "limited_by": who },
        command: None,
    })
}

/// Twice the product: the kernel charges its own overhead to the buffer.
fn receive_buffer(document: &Document) -> Option<Advice> {
    let (product, rtt_ns) = available_product(document)?;
    let [_, _, most] = document.host.sender_environment.tcp_rmem_octets?;
    let need = product.saturating_mul(2);
    (most < need).then(|| Advice {
        id: "receive_buffer",
        severity: Severity::Warning,
        text: format!(
            "a TCP receiver here can hold {} of payload at most, the path needs {}: raise the receive buffer limit",
            Octets::new(most / 2),
            Octets::new(product)
        ),
        evidence: evidence! { "tcp_rmem_max_octets": most, "needed_octets": need, "rtt_ns": rtt_ns },
        command: Some(format!("sysctl -w net.ipv4.tcp_rmem=\"4096 131072 {need}\"")),
    })
}

fn send_buffer(document: &Document) -> Option<Advice> {
    let (product, rtt_ns) = available_product(document)?;
    let [_, _, most] = document.host.sender_environment.tcp_wmem_octets?;
    let need = product.saturating_mul(2);
    let limiting = document.row(Metric::TcpAchievableSingle).is_some_and(limited_by_window);
    (most < need).then(|| Advice {
        id: "send_buffer",
        severity: if limiting {
            Severity::Limiting
        } else {
            Severity::Warning
        },
        text: format!(
            "a TCP sender here can hold {} at most, the path needs {}: raise the send buffer limit",
            Octets::new(most / 2),
            Octets::new(product)
        ),
        evidence: evidence! { "tcp_wmem_max_octets": most, "needed_octets": need, "rtt_ns": rtt_ns },
        command: Some(format!("sysctl -w net.ipv4.tcp_wmem=\"4096 16384 {need}\"")),
    })
}

fn limited_by_window(row: &MetricRow) -> bool {
    row.limited_by == Some(estimate::Limit::Window)
}

fn window_scaling(document: &Document) -> Option<Advice> {
    let (product, rtt_ns) = available_product(document)?;
    let off = !document.host.sender_environment.window_scaling?;
    (off && product > 65_535).then(|| Advice {
        id: "window_scaling",
        severity: Severity::Limiting,
        text: format!(
            "TCP window scaling is off: one connection carries at most {} here",
            BitRate::from_bps(65_535 * 8_000_000_000 / rtt_ns.max(1))
        ),
        evidence: evidence! { "rtt_ns": rtt_ns, "product_octets": product },
        command: Some("sysctl -w net.ipv4.tcp_window_scaling=1".to_owned()),
    })
}

/// An unpaced window larger than the burst limit overflows the queue: rate at most `8·MBS/RTT` (`[Netest03]` §III.A).
fn shallow_queue(document: &Document) -> Option<Advice> {
    let row = document.row(Metric::MaximumBurstOctets)?;
    if row.verdict != estimate::Verdict::Estimated {
        return None;
    }
    let burst = row.value?;
    let rtt_ns = value(document, Metric::RoundTripTime)?;
    let available = value(document, Metric::AvailableIpCapacity)?;
    let unpaced = u64::try_from(u128::from(burst) * 8_000_000_000 / u128::from(rtt_ns.max(1))).ok()?;
    (unpaced as f64 * 1.25 < available as f64).then(|| Advice {
        id: "shallow_queue",
        severity: Severity::Limiting,
        text: format!(
            "the path loses packets beyond bursts of {}; an unpaced TCP window of that size carries only {}: pace the sender, or use a congestion control that does (bbr), and keep UDP bursts below {}",
            Octets::new(burst),
            BitRate::from_bps(unpaced),
            Octets::new(burst / 2)
        ),
        evidence: evidence! { "maximum_burst_octets": burst, "unpaced_tcp_bps": unpaced, "available_bps": available },
        command: Some("sysctl -w net.core.default_qdisc=fq net.ipv4.tcp_congestion_control=bbr".to_owned()),
    })
}

/// More streams only where one falls short of four fifths of what is available (`[Netest03]` §IV; the share is ours).
fn parallel_streams(document: &Document) -> Option<Advice> {
    let single = value(document, Metric::TcpAchievableSingle)?;
    let streams = value(document, Metric::TcpStreamsToFill)?;
    let available = value(document, Metric::AvailableIpCapacity)?;
    let short = (single as f64) < 0.8 * available as f64;
    (streams >= 2 && short).then(|| Advice {
        id: "parallel_streams",
        severity: Severity::Hint,
        text: format!(
            "one TCP connection carries {} of {}; {streams} fill the path. Mend window and buffers first: parallel connections take their share from others",
            BitRate::from_bps(single),
            BitRate::from_bps(available)
        ),
        evidence: evidence! { "single_bps": single, "available_bps": available, "streams": streams },
        command: None,
    })
}

fn caveat_row<'a>(document: &'a Document, id: &str) -> Option<(&'a MetricRow, &'a str)> {
    document.metrics.iter().find_map(|row| {
        let remark = row.caveats.iter().find(|remark| remark.id == id)?;
        Some((row, remark.text.as_str()))
    })
}

fn receive_batching(document: &Document) -> Option<Advice> {
    let (row, text) = caveat_row(document, "receive_batching")?;
    Some(Advice {
        id: "receive_batching",
        severity: Severity::Warning,
        text: text.to_owned(),
        evidence: evidence! { "metric": row.metric, "method": row.method },
        command: Some("ethtool -C INTERFACE adaptive-rx off rx-usecs 0   # on the receiving host".to_owned()),
    })
}

fn local_drops(document: &Document) -> Option<Advice> {
    let (row, text) = caveat_row(document, "local_drops")?;
    Some(Advice {
        id: "local_drops",
        severity: Severity::Warning,
        text: text.to_owned(),
        evidence: evidence! { "metric": row.metric },
        command: Some("sysctl -w net.core.rmem_max=16777216   # on the receiving host".to_owned()),
    })
}

fn shaped(document: &Document) -> Option<Advice> {
    let (row, text) = caveat_row(document, "shaped").or_else(|| caveat_row(document, "policed"))?;
    Some(Advice {
        id: "token_bucket",
        severity: Severity::Warning,
        text: format!("{text}: ask the operator for the sustained rate, and judge by long transfers"),
        evidence: evidence! { "metric": row.metric, "method": row.method },
        command: None,
    })
}

fn path_mtu(document: &Document) -> Option<Advice> {
    let mtu = value(document, Metric::PathMtu)?;
    (mtu < 1280).then(|| Advice {
        id: "small_mtu",
        severity: Severity::Warning,
        text: format!("only packets up to {mtu} octets cross the path; look for a tunnel, and let TCP probe for it"),
        evidence: evidence! { "path_mtu_octets": mtu },
        command: Some("sysctl -w net.ipv4.tcp_mtu_probing=1".to_owned()),
    })
}

fn clocksource(document: &Document) -> Option<Advice> {
    let source = document.host.sender_environment.clocksource.as_deref()?;
    let slow = ["hpet", "acpi_pm", "jiffies"].contains(&source);
    slow.then(|| Advice {
        id: "clocksource",
        severity: Severity::Warning,
        text: format!("the kernel's clock source is {source}: every stamp is a slow call; use tsc where it is stable"),
        evidence: evidence! { "clocksource": source },
        command: Some("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource".to_owned()),
    })
}

fn steal(document: &Document) -> Option<Advice> {
    let ratio = document.host.sender_environment.steal_ratio?;
    (ratio > 0.02).then(|| Advice {
        id: "steal",
        severity: Severity::Warning,
        text: format!(
            "the hypervisor takes {:.1} % of this host's processors: gaps and stamps suffer",
            ratio * 100.0
        ),
        evidence: evidence! { "steal_ratio": ratio },
        command: None,
    })
}

fn virtual_interface(document: &Document) -> Option<Advice> {
    let virtual_ends = [
        ("sending", document.host.sender.virtual_interface),
        ("receiving", document.host.receiver.virtual_interface),
    ];
    let names: Vec<&str> = virtual_ends
        .iter()
        .filter(|(_, is)| *is)
        .map(|(name, _)| *name)
        .collect();
    (!names.is_empty()).then(|| Advice {
        id: "virtual_interface",
        severity: Severity::Hint,
        text: format!(
            "the {} host sits behind a virtual interface: its stamps tell when software saw a packet, not when it crossed a wire",
            names.join(" and the ")
        ),
        evidence: evidence! { "virtual": names },
        command: None,
    })
}

fn too_short(document: &Document) -> Option<Advice> {
    let (row, text) = caveat_row(document, "test_too_short")?;
    Some(Advice {
        id: "test_too_short",
        severity: Severity::Hint,
        text: format!("{text}; --thorough lets it grow to its end"),
        evidence: evidence! { "metric": row.metric, "value": row.value },
        command: None,
    })
}

fn nothing_available(document: &Document) -> Option<Advice> {
    let capacity = value(document, Metric::IpCapacity)?;
    let available = value(document, Metric::AvailableIpCapacity)?;
    (available.saturating_mul(10) < capacity).then(|| Advice {
        id: "path_busy",
        severity: Severity::Limiting,
        text: format!(
            "other traffic leaves {} of {}: the path is busy, not slow; look for who fills it before changing any setting",
            BitRate::from_bps(available),
            BitRate::from_bps(capacity)
        ),
        evidence: evidence! { "available_bps": available, "capacity_bps": capacity },
        command: None,
    })
}
