//! A description, checked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use narrows_units::{BitRate, Direction, Framing, Layer, Metric, Unit};
use regex_lite::Regex;
use serde::Deserialize;

use super::error::{AdapterError, ExternalToolError, ReadError};
use super::file::{self, File};
use super::read::{self, Reader, Reading, Texts};
use super::template::Template;

/// How to run one program and read its number.
#[derive(Debug, Clone)]
pub struct Adapter {
    name: String,
    about: String,
    metric: Metric,
    layer: Layer,
    direction: Direction,
    ip_octets: Option<u16>,
    needs: Vec<String>,
    package: Option<String>,
    version: Option<(Vec<String>, Regex)>,
    params: BTreeMap<String, String>,
    pub(super) server: Option<(Command, Ready)>,
    pub(super) client: Command,
    pub(super) after: Option<Command>,
    /// The client never ends by itself.
    pub(super) interrupt: bool,
    pub(super) inconclusive_exit_codes: Vec<i32>,
    pub(super) success_exit_codes: Vec<i32>,
    reader: Reader,
}

/// Which end of the path a command runs at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    /// Where the path's forward way begins.
    Sender,
    /// Where it ends.
    Receiver,
}

/// A command line to be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Where it runs.
    pub host: Host,
    /// How long it may take, beyond the parameter `seconds` if there is one.
    pub timeout: Duration,
    words: Vec<Template>,
}

/// How to see that a server is ready.
#[derive(Debug, Clone)]
pub enum Ready {
    /// Something in its host listens at this TCP port.
    TcpPort(PortTemplate),
    /// Something in its host has bound this UDP port.
    UdpPort(PortTemplate),
    /// It printed a line that matches, on either stream.
    Line(Regex),
    /// So long after its start.
    After(Duration),
}

/// A port with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortTemplate(Template);

/// What a run takes place in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Address of the host at which the path's forward way begins.
    pub sender: IpAddr,
    /// Address of the other.
    pub receiver: IpAddr,
    /// Largest IP packet that crosses the path, octets.
    pub mtu: u16,
    /// Rate of the sender's own link at the IP layer, in packets of that size: all that a host
    /// knows of its path beforehand. Programs that need a rate to offer get this one, or the
    /// parameter `rate`.
    pub line_rate: BitRate,
}

/// Placeholders that need no parameter.
const KNOWN: [&str; 10] = [
    "sender",
    "receiver",
    "mtu",
    "udp_payload",
    "tcp_payload",
    "rate",
    "rate_udp",
    "rate_udp_kbps",
    "rate_pps",
    "folder",
];
/// Given by the parameter `seconds`.
const MILLISECONDS: &str = "milliseconds";

impl Adapter {
    /// Reads and checks a description.
    pub fn from_toml(text: &str) -> Result<Self, AdapterError> {
        let file: File =
            toml::from_str(text).map_err(|error| AdapterError::Toml(error.to_string().trim_end().to_owned()))?;
        Self::check(file)
    }

    fn check(file: File) -> Result<Self, AdapterError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if file.name.is_empty() || file.name.len() > 64 || !file.name.chars().all(fits) {
            return Err(AdapterError::Name(file.name));
        }
        if file.metric.unit() != Unit::BitPerSecond {
            return Err(AdapterError::NotARate(file.metric));
        }
        if let Some(name) = file.params.keys().find(|name| reserved(name)) {
            return Err(AdapterError::ReservedParam(name.clone()));
        }
        let params: BTreeMap<String, String> =
            file.params.iter().map(|(name, value)| (name.clone(), value.text())).collect();
        let words = Words::new(&params, &file.program.needs);
        let has = (file.server.is_some(), file.after.is_some());
        let server = file.server.map(|server| words.server(server)).transpose()?;
        let client = words.command(
            "client.command",
            file.client.host.unwrap_or(Host::Sender),
            &file.client.command,
            time("client.timeout", &file.client.timeout)?,
        )?;
        let after = file.after.map(|after| {
            let timeout = time("after.timeout", &after.timeout)?;
            words.command("after.command", after.host.unwrap_or(Host::Sender), &after.command, timeout)
        });
        let version = file.program.version.zip(file.program.version_pattern).map(|(command, pattern)| {
            if command.is_empty() {
                return Err(AdapterError::EmptyCommand { key: "program.version" });
            }
            let pattern = read::pattern("program.version_pattern", &pattern)?;
            read::needs_group("program.version_pattern", &pattern, "version")?;
            Ok((command, pattern))
        });
        Ok(Self {
            name: file.name,
            about: file.about,
            metric: file.metric,
            layer: file.layer,
            direction: file.direction,
            ip_octets: file.ip_octets,
            needs: file.program.needs,
            package: file.program.package,
            version: version.transpose()?,
            params,
            server,
            client,
            after: after.transpose()?,
            interrupt: file.client.interrupt,
            inconclusive_exit_codes: file.client.inconclusive_exit_codes,
            success_exit_codes: file.client.success_exit_codes,
            reader: Reader::check(file.read, file.cost, has)?,
        })
    }

    /// What rows call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it measures, in words.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The metric that its number is one of.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The layer whose octets its number counts.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// The way that it measures.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether its numbers are one per hop.
    pub fn is_per_hop(&self) -> bool {
        self.reader.is_per_hop()
    }

    /// The programs that it starts.
    pub fn needs(&self) -> &[String] {
        &self.needs
    }

    /// The Debian package that brings them.
    pub fn package(&self) -> Option<&str> {
        self.package.as_deref()
    }

    /// Command and pattern that tell the version.
    pub(super) fn version_command(&self) -> Option<&(Vec<String>, Regex)> {
        self.version.as_ref()
    }

    /// Parameters and their defaults.
    pub fn params(&self) -> &BTreeMap<String, String> {
        &self.params
    }

    /// The number in what the commands printed.
    pub fn read(&self, texts: &Texts) -> Result<Reading, ReadError> {
        self.reader.read(texts)
    }

    /// A rate of this program's layer at `layer`: `mtu` is the path's largest IP packet, which the
    /// program fills unless its description says otherwise, `framing` that of the link that the
    /// number is about. `None` where packets are too short for a layer.
    pub fn at_layer(&self, rate: BitRate, layer: Layer, mtu: u16, framing: Framing) -> Option<BitRate> {
        let ip_octets = u32::from(self.ip_octets.unwrap_or(mtu));
        framing.convert(rate, self.layer, layer, ip_octets, false)
    }

    /// What the placeholders stand for in one run.
    pub(super) fn values(
        &self,
        setting: &Setting,
        folder: &Path,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, ExternalToolError> {
        let mut values = self.params.clone();
        for (name, value) in given {
            if name != "rate" && !self.params.contains_key(name) {
                let known: Vec<&str> = self.params.keys().map(String::as_str).chain(["rate"]).collect();
                return Err(ExternalToolError::UnknownParam {
                    adapter: self.name.clone(),
                    name: name.clone(),
                    known: known.join(", "),
                });
            }
            values.insert(name.clone(), value.clone());
        }
        if let Some(seconds) = self.seconds(&values)? {
            values.insert(MILLISECONDS.to_owned(), seconds.as_millis().to_string());
        }
        let rate = match values.get("rate") {
            None => setting.line_rate,
            Some(text) => text.parse().map_err(|_| self.bad_value("rate", text, "no rate, such as \"20 Mbit/s\""))?,
        };
        let mtu = u32::from(setting.mtu);
        let udp = Framing::BARE.convert(rate, Layer::Ip, Layer::UdpPayload, mtu, false);
        let udp = udp.unwrap_or(rate).bps();
        let standing = [
            ("sender", setting.sender.to_string()),
            ("receiver", setting.receiver.to_string()),
            ("mtu", mtu.to_string()),
            ("udp_payload", mtu.saturating_sub(28).to_string()),
            ("tcp_payload", mtu.saturating_sub(52).to_string()),
            ("rate", rate.bps().to_string()),
            ("rate_udp", udp.to_string()),
            ("rate_udp_kbps", (udp / 1000).max(1).to_string()),
            ("rate_pps", (rate.bps() / (8 * u64::from(mtu.max(1)))).max(1).to_string()),
            ("folder", folder.display().to_string()),
        ];
        values.extend(standing.map(|(name, value)| (name.to_owned(), value)));
        Ok(values)
    }

    /// The parameter `seconds`, if there is one.
    pub(super) fn seconds(&self, values: &BTreeMap<String, String>) -> Result<Option<Duration>, ExternalToolError> {
        let Some(text) = values.get("seconds") else {
            return Ok(None);
        };
        let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
        seconds
            .map(|seconds| Some(Duration::from_secs_f64(seconds)))
            .ok_or_else(|| self.bad_value("seconds", text, "no number of seconds up to a day"))
    }

    fn bad_value(&self, name: &'static str, value: &str, why: &'static str) -> ExternalToolError {
        ExternalToolError::ParamValue { adapter: self.name.clone(), name, value: value.to_owned(), why }
    }
}

impl Command {
    /// The words of the command line.
    pub(super) fn words(&self, values: &BTreeMap<String, String>) -> Vec<String> {
        self.words.iter().map(|word| word.fill(values)).collect()
    }
}

impl PortTemplate {
    /// The port, if what stands there is one.
    pub(super) fn port(&self, values: &BTreeMap<String, String>) -> Option<u16> {
        self.0.fill(values).parse().ok()
    }
}

fn reserved(name: &str) -> bool {
    KNOWN.contains(&name) && name != "rate" || name == MILLISECONDS
}

/// What commands may name.
struct Words<'a> {
    known: BTreeSet<String>,
    needs: &'a [String],
}

impl<'a> Words<'a> {
    fn new(params: &BTreeMap<String, String>, needs: &'a [String]) -> Self {
        let mut known: BTreeSet<String> = KNOWN.iter().map(|&name| name.to_owned()).collect();
        known.extend(params.keys().cloned());
        if params.contains_key("seconds") {
            known.insert(MILLISECONDS.to_owned());
        }
        Self { known, needs }
    }

    fn command(
        &self,
        key: &'static str,
        host: Host,
        words: &[String],
        timeout: Duration,
    ) -> Result<Command, AdapterError> {
        let program = words.first().ok_or(AdapterError::EmptyCommand { key })?;
        if !self.needs.contains(program) {
            let program = program.clone();
            return Err(AdapterError::NotNeeded { key, program });
        }
        let words = words.iter().map(|word| Template::parse(key, word, &self.known));
        Ok(Command { host, timeout, words: words.collect::<Result<_, _>>()? })
    }

    fn server(&self, server: file::Server) -> Result<(Command, Ready), AdapterError> {
        let host = server.host.unwrap_or(Host::Receiver);
        // It lives as long as the client does.
        let command = self.command("server.command", host, &server.command, Duration::ZERO)?;
        let port = |text: &str| Ok(PortTemplate(Template::parse("server.ready", text, &self.known)?));
        let ready = match server.ready {
            file::Ready { tcp_port: Some(text), udp_port: None, line: None, after: None } => {
                Ready::TcpPort(port(&text)?)
            }
            file::Ready { tcp_port: None, udp_port: Some(text), line: None, after: None } => {
                Ready::UdpPort(port(&text)?)
            }
            file::Ready { tcp_port: None, udp_port: None, line: Some(line), after: None } => {
                Ready::Line(read::pattern("server.ready", &line)?)
            }
            file::Ready { tcp_port: None, udp_port: None, line: None, after: Some(after) } => {
                Ready::After(time("server.ready", &after)?)
            }
            _ => return Err(AdapterError::Ready),
        };
        Ok((command, ready))
    }
}

fn time(key: &'static str, text: &str) -> Result<Duration, AdapterError> {
    let time = narrows_units::parse_duration(text).ok();
    time.ok_or_else(|| AdapterError::Time { key, text: text.to_owned() })
}

#[cfg(test)]
mod tests;
