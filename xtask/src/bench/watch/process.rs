//! `narrows watch` itself: what twenty targets cost, and how soon a large store lets it begin.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::program::{POLL, Program, command, nap};
use crate::shell::now;

/// Targets of the design's goals, each an address of loopback with a server of its own.
pub(super) const TARGETS: u8 = 20;
const SERVER_PORT: u16 = 8_630;
const START: Duration = Duration::from_secs(60);
/// Capacities are measured at first contact and not again for a week; the first eighteen routes
/// come every ten seconds.
pub(super) const SETTLED: Duration = Duration::from_secs(300);

/// The rows of the table. `store` is a file that the queries left, of a year of twenty targets.
pub(super) fn rows(narrows: &Path, folder: &Path, store: &Path, time: Duration) -> Result<String> {
    let servers = (1..=TARGETS).map(|number| {
        let mut server = command(&narrows.to_string_lossy());
        server.args(["serve", "-p", &SERVER_PORT.to_string(), "-B", &address(number)]);
        Program::start(server)
    });
    let servers = servers.collect::<Result<Vec<_>>>()?;
    let mut table = first_pulses(narrows, folder, store)?;
    table += &cost(narrows, folder, time)?;
    table += &super::pulses::rows(narrows, folder, store)?;
    for server in servers {
        server.stop(Duration::from_secs(10))?;
    }
    Ok(table)
}

pub(super) fn address(number: u8) -> String {
    format!("127.0.2.{number}")
}

/// Follows these targets, with a page whose stream says when the first pulse was answered.
pub(super) fn watch(
    narrows: &Path,
    folder: &Path,
    store: &Path,
    targets: u8,
    via: Option<&str>,
) -> Result<(Program, u16)> {
    let mut settings = "[budget]\nshare = \"1 %\"\n".to_owned();
    for number in 1..=targets {
        let host = address(number);
        let _ = writeln!(settings, "[[target]]\nname = \"t{number}\"\nhost = \"{host}\"\nport = {SERVER_PORT}");
        if let Some(via) = via {
            let _ = writeln!(settings, "via = \"{via}\"");
        }
    }
    let file = folder.join("watch.toml");
    std::fs::write(&file, settings)?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut program = command(&narrows.to_string_lossy());
    program.arg("watch").arg("--config").arg(&file).arg("--store").arg(store);
    program.args(["--json", "--listen", &format!("127.0.0.1:{port}")]);
    Ok((Program::start(program)?, port))
}

/// From the start of the process until the page tells of a pulse.
fn first_pulses(narrows: &Path, folder: &Path, store: &Path) -> Result<String> {
    let size = std::fs::metadata(store)?.len();
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = now();
        let (mut program, port) = watch(narrows, folder, store, 1, None)?;
        let mut stream = loop {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                break stream;
            }
            ensure!(program.running() && began.elapsed() < START, "narrows watch does not listen");
            nap(POLL);
        };
        stream.set_read_timeout(Some(START))?;
        write!(stream, "GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
        let mut lines = BufReader::new(stream).lines();
        lines.find(|line| line.as_ref().is_ok_and(|line| line == "event: pulse")).context("no pulse came")??;
        times.push(began.elapsed().as_millis());
        program.stop(Duration::from_secs(10))?;
    }
    times.sort_unstable();
    let text = format!("{} ms (median of {}, {}..{})", times[2], times.len(), times[0], times[4]);
    Ok(row(&format!("first pulse with a store of {} MB", size / 1_000_000), "below 300 ms", &text))
}

/// What twenty targets take of a processor and of memory.
fn cost(narrows: &Path, folder: &Path, time: Duration) -> Result<String> {
    let (program, _) = watch(narrows, folder, &folder.join("twenty.db"), TARGETS, None)?;
    nap(SETTLED);
    let (before, clock) = (program.cpu(), now());
    nap(time);
    let used = program.cpu().saturating_sub(before).as_secs_f64() / clock.elapsed().as_secs_f64();
    let memory = highest_memory(program.pid())?;
    program.stop(Duration::from_secs(20))?;
    let over = format!("{:.2} % over {} s, after {} s", 100.0 * used, time.as_secs(), SETTLED.as_secs());
    Ok(row("processor, twenty targets over loopback", "below 1 % of a core over 24 h", &over)
        + &row("memory of that process, most", "below 40 MB", &format!("{:.1} MB", memory as f64 / 1e6)))
}

pub(super) fn highest_memory(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(1024 * line.trim().trim_end_matches(" kB").parse::<u64>()?)
}

pub(super) fn row(what: &str, goal: &str, measured: &str) -> String {
    format!("| {what} | {goal} | {measured} |\n")
}
