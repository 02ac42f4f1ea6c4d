//! What could be set otherwise on a host, as commands that somebody may run: each with the one that
//! takes it back.

use narrows_units::BitRate;
use serde::Serialize;

use super::{CardFacts, Inventory};

/// One change. Nothing here is ever run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// For programs.
    pub id: &'static str,
    /// What is, and what it does to measurements.
    pub why: String,
    /// Makes the change; needs root.
    pub command: String,
    /// Takes it back.
    pub undo: String,
}

/// Buffers below this are told: the product of 1 Gbit/s and 100 ms, which the kernel's accounting
/// doubles.
const BUFFER_OCTETS: u64 = 32 << 20;
/// States that take longer to leave cost the first packet of a train.
const IDLE_NS: u64 = 20_000;

/// All that this host's inventory calls for, in the order in which it helps; `rate` is the path's,
/// if known. A change whose undo would not be known is left out.
pub fn fixes(inventory: &Inventory, rate: Option<BitRate>) -> Vec<Fix> {
    let mut found = Vec::new();
    clock(inventory, &mut found);
    if let Some(card) = &inventory.card {
        interrupts(card, &mut found);
        stamps(card, &mut found);
        merged(card, &mut found);
        rings(card, inventory, &mut found);
        discipline(card, &mut found);
    }
    processor(inventory, &mut found);
    buffers(inventory, rate, &mut found);
    backlog(inventory, &mut found);
    found
}

fn clock(inventory: &Inventory, found: &mut Vec<Fix>) {
    const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let processor = &inventory.processor;
    let Some(now) = processor.clock_source.as_deref() else {
        return;
    };
    let slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"].contains(&now);
    let fast = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    let better = fast.iter().find(|name| processor.clock_sources.iter().any(|have| have == *name));
    if let (true, Some(better)) = (slow, better) {
        found.push(Fix {
            id: "clock_source",
            why: format!("the kernel reads the time from {now}: each reading is a slow system call"),
            command: format!("echo {better} > {FILE}"),
            undo: format!("echo {} > {FILE}", quoted(now)),
        });
    }
}

fn interrupts(card: &CardFacts, found: &mut Vec<Fix>) {
    let Some(now) = card.coalescing.filter(|now| now.receive_us > 0 || now.adaptive_receive) else {
        return;
    };
    let name = quoted(&card.name);
    let on_off = |on| if on { "on" } else { "off" };
    let how = if now.adaptive_receive {
        "a time that the card chooses".to_owned()
    } else {
        format!("{} µs", now.receive_us)
    };
    found.push(Fix {
        id: "coalescing",
        why: format!(
            "receive interrupts are held back for {how}: stamps of the kernel come in batches. Without it the processor works harder at high rates"
        ),
        command: format!("ethtool -C {name} adaptive-rx off rx-usecs 0"),
        undo: format!("ethtool -C {name} adaptive-rx {} rx-usecs {}", on_off(now.adaptive_receive), now.receive_us),
    });
}

fn stamps(card: &CardFacts, found: &mut Vec<Fix>) {
    let can = card.stamps.filter(|stamps| stamps.hardware_receive && stamps.all_packets);
    if can.is_some_and(|stamps| stamps.all_packets_on == Some(false)) {
        let name = quoted(&card.name);
        found.push(Fix {
            id: "hardware_stamps",
            why: "the card can stamp every packet at the wire, but does not: spacings would be known to nanoseconds"
                .to_owned(),
            command: format!("hwstamp_ctl -i {name} -t 1 -r 1"),
            undo: format!("hwstamp_ctl -i {name} -t 0 -r 0"),
        });
    }
}

fn merged(card: &CardFacts, found: &mut Vec<Fix>) {
    if card.offloads.iter().any(|offload| offload.name == "lro" && offload.on) {
        let name = quoted(&card.name);
        found.push(Fix {
            id: "large_receive",
            why:
                "the card merges packets before anybody sees them: a capture shows packets that never were on the wire"
                    .to_owned(),
            command: format!("ethtool -K {name} lro off"),
            undo: format!("ethtool -K {name} lro on"),
        });
    }
}

fn rings(card: &CardFacts, inventory: &Inventory, found: &mut Vec<Fix>) {
    let Some(rings) = card.rings.filter(|rings| rings.receive > 0 && rings.receive < rings.receive_max) else {
        return;
    };
    let lost = card.receive_fifo_errors.unwrap_or(0).saturating_add(card.receive_drops.unwrap_or(0));
    let squeezed = inventory.counters.softirq_squeezed.unwrap_or(0) > 0;
    if lost > 0 {
        let name = quoted(&card.name);
        let also = if squeezed { ", and softirqs ran out of budget" } else { "" };
        found.push(Fix {
            id: "ring",
            why: format!(
                "{lost} frames were dropped on receiving since the interface came up{also}; its ring has {} of {} descriptors",
                rings.receive, rings.receive_max
            ),
            command: format!("ethtool -G {name} rx {}", rings.receive_max),
            undo: format!("ethtool -G {name} rx {}", rings.receive),
        });
    }
}

fn discipline(card: &CardFacts, found: &mut Vec<Fix>) {
    let Some(now) = card.qdisc.as_deref() else { return };
    // Several queues have a discipline each below their root; a device of software alone has no
    // queue to pace.
    if ["fq", "etf", "mq", "noqueue"].contains(&now) || card.is_virtual && card.driver.is_none() {
        return;
    }
    let plain = ["pfifo_fast", "fq_codel", "pfifo"].contains(&now);
    if !plain {
        // What a shaper or anybody's own tree was set to is not known here, so it could not be put
        // back.
        return;
    }
    let name = quoted(&card.name);
    found.push(Fix {
        id: "qdisc",
        why: format!("departures are not paced by the kernel ({now}): departure times and pacing rates of UDP are ignored (needs a kernel that has fq)"),
        command: format!("tc qdisc replace dev {name} root fq"),
        undo: format!("tc qdisc replace dev {name} root {now}"),
    });
}

fn processor(inventory: &Inventory, found: &mut Vec<Fix>) {
    let processor = &inventory.processor;
    if let Some(now) = processor.governor.as_deref().filter(|now| *now != "performance") {
        const FILES: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
        let set = |governor: &str| format!("for f in {FILES}; do echo {governor} > \"$f\"; done");
        found.push(Fix {
            id: "governor",
            why: format!("the governor {now} changes the processor's frequency while it measures"),
            command: set("performance"),
            undo: set(&quoted(now)),
        });
    }
    let slow: Vec<&str> = processor
        .idle_states
        .iter()
        .filter(|state| !state.disabled && state.exit_ns > IDLE_NS)
        .map(|state| state.name.as_str())
        .collect();
    if !slow.is_empty() {
        found.push(Fix {
            id: "idle_states",
            why: format!(
                "an idle processor sleeps so deeply ({}) that it takes more than {} µs to wake for a packet",
                slow.join(", "),
                IDLE_NS / 1000
            ),
            command: format!("cpupower idle-set -D {}", IDLE_NS / 1000),
            undo: "cpupower idle-set -E".to_owned(),
        });
    }
}

fn buffers(inventory: &Inventory, rate: Option<BitRate>, found: &mut Vec<Fix>) {
    // What 100 ms of the path hold, doubled; a path of unknown rate is taken for 1 Gbit/s and a
    // bit.
    let wanted = rate.map_or(BUFFER_OCTETS, |rate| (rate.bps() / 8 / 10).saturating_mul(2).clamp(4 << 20, 1 << 30));
    let tcp = &inventory.tcp;
    for (name, now, id) in [
        ("net.core.rmem_max", tcp.receive_buffer_max, "receive_buffer"),
        ("net.core.wmem_max", tcp.send_buffer_max, "send_buffer"),
    ] {
        if let Some(now) = now.filter(|now| *now < wanted) {
            found.push(Fix {
                id,
                why: format!(
                    "a program may ask for buffers of {now} octets at most, {wanted} would hold 100 ms of the path"
                ),
                command: format!("sysctl -w {name}={wanted}"),
                undo: format!("sysctl -w {name}={now}"),
            });
        }
    }
    for (name, now, id) in [
        ("net.ipv4.tcp_rmem", tcp.receive_memory, "tcp_receive_buffer"),
        ("net.ipv4.tcp_wmem", tcp.send_memory, "tcp_send_buffer"),
    ] {
        if let Some([least, usual, most]) = now.filter(|[_, _, most]| *most < wanted) {
            found.push(Fix {
                id,
                why: format!("TCP grows its buffers to {most} octets at most, {wanted} would hold 100 ms of the path"),
                command: format!("sysctl -w {name}=\"{least} {usual} {wanted}\""),
                undo: format!("sysctl -w {name}=\"{least} {usual} {most}\""),
            });
        }
    }
    for (name, on, id) in [
        ("net.ipv4.tcp_window_scaling", tcp.window_scaling, "window_scaling"),
        ("net.ipv4.tcp_moderate_rcvbuf", tcp.receive_autotuning, "autotuning"),
    ] {
        if on == Some(false) {
            found.push(Fix {
                id,
                why: format!("{name} is off: windows stay small, and long paths slow"),
                command: format!("sysctl -w {name}=1"),
                undo: format!("sysctl -w {name}=0"),
            });
        }
    }
}

fn backlog(inventory: &Inventory, found: &mut Vec<Fix>) {
    let dropped = inventory.counters.softirq_dropped.unwrap_or(0);
    if let (true, Some(now)) = (dropped > 0, inventory.tcp.backlog.filter(|now| *now > 0)) {
        const NAME: &str = "net.core.netdev_max_backlog";
        found.push(Fix {
            id: "backlog",
            why: format!(
                "{dropped} packets were dropped since the host started because a processor's backlog of {now} was full"
            ),
            command: format!("sysctl -w {NAME}={}", now.saturating_mul(4)),
            undo: format!("sysctl -w {NAME}={now}"),
        });
    }
}

/// For a shell: as it is if nothing in it could mean anything to one. Names come from the system,
/// which lets them hold nearly anything.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text.to_owned();
    }
    let safe: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("'{}'", safe.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::super::{CoalescingSettings, IdleState, Offload, Rings, StampCapability};
    use super::*;

    fn ids(inventory: &Inventory) -> Vec<&'static str> {
        fixes(inventory, None).iter().map(|fix| fix.id).collect()
    }

    fn card() -> CardFacts {
        CardFacts { name: "eth0".to_owned(), driver: Some("igb".to_owned()), ..CardFacts::default() }
    }

    /// What is not known is not mended.
    #[test]
    fn nothing_known_nothing_reported() {
        assert_eq!(ids(&Inventory::default()), [""; 0]);
        let inventory = Inventory { card: Some(card()), ..Inventory::default() };
        assert_eq!(ids(&inventory), [""; 0]);
    }

    #[test]
    fn all_that_can_be_wrong_with_a_card() {
        let mut inventory = Inventory::default();
        inventory.counters.softirq_dropped = Some(7);
        inventory.tcp.backlog = Some(1000);
        inventory.card = Some(CardFacts {
            coalescing: Some(CoalescingSettings {
                receive_us: 50,
                adaptive_receive: true,
                ..CoalescingSettings::default()
            }),
            rings: Some(Rings { receive: 256, receive_max: 4096, ..Rings::default() }),
            receive_drops: Some(3),
            offloads: vec![Offload { name: "lro", on: true }],
            stamps: Some(StampCapability {
                hardware_receive: true,
                all_packets: true,
                all_packets_on: Some(false),
                ..StampCapability::default()
            }),
            qdisc: Some("fq_codel".to_owned()),
            ..card()
        });
        let found = fixes(&inventory, None);
        let commands: Vec<(&str, &str)> = found.iter().map(|fix| (fix.command.as_str(), fix.undo.as_str())).collect();
        assert_eq!(
            commands,
            [
                ("ethtool -C eth0 adaptive-rx off rx-usecs 0", "ethtool -C eth0 adaptive-rx on rx-usecs 50"),
                ("hwstamp_ctl -i eth0 -t 1 -r 1", "hwstamp_ctl -i eth0 -t 0 -r 0"),
                ("ethtool -K eth0 lro off", "ethtool -K eth0 lro on"),
                ("ethtool -G eth0 rx 4096", "ethtool -G eth0 rx 256"),
                ("tc qdisc replace dev eth0 root fq", "tc qdisc replace dev eth0 root fq_codel"),
                ("sysctl -w net.core.netdev_max_backlog=4000", "sysctl -w net.core.netdev_max_backlog=1000"),
            ]
        );
    }

    #[test]
    fn processors_and_clocks() {
        let mut inventory = Inventory::default();
        inventory.processor.clock_source = Some("hpet".to_owned());
        inventory.processor.clock_sources = vec!["hpet".to_owned(), "tsc".to_owned()];
        inventory.processor.governor = Some("powersave".to_owned());
        inventory.processor.idle_states = vec![IdleState { name: "C6".to_owned(), exit_ns: 133_000, disabled: false }];
        assert_eq!(ids(&inventory), ["clock_source", "governor", "idle_states"]);
        inventory.processor.clock_sources = vec!["hpet".to_owned()];
        inventory.processor.governor = Some("performance".to_owned());
        inventory.processor.idle_states[0].disabled = true;
        assert_eq!(ids(&inventory), [""; 0]);
    }

    #[test]
    fn buffers_follow_the_path() {
        let mut inventory = Inventory::default();
        inventory.tcp.receive_buffer_max = Some(212_992);
        inventory.tcp.send_memory = Some([4096, 16_384, 4_194_304]);
        inventory.tcp.window_scaling = Some(false);
        let slow = fixes(&inventory, Some(BitRate::from_mbps(10)));
        let found: Vec<(&str, &str)> = slow.iter().map(|fix| (fix.id, fix.undo.as_str())).collect();
        assert_eq!(
            found,
            [
                ("receive_buffer", "sysctl -w net.core.rmem_max=212992"),
                ("window_scaling", "sysctl -w net.ipv4.tcp_window_scaling=0"),
            ]
        );
        let fast = fixes(&inventory, Some(BitRate::from_gbps(10)));
        assert_eq!(fast[1].command, "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 250000000\"");
    }

    /// A shaper that somebody set up is left alone: its parameters could not be put back.
    #[test]
    fn what_could_not_be_undone_is_not_reported() {
        for qdisc in ["tbf", "htb", "netem", "cake", "mq", "noqueue", "fq"] {
            let inventory =
                Inventory { card: Some(CardFacts { qdisc: Some(qdisc.to_owned()), ..card() }), ..Inventory::default() };
            assert_eq!(ids(&inventory), [""; 0], "{qdisc}");
        }
    }

    /// Interfaces may be called nearly anything; nothing of it reaches a shell.
    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("eth0.100"), "eth0.100");
        for (name, shown) in [
            ("a;reboot", "'a;reboot'"),
            ("$(id)", "'$(id)'"),
            ("it's", "'it'\\''s'"),
            ("-x", "'-x'"),
            ("", "''"),
            ("a\u{1b}[2J\n", "'a?[2J?'"),
        ] {
            assert_eq!(quoted(name), shown);
        }
        let mut card = card();
        card.name = "x;reboot".to_owned();
        card.qdisc = Some("pfifo_fast".to_owned());
        let inventory = Inventory { card: Some(card), ..Inventory::default() };
        assert_eq!(fixes(&inventory, None)[0].command, "tc qdisc replace dev 'x;reboot' root fq");
    }
}
