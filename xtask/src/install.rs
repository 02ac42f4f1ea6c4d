//! What tests need of the machine, installed where that is possible, named where it is not.

mod axe;

use std::path::Path;

use anyhow::Result;

use crate::shell::{quiet, say, shown};

/// Program looked for, and the Debian package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
    ("tcpdump", "tcpdump"),
    ("iperf3", "iperf3"),
    ("iperf", "iperf"),
    ("nuttcp", "nuttcp"),
    ("pchar", "pchar"),
    ("bing", "bing"),
    ("ping", "iputils-ping"),
    ("traceroute", "traceroute"),
    ("ITGSend", "d-itg"),
    ("scp", "openssh-client"),
    ("sshd", "openssh-server"),
    ("chromium-headless-shell", "chromium-headless-shell"),
    ("tmux", "tmux"),
    ("faketime", "faketime"),
    ("promtool", "prometheus"),
    ("prometheus", "prometheus"),
    ("nats-server", "nats-server"),
    ("postgres", "postgresql-15"),
];

/// Whether tests may ask for this program.
pub(crate) fn is_known(program: &str) -> bool {
    program == axe::NAME || PROGRAMS.iter().any(|(known, _)| *known == program)
}

pub(crate) fn is_root() -> bool {
    quiet("id", &["-u"]).is_some_and(|id| id.trim() == "0")
}

/// Installs what is missing; returns what is missing still.
pub(crate) fn install() -> Result<Vec<&'static str>> {
    let mut missing = install_programs()?;
    if !axe::fetch()? {
        missing.push(axe::NAME);
    }
    Ok(missing)
}

fn install_programs() -> Result<Vec<&'static str>> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(missing);
    }
    let packages: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| missing.contains(program)).map(|(_, package)| *package).collect();
    if !is_root() || !found("apt-get") {
        say(&format!(
            "not installed, and this account or system cannot install them: {} (Debian packages: {})\n",
            missing.join(", "),
            packages.join(" ")
        ));
        return Ok(missing);
    }
    let quietly = [("DEBIAN_FRONTEND", "noninteractive")];
    // A stale or unreachable index shows in the install step, which says what is missing.
    let _ = shown("apt-get", &["update", "-qq"], &quietly)?;
    let install = |packages: &[&str]| {
        let args: Vec<&str> =
            ["install", "-y", "-qq", "--no-install-recommends"].iter().chain(packages).copied().collect();
        shown("apt-get", &args, &quietly)
    };
    // One package that this release does not have keeps all others out.
    if !install(&packages)? {
        for package in packages {
            let _ = install(&[package])?;
        }
    }
    let still = self::missing();
    if !still.is_empty() {
        say(&format!("could not be installed: {}\n", still.join(", ")));
    }
    Ok(still)
}

fn missing() -> Vec<&'static str> {
    PROGRAMS.iter().map(|(program, _)| *program).filter(|program| !found(program)).collect()
}

/// Whether a program is on the path, or where system programs and PostgreSQL's are.
pub(crate) fn found(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/lib/postgresql/15/bin"])
        .any(|folder| Path::new(folder).join(program).is_file())
}
