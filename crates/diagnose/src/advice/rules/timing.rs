//! Clocks, stamps and what makes them doubtful.

use super::{BUSY, Findings, Judged, Severity, card, command, percent, place};
use narrows_probe::outcome::Caveat;

/// Packets that an interface may gather before spacing says nothing (ours).
const GATHERED: f64 = 8.0;

pub(super) fn receive_batching(found: &Findings) -> Option<Judged> {
    let period = found.caveat(|caveat| match caveat {
        Caveat::ReceiveBatching { period } => Some(*period),
        _ => None,
    });
    let gather = found.receiver.receive_gather_us.filter(|&micros| {
        let packet_us = found.capacity_bps.map(|bps| f64::from(found.facts.path_mtu) * 8e6 / bps.max(1) as f64);
        packet_us.is_some_and(|packet| f64::from(micros) > GATHERED * packet)
    });
    if period.is_none() && gather.is_none() {
        return None;
    }
    let who = place(found, false);
    let software = found.receiver.is_card == Some(false);
    let cure = if software {
        "its interface is only software, so that its processors make them: what else runs on them?"
    } else {
        "let its interface interrupt at once while you measure"
    };
    let advice = Judged::new(
        Severity::Warning,
        format!("{who} gets packets in batches: methods that need single packet gaps do not work here; {cure}"),
    );
    let advice = advice
        .and("batch_period_ns", period.and_then(|time| u64::try_from(time.as_nanos()).ok()))
        .and("receive_gather_us", gather)
        .signals(usize::from(period.is_some()) + usize::from(gather.is_some()));
    Some(if software {
        advice
    } else {
        let name = card(found, false);
        advice.command(command(found, false, format!("ethtool -C {name} adaptive-rx off rx-usecs 0")))
    })
}

/// What a crystal may be off (1 to 50 ppm is usual).
const DRIFT_PPM: f64 = 50.0;

pub(super) fn clock(found: &Findings) -> Option<Judged> {
    let drift = found.caveat(|caveat| match caveat {
        Caveat::ClockSkew { ppm } if ppm.abs() > DRIFT_PPM => Some(*ppm),
        _ => None,
    });
    let set = found.caveat(|caveat| matches!(caveat, Caveat::ClockStep).then_some(()));
    let slow: Vec<(bool, &str)> = [true, false]
        .into_iter()
        .filter_map(|is_sender| {
            let source = found.end(is_sender).clocksource.as_deref();
            let source = source.filter(|source| ["hpet", "acpi_pm", "jiffies"].contains(source))?;
            Some((is_sender, source))
        })
        .collect();
    if drift.is_none() && set.is_none() && slow.is_empty() {
        return None;
    }
    let mut said = Vec::new();
    if let Some(ppm) = drift {
        said.push(format!("the two clocks drift apart by {ppm:.0} ppm"));
    }
    if set.is_some() {
        said.push("a clock was set during the measurement".to_owned());
    }
    for (is_sender, source) in &slow {
        said.push(format!(
            "the clock source of {} is {source}, so that every stamp is a slow call",
            place(found, *is_sender)
        ));
    }
    let advice = Judged::new(Severity::Warning, format!("{}: do not trust one-way delays", said.join("; ")))
        .and("drift_ppm", drift)
        .with("clock_set", set.is_some())
        .and("clocksource", slow.first().map(|(_, source)| *source))
        .signals(said.len());
    Some(match slow.first() {
        Some((is_sender, _)) => advice.command(command(
            found,
            *is_sender,
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource".to_owned(),
        )),
        None => advice.command("chronyc tracking"),
    })
}

/// Share of a processor that a hypervisor may take.
const STOLEN: f64 = 0.02;

pub(super) fn virtual_host(found: &Findings, is_sender: bool) -> Option<Judged> {
    let (host, who) = (found.end(is_sender), place(found, is_sender));
    let stolen = host.steal_ratio.filter(|&ratio| ratio > STOLEN);
    let behind = found.end_facts(is_sender).virtual_interface;
    if stolen.is_none() && !behind {
        return None;
    }
    let (severity, text) = match stolen {
        Some(ratio) => (
            Severity::Warning,
            format!("the hypervisor takes {} of the processors of {who}: gaps and stamps suffer", percent(ratio)),
        ),
        None => (
            Severity::Hint,
            format!(
                "{who} sits behind a virtual interface: its timestamps come from software, and may be off by some microseconds"
            ),
        ),
    };
    Some(
        Judged::new(severity, text)
            .and("steal_ratio", stolen)
            .with("virtual_interface", behind)
            .and("interface", host.interface.as_deref())
            .and("virtual_machine", host.virtual_machine)
            .signals(usize::from(stolen.is_some()) + usize::from(behind)),
    )
}

pub(super) fn governor(found: &Findings, is_sender: bool) -> Option<Judged> {
    let (host, thread) = (found.end(is_sender), found.thread(is_sender));
    let saves = host.governor.as_deref() == Some("powersave") && thread.is_some_and(|share| share > BUSY);
    let packet_ns =
        found.available_bps.or(found.capacity_bps).map(|bps| f64::from(found.facts.path_mtu) * 8e9 / bps.max(1) as f64);
    let sleeps = host.idle_exit_ns.zip(packet_ns).filter(|(exit, packet)| *exit as f64 > *packet).map(|(exit, _)| exit);
    if !saves && sleeps.is_none() {
        return None;
    }
    let who = place(found, is_sender);
    let (severity, text) = if saves {
        (
            Severity::Limiting,
            format!(
                "a processor of {who} is kept slow to save power, and a thread on it is busy: let it run at its full frequency"
            ),
        )
    } else {
        (
            Severity::Hint,
            format!(
                "processors of {who} fall asleep deeper than packets are apart: the first packet after a pause is stamped late"
            ),
        )
    };
    Some(
        Judged::new(severity, text)
            .and("governor", host.governor.as_deref())
            .and("idle_exit_ns", sleeps)
            .and("thread_share", thread)
            .at(if saves { found.tcp_bps() } else { None })
            .signals(usize::from(saves) + usize::from(sleeps.is_some()))
            .command(command(
                found,
                is_sender,
                "cpupower frequency-set -g performance; cpupower idle-set -D 0".to_owned(),
            )),
    )
}
