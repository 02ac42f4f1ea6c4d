//! pathload: estimates the range of available IP-layer path capacity from periodic streams (self-loading periodic streams, SLoPS).
//!
//! # Model
//!
//! FIFO links. A periodic stream at rate `R` above what is available builds a queue at the tight link, so its one-way delays
//! rise from packet to packet; below, they do not. A fleet of streams votes; a search over rates narrows the range.
//!
//! ```text
//!  delay   R > A: .·'      R < A: .·..·.·.·      fleet: increasing | no trend | grey
//!               .·'
//!             .·'
//! ```
//!
//! No capacity is needed, and the result is a range, because what is available moves while it is measured.
//!
//! # Assumptions
//!
//! - A1 FIFO queues.
//! - A2 Receive stamps are good to a fraction of the period, or come in bursts whose last packet is.
//! - A3 Departures keep the period; pauses of the sender are long and rare.
//! - A4 The sender can go faster than what is available.
//! - A5 What is available moves little within a fleet.
//!
//! # Formula
//!
//! Delays in ns, rates in bit/s at the IP layer, headers included.
//!
//! - Initial rate (`machine::train_rate`): dispersion of 50 back-to-back packets, the first left out; 35, 20, 5, 3 if any is
//!   missing or late.
//! - Packet size and period (`shape.rs`): full packets, `T = 8 L/R`, until that exceeds 1 ms; from there `L = R T/8`, at least
//!   228 octets. With `full-size=false` the tool's rule: the same from 150 Mbit/s down, with `T = max(80 us, T_min)`.
//! - Trend (`narrows_stat::stream_trend`): medians `m` of groups of `floor(sqrt n)` delays; `PCT = #(m_k > m_(k-1))/G`,
//!   `PDT = (m_G - m_1)/sum |m_k - m_(k-1)|`; PCT above 0.605 rises, below 0.495 does not; PDT 0.44 and 0.36. One may abstain, none
//!   may contradict.
//! - Stream (`stream.rs`): cut where the sender paused for longer than `max(2 T, T + 1 ms)`; packets that the next follows back
//!   to back are dropped; a piece needs 37 samples. Under interrupt coalescence a stream of which most gaps are short gives one delay per burst of four or more.
//! - Fleet (`fleet.rs`): of the usable pieces, the share `fraction` must agree; grey if it does not. A stream with 15 % loss, or
//!   half of the streams with 3 %, count as increasing.
//! - Search (`search.rs`): doubling until the first change of verdict, then bisection of the range, then of the two edges of the
//!   grey region. It ends when the range is within `resolution`, both edges within `grey-resolution`, when the sender's timer has
//!   no rate in between, or when the highest rate shows no trend twice.
//! - Value: the middle of the grey region or of the range. Interval: from the highest rate without trend to the lowest with one, and beyond
//!   either by one packet of others per stream: over a stream of duration `D` that is all that an overload of `8 L/D` adds to the delay,
//!   so nothing tells it from none. The search alone brackets the truth in half of the runs on constant-rate traffic, whose delays show
//!   nothing else; with this in all of them. Upwards also by what the framing of packets below full size hides.
//!
//! Departs from pathload 1.3.2:
//!
//! - periods are whole nanoseconds, not microseconds, which leave it 10 % steps at 1 Gbit/s; the rules that only undo that rounding
//!   are gone;
//! - no limit of 7 us for the smallest period, and short gaps are also below 0.3 of the period: at 10 Gbit/s all gaps are short;
//! - grey resolution without the limit of 12 Mbit/s, out of reach above 1 Gbit/s; "approximately equal" likewise;
//! - full packets down to 12 Mbit/s by default: small ones pay more for framing, so on Ethernet at 70 % load the tool's sizes
//!   underestimate what full packets get by 10 %, which is the trend of `[Abut18]` table 10;
//! - a stream's shortest period is the sender's call, not two of them; two of the receiver's only where its program stamps;
//! - counts of streams with few bursts begin anew with each fleet, not with the run;
//! - fleets wait for the queue of the one before to drain; there is no control connection to wait 2 ms for;
//! - a fleet ends when the streams to come cannot change its verdict;
//! - the grey region is a caveat, and the interval reaches beyond it to what was seen;
//! - inside the grey region a rate is repeated twice at most, and rules call one another eight times at most.
//!
//! Bugs of pathload 1.3.2 that are not here: equality of rates that a slip of precedence and whole numbers hold to about 2 Mbit/s at
//! any rate; short runs of coalesced packets that add up to a burst across long gaps; a search that goes on at an unchanged rate once it
//! has converged with its upper side marked by the timer; a rate that stays in the grey region's inside for ever; rules that call one
//! another without end; a packet before a lost one left out of the trend; 0/0 in the difference test of equal delays.
//!
//! # Parameters
//!
//! Declared below; `narrows methods pathload` prints the table.
//!
//! # Cost
//!
//! On a 100 Mbit/s path 6 to 10 fleets of 8 to 12 streams of 100 packets: 8 to 10 MB, 7 s idle, 20 s at 70 % load; with `quick`
//! half the octets and a fifth of the time. The load is a tenth of the rate tried; a stream's own rate reaches twice what is
//! available, for 100 packets.
//!
//! # Fails when
//!
//! - Clocks that tick: gaps stay above a tick, so that fast paths give a lower bound, [`Limit::Clock`](narrows_probe::Limit) and
//!   [`Caveat::TimerLimited`](narrows_probe::Caveat); the interval's lower end allows for the overload that a tick of each clock hides.
//! - A1: schedulers that share evenly show no trend below the fair share.
//! - A2: [`Caveat::ReceiveBatching`](narrows_probe::Caveat); with fewer than two bursts per stream rates cannot be judged, which ends in a
//!   lower bound limited by the receiver.
//! - A3: pieces too short to judge: [`Caveat::HostStall`](narrows_probe::Caveat); half of the streams unusable twice:
//!   [`Reason::SenderCannotPace`](narrows_probe::Reason).
//! - A4: [`Verdict::LowerBound`](narrows_probe::Verdict) with [`Caveat::SenderLimited`](narrows_probe::Caveat).
//! - A5: [`Caveat::GreyRegion`](narrows_probe::Caveat), wide. Bursty traffic at high load lets fleets contradict one another: then the
//!   range misses the truth by 5 to 15 %, and nothing shows it.
//! - Constant-rate traffic whose period is a multiple of the stream's, without any noise: delays are level but for the start, which PDT
//!   takes for a rise; the fleets come out grey.
//! - Token buckets deeper than a stream: the rate behind them is what is seen; [`Caveat::BucketNotExcluded`](narrows_probe::Caveat) says how deep
//!   one would have gone unseen. Streams that bend at one place: [`Caveat::Shaped`](narrows_probe::Caveat), low confidence.
//! - Loss that is not congestion (and reordering, which counts as loss) counts as increasing, so the result is too low, at low
//!   confidence; where nothing gets through without it, [`Reason::TooMuchLoss`](narrows_probe::Reason).
//! - Echoes instead of a receiver: the lesser of both ways, [`Caveat::ReverseInfluence`](narrows_probe::Caveat).
//!
//! # References
//!
//! - `[SLoPS02]` M. Jain, C. Dovrolis, End-to-End Available Bandwidth: Measurement Methodology, Dynamics, and Relation with TCP,
//!   SIGCOMM 2002.
//! - `[SLoPS03]` M. Jain, C. Dovrolis, the same, IEEE/ACM ToN 11(4), 2003.
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM 2004.
//! - `[Abut18]` F. Abut, M. Leischner, An Experimental Evaluation of Tools for Estimating Bandwidth-Related Metrics, IJCNIS 2018.

mod fleet;
pub mod machine;
mod search;
mod shape;
mod stream;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::probes::TrainReport;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, Range, RawParams, Scope, joined, params,
};
use narrows_probe::{Estimator, Outcome, PathFacts};
use narrows_train::echoed::{Echoed, FAR_END};

/// The method.
pub struct Pathload;

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Packets of a stream.
        pub stream_packets: usize = "100" {
            name: "packets", range: Between("40", "1000"), source: "pathload 1.3.2; fewer than 40 give no trend",
        },
        /// Streams of a fleet.
        pub streams: usize = "12" { range: Between("1", "100"), source: "pathload 1.3.2" },
        /// Share of streams that must agree.
        pub fraction: f64 = "0.6" {
            unit: "share", range: Above("0.5", "1"), source: "pathload 1.3.2; 0.7 in [SLoPS03]",
        },
        /// Width of the range that ends the search.
        pub resolution: Option<BitRate> = "2 % of the initial dispersion rate" {
            range: AtLeast("1 bit/s"), source: "pathload 1.3.2; 5 % under coalescence",
        },
        /// Sharpness of the grey region's edges that ends the search.
        pub grey_resolution: Option<BitRate> = "5 % of the initial dispersion rate" {
            name: "grey-resolution", range: AtLeast("1 bit/s"), source: "pathload 1.3.2",
        },
        /// Idle time after a stream.
        pub idle: u32 = "9" {
            unit: "stream lengths", range: Between("1", "100"), source: "pathload 1.3.2: load of a tenth of the rate",
        },
        /// Fleets at most.
        pub max_fleets: u32 = "60" { name: "max-fleets", range: Between("1", "1000"), source: "ours: the end" },
        /// Largest packets down to 12 Mbit/s, where the tool shrinks them below 150 Mbit/s.
        pub full_size: bool = "true" { name: "full-size", range: Range::SWITCH, source: "ours, see above" },
        /// Half the streams, and a third of the idle time.
        pub quick: bool = "false" { range: Range::SWITCH, source: "ours" },
    }
    names INFO;
}

impl Params {
    fn fleet_streams(&self) -> usize {
        if self.quick {
            self.streams.div_ceil(2)
        } else {
            self.streams
        }
    }

    fn idle_factor(&self) -> u32 {
        if self.quick { self.idle.div_ceil(3) } else { self.idle }
    }
}

impl Method for Pathload {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(Echoed::begin(params, machine)?))
    }

    fn answered_by(&self) -> &'static [Answering] {
        &[Answering::Server, Answering::Reflector, Answering::Echo]
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        observations::lead(Echoed::begin(params, machine)?, observations)
    }
}

/// What the reports of a run say, in the order in which they came: trains of 51 back-to-back packets (or 36, 21, 6, 4) at the begin are
/// initial ones, neighbouring periodic trains of one rate are a fleet. Pure, and the same machine that a run steps.
pub fn analyse(facts: &PathFacts, reports: &[TrainReport], params: &Params) -> Outcome {
    observations::lead_reports(machine::Machine::new(params.clone()), facts, reports)
}

fn machine(raw: &RawParams) -> Result<machine::Machine, ParamError> {
    Ok(machine::Machine::new(Params::try_from(raw)?))
}

static INFO: MethodInfo = MethodInfo {
    name: "pathload",
    summary: "available bandwidth as a range, from the trend of delays in periodic streams (SLoPS)",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeRate,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 9_000_000,
        max_octets: 120_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &joined::<10>(Params::PARAMETERS, &[FAR_END]),
    source: include_str!("pathload.rs"),
};
