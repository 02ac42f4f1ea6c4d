//! What the caller can set.

use std::time::Duration;

use units::{BitRate, Octets};

use crate::methods::bulk;
use crate::registry::{Imposes, ParamError, RawParams};

/// How much it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    /// Trains of doubling length; the long probe only if asked for.
    Adaptive,
    /// `ShaperProbe`'s phases.
    Faithful,
}

/// Parameters, as in the table of the module's documentation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Params {
    pub(super) preset: Preset,
    pub(super) ip_octets: Option<u16>,
    pub(super) max_octets: u64,
    pub(super) total_octets: u64,
    pub(super) max_train: Duration,
    pub(super) max_time: Duration,
    pub(super) confirm: usize,
    pub(super) min_ratio: f64,
    pub(super) agreement: f64,
    pub(super) trains: u32,
    pub(super) train_packets: usize,
    pub(super) spacing: Duration,
    pub(super) settle: Duration,
    pub(super) settle_below: BitRate,
    pub(super) rate_cap: BitRate,
    pub(super) quiet: Duration,
    pub(super) probe_time: Duration,
    pub(super) probe_octets: Option<u64>,
    pub(super) bin: Duration,
    pub(super) min_before: usize,
    pub(super) min_after: usize,
}

/// A full-size packet of the tool: 1400 octets of payload.
pub(super) const TOOL_IP_OCTETS: u16 = 1428;

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let preset = match raw.get("preset", "adaptive".to_owned())?.as_str() {
            "adaptive" => Preset::Adaptive,
            "faithful" => Preset::Faithful,
            other => {
                return Err(ParamError::Unreadable {
                    name: "preset".to_owned(),
                    value: other.to_owned(),
                    why: "there are adaptive and faithful".to_owned(),
                });
            }
        };
        let faithful = preset == Preset::Faithful;
        let (ms, second) = (Duration::from_millis(1), Duration::from_secs(1));
        let probe_time = if faithful { 60 * second } else { Duration::ZERO };
        let params = Self {
            preset,
            ip_octets: bulk::optional(raw, "ip_octets", 0)?.or(faithful.then_some(TOOL_IP_OCTETS)),
            max_octets: raw.get("max_octets", Octets::new(1_000_000))?.count(),
            total_octets: raw.get("total_octets", Octets::new(4_000_000))?.count(),
            max_train: bulk::duration_within(raw, "max_train", 400 * ms, ms, 60 * second)?,
            max_time: bulk::duration_within(raw, "max_time", 15 * second, 10 * ms, 3600 * second)?,
            confirm: raw.get("confirm", 3)?,
            min_ratio: raw.get("min_ratio", 1.10)?,
            agreement: raw.get("agreement", 0.10)?,
            trains: raw.get("trains", 10)?,
            train_packets: raw.get("train_packets", 50)?,
            spacing: bulk::duration_within(raw, "spacing", 500 * ms, ms, 60 * second)?,
            settle: bulk::duration_within(raw, "settle", 5 * second, Duration::ZERO, 60 * second)?,
            settle_below: raw.get("settle_below_bps", BitRate::from_mbps(80))?,
            rate_cap: raw.get("rate_cap_bps", BitRate::from_mbps(200))?,
            quiet: bulk::duration_within(raw, "quiet", 10 * second, Duration::ZERO, 600 * second)?,
            probe_time: bulk::duration_within(raw, "probe_time", probe_time, Duration::ZERO, 600 * second)?,
            probe_octets: bulk::optional(raw, "probe_octets", Octets::new(0))?.map(Octets::count),
            bin: bulk::duration_within(raw, "bin", 300 * ms, 10 * ms, 10 * second)?,
            min_before: raw.get("min_before", 4)?,
            min_after: raw.get("min_after", 8)?,
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let octets = self.ip_octets.unwrap_or(1500);
        bulk::check("ip_octets", octets >= 64, octets, "64 to the path MTU")?;
        let largest = self.max_octets;
        let why = "50 kB to 64 MB";
        bulk::check("max_octets", (50_000..=64_000_000).contains(&largest), largest, why)?;
        bulk::check("total_octets", self.total_octets > 0, 0, "above zero")?;
        bulk::check("confirm", (2..=20).contains(&self.confirm), self.confirm, "2 to 20")?;
        let ratio = self.min_ratio;
        bulk::check("min_ratio", (1.02..=10.0).contains(&ratio), ratio, "1.02 to 10")?;
        let agreement = self.agreement;
        bulk::check("agreement", (0.01..=0.5).contains(&agreement), agreement, "0.01 to 0.5")?;
        bulk::check("trains", (1..=100).contains(&self.trains), self.trains, "1 to 100")?;
        let packets = self.train_packets;
        bulk::check("train_packets", (10..=1000).contains(&packets), packets, "10 to 1000")?;
        bulk::check("rate_cap_bps", self.rate_cap > BitRate::ZERO, 0, "a rate above zero")?;
        bulk::check("probe_octets", self.probe_octets != Some(0), 0, "above zero")?;
        let (before, after) = (self.min_before, self.min_after);
        bulk::check("min_before", (1..=100).contains(&before), before, "1 to 100")?;
        bulk::check("min_after", (1..=100).contains(&after), after, "1 to 100")
    }

    /// What a run with them imposes.
    pub(super) fn imposes(&self, usual: Imposes) -> Imposes {
        let probes = self.probe_time > Duration::ZERO;
        let trains = if self.preset == Preset::Adaptive {
            (self.total_octets, self.max_time + LAST_PROBE)
        } else {
            (1_000_000, self.spacing * self.trains * 2 + self.settle + LAST_PROBE)
        };
        if !probes {
            return Imposes {
                max_octets: usual.max_octets.max(trains.0),
                max_time: usual.max_time.max(trains.1),
                ..usual
            };
        }
        // The tool probes at 195 Mbit/s at most; a deep probe of ours at what the trains found, which nobody knows yet.
        let rate = if self.preset == Preset::Faithful {
            self.rate_cap
        } else {
            BitRate::from_gbps(1)
        };
        let settle = self.settle_below.octets_in(self.settle);
        let probe = rate.octets_in(self.probe_time);
        let max_octets = trains.0 + settle + self.probe_octets.map_or(probe, |most| most.min(probe));
        let max_time = trains.1 + LONGEST_QUIET.max(self.quiet) + self.probe_time;
        Imposes {
            typical_octets: max_octets / 4,
            max_octets,
            typical_time: max_time / 2,
            max_time,
            fills_path: true,
        }
    }
}

/// So many seconds, within zero and `most`; zero for what is no number.
pub(super) fn seconds(time: f64, most: f64) -> Duration {
    Duration::try_from_secs_f64(time.clamp(0.0, most)).unwrap_or_default()
}

/// What the last probe may take beyond the end of its phase.
const LAST_PROBE: Duration = Duration::from_secs(3);
/// The longest wait for a bucket to fill again (ours).
pub(super) const LONGEST_QUIET: Duration = Duration::from_secs(60);
