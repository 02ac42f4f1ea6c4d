//! Reading large captures: how fast, and in how much memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Options;
use super::program::{self, built, command, output};
use super::rounds::{Contender, Metric, Ratio, goal, interleave};
use crate::shell::root;

pub(super) const ABOUT: &str = "\
`narrows passive FILE --json` over captures of 1 GB: of headers alone (66 octets of every packet, the most packets that such a file can
hold), in 2000 connections and in 200 000 that never end, and of whole packets. The time is that of the processor, in user and system
mode together, whatever else ran; memory is the most that ever was resident. Files are in the page's cache.";

const OCTETS: u64 = 1_000_000_000;
/// The largest, in which memory is judged.
const MANY: &str = "headers, 200 000 connections";
const FEW: &str = "headers, 2000 connections";
const WHOLE: &str = "whole packets, 2000 connections";
/// Name, connections, octets kept of a packet.
const CAPTURES: [(&str, &str, &str); 3] = [(FEW, "2000", "66"), (MANY, "200000", "66"), (WHOLE, "2000", "1514")];
const TIMEOUT: Duration = Duration::from_secs(600);
/// Clock ticks per second in `/proc`: 100 on every Linux that programs see.
const TICKS: f64 = 100.0;

/// A file that goes with the comparison.
struct Passing(PathBuf);

impl Drop for Passing {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(super) fn run(options: &Options) -> Result<String> {
    program::build(&["-p", "narrows", "--bin", "narrows"])?;
    program::build(&["-p", "narrows-capture", "--example", "make_capture"])?;
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    for (index, (name, connections, kept)) in CAPTURES.into_iter().enumerate() {
        let file = Passing(folder.join(format!("capture-{index}.pcap")));
        let mut maker = command(&built("examples/make_capture").to_string_lossy());
        maker.arg(&file.0).args([&OCTETS.to_string(), connections, kept]);
        output(maker, TIMEOUT).with_context(|| format!("cannot make a capture of {name}"))?;
        files.push((name, file));
    }
    let contenders = files.iter().map(|(name, file)| {
        let file = &file.0;
        Contender::new(*name, move || {
            let (seconds, peak) = used(file)?;
            let octets = std::fs::metadata(file)?.len() as f64;
            Ok(vec![octets * 1e-6 / seconds, seconds * 1e9 / octets, peak])
        })
    });
    let metric = |name, digits| Metric { name, digits, ratio: Ratio::None };
    let metrics = vec![
        metric("MB per second of the processor", 0),
        metric("seconds of the processor per GB", 2),
        metric("most memory, MB", 0),
    ];
    let results = interleave(options.rounds, metrics, contenders.collect());
    let mut text = results.tables(FEW);
    for name in [FEW, MANY, WHOLE] {
        let share = results.median(1, name).map(|seconds| 10.0 / seconds);
        text += &goal(&format!("10 s ÷ seconds per GB, {name}"), share, 1.0);
        let share = results.median(2, name).map(|most| 200.0 / most);
        text += &goal(&format!("200 MB ÷ most memory, {name}"), share, 1.0);
    }
    Ok(text)
}

/// Seconds of the processor and the most resident memory, in MB, of reading a capture.
fn used(file: &Path) -> Result<(f64, f64)> {
    let mut child = Command::new(built("narrows"))
        .args(["passive", "--json"])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run narrows")?;
    let about = |what: &str| std::fs::read_to_string(format!("/proc/{}/{what}", child.id()));
    let mut peak = 0.0;
    let ticks = loop {
        // What has ended and was not waited for still tells its time, but no longer its memory.
        if let Some(most) = about("status").ok().as_deref().and_then(peak_kib) {
            peak = most * 1.024e-3;
        }
        match about("stat").ok().as_deref().and_then(time) {
            Some((true, ticks)) => break Some(ticks),
            Some((false, _)) => program::nap(program::POLL),
            None => break None,
        }
    };
    let status = child.wait()?;
    ensure!(status.success(), "narrows passive ended with {status}");
    let ticks = ticks.context("/proc does not say what it used")?;
    Ok((ticks / TICKS, peak))
}

/// The line `VmHWM:  1234 kB` of `/proc/PID/status`.
fn peak_kib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether it has ended, and the ticks of both modes, from `/proc/PID/stat`: the third field, the
/// 14th and the 15th.
fn time(stat: &str) -> Option<(bool, f64)> {
    // The second field, a name in parentheses, may hold blanks.
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    let ended = fields.next()? == "Z";
    let (user, system): (f64, f64) = (fields.nth(10)?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((ended, user + system))
}

#[cfg(test)]
mod tests {
    use super::{peak_kib, time};

    #[test]
    fn what_a_process_used_is_read() {
        let status = "Name:\tx\nVmPeak:\t 99 kB\nVmHWM:\t   1234 kB\nVmRSS:\t 7 kB\n";
        assert_eq!(peak_kib(status), Some(1234.0));
        assert_eq!(peak_kib("Name:\tx\n"), None);
        let stat = "17 (a b) c) S 1 17 17 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0";
        assert_eq!(time(stat), Some((false, 300.0)));
        assert_eq!(time(&stat.replace(" S ", " Z ")), Some((true, 300.0)));
        assert_eq!(time("17 (a"), None);
    }
}
