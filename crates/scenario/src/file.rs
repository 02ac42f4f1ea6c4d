//! The file format: TOML, quantities written with their units, unknown fields refused.
//!
//! ```toml
//! name = "tight-behind-narrow"
//! about = "the narrow link is not the tight one"
//! seed = 7
//!
//! [[hop]]
//! name = "access"
//! rate = "1 Gbit/s"
//! delay = "1 ms"
//!
//! [[hop]]
//! rate = "100 Mbit/s"
//! queue = "128 kB"                # or "100 packets", or "unlimited"
//! cross = [{ arrivals = "poisson", rate = "30 Mbit/s", ip_octets = 1500 }]
//!
//! [receiver]
//! clock = { offset = "-40 ms", skew_ppm = 20, granularity = "1 us" }
//!
//! [[expect]]
//! method = "pathload"
//! ratio = [0.9, 1.1]
//! ```
//!
//! A hop may say what a lab plays it with. The simulator treats all kinds alike, so the same file
//! can be asked what a kernel's shaper does to a method.
//!
//! ```toml
//! [[hop]]
//! rate = "100 Mbit/s"
//! link = "tbf"                    # "real_time" (default), "tbf", "htb", "veth"
//! queue = "128 kB"                # the qdisc's limit
//! burst = "3 kB"                  # of tbf and htb; with framing; one packet of the MTU by default
//!
//! [[hop]]
//! rate = "1 Gbit/s"  # tbf: the peak rate, if there is a shaper; htb has none
//! link = "tbf"
//! shaper = { rate = "200 Mbit/s", burst = "64 kB", queue = "256 kB" }
//! ```
//!
//! `timer = "50 us"` within `shaper` plays a kernel's: packets that wait for tokens go on so much
//! late at most, and half of that at least.
//!
//! A hop whose link does not send one packet after the other says how it does (see `Service`):
//!
//! ```toml
//! [[hop]]
//! rate = "100 Mbit/s"             # of each channel
//! channels = { count = 4, by = "packet" }  # or "load" (first idle), "flow" (by a hash)
//!
//! [[hop]]
//! rate = "300 Mbit/s"             # at which frames are sent
//! aggregation = { frames = 64, octets = "65535 B", contention = "200 us", inside = "spaced" }
//!
//! [[hop]]
//! rate = "50 Mbit/s"              # over all slots
//! slots = { period = "1 ms", grant = "8 ms" }
//! ```
//!
//! Hosts are ideal unless they say otherwise, or play a profile that `narrows host --record` wrote.
//! Its file is named relative to the scenario's:
//!
//! ```toml
//! hosts = "../hosts/busy.toml"    # before the first table: both hosts
//! [sender]
//! profile = "../hosts/quiet.toml" # or one of them
//! ```
//!
//! Cross traffic of TCP connections says what they carry: data without end, or one of these.
//!
//! ```toml
//! [[hop]]
//! rate = "50 Mbit/s"
//! cross = [
//!     { elastic = "cubic", flows = 4, pacing = "5 Mbit/s" },    # or "reno", "bbr"; greedy without
//!     { elastic = "cubic", web = { rate = "10 Mbit/s", mean = "60 kB", sigma = 1.5 } },
//!     { elastic = "bbr", flows = 2, video = { rate = "4 Mbit/s", chunk = "4 s" } },
//!     { elastic = "cubic", backup = "20 MB", from = "2 s" },
//! ]
//! ```
//!
//! What `[[expect]]` may say is described in `file/expect.rs`.
//!
//! `offloads = true`, before the first table, lets the kernels of a lab keep what they usually
//! leave to devices (segments sent as one, checksums not computed) on the hops that they play and
//! on the cables of cross-traffic hosts. By default all of it is off.

mod ends;
mod expect;
mod links;
mod service;
mod traffic;

use std::sync::Arc;
use std::time::Duration;

use narrows_host_profile::HostProfile;
use narrows_units::{BitRate, Delta, Octets, parse_duration};
use serde::Deserialize;

use crate::error::ScenarioError;
use crate::model::Scenario;
use crate::way::PathDirection;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default = "one")]
    seed: u64,
    warm_up: Option<String>,
    #[serde(default)]
    offloads: bool,
    hosts: Option<String>,
    #[serde(default)]
    hop: Vec<links::HopFile>,
    #[serde(default)]
    reverse: Vec<links::HopFile>,
    #[serde(default)]
    cross: Vec<traffic::PathCrossFile>,
    #[serde(default)]
    passing: traffic::PassingFile,
    #[serde(default)]
    sender: ends::HostFile,
    #[serde(default)]
    receiver: ends::HostFile,
    #[serde(default)]
    expect: Vec<expect::ExpectFile>,
}

fn one() -> u64 {
    1
}

impl Scenario {
    /// Reads a scenario from the text of a file, and checks it. Host profiles are files of their
    /// own, which only [`Scenario::from_toml_with`] can read.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        Self::from_toml_with(text, |_| {
            Err("a text alone leads to no other file; give the scenario as a file".to_owned())
        })
    }

    /// The same; `read` gives the text of a host profile by the name that the scenario has for it,
    /// or says why it cannot.
    pub fn from_toml_with(text: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<Self, ScenarioError> {
        let file: File = toml::from_str(text).map_err(|error| ScenarioError::Syntax(error.to_string()))?;
        if file.name.is_empty() || !file.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            let why = "must be letters, digits, '-', '_' and '.', for it names files and rows";
            return Err(ScenarioError::invalid("name", why));
        }
        let mut scenario = Self::new(file.name).seed(file.seed);
        scenario.about = file.about;
        scenario.offloads = file.offloads;
        if let Some(text) = file.warm_up {
            scenario.warm_up = duration("warm_up", &text)?;
        }
        for (way, hops) in [(PathDirection::Forward, file.hop), (PathDirection::Reverse, file.reverse)] {
            for (index, hop) in hops.into_iter().enumerate() {
                let (hop, cross) = hop.read(way, index)?;
                match way {
                    PathDirection::Forward => scenario.forward.push(hop),
                    PathDirection::Reverse => scenario.reverse.push(hop),
                }
                scenario.cross.extend(cross);
            }
        }
        for (index, cross) in file.cross.into_iter().enumerate() {
            scenario.cross.extend(cross.read(&format!("cross {index}"))?);
        }
        scenario.passing = file.passing.read("passing")?;
        let profile = |place: &str, name: &str| profile(place, name, &read);
        scenario.sender = file.sender.read("sender", &profile)?;
        scenario.receiver = file.receiver.read("receiver", &profile)?;
        if let Some(name) = file.hosts {
            if [&scenario.sender, &scenario.receiver].iter().any(|host| host.profile.is_some()) {
                return Err(ScenarioError::invalid(
                    "hosts",
                    "names a profile for both hosts, and one has its own; write one",
                ));
            }
            let both = profile("hosts", &name)?;
            for host in [&mut scenario.sender, &mut scenario.receiver] {
                host.profile = Some(Arc::clone(&both));
            }
        }
        for (index, expect) in file.expect.into_iter().enumerate() {
            scenario.expect.push(expect.read(&format!("expect {index}"))?);
        }
        scenario.validate()
    }
}

fn profile(
    place: &str,
    name: &str,
    read: &impl Fn(&str) -> Result<String, String>,
) -> Result<Arc<HostProfile>, ScenarioError> {
    let text = read(name).map_err(|why| ScenarioError::invalid(format!("{place}: {name}"), why))?;
    let profile = HostProfile::from_toml(&text);
    let refused = |source| ScenarioError::Profile { place: place.to_owned(), file: name.to_owned(), source };
    profile.map(Arc::new).map_err(refused)
}

fn rate(place: &str, text: &str) -> Result<BitRate, ScenarioError> {
    text.parse().map_err(|source| ScenarioError::Quantity { place: place.to_owned(), source })
}

fn octets(place: &str, text: &str) -> Result<Octets, ScenarioError> {
    text.parse().map_err(|source| ScenarioError::Quantity { place: place.to_owned(), source })
}

fn duration(place: &str, text: &str) -> Result<Duration, ScenarioError> {
    parse_duration(text).map_err(|source| ScenarioError::Quantity { place: place.to_owned(), source })
}

/// A duration that may be negative.
fn delta(place: &str, text: &str) -> Result<Delta, ScenarioError> {
    match text.trim().strip_prefix('-') {
        Some(magnitude) => Ok(-Delta::from(duration(place, magnitude)?)),
        None => Ok(duration(place, text)?.into()),
    }
}

fn optional<T>(
    place: &str,
    text: Option<&String>,
    read: impl Fn(&str, &str) -> Result<T, ScenarioError>,
) -> Result<Option<T>, ScenarioError> {
    text.map(|text| read(place, text)).transpose()
}

#[cfg(test)]
mod tests;
