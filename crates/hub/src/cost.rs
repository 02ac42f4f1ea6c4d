//! What a loading run takes, from its words: how long it lasts, how fast and how much it sends.

use std::time::Duration;

use narrows_fleet::config::OwnBudget;
use narrows_units::{BitRate, Octets, parse_duration_or_seconds};

/// What a run takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Its span: with the time to begin and to end.
    pub(crate) length: Duration,
    pub(crate) peak: BitRate,
    pub(crate) octets: Octets,
}

impl Cost {
    /// Of a command over a path that carries `capacity`, as far as that is known.
    pub(crate) fn of(words: &[String], capacity: Option<BitRate>) -> Self {
        let usual = match words.first().map_or("", String::as_str) {
            "burst" => 5,
            "test" | "hops" => 60,
            _ => 10,
        };
        let time = value(words, &["-t", "--time"]).and_then(|text| parse_duration_or_seconds(text).ok());
        let own = OwnBudget::of(words).ok().flatten().unwrap_or_default();
        let time = time.or(own.time);
        let time = time.filter(|time| !time.is_zero()).unwrap_or(Duration::from_secs(usual)).min(LONGEST);
        let asked = own.rate.or_else(|| value(words, &["-b", "--bitrate"]).and_then(rate));
        let streams = value(words, &["-P", "--parallel"]).and_then(|text| text.parse().ok()).unwrap_or(1_u64);
        let asked = asked.map(|rate| BitRate::from_bps(rate.bps().saturating_mul(streams)));
        let path = capacity.unwrap_or(UNKNOWN);
        let peak = asked.map_or(path, |asked| asked.min(path));
        let ways = if words.iter().any(|word| word == "--bidir") { 2 } else { 1 };
        let octets = own.octets.unwrap_or_else(|| Octets::new(peak.octets_in(time) * ways));
        Self { length: time + MARGIN, peak, octets }
    }
}

/// The value of a flag: `-t 10`, `-t10`, `--time=10`.
fn value<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = names.iter().find_map(|name| word.strip_prefix(name))?;
        if rest.is_empty() { words.get(at + 1).map(String::as_str) } else { Some(rest.trim_start_matches('=')) }
    })
}

/// A rate with iperf3's letters, or with a unit.
fn rate(text: &str) -> Option<BitRate> {
    let text = text.split('/').next().unwrap_or_default();
    let plain = || text.parse::<u64>().ok().map(BitRate::from_bps);
    let lettered = || format!("{text}bit/s").parse().ok();
    plain().or_else(lettered).or_else(|| text.parse().ok()).filter(|rate| *rate > BitRate::ZERO)
}

/// Ours: for the handshake, the lease, the route before and after.
const MARGIN: Duration = Duration::from_secs(5);
/// A run may ask for no more.
const LONGEST: Duration = Duration::from_secs(600);
/// Of a path that nobody measured yet.
const UNKNOWN: BitRate = BitRate::from_gbps(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, mbps: Option<u64>) -> (u64, u64, u64) {
        let words: Vec<String> = text.split_whitespace().map(ToOwned::to_owned).collect();
        let cost = Cost::of(&words, mbps.map(BitRate::from_mbps));
        (cost.length.as_secs(), cost.peak.bps() / 1_000_000, cost.octets.count() / 1_000_000)
    }

    #[test]
    fn words_say_what_a_run_takes() {
        assert_eq!(of("throughput", Some(80)), (15, 80, 100));
        assert_eq!(of("throughput -t 20", Some(80)), (25, 80, 200));
        assert_eq!(of("throughput --time=20 --bidir", Some(80)), (25, 80, 400));
        assert_eq!(of("throughput -u -b 10M -P 2 -t5", Some(80)), (10, 20, 12));
        assert_eq!(of("throughput -b 500M", Some(80)), (15, 80, 100));
        assert_eq!(of("burst", None), (10, 1_000, 625));
        assert_eq!(of("throughput -t 0", Some(8)), (15, 8, 10));
        assert_eq!(of("available --budget 64MB", Some(5_000)), (15, 5_000, 64));
        assert_eq!(of("available --budget=64MB,100Mbit/s", None), (15, 100, 64));
    }
}
