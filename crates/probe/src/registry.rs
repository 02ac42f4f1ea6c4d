//! What a method is to the registry: a name, its place in the field's classification, what it needs
//! and what it imposes.
//!
//! The classification is that of `[Abut18]` table 2, with deployment, layer and privileges added.

mod names;
mod params;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use narrows_units::{Layer, Metric};
use serde::Serialize;

use crate::budget::Budget;
use crate::contract::Estimator;
use crate::facts::Answering;
use crate::observations::{AnalyseError, Observations};
use crate::outcome::Outcome;

pub use crate::error::ParamError;
pub use params::{Given, Value, joined, params};
pub use params::{Parameter, Range};

/// A method: how to describe it, and how to begin.
pub trait Method: Sync {
    /// Its description.
    fn info(&self) -> &'static MethodInfo;

    /// What it imposes with these parameters: [`MethodInfo::imposes`], unless a parameter makes it
    /// longer or heavier. Parameters that cannot be read are [`Method::begin`]'s to refuse.
    fn imposes(&self, params: &RawParams) -> Imposes {
        let _ = params;
        self.info().imposes.clone()
    }

    /// What may answer its probes at the peer. By its deployment: a method that runs at the
    /// sender alone takes what [`PathFacts::answering`](crate::PathFacts) says there is (TCP, if
    /// its probes are TCP's); one that needs a receiver takes a server, or a reflector if its
    /// probes are trains; loads and transfers need a server. A method that can do with less, or
    /// needs something else, says so here.
    fn answered_by(&self) -> &'static [Answering] {
        const RECEIVERS: [Answering; 2] = [Answering::Server, Answering::Reflector];
        let class = &self.info().class;
        if class.activity == Activity::Passive {
            // Who listens must be ours.
            return &[Answering::Server];
        }
        match (class.deployment, class.methodology) {
            (Deployment::Sender, _) if class.protocol == Protocol::Tcp => &[Answering::TcpSyn],
            (Deployment::Sender, _) => &EVERYTHING,
            (Deployment::Both | Deployment::Receiver, Methodology::Flooding | Methodology::BulkTransfer) => {
                &[Answering::Server]
            }
            (Deployment::Both | Deployment::Receiver, _) => &RECEIVERS,
        }
    }

    /// Its state machine, with parameters as the caller typed them.
    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError>;

    /// What it makes of observations that are there already, its own or another method's: the
    /// value, interval and verdict of the run itself if they are its own, all of them, and the
    /// parameters are those of the run. Pure, and the code that the state machine runs: either both
    /// call one function of the reports, or the reports are fed to the state machine, which is set
    /// to what was really asked where it would have asked something else. It may end before the
    /// observations do (their rest is ignored), or be stopped by their end
    /// ([`Reason::RowsSpent`](crate::Reason), or a caveat).
    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError>;
}

/// A [`Method`] whose runs and whose reading of observations are one state machine's: `run` makes
/// it of parameters as typed, `imposes` what they impose, given what the method usually does.
#[doc(hidden)]
#[macro_export]
macro_rules! method {
    ($name:ident, run: $run:expr, imposes: $imposes:expr $(, answered_by: $answering:expr)?) => {
        impl $crate::registry::Method for $name {
            fn info(&self) -> &'static $crate::registry::MethodInfo {
                &INFO
            }

            $(fn answered_by(&self) -> &'static [$crate::facts::Answering] {
                $answering
            })?

            fn imposes(&self, raw: &$crate::registry::RawParams) -> $crate::registry::Imposes {
                let imposes: fn(&$crate::registry::RawParams, $crate::registry::Imposes) -> $crate::registry::Imposes = $imposes;
                imposes(raw, INFO.imposes.clone())
            }

            fn begin(
                &self,
                raw: &$crate::registry::RawParams,
            ) -> Result<Box<dyn $crate::contract::Estimator>, $crate::registry::ParamError> {
                let run: fn(&$crate::registry::RawParams) -> Result<_, $crate::registry::ParamError> = $run;
                Ok(Box::new(run(raw)?))
            }

            fn analyse(
                &self,
                observations: &$crate::observations::Observations,
                raw: &$crate::registry::RawParams,
            ) -> Result<$crate::outcome::Outcome, $crate::observations::AnalyseError> {
                let run: fn(&$crate::registry::RawParams) -> Result<_, $crate::registry::ParamError> = $run;
                $crate::observations::replay(run(raw)?, observations)
            }
        }
    };
}
pub use crate::method;

/// All that may answer.
pub const EVERYTHING: [Answering; 5] =
    [Answering::Server, Answering::Echo, Answering::Reflector, Answering::ClosedPort, Answering::TcpSyn];

/// A registry entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodInfo {
    /// What the user types.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Main metric.
    pub metric: Metric,
    /// Its place in the field.
    pub class: Classification,
    /// What it needs of hosts and path.
    pub needs: Needs,
    /// What it imposes on the path.
    pub imposes: Imposes,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// The method's manual, in Markdown; see [`MethodInfo::manual`].
    #[serde(skip)]
    pub manual: &'static str,
}

/// The sentence of a manual in whose place the table of the parameters is printed.
const TABLE: &str = "prints the table.";

impl MethodInfo {
    /// The method's manual, with the table of its parameters in place of the line that announces
    /// it, and with the names of results as documents have them.
    pub fn manual(&self) -> String {
        let mut shown = String::new();
        for line in self.manual.lines() {
            match line.split_once(TABLE) {
                Some((_, rest)) => {
                    shown.push_str(&params::table(self.parameters));
                    if !rest.trim().is_empty() {
                        shown.push_str("\n\n");
                        shown.push_str(rest.trim());
                    }
                }
                None => shown.push_str(line),
            }
            shown.push('\n');
        }
        names::as_in_documents(&shown)
    }

    /// The parameter of that name.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// The scheme of `[Abut18]` table 2.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Classification {
    /// The whole path or each hop.
    pub scope: Scope,
    /// The idea behind it.
    pub methodology: Methodology,
    /// Own probes or others' traffic.
    pub activity: Activity,
    /// What the probes are made of.
    pub protocol: Protocol,
    /// Right on paths whose two directions differ.
    pub works_on_asymmetric: bool,
    /// Where the program must run.
    pub deployment: Deployment,
    /// Layer of its result.
    pub layer: Option<Layer>,
    /// What it needs from the operating system.
    pub privilege: Privilege,
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant,)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $text,)* })
            }
        }
    };
}

named! {
    /// What a result speaks of.
    Scope {
        /// The path as a whole.
        EndToEnd = "end-to-end",
        /// Each hop.
        PerHop = "per-hop",
    }
}

named! {
    /// The idea behind a method.
    Methodology {
        /// Dispersion of pairs and trains.
        PacketDispersion = "packet pair and train dispersion",
        /// Variable packet size.
        VariableSize = "variable packet size",
        /// Probe rate model: self-induced congestion.
        ProbeRate = "probe rate model",
        /// Probe gap model.
        ProbeGap = "probe gap model",
        /// Size of the burst that survives.
        BurstLoss = "burst loss",
        /// Constant-rate load.
        Flooding = "flooding",
        /// Bulk transfer.
        BulkTransfer = "bulk transfer",
        /// Echoes.
        Echo = "echo",
    }
}

named! {
    /// Own probes or others' traffic.
    Activity {
        /// Sends probes.
        Active = "active",
        /// Listens only.
        Passive = "passive",
    }
}

named! {
    /// What the probes are made of.
    Protocol {
        /// UDP datagrams.
        Udp = "UDP",
        /// TCP connections.
        Tcp = "TCP",
        /// UDP or ICMP probes answered by ICMP errors.
        Icmp = "ICMP",
    }
}

named! {
    /// Where the program must run.
    Deployment {
        /// The sending host alone.
        Sender = "sender only",
        /// The receiving host alone.
        Receiver = "receiver only",
        /// Both hosts.
        Both = "both",
    }
}

named! {
    /// What it needs from the operating system.
    Privilege {
        /// Nothing special.
        None = "none",
        /// `CAP_NET_RAW`.
        RawSocket = "CAP_NET_RAW",
    }
}

/// What a method needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Needs {
    /// Stamps of single packets must be better than the packet time at the rate to be measured.
    pub single_packet_stamps: bool,
    /// The sender must be faster than what is measured.
    pub sender_faster_than_result: bool,
    /// The sender must keep gaps, not only send back to back.
    pub pacing: bool,
}

/// What a method imposes, at most. Rates are relative to the path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Imposes {
    /// Typical IP octets on an idle 100 Mbit/s path.
    pub typical_octets: u64,
    /// At most.
    pub max_octets: u64,
    /// Typical time there.
    pub typical_time: Duration,
    /// At most.
    pub max_time: Duration,
    /// It fills the tight link for longer than a few round trips.
    pub fills_path: bool,
}

impl Imposes {
    /// The budget under which the method is run unless the caller sets another: twice what it
    /// imposes at most.
    pub fn budget(&self) -> Budget {
        Budget { octets: self.max_octets.saturating_mul(2), time: self.max_time * 2, ..Budget::default() }
    }

    /// The same for a run that takes up to `time`: the octets grow with it.
    #[must_use]
    pub fn lasting(self, time: Duration) -> Self {
        if time <= self.max_time {
            return self;
        }
        let longer = time.as_nanos().div_ceil(self.max_time.as_nanos().max(1));
        Self {
            max_octets: self.max_octets.saturating_mul(u64::try_from(longer).unwrap_or(u64::MAX)),
            max_time: time,
            ..self
        }
    }
}

/// Parameters as typed: names and values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawParams(BTreeMap<String, String>);

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for RawParams {
    /// Pairs of name and value; of a name given twice the last counts.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(pairs.collect())
    }
}

impl RawParams {
    /// None: every parameter has its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more, replacing an earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// All, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What was typed for `name`.
    pub fn typed(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Refuses names that `info` does not list.
    pub fn check_names(&self, info: &MethodInfo) -> Result<(), ParamError> {
        for name in self.0.keys() {
            if info.parameter(name).is_none() {
                return Err(ParamError::Unknown {
                    method: info.name,
                    name: name.clone(),
                    known: info.parameters.iter().map(|parameter| parameter.name).collect::<Vec<_>>().join(", "),
                });
            }
        }
        Ok(())
    }

    /// The value of `name`, read as `T`; `default` if it was not given.
    pub fn get<T>(&self, name: &'static str, default: T) -> Result<T, ParamError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        self.get_with(name, default, |text| text.parse::<T>().map_err(|error| error.to_string()))
    }

    /// The value of `name` as a duration with its unit; `default` if it was not given.
    pub fn get_duration(&self, name: &'static str, default: Duration) -> Result<Duration, ParamError> {
        self.get_with(name, default, |text| narrows_units::parse_duration(text).map_err(|error| error.to_string()))
    }

    fn get_with<T>(
        &self,
        name: &'static str,
        default: T,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ParamError> {
        let Some(value) = self.0.get(name) else {
            return Ok(default);
        };
        read(value).map_err(|why| ParamError::Unreadable { name: name.to_owned(), value: value.clone(), why })
    }
}
