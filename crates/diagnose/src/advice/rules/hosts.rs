//! Processors, memory, interfaces, and what hosts drop.

use narrows_units::{Framing, Layer};

use super::{BUSY, Findings, Judged, Severity, card, command, limited, percent, place, rate};
use crate::limits::LimitingFactor;
use narrows_probe::outcome::{Caveat, Limit};

/// The highest rate that was carried.
fn sustained(found: &Findings) -> Option<u64> {
    found.tcp_bps().max(found.udp_bps)
}

pub(super) fn processor(found: &Findings, is_sender: bool) -> Option<Judged> {
    let thread = found.thread(is_sender).filter(|&share| share > BUSY);
    let interrupts = found.end(is_sender).softirq_share.filter(|&share| share > BUSY);
    let (limiting_factor, limit) = if is_sender {
        (LimitingFactor::SendingHost, Limit::Sender)
    } else {
        (LimitingFactor::ReceivingHost, Limit::Receiver)
    };
    let reported = limited(found, limiting_factor);
    let value = found.host_limited.iter().find(|(_, by)| *by == limit);
    if thread.is_none() && interrupts.is_none() && !reported && value.is_none() {
        return if is_sender { application(found) } else { None };
    }
    let who = place(found, is_sender);
    let why = match (thread, interrupts) {
        (Some(share), _) => format!("a thread of {who} was on its processor {} of the time", percent(share)),
        (None, Some(share)) => {
            format!("a processor of {who} spent {} of its time in network interrupts", percent(share))
        }
        (None, None) => format!("{who} was slower than the path"),
    };
    let signals = [thread.is_some(), interrupts.is_some(), reported, value.is_some()];
    let name = card(found, is_sender);
    // Queues of what is only software are no card's to combine.
    let queues = match found.end(is_sender).is_card {
        Some(false) => String::new(),
        _ => format!("ethtool -L {name} combined N; "),
    };
    Some(
        Judged::new(
            Severity::Limiting,
            format!(
                "{why}: what was measured is that host's, not the path's; spread the load over processors (RSS, RPS, several threads), or repeat from a faster host"
            ),
        )
        .and("thread_share", thread)
        .and("softirq_share", interrupts)
        .and("metric", value.map(|(metric, _)| metric.name()))
        .signals(signals.into_iter().filter(|signal| *signal).count())
        .at(sustained(found))
        .command(command(
            found,
            is_sender,
            format!("{queues}grep . /sys/class/net/{name}/queues/rx-*/rps_cpus"),
        )),
    )
}

/// The program, not the processor.
fn application(found: &Findings) -> Option<Judged> {
    let idle = found.tcp.share_idle;
    limited(found, LimitingFactor::Application).then(|| {
        Judged::new(
            Severity::Limiting,
            format!(
                "the program on {} did not offer more: the connection waited for it, not for the path",
                place(found, true)
            ),
        )
        .and("share_idle", idle)
        .at(sustained(found))
        .signals(1 + usize::from(idle.is_some_and(|share| share > 0.2)))
    })
}

/// A rate above this share of what copying in memory allows is held by it (`[Jin03a]` equation 2,
/// generalised: one copy reads and writes, one pass of the card reads).
const NEAR_MEMORY: f64 = 0.8;
const PASSES: f64 = 3.0;

pub(super) fn memory(found: &Findings, is_sender: bool) -> Option<Judged> {
    let copied = found.end(is_sender).memory_copy_octets_per_second?;
    let most = super::super::findings::whole(copied as f64 * 2.0 * 8.0 / PASSES);
    let sustained = sustained(found)?;
    (sustained as f64 > NEAR_MEMORY * most as f64).then(|| {
        Judged::new(
            Severity::Limiting,
            format!(
                "maximum throughput is around {} limited by local memory of {}",
                rate(most),
                place(found, is_sender)
            ),
        )
        .with("memory_copy_octets_per_second", copied)
        .with("sustained_bps", sustained)
        .with("ceiling_bps", most)
        .at(most)
        .signals(1)
    })
}

/// A rate above this share of the interface's payload is the interface's.
const NEAR_INTERFACE: f64 = 0.95;

pub(super) fn interface(found: &Findings, is_sender: bool) -> Option<Judged> {
    let facts = found.end_facts(is_sender);
    let negotiated = facts.interface_rate.filter(|_| !facts.virtual_interface);
    let ceiling = negotiated.and_then(|wire| {
        let mtu = u32::from(found.facts.path_mtu);
        Framing::ETHERNET.convert(wire, Layer::Wire, Layer::TcpPayload, mtu, found.facts.ipv6)
    });
    let rate_sustained = found.tcp_bps().or(found.udp_bps);
    let full = ceiling
        .zip(rate_sustained)
        .filter(|(ceiling, sustained)| *sustained as f64 > NEAR_INTERFACE * ceiling.as_f64());
    let bus = found.end(is_sender).bus_bps;
    let slot = bus.zip(negotiated).filter(|(bus, wire)| *bus < wire.bps());
    let reported = is_sender && limited(found, LimitingFactor::Interface);
    if full.is_none() && slot.is_none() && !reported {
        return None;
    }
    let who = place(found, is_sender);
    let text = match (slot, negotiated) {
        (Some((bus, wire)), _) if full.is_none() => {
            format!("the slot of the interface of {who} carries {} of its {wire}: move it to a wider one", rate(bus))
        }
        (_, Some(wire)) => {
            format!("{who} fills its interface of {wire}: the path may be faster; a faster interface would show it")
        }
        _ => format!("{who} fills its interface: the path may carry more"),
    };
    // A slot that is too narrow binds only where the rate comes near it.
    let bound = |bps: u64| rate_sustained.is_some_and(|sustained| sustained as f64 > NEAR_INTERFACE * bps as f64);
    let binds = full.is_some() || reported || slot.is_some_and(|(bus, _)| bound(bus));
    let severity = if binds { Severity::Limiting } else { Severity::Warning };
    let bus = slot.map(|(bus, _)| bus);
    Some(
        Judged::new(severity, text)
            .and("sustained_bps", rate_sustained)
            .and("ceiling_bps", ceiling.map(narrows_units::BitRate::bps))
            .and("bus_bps", bus)
            .at(ceiling.map(narrows_units::BitRate::bps).into_iter().chain(bus).min())
            .signals(usize::from(full.is_some()) + usize::from(reported) + usize::from(slot.is_some())),
    )
}

/// Below this share of the interface's rate a busy host without offloads has room to gain (ours).
const ROOM: f64 = 0.5;

pub(super) fn offloads(found: &Findings, is_sender: bool) -> Option<Judged> {
    let (host, thread) = (found.end(is_sender), found.thread(is_sender));
    let reported = if is_sender { host.send_offload } else { host.receive_offload };
    let busy = thread.is_some_and(|share| share > BUSY) || host.softirq_share.is_some_and(|share| share > BUSY);
    // A card of a hypervisor has no rate, so that nothing says that it is full.
    let room = host.interface_bps.zip(found.tcp_bps()).is_none_or(|(wire, bps)| (bps as f64) < ROOM * wire as f64);
    let (what, flags) = if is_sender { ("segmentation", "tso on gso on") } else { ("joining of packets", "gro on") };
    (reported == Some(false) && busy && room).then(|| {
        Judged::new(
            Severity::Limiting,
            format!(
                "{what} is done by the processor of {}, which is busy; the interface can do it: let it",
                place(found, is_sender)
            ),
        )
        .with("offload", false)
        .and("thread_share", thread)
        .and("softirq_share", host.softirq_share)
        .and("interface_bps", host.interface_bps)
        .at(found.tcp_bps())
        .signals(2)
        .command(command(found, is_sender, format!("ethtool -K {} {flags}", card(found, is_sender))))
    })
}

pub(super) fn duplex(found: &Findings, is_sender: bool) -> Option<Judged> {
    let host = found.end(is_sender);
    let half = host.half_duplex == Some(true);
    let slower = host.interface_bps.zip(host.interface_most_bps).filter(|(now, most)| now < most);
    let damaged = host.counted.damaged_frames.filter(|&frames| frames > 0);
    if !half && slower.is_none() && damaged.is_none() {
        return None;
    }
    let mut seen = Vec::new();
    if half {
        seen.push("runs in half duplex".to_owned());
    }
    if let Some((now, most)) = slower {
        seen.push(format!("has negotiated {} of {}", rate(now), rate(most)));
    }
    if let Some(frames) = damaged {
        seen.push(format!("got {frames} damaged frames while this was measured"));
    }
    let severity = if half { Severity::Limiting } else { Severity::Warning };
    let name = card(found, is_sender);
    Some(
        Judged::new(
            severity,
            format!(
                "interface {name} of {} {}: look at the cable and at what it is plugged into, and let both ends negotiate",
                place(found, is_sender),
                seen.join(", ")
            ),
        )
        .with("half_duplex", half)
        .and("negotiated_bps", slower.map(|(now, _)| now))
        .and("damaged_frames", damaged)
        .at(host.interface_bps)
        .signals(seen.len())
        .command(command(found, is_sender, format!("ethtool {name}; ethtool -r {name}"))),
    )
}

pub(super) fn receive_drops(found: &Findings, is_sender: bool) -> Option<Judged> {
    let host = found.end(is_sender);
    // What methods tell of are packets that they sent.
    let reported = found.caveat(|caveat| match caveat {
        Caveat::LocalDrops { packets } if *packets > 0 && !is_sender => Some(*packets),
        _ => None,
    });
    let counted = Some(host.counted.dropped()).filter(|&packets| packets > 0);
    let count = reported.or(counted)?;
    let who = place(found, is_sender);
    let counts = &host.counted;
    let some = |count: Option<u64>| count.is_some_and(|count| count > 0);
    // Each counter has its own cure; where none tells, the socket's buffer is the usual one.
    let mut cures = Vec::new();
    if some(counts.buffer_drops) || counted.is_none() {
        cures.push("sysctl -w net.core.rmem_max=16777216 net.core.rmem_default=16777216".to_owned());
    }
    if some(counts.backlog_drops) {
        cures.push("sysctl -w net.core.netdev_max_backlog=10000".to_owned());
    }
    let full = host.ring_receive.is_some() && host.ring_receive == host.ring_receive_most;
    if some(counts.ring_drops) && !full {
        let most = host.ring_receive_most.unwrap_or(4096);
        cures.push(format!("ethtool -G {} rx {most}", card(found, is_sender)));
    }
    let advice = Judged::new(
        Severity::Warning,
        format!("{who} dropped {count} packets that had reached it, because its buffer was full. The path did not lose them; enlarge the buffer"),
    )
    .with("packets", count)
    .and("buffer_drops", counts.buffer_drops)
    .and("ring_drops", counts.ring_drops)
    .and("backlog_drops", counts.backlog_drops)
    .and("ring_receive", host.ring_receive)
    .signals(usize::from(reported.is_some()) + usize::from(counted.is_some()));
    Some(if cures.is_empty() { advice } else { advice.command(command(found, is_sender, cures.join("; "))) })
}
