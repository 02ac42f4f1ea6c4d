//! What the numbers were taken on, and with.

use std::fmt::Write as _;

use crate::shell::quiet;

use super::program::found;

/// One line per fact, as a list.
pub(super) fn list() -> String {
    let facts = [
        ("processor", processor()),
        ("system", system()),
        ("narrows", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("rustc", first_line("rustc", &["--version"])),
        ("iperf3", first_line("iperf3", &["--version"])),
        ("nuttcp", first_line("nuttcp", &["-V"])),
        ("tcpdump", first_line("tcpdump", &["--version"])),
        ("D-ITG", first_line("dpkg-query", &["-W", "-f=${Version}", "d-itg"])),
        ("ns-3", ns3()),
        ("g++", first_line("g++", &["--version"])),
    ];
    let mut text = String::new();
    for (name, fact) in facts {
        let _ = writeln!(text, "- {name}: {}", fact.as_deref().unwrap_or("not installed"));
    }
    text
}

/// The version of ns-3, if it can be compiled against.
pub(super) fn ns3() -> Option<String> {
    first_line("pkg-config", &["--modversion", "ns3-core"])
        .or_else(|| first_line("dpkg-query", &["-W", "-f=${Version}", "libns3-dev"]))
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|rest| rest.split_once(':')).map_or("unknown", |(_, model)| model.trim());
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some(format!("{model}, {count} logical"))
}

fn system() -> Option<String> {
    let release = first_line("uname", &["-sr"])?;
    let machine = first_line("systemd-detect-virt", &[]).unwrap_or_else(|| "not told whether virtual".to_owned());
    Some(format!("{release}, {machine}"))
}

fn first_line(program: &str, args: &[&str]) -> Option<String> {
    if !found(program) {
        return None;
    }
    Some(quiet(program, args)?.lines().next()?.trim().to_owned())
}
