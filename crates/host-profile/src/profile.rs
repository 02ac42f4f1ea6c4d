//! The profile as data; the TOML file and the JSON of the program have the same keys.

use serde::{Deserialize, Serialize};

use crate::ends::Ends;
use crate::error::ProfileError;
use crate::quantiles::{PERCENTS, Quantiles};
use crate::stalls::StallProfile;

/// The name and version of the format.
pub const SCHEMA: &str = "narrows.host-profile/1";

/// Shorter states would keep a simulated host from ever getting anywhere.
const LEAST_STATE_NS: f64 = 1000.0;

/// What a host does to packets and stamps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProfile {
    /// [`SCHEMA`].
    pub schema: String,
    /// Short, for rows of tables.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Whose behaviour it is.
    pub ends: Ends,
    /// Its interface is one of software (virtual machine, tunnel, veth, loopback).
    pub virtual_interface: bool,
    /// The percentages of all quantiles: [`PERCENTS`].
    pub percents: Vec<f64>,
    /// How it came about.
    pub recorded: Recorded,
    /// Its clock.
    pub clock: ClockProfile,
    /// How packets leave it.
    pub send: SendProfile,
    /// How packets reach it.
    pub receive: ReceiveProfile,
    /// When its programs do not run.
    pub stalls: StallProfile,
}

/// How a profile came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// When (RFC 3339), or from what it was derived.
    pub at: String,
    /// For how long the host was watched.
    pub seconds: f64,
    /// Over what: `loopback`, or the server.
    pub over: String,
    /// System and processors.
    pub machine: String,
    /// Share of the processors' time that other programs took meanwhile; `None` where the system
    /// does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
}

/// A host's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockProfile {
    /// Time of one reading.
    pub read_ns: Quantiles,
    /// Each simulated host has a clock that is too fast by a share drawn evenly from these two,
    /// parts per million. Not measured: both ends of a recording have one clock.
    pub frequency_error_ppm: [f64; 2],
}

/// How packets leave a host. All quantiles leave out what a stall delayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendProfile {
    /// Departure by the program's stamp, less the departure asked for.
    pub pacing_ns: Quantiles,
    /// When the packet really left, less the program's stamp.
    pub stamp_ns: Quantiles,
    /// The same of a packet after a rest.
    pub stamp_rested_ns: Quantiles,
    /// Time of a send call among packets back to back.
    pub call_ns: Quantiles,
}

/// How packets reach a host. All quantiles leave out what a stall delayed, if `stamps_wait` says
/// that stalls do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveProfile {
    /// A packet's stamp less its arrival, of packets that found none waiting: noise of the stamp,
    /// or the time for which interrupts are held back.
    pub stamp_ns: Quantiles,
    /// The same of a packet after a rest.
    pub stamp_rested_ns: Quantiles,
    /// From one stamp to the next, of packets that came while one waited for its stamp.
    pub inside_ns: Quantiles,
    /// Packets stamped together, at the rate of the recording. Simulated hosts do not play it: it
    /// follows from the rest.
    pub batch_packets: Quantiles,
    /// From a packet's stamp to its being read by a program that slept.
    pub wake_ns: Quantiles,
    /// The same after a rest.
    pub wake_rested_ns: Quantiles,
    /// Time of one receive call of a program that is awake.
    pub call_ns: Quantiles,
    /// Packets that come during a stall are stamped after it, as in a virtual machine that is not
    /// run, or behind a path in software. Else stalls delay programs alone.
    pub stamps_wait: bool,
    /// A packet that comes so much later than the one before it comes after a rest.
    pub rest_ns: i64,
}

impl HostProfile {
    /// Refuses what no host can be.
    pub(crate) fn check(self) -> Result<Self, ProfileError> {
        if self.schema != SCHEMA {
            return Err(ProfileError::Schema { found: self.schema, expected: SCHEMA });
        }
        let named = !self.name.is_empty() && self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !named {
            return Err(ProfileError::invalid("name", "must be letters, digits, '-', '_' and '.', for it names rows"));
        }
        if self.percents != PERCENTS {
            return Err(ProfileError::invalid("percents", format!("must be {PERCENTS:?} in this version")));
        }
        let [low, high] = self.clock.frequency_error_ppm;
        if !(low.is_finite() && high.is_finite() && low <= high && low >= -1000.0 && high <= 1000.0) {
            let why = "must be two numbers within -1000 and 1000, the smaller one first";
            return Err(ProfileError::invalid("clock.frequency_error_ppm", why));
        }
        if self.ends == Ends::Both && (low, high) != (0.0, 0.0) {
            let why = "must be [0.0, 0.0]: both ends on one machine have one clock";
            return Err(ProfileError::invalid("clock.frequency_error_ppm", why));
        }
        if self.receive.rest_ns <= 0 {
            return Err(ProfileError::invalid("receive.rest_ns", "must be above zero"));
        }
        for (key, quantiles, _) in self.parts() {
            if let Some(why) = quantiles.trouble(0) {
                return Err(ProfileError::invalid(key, why));
            }
        }
        self.stalls.check(self.ends)?;
        if self.stalls.mean_state_ns().is_some_and(|mean| mean < LEAST_STATE_NS) {
            let why = "the states last less than a microsecond on average, which nobody can watch";
            return Err(ProfileError::invalid("stalls.states", why));
        }
        Ok(self)
    }

    /// Every distribution but those of the stalls: key, quantiles, what it is.
    pub fn parts(&self) -> [(&'static str, &Quantiles, &'static str); 12] {
        let (send, receive) = (&self.send, &self.receive);
        [
            ("clock.read_ns", &self.clock.read_ns, "time of one reading"),
            ("send.pacing_ns", &send.pacing_ns, "departure by the program's stamp, less the departure asked for"),
            ("send.stamp_ns", &send.stamp_ns, "when the packet really left, less the program's stamp"),
            ("send.stamp_rested_ns", &send.stamp_rested_ns, "the same of a packet after a rest"),
            ("send.call_ns", &send.call_ns, "time of a send call among packets back to back"),
            ("receive.stamp_ns", &receive.stamp_ns, "stamp less arrival, of packets that found none waiting"),
            ("receive.stamp_rested_ns", &receive.stamp_rested_ns, "the same of a packet after a rest"),
            (
                "receive.inside_ns",
                &receive.inside_ns,
                "stamp to stamp, of packets that came while one waited for its stamp",
            ),
            ("receive.batch_packets", &receive.batch_packets, "packets stamped together, at the rate of the recording"),
            ("receive.wake_ns", &receive.wake_ns, "from stamp to program, of a program that slept"),
            ("receive.wake_rested_ns", &receive.wake_rested_ns, "the same after a rest"),
            ("receive.call_ns", &receive.call_ns, "time of a receive call of a program that is awake"),
        ]
    }
}
