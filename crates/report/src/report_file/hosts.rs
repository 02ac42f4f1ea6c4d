//! What is known of both hosts.

use narrows_diagnose::host::HostVerdict;
use narrows_probe::HostFacts;
use narrows_units::{BitRate, Direction, Octets, format_duration};

use super::{Align, Cell, Table};
use crate::document::Document;
use crate::host::name;
use narrows_diagnose::advice::HostEnvironment;

/// Facts of both hosts beside each other; what neither told is left out.
pub(super) fn table(document: &Document) -> Table {
    let reverse = document.metrics.first().is_some_and(|row| row.direction == Direction::Reverse);
    let host = &document.host;
    let mut ends = [(&host.sender, &host.sender_environment), (&host.receiver, &host.receiver_environment)];
    if reverse {
        ends.reverse();
    }
    let columns = ends.map(|(facts, environment)| facts_of(facts, environment));
    let rows = columns[0].iter().zip(&columns[1]);
    let rows = rows.filter(|((_, here), (_, there))| here.is_some() || there.is_some());
    let known = |value: &Option<String>| Cell::from(value.clone().unwrap_or_else(|| "-".to_owned()));
    Table {
        head: vec![("", Align::Left), ("this host", Align::Left), ("the other host", Align::Left)],
        rows: rows.map(|((name, here), (_, there))| vec![Cell::from(*name), known(here), known(there)]).collect(),
    }
}

type Fact = (&'static str, Option<String>);

fn facts_of(facts: &HostFacts, environment: &HostEnvironment) -> Vec<Fact> {
    let rate = |rate: Option<BitRate>| rate.map(|rate| rate.to_string());
    let buffers =
        |sizes: Option<[u64; 3]>| sizes.map(|sizes| sizes.map(|size| Octets::new(size).to_string()).join(", "));
    let yes = |flag: Option<bool>| flag.map(|flag| (if flag { "yes" } else { "no" }).to_owned());
    let source = format!("{:?}", facts.stamp_source).to_lowercase();
    vec![
        ("name", environment.hostname.clone()),
        ("kernel", environment.kernel.clone()),
        ("processors", environment.cpus.map(|cpus| cpus.to_string())),
        ("virtual machine", yes(environment.virtual_machine)),
        ("interface", environment.interface.clone()),
        ("driver", environment.driver.clone()),
        ("interface rate", rate(facts.interface_rate)),
        ("queueing discipline", environment.qdisc.clone()),
        ("congestion control", environment.congestion_control.clone()),
        ("TCP receive buffer (least, default, most)", buffers(environment.tcp_rmem_octets)),
        ("TCP send buffer (least, default, most)", buffers(environment.tcp_wmem_octets)),
        ("time to send a packet", Some(format_duration(facts.send_cost))),
        ("time to receive a packet", Some(format_duration(facts.receive_cost))),
        ("least gap between packets", Some(format_duration(facts.min_gap))),
        ("highest rate it can send", rate(facts.max_send_rate)),
        ("receive timestamps", Some(format!("{source}, ±{}", format_duration(facts.stamp_error)))),
    ]
}

/// Whether the hosts limit the results, and what they cannot measure.
pub(super) fn notes(document: &Document) -> Vec<String> {
    let mut notes = Vec::new();
    let limits = if document.host.is_bottleneck {
        "The hosts limit these results."
    } else {
        "The hosts do not limit these results."
    };
    notes.push(limits.to_owned());
    if let Some(timing) = &document.timing {
        notes.push(format!("Timing {} ({} packets released).", timing.verdict(), timing.releases));
    }
    let unfit = document.host.verdicts.iter().filter(|row| row.verdict == HostVerdict::Unusable);
    notes.extend(unfit.map(|row| format!("Out of reach here: {} ({}).", name(row.family), row.reason)));
    notes
}
