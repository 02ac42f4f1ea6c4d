//! shaper: finds a token bucket on the path and estimates its sustained rate, its depth and the peak rate.
//!
//! # Model
//!
//! ```text
//!                        tokens, ρ bit/s            octets ▲        ╱ ρ
//!                             ▼                            │      ╱·
//!  sender ─▶ [ link C ] ─▶ [ σ ]─▶ [ link ] ─▶ receiver     │    ╱  σ + ρ τ
//!                          keeps or drops                  │ C╱
//!                          the excess                      └╱──┬───────▶ τ
//!                                                              t*
//! ```
//!
//! A bucket of σ octets that fills at ρ below the links' C lets at most `A(τ) = min{L + C τ, σ + ρ τ}` through in a time τ that
//! begins with a full bucket. A shaper keeps what exceeds it, a policer drops it. The peak lasts `t* = σ / (C - ρ)`; an empty
//! bucket is full again after `σ / ρ`. ρ is the committed information rate of RFC 2697, σ the committed burst size.
//!
//! # Assumptions
//!
//! - A1 One bucket, fuller than a few packets, and full when a train begins.
//! - A2 The sender is faster than ρ by more than a tenth.
//! - A3 C and ρ do not change meanwhile.
//! - A4 Other traffic takes tokens evenly.
//!
//! # Formula
//!
//! - Trains (`search.rs`, `narrows_train::bucket`): octets that arrived, the first packet's included, over the time since the first
//!   arrival are fitted by two lines (least squares of time over octets, every break tried); σ is where the second meets time zero,
//!   its slope ρ, the first's C. It counts if the slopes differ by `min_ratio`, the lines meet at the break, a fifth of the squares of
//!   one line is left at most, and the packets behind the break left faster than they arrived, or were lost.
//! - Agreement: `confirm` trains with σ within 10 % (a packet and a half at least) and ρ within 10 % of their medians, that found
//!   the bucket full, and three quarters of all the trains that are long enough to show it.
//! - Others' share: if most packets behind the break keep one gap, shorter than their mean, that gap is the bucket's; ρ and σ
//!   are the fitted ones over the share of the tokens that the train got. Where the pace behind is uneven without such a gap (one
//!   packet in ten off the line by one and a half; of a policer's, one run of losses in fifty off their mean by more than one; of
//!   the long probe's intervals, a median deviation above a packet or a range above four and a two hundredth), others take
//!   tokens, nobody knows how many, and both are lower bounds.
//! - Long probe (`series.rs`): rates r of intervals Δ; the level shift of `narrows_stat::ShiftTest` (window 11, ranks, 1.10, 4 before, 8
//!   after); `ρ = median(r after)`, `σ = Δ Σ (r - ρ)` over the intervals up to the end of the transition, within half an interval's
//!   `(R - ρ) Δ / 2` either way.
//! - Shaper or policer: of the octets beyond ρ at least half lost, and the growth of the delay times ρ below a twentieth of σ (three
//!   packets at least): a policer. Else the growth of the delay times ρ is the buffer; all of it if packets were lost.
//! - None seen: the highest rate over eight packets in a row bounds the capacity from above (in Ethernet's terms for packets of the
//!   path's MTU, where shorter ones were sent). Of `B` octets that came at `v`, at least `B (1 - ρ / v)` were in the bucket, so that
//!   `bucket_excluded_octets`, the largest such number with ρ at `bucket_excluded_rate_ratio` of that rate, can be in none (long
//!   probe: `σ < (C - ρ)(T - 8 Δ)`, 57.6 s for the tool's 60).
//!
//! # Parameters
//!
//! Declared below; `narrows methods shaper` prints the table.
//!
//! What departs from the tool, in the faithful preset too: all rates count IP octets (the tool counts 1400 octets in intervals and
//! 1428 in trains, 2 % apart); the correcting flow is not sent where its result would not be used, and not believed where it met
//! the bucket's end, and the quiet phase is then long enough to fill the bucket; tokens that it took and that did not come back are
//! added to σ; the sum for σ includes the interval in which the bucket ran empty; losses that begin after the fourth interval end
//! nothing, for they may be a policer's.
//!
//! # Cost
//!
//! Adaptive: 2.6 MB and 1 s at 100 Mbit/s without a bucket; with one of 10 packets 0.2 MB, with one of 300 some 2 MB and the times that
//! fill it. Trains beyond the first two are paced at the links' rate where the sender can, so that no other queue fills. Faithful:
//! the links' rate for up to 60 s, 120 MB at 16 Mbit/s, 1.5 GB at 200 Mbit/s.
//!
//! # Fails when
//!
//! - A1: a bucket that others keep empty, or that another measurement has just emptied, looks like a link of rate ρ: the answer is ρ,
//!   without a word of the bucket. Of two buckets the one that runs empty first is found. Depths between what trains and a long
//!   probe show, `max_octets` and three intervals of C - ρ, need a larger `max_octets`; buckets of fewer than three packets are none.
//! - A2: a sender no faster than ρ empties no bucket: [`Reason::SenderTooSlow`].
//! - A3: a link that slows for good looks like an emptied bucket to the long probe; trains that repeat it do not agree, which is
//!   [`Reason::NoAgreement`], or [`Caveat::VariableRate`] beside an upper bound.
//! - A4: bursts of others bend trains at other places: the same. A bucket much used by others reads low in the long probe, by their
//!   share: [`Verdict::LowerBound`] if that shows.
//! - Without a bucket the upper bound is the rate of the closest two packets of any train. Steady traffic that parts all of them is not
//!   seen, and the bound too low (`plans/capacity-methods.toml`).
//! - Random loss above the tool's limits: [`Reason::TooMuchLoss`]; which is not "no bucket".
//! - A sender whose own qdisc or socket buffer slows it down in mid-train bends arrivals and departures alike; not taken for the
//!   path's unless it is slower than what is lost to its buffer by a tenth.
//!
//! # References
//!
//! - `[ShaperProbe11]` P. Kanuparthy, C. Dovrolis: `ShaperProbe`: end-to-end detection of ISP traffic shaping, IMC 2011; source of the
//!   tool (prober, tbdetect).
//! - [RFC 2697] A single rate three color marker: committed information rate, committed burst size.
//! - [RFC 2698] A two rate three color marker, and [RFC 4115]: peak information rate.

mod machine;
mod params;
mod result;
mod search;
mod series;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::Metric;

use self::machine::Run;
use self::params::Params;
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason, Verdict};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// The method.
pub struct Shaper;

static INFO: MethodInfo = MethodInfo {
    name: "shaper",
    summary: "sustained rate, peak rate and depth of a token bucket, shaper or policer",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(narrows_units::Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 2_600_000,
        max_octets: 4_000_000,
        typical_time: Duration::from_secs(1),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("shaper.rs"),
};

impl Method for Shaper {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        match Params::try_from(params) {
            Ok(params) => params.imposes(&INFO.imposes),
            Err(_) => INFO.imposes.clone(),
        }
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        params.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(params)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::lead(Run::new(Params::try_from(params)?), observations)
    }
}
