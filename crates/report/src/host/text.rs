//! The document for people.

mod near;

use std::fmt::Write as _;

use narrows_diagnose::host::{FamilyRow, HostFamily, HostVerdict};
use narrows_units::BitRate;

use super::table::table;
use super::{CaptureRow, HostDocument, RateFrom};

impl HostDocument {
    /// As text, ending in a newline.
    pub fn text(&self) -> String {
        let mut out = String::new();
        near::inventory(&mut out, &self.near.inventory);
        self.write_remote(&mut out);
        self.write_noise(&mut out);
        self.write_families(&mut out);
        self.write_ceilings(&mut out);
        near::costs(&mut out, &self.near.costs);
        near::unknown(&mut out, &self.near);
        if let Some(capture) = &self.capture {
            write_capture(&mut out, capture);
        }
        self.write_fixes(&mut out);
        for note in &self.notes {
            let _ = writeln!(out, "\n{}", note.text);
        }
        out
    }

    fn write_remote(&self, out: &mut String) {
        let (Some(remote), Some(target)) = (&self.remote, &self.target) else {
            return;
        };
        let facts = &remote.facts;
        let _ = write!(
            out,
            "server {}: sends in {}, receives in {}, stamps ±{}",
            target.name,
            near::time(facts.send_cost_ns),
            near::time(facts.receive_cost_ns),
            near::time(facts.stamp_error_ns),
        );
        let link =
            facts.interface_rate_bps.map_or_else(|| "link unknown".to_owned(), |rate| format!("link {}", bps(rate)));
        let _ = write!(out, ", {link}");
        match &remote.coalescing {
            Some(seen) => match seen.period_ns {
                Some(period) => {
                    let batch = seen.batch_packets;
                    let _ = write!(out, "; packets reach it in batches of {batch:.1}, every {}", near::time(period));
                }
                None => out.push_str("; packets reach it one by one"),
            },
            None => out.push_str("; batches unknown"),
        }
        if let Some(settings) = &remote.settings {
            let words: Vec<String> = [
                settings.interface.clone().map(|name| format!("interface {name}")),
                settings.driver.clone(),
                settings.qdisc.clone(),
                settings.ring_receive.map(|ring| format!("ring {ring}")),
                settings.receive_gather_us.map(|us| format!("interrupts held back {us} us")),
                settings.clocksource.clone().map(|source| format!("clock {source}")),
                settings.governor.clone(),
                settings.congestion_control.clone(),
            ]
            .into_iter()
            .flatten()
            .collect();
            let _ = write!(out, "; {}", words.join(", "));
        }
        out.push('\n');
    }

    fn write_noise(&self, out: &mut String) {
        if self.noise.quiet {
            out.push_str("the machine was quiet meanwhile\n");
            return;
        }
        let why: Vec<&str> = self.noise.remarks.iter().map(|remark| remark.text.as_str()).collect();
        let _ =
            writeln!(out, "the machine was NOT quiet, so costs are too high and limits too low: {}", why.join("; "));
    }

    fn write_families(&self, out: &mut String) {
        let rate = self.rate_bps.map(bps);
        let whose = if self.remote.is_some() { "to the server" } else { "to a host like this one" };
        let known = match (rate, self.rate_from) {
            (Some(rate), RateFrom::Given) => format!("a path of {rate}"),
            (Some(rate), _) => format!("links of {rate}"),
            (None, _) => "a path of unknown rate (--rate)".to_owned(),
        };
        let _ =
            writeln!(out, "\nWhat can be measured {whose}, over {known}, with packets of {} octets:", self.ip_octets);
        families(out, &self.families);
        if let Some(reverse) = &self.reverse_families {
            out.push_str("\nand from there to here:\n");
            families(out, reverse);
        }
        match self.usable {
            Some(usable) => {
                let _ = writeln!(
                    out,
                    "\nHighest measurable rate: {}, up to {}.",
                    name(usable.family),
                    bps(usable.max_rate_bps)
                );
            }
            None => out.push_str("\nNo family fits such a path on these hosts.\n"),
        }
        let hosts = self.host_rate_bps.map_or_else(|| "an unknown rate".to_owned(), bps);
        let _ = match self.is_bottleneck {
            Some(true) => writeln!(
                out,
                "The hosts are the bottleneck: they carry {hosts}, and 1.2 times the rate of the path is needed."
            ),
            Some(false) => writeln!(out, "The hosts are not the bottleneck: they carry {hosts}."),
            None => writeln!(out, "The hosts carry {hosts}; whether the path is faster is not known."),
        };
    }

    fn write_ceilings(&self, out: &mut String) {
        out.push_str(
            "\nWhat this host can carry, computed from its memory, processors, card and slot, and measured:\n",
        );
        let mut rows = vec![["path", "computed", "bound by", "measured", "without the copies"].map(str::to_owned)];
        for ceiling in &self.ceilings {
            let path = ceiling.path;
            rows.push([
                path.name.replace('_', " "),
                ceiling.ceiling_bps.map_or_else(unknown, bps),
                ceiling.by.unwrap_or("-").to_owned(),
                ceiling.measured_bps.map_or_else(|| "-".to_owned(), bps),
                format!("{:.0} % of memory's work saved", path.zero_copy_saves() * 100.0),
            ]);
        }
        table(out, &rows);
        for bound in self.ceilings.first().into_iter().flat_map(|ceiling| &ceiling.bounds) {
            let rate = bound.rate_bps.map_or_else(unknown, bps);
            let _ = writeln!(out, "    {}: {rate} ({})", bound.what, bound.why);
        }
    }

    fn write_fixes(&self, out: &mut String) {
        let Some(fixes) = &self.fixes else { return };
        if fixes.is_empty() {
            out.push_str("\nNothing that is known of this host calls for a change.\n");
            return;
        }
        out.push_str("\nWhat could be set otherwise (as root; nothing was changed):\n");
        for fix in fixes {
            let _ = writeln!(out, "  # {}\n  {}\n  #   undo: {}", fix.why, fix.command, fix.undo);
        }
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

pub(super) fn bps(rate: u64) -> String {
    BitRate::from_bps(rate).to_string()
}

/// What people call a family.
pub(crate) fn name(family: HostFamily) -> &'static str {
    match family {
        HostFamily::Pairs => "packet pairs",
        HostFamily::Gaps => "gap comparisons",
        HostFamily::VariableSizes => "packets of variable size",
        HostFamily::Streams => "constant-rate streams",
        HostFamily::Chirps => "chirps",
        HostFamily::Trains => "packet trains",
        HostFamily::Loads => "loads and transfers",
        HostFamily::RoundTrips => "round trips",
    }
}

fn families(out: &mut String, families: &[FamilyRow]) {
    let mut rows = vec![["family", "verdict", "up to", "margin", "why"].map(str::to_owned)];
    for row in families {
        let verdict = match row.verdict {
            HostVerdict::Ok => "ok",
            HostVerdict::Degraded => "degraded",
            HostVerdict::Unusable => "unusable",
            HostVerdict::Unknown => "-",
        };
        rows.push([
            name(row.family).to_owned(),
            verdict.to_owned(),
            row.max_rate_bps.map_or_else(|| "-".to_owned(), bps),
            row.margin.map_or_else(|| "-".to_owned(), |margin| format!("{margin:.2}")),
            row.reason.clone(),
        ]);
    }
    table(out, &rows);
}

fn write_capture(out: &mut String, capture: &CaptureRow) {
    let rate = capture.rate_bps.map_or_else(unknown, bps);
    let word = match capture.verdict {
        "at_least" => "at least ",
        "at_most" => "at most ",
        _ => "",
    };
    let packets = capture.packets_per_second.map_or_else(String::new, |packets| format!(" ({packets:.0} packets/s)"));
    let _ = writeln!(
        out,
        "\nA capture that keeps {} octets of each frame takes {word}{rate}{packets} of packets of {} octets without loss.",
        capture.snap_octets, capture.ip_octets
    );
    if let Some(measured) = &capture.measured {
        let _ = writeln!(
            out,
            "  measured on loopback, whose sender shares this host's processors, at {} rate(s); {} lost at the last",
            measured.tries, measured.last_lost
        );
    }
    if let Some(why) = &capture.unknown {
        let _ = writeln!(out, "  not measured: {why}");
    }
    if let Some(model) = &capture.model {
        let _ =
            writeln!(out, "  memory alone allows {} ({:.0} packets/s)", bps(model.rate_bps), model.packets_per_second);
    }
    if let Some(octets) = capture.buffer_octets {
        let _ = writeln!(out, "  buffer to begin with: {} KiB, half the largest cache", octets >> 10);
    }
}
