//! Departure gaps of any program's packets, as the kernel hands them to the card.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::host_pair::{HostPair, INTERFACE};
use super::program::Program;

/// Runs `traffic` while the sender's interface is watched; the departures of its full-size UDP
/// packets in nanoseconds.
pub(super) fn departures(host_pair: &HostPair, traffic: impl FnOnce() -> Result<()>) -> Result<Vec<i64>> {
    let args = [
        "-i",
        INTERFACE,
        "-Q",
        "out",
        "-n",
        "-p",
        "-s",
        "64",
        // KiB of buffer.
        "-B",
        "65536",
        "--time-stamp-precision=nano",
        "-Z",
        "root",
        "-w",
        "-",
        "udp and greater 1500",
    ];
    let capture = Program::start(host_pair.near("tcpdump", &args))?.until_capturing()?;
    traffic()?;
    capture.interrupt();
    let output = capture.finish(Duration::from_secs(10))?;
    let missed = output
        .err
        .lines()
        .find_map(|line| line.strip_suffix(" packets dropped by kernel"))
        .and_then(|count| count.trim().parse::<u64>().ok());
    match missed {
        Some(0) => stamps(&output.out),
        Some(count) => bail!("the capture missed {count} packets"),
        None => bail!("tcpdump did not say whether it missed packets"),
    }
}

/// The stamps of a capture file with nanoseconds, in this machine's octet order.
fn stamps(file: &[u8]) -> Result<Vec<i64>> {
    const MAGIC: u32 = 0xA1B2_3C4D;
    const HEADER: usize = 24;
    const RECORD: usize = 16;
    if word(file, 0) != Some(MAGIC) {
        bail!("not a capture with nanoseconds");
    }
    let (mut stamps, mut at) = (Vec::new(), HEADER);
    while at < file.len() {
        let field = |index: usize| word(file, at + 4 * index).context("the capture ends inside a record");
        stamps.push(i64::from(field(0)?) * 1_000_000_000 + i64::from(field(1)?));
        at += RECORD + usize::try_from(field(2)?)?;
    }
    Ok(stamps)
}

fn word(file: &[u8], at: usize) -> Option<u32> {
    let octets = file.get(at..at + 4)?;
    octets.try_into().ok().map(u32::from_ne_bytes)
}

/// How far the gaps are from the planned one: median and 99th percentile, in nanoseconds.
pub(super) fn gap_errors(stamps: &[i64], planned_ns: i64) -> Result<Vec<f64>> {
    let mut errors: Vec<i64> = stamps.windows(2).map(|pair| (pair[1] - pair[0] - planned_ns).abs()).collect();
    errors.sort_unstable();
    let last = errors.len().checked_sub(1).context("no gap was seen")?;
    Ok(vec![errors[last / 2] as f64, errors[last * 99 / 100] as f64])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_gives_its_stamps() {
        let mut file: Vec<u8> = 0xA1B2_3C4D_u32.to_ne_bytes().to_vec();
        file.resize(24, 0);
        for (seconds, nanos) in [(1u32, 5u32), (2, 7)] {
            for field in [seconds, nanos, 3, 1514] {
                file.extend(field.to_ne_bytes());
            }
            file.extend([0; 3]);
        }
        assert_eq!(stamps(&file).unwrap(), [1_000_000_005, 2_000_000_007]);
        file.truncate(file.len() - 12);
        assert!(stamps(&file).is_err());
        assert!(stamps(b"no").is_err());
    }

    #[test]
    fn errors_count_both_ways() {
        assert_eq!(gap_errors(&[0, 10, 21, 30], 10).unwrap(), [1.0, 1.0]);
        assert!(gap_errors(&[0], 10).is_err());
    }
}
