//! Which commands an agent runs: words that come from the hub become the arguments of a child, so
//! only flags pass that measure. None of them names a file, and no shell reads them.

use narrows_fleet::allowance::LIGHT;
use narrows_fleet::config::{OwnBudget, loads};
use narrows_units::BitRate;

use crate::limits::Limits;

/// A flag, and whether a value follows it.
type Flag = (&'static str, bool);

const FAMILY: &[Flag] = &[("-4", false), ("-6", false)];
const ESTIMATOR: &[Flag] =
    &[("-m", true), ("--method", true), ("--param", true), ("--budget", true), ("-R", false), ("--reverse", false)];
const TRANSFER: &[Flag] = &[
    ("-t", true),
    ("--time", true),
    ("-P", true),
    ("--parallel", true),
    ("-R", false),
    ("--reverse", false),
    ("--bidir", false),
    ("-u", false),
    ("--udp", false),
    ("-b", true),
    ("--bitrate", true),
    ("-n", true),
    ("--bytes", true),
    ("-l", true),
    ("--length", true),
    ("-w", true),
    ("--window", true),
    ("-C", true),
    ("--congestion", true),
    ("-O", true),
    ("--omit", true),
    ("--quick", false),
    ("--no-quick", false),
    ("--dscp", true),
];
const WHOLE: &[Flag] = &[
    ("--quick", false),
    ("--thorough", false),
    ("-R", false),
    ("--reverse", false),
    ("--bidir", false),
    ("--budget", true),
];
const WALK: &[Flag] =
    &[("--method", true), ("--param", true), ("--budget", true), ("-f", true), ("-m", true), ("-c", true)];

/// What the program runs, and the flags of each.
const KINDS: [(&str, &[Flag]); 7] = [
    ("rtt", ESTIMATOR),
    ("capacity", ESTIMATOR),
    ("available", ESTIMATOR),
    ("burst", ESTIMATOR),
    ("hops", WALK),
    ("throughput", TRANSFER),
    ("test", WHOLE),
];

/// The kinds of runs that this version knows.
pub(crate) fn kinds() -> Vec<String> {
    KINDS.iter().map(|(kind, _)| (*kind).to_owned()).collect()
}

/// Whether this version knows what to run. A hub is newer than its agents while it is upgraded.
pub(crate) fn is_known(words: &[String]) -> bool {
    words.first().is_some_and(|word| KINDS.iter().any(|(kind, _)| kind == word))
}

/// The command that these words mean within the owner's limits; or why it must not run.
pub(crate) fn checked(words: &[String], limits: &Limits) -> Result<Vec<String>, String> {
    let Some((kind, rest)) = words.split_first() else { return Err("a run without a command".to_owned()) };
    let Some((_, flags)) = KINDS.iter().find(|(name, _)| name == kind) else {
        return Err(format!("this version runs no \"{kind}\""));
    };
    if !limits.kind(kind) {
        return Err(format!("the owner of this host allows no {kind}"));
    }
    let mut given: Vec<(&str, Option<&str>)> = Vec::new();
    let mut rest = rest.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let (name, value) = word.split_once('=').filter(|_| word.starts_with("--")).unzip();
        let name = name.unwrap_or(word);
        let known = flags.iter().chain(FAMILY).find(|(flag, _)| *flag == name);
        let Some((flag, has_value)) = known else { return Err(format!("{kind} takes no \"{word}\" from a plan")) };
        let value = if *has_value { value.or_else(|| rest.next()) } else { value };
        if *has_value != value.is_some() || value.is_some_and(|value| value.starts_with('-')) {
            return Err(format!("\"{word}\" of {kind} lacks its value"));
        }
        given.push((*flag, value));
    }
    if kind == "throughput" {
        let value =
            |names: [&str; 2]| given.iter().find(|(flag, _)| names.contains(flag)).and_then(|(_, value)| *value);
        let (rate, streams) = (value(["-b", "--bitrate"]), value(["-P", "--parallel"]));
        limits.highest_rate.map_or(Ok(()), |highest| transfer(rate, streams, highest))?;
        return Ok(words.to_vec());
    }
    bounded(words, limits.highest_rate)
}

/// The same command below the owner's highest rate, and within the light slot if it is light.
fn bounded(words: &[String], highest: Option<BitRate>) -> Result<Vec<String>, String> {
    let own = OwnBudget::of(words)?.unwrap_or_default();
    if let (Some(rate), Some(highest)) = (own.rate, highest)
        && rate > highest
    {
        return Err(format!("{rate} are beyond the owner's highest rate, {highest}"));
    }
    let octets = (loads(words) == Some(false) && own.octets.is_none()).then(|| format!("{} B", LIGHT.count()));
    let rate = highest.filter(|_| own.rate.is_none()).map(|highest| format!("{} bit/s", highest.bps()));
    let more: Vec<String> = octets.into_iter().chain(rate).collect();
    let mut words = words.to_vec();
    if more.is_empty() {
        return Ok(words);
    }
    let more = more.join(", ");
    match words.iter().position(|word| word.starts_with(OwnBudget::FLAG)) {
        Some(at) => {
            let at = if words[at] == OwnBudget::FLAG { at + 1 } else { at };
            words[at] = format!("{}, {more}", words[at]);
        }
        None => words.extend([OwnBudget::FLAG.to_owned(), more]),
    }
    Ok(words)
}

fn transfer(rate: Option<&str>, streams: Option<&str>, highest: BitRate) -> Result<(), String> {
    let rate = rate.ok_or("throughput without -b is not bound to the owner's highest rate")?;
    let rate: BitRate = rate.parse().map_err(|error| format!("-b {rate}: {error}"))?;
    let streams: u64 = streams.unwrap_or("1").parse().map_err(|error| format!("-P: {error}"))?;
    let sum = rate.bps().saturating_mul(streams);
    if rate.bps() == 0 || sum > highest.bps() {
        return Err(format!("{streams} x {rate} are beyond the owner's highest rate, {highest}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn only_flags_that_measure_pass() {
        let limits = Limits::default();
        for text in [
            "rtt",
            "available -R",
            "capacity --param packets=20 -4",
            "throughput -P 4 -t 10 --bitrate=10M",
            "hops -m 20",
            "test --quick",
        ] {
            let command = checked(&words(text), &limits).unwrap();
            let light = loads(&command) == Some(false);
            assert_eq!(command[..words(text).len()], words(text), "{text}");
            assert_eq!(command[words(text).len()..] == ["--budget", "4000000 B"], light, "{text}");
        }
        for text in [
            "",
            "sh -c reboot",
            "pmtu",
            "rtt --output /etc/passwd",
            "rtt --output=/etc/passwd",
            "rtt -o x",
            "rtt otherhost",
            "rtt --record x",
            "throughput --extra-data x",
            "throughput -P",
            "throughput -P --bidir",
            "throughput --bidir=1",
            "rtt --psk-file x",
            "hops --svg x",
        ] {
            assert!(checked(&words(text), &limits).is_err(), "{text}");
        }
    }

    #[test]
    fn the_owners_rate_bounds_every_command() {
        let limits = Limits::read("highest_rate = \"100 Mbit/s\"\nkinds = [\"rtt\", \"throughput\"]").unwrap();
        assert_eq!(checked(&words("rtt"), &limits).unwrap()[1..], ["--budget", "4000000 B, 100000000 bit/s"]);
        assert!(checked(&words("throughput -b 25M -P 4"), &limits).is_ok());
        for (text, value) in [
            ("rtt --budget 1s", "1s, 4000000 B, 100000000 bit/s"),
            ("rtt --budget=2MB", "--budget=2MB, 100000000 bit/s"),
            ("rtt --budget 64MB -R", "64MB, 100000000 bit/s"),
            ("rtt -R --budget 64MB,5Mbit/s", "64MB,5Mbit/s"),
        ] {
            let command = checked(&words(text), &limits).unwrap();
            assert!(command.iter().any(|word| word == value) && command.len() == words(text).len(), "{command:?}");
        }
        for text in [
            "throughput",
            "throughput -b 0",
            "throughput -b 26M -P 4",
            "rtt --budget 101Mbit/s",
            "available",
            "throughput -b x",
        ] {
            assert!(checked(&words(text), &limits).is_err(), "{text}");
        }
    }
}
