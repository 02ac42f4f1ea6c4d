//! Why a result might mislead, and what set it.

use std::fmt;
use std::time::Duration;

use narrows_units::{BitRate, format_duration};
use serde::{Deserialize, Serialize};

/// Something that was seen and that bears on a result. Each prints as one sentence; [`Caveat::id`]
/// is its machine name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Caveat {
    /// Several rates had similar weight.
    Multimodal {
        /// The runner-up.
        other: BitRate,
    },
    /// The receiver sees packets in batches: stamps inside a batch say nothing.
    ReceiveBatching {
        /// Typical time between batches.
        period: Duration,
    },
    /// A clock or timer is too coarse for single packets at this rate.
    TimerLimited,
    /// The sender could not go faster.
    SenderLimited,
    /// The receiver could not go faster.
    ReceiverLimited,
    /// The sender did not keep its plan in some trains; they were left out.
    PacingBroken {
        /// How many.
        trains: u32,
    },
    /// Packets were lost on the path.
    Loss {
        /// Share of packets, 0..1.
        ratio: f64,
    },
    /// Packets were dropped by the receiving host, not the path.
    LocalDrops {
        /// How many.
        packets: u64,
    },
    /// Packets changed order.
    Reordering {
        /// Share of packets, 0..1.
        ratio: f64,
    },
    /// A token bucket lets bursts through faster than the sustained rate.
    Shaped,
    /// Excess traffic is dropped without being queued.
    Policed,
    /// The rate varied during the measurement by more than the interval says.
    VariableRate,
    /// A token bucket would have gone unseen if it is deeper than this.
    BucketNotExcluded {
        /// Octets up to which none is there.
        deeper_than_octets: u64,
    },
    /// The narrow link is several channels side by side.
    Multichannel {
        /// How many; of channels dealt by flow, how many were reached.
        channels: u16,
        /// IP-layer rate of one of them.
        each: BitRate,
        /// A flow has one of them, and what is said holds for one flow.
        by_flow: bool,
    },
    /// The narrow link gathers frames and sends them in bursts.
    MacAggregation {
        /// Typical packets of a burst under load.
        frames: u16,
        /// Typical time from burst to burst under load.
        period: Duration,
    },
    /// The narrow link sends in slots, by grants.
    GrantScheduled {
        /// The slot.
        slot: Duration,
    },
    /// The search ended before its interval was narrow enough.
    NotConverged,
    /// Long trains alone told the rate of a loaded link: several such links look like one of less.
    OneLinkAssumed,
    /// Available bandwidth moved about while it was measured.
    GreyRegion {
        /// Lower end.
        low: BitRate,
        /// Upper end.
        high: BitRate,
    },
    /// Others that share the path sent less once the probes had begun: what they leave depends on
    /// who asks for it.
    ElasticCrossTraffic,
    /// The value rests on a capacity that was not measured here.
    CapacityAssumed {
        /// Which.
        capacity: BitRate,
    },
    /// Trains were longer than the path's burst limit; their losses shaped the result.
    TrainExceedsBurstLimit,
    /// The two clocks drift apart by more than a clock should.
    ClockSkew {
        /// Parts per million.
        ppm: f64,
    },
    /// A clock was set during the measurement.
    ClockStep,
    /// A host did not run for a while in the middle of a train.
    HostStall,
    /// Few samples stand behind the number.
    FewSamples {
        /// How many.
        samples: u32,
    },
    /// Forward and reverse direction cannot be told apart.
    AsymmetricLimit,
    /// The remote host limits how many answers it gives; what it did not answer was not lost.
    AnswersLimited {
        /// Answers at once.
        burst: u32,
        /// Time after which there is one more.
        every: Duration,
    },
    /// Answers came back in packets of this size; a reverse direction that is narrower than they
    /// allow shapes the result.
    ReverseInfluence {
        /// IP octets of the longest answer.
        reply_ip_octets: u16,
    },
    /// The window is wider than the resolution asked for.
    CoarseResolution,
    /// The interval between connection start and the stable phase was cut short.
    TestTooShort,
    /// Stopped by the user or by the budget before the method was done.
    StoppedEarly,
    /// The largest size tried survived; the limit lies beyond.
    LargestTried,
    /// Packets in a capture that stand for several on the wire: the capturing host merges what it
    /// receives, or has its card cut up what it sends.
    MergedPackets {
        /// Their share of all packets with data.
        ratio: f64,
    },
    /// A capture holds less than what passed.
    CaptureMissed {
        /// Packets, at least.
        packets: u64,
    },
    /// Nobody answers at this hop limit, and somebody behind it does.
    SilentRouter,
    /// The router's own time for answers covers what its link takes.
    SlowRouter,
    /// Whether this router, or one before it, takes its own time for each octet could not be
    /// checked.
    UncheckedRouter,
    /// Several routers answer at one hop limit, although all probes were of one flow.
    SeveralRouters {
        /// How many.
        routers: u32,
    },
    /// From some time on another router answered.
    RouteChanged,
    /// A router answers at this hop limit that had answered at an earlier one: packets go round in
    /// circles, or two routers have one address.
    RoutingLoop {
        /// The earlier hop limit.
        earlier_ttl: u8,
    },
    /// A router passes on packets whose hop limit has run out: the next one answers in its place.
    ForwardsExpired,
    /// The lengths of a router's answers follow no rule of what is quoted, so that they were left
    /// out of account.
    QuotesUneven,
    /// The value takes the forward direction and the reverse direction of a hop to have one rate;
    /// the interval does not.
    SymmetryAssumed,
    /// What one hop takes is told by several links in a row, which no hop limit tells apart;
    /// standard rates decided.
    StagesAssumed,
    /// Several sums of standard rates fit what one hop takes.
    StagesAmbiguous,
}

impl Caveat {
    /// Its machine name: what JSON calls it.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Multimodal { .. } => "multimodal",
            Self::ReceiveBatching { .. } => "receive_batching",
            Self::TimerLimited => "timer_limited",
            Self::SenderLimited => "sender_limited",
            Self::ReceiverLimited => "receiver_limited",
            Self::PacingBroken { .. } => "pacing_broken",
            Self::Loss { .. } => "loss",
            Self::LocalDrops { .. } => "local_drops",
            Self::Reordering { .. } => "reordering",
            Self::Shaped => "shaped",
            Self::Policed => "policed",
            Self::VariableRate => "variable_rate",
            Self::BucketNotExcluded { .. } => "bucket_not_excluded",
            Self::Multichannel { .. } => "multichannel",
            Self::MacAggregation { .. } => "mac_aggregation",
            Self::GrantScheduled { .. } => "grant_scheduled",
            Self::NotConverged => "not_converged",
            Self::OneLinkAssumed => "one_link_assumed",
            Self::GreyRegion { .. } => "grey_region",
            Self::ElasticCrossTraffic => "elastic_cross_traffic",
            Self::CapacityAssumed { .. } => "capacity_assumed",
            Self::TrainExceedsBurstLimit => "train_exceeds_burst_limit",
            Self::ClockSkew { .. } => "clock_skew",
            Self::ClockStep => "clock_step",
            Self::HostStall => "host_stall",
            Self::FewSamples { .. } => "few_samples",
            Self::AsymmetricLimit => "asymmetric_limit",
            Self::AnswersLimited { .. } => "answers_limited",
            Self::ReverseInfluence { .. } => "reverse_influence",
            Self::CoarseResolution => "coarse_resolution",
            Self::TestTooShort => "test_too_short",
            Self::StoppedEarly => "stopped_early",
            Self::LargestTried => "largest_tried",
            Self::MergedPackets { .. } => "merged_packets",
            Self::CaptureMissed { .. } => "capture_missed",
            Self::SilentRouter => "silent_router",
            Self::SlowRouter => "slow_router",
            Self::UncheckedRouter => "unchecked_router",
            Self::SeveralRouters { .. } => "several_routers",
            Self::RouteChanged => "route_changed",
            Self::RoutingLoop { .. } => "routing_loop",
            Self::ForwardsExpired => "forwards_expired",
            Self::QuotesUneven => "quotes_uneven",
            Self::SymmetryAssumed => "symmetry_assumed",
            Self::StagesAssumed => "stages_assumed",
            Self::StagesAmbiguous => "stages_ambiguous",
        }
    }

    /// In a few words, for where a line must do.
    pub fn brief(&self) -> &'static str {
        match self {
            Self::Multimodal { .. } => "several rates are equally likely",
            Self::ReceiveBatching { .. } => "the receiver sees packets in batches",
            Self::TimerLimited => "a clock is too coarse",
            Self::SenderLimited => "the sender could not go faster",
            Self::ReceiverLimited => "the receiver could not go faster",
            Self::PacingBroken { .. } => "the sender missed its plan in some trains",
            Self::Loss { .. } => "probes were lost",
            Self::LocalDrops { .. } => "the receiving host dropped packets",
            Self::Reordering { .. } => "packets changed order",
            Self::Shaped => "a token bucket is on the path",
            Self::Policed => "a policer is on the path",
            Self::VariableRate => "the rate varied",
            Self::BucketNotExcluded { .. } => "a deep token bucket is not ruled out",
            Self::Multichannel { .. } => "the link has several channels",
            Self::MacAggregation { .. } => "the link sends frames in bursts",
            Self::GrantScheduled { .. } => "the link sends by grants",
            Self::NotConverged => "the interval stayed wide",
            Self::OneLinkAssumed => "assumes one busy link: the value may be too low",
            Self::GreyRegion { .. } => "the value changed during the test",
            Self::ElasticCrossTraffic => "other traffic backed off meanwhile",
            Self::CapacityAssumed { .. } => "the capacity was assumed",
            Self::TrainExceedsBurstLimit => "trains overflowed a short queue",
            Self::ClockSkew { .. } => "the two clocks drift apart",
            Self::ClockStep => "a clock was set meanwhile",
            Self::HostStall => "a host stalled meanwhile",
            Self::FewSamples { .. } => "few samples",
            Self::AsymmetricLimit => "either direction may be the limit",
            Self::AnswersLimited { .. } => "the remote host limits its answers",
            Self::ReverseInfluence { .. } => "the reverse direction may be the limit",
            Self::CoarseResolution => "the interval is wider than asked for",
            Self::TestTooShort => "the transfer was still growing",
            Self::StoppedEarly => "stopped before the method was done",
            Self::LargestTried => "the limit lies beyond what was tried",
            Self::MergedPackets { .. } => "the capture holds merged packets",
            Self::CaptureMissed { .. } => "the capture missed packets",
            Self::SilentRouter => "a router does not answer",
            Self::SlowRouter => "a router answers slowly",
            Self::UncheckedRouter => "a router's own time is not known",
            Self::SeveralRouters { .. } => "several routers answer at one hop",
            Self::RouteChanged => "the route changed",
            Self::RoutingLoop { .. } => "packets may go round in circles",
            Self::ForwardsExpired => "a router passes on expired packets",
            Self::QuotesUneven => "a router's answers vary in length",
            Self::SymmetryAssumed => "both directions are taken to be alike",
            Self::StagesAssumed => "one hop is several links in a row",
            Self::StagesAmbiguous => "a hop may be several links: rates are ambiguous",
        }
    }
}

impl fmt::Display for Caveat {
    #[expect(clippy::too_many_lines, reason = "one sentence per caveat: a table, not a procedure")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multimodal { other } => write!(f, "several rates had similar weight; the runner-up is {other}"),
            Self::ReceiveBatching { period } => write!(
                f,
                "the receiver sees packets in batches about every {}; lower its interrupt coalescing for finer timestamps",
                format_duration(*period)
            ),
            Self::TimerLimited => f.write_str("a clock or timer is too coarse for single packets at this rate"),
            Self::SenderLimited => f.write_str("the sending host could not go faster"),
            Self::ReceiverLimited => f.write_str("the receiving host could not go faster"),
            Self::PacingBroken { trains } => {
                write!(
                    f,
                    "the sender could not keep the planned gaps in {trains} train(s), which were left out"
                )
            }
            Self::Loss { ratio } => write!(f, "{:.2} % of the probes were lost on the path", ratio * 100.0),
            Self::LocalDrops { packets } => write!(
                f,
                "the receiving host dropped {packets} packet(s) because its buffer was full; raise net.core.rmem_max"
            ),
            Self::Reordering { ratio } => write!(f, "{:.2} % of the probes changed order", ratio * 100.0),
            Self::Shaped => f.write_str("a token bucket lets bursts through faster than the sustained rate"),
            Self::Policed => f.write_str("excess traffic is dropped without being queued"),
            Self::VariableRate => f.write_str("the rate varied during the measurement"),
            // Every bucket holds a packet.
            Self::BucketNotExcluded {
                deeper_than_octets: ..1280,
            } => f.write_str(
                "token bucket not excluded: no train was long enough to show a lower sustained rate",
            ),
            Self::BucketNotExcluded { deeper_than_octets } => write!(
                f,
                "token bucket deeper than {} not excluded: no train was long enough to show a lower sustained rate",
                narrows_units::Octets::new(*deeper_than_octets)
            ),
            Self::Multichannel {
                channels,
                each,
                by_flow: false,
            } => write!(
                f,
                "packets are spread over {channels} channels of {each} each and may change order"
            ),
            Self::Multichannel {
                channels,
                each,
                by_flow: true,
            } => write!(
                f,
                "one flow gets one channel of {each}; several flows reached {channels} of them"
            ),
            Self::MacAggregation { frames, period } => write!(
                f,
                "the link sends bursts of about {frames} frames every {}: a rate under load, which single packets and pairs do not show",
                format_duration(*period)
            ),
            Self::GrantScheduled { slot } => write!(
                f,
                "the link sends in slots of {}; its rate is what the scheduler grants, not the link's",
                format_duration(*slot)
            ),
            Self::NotConverged => f.write_str("the run ended before the interval was narrow; a longer run may narrow it"),
            Self::OneLinkAssumed => f.write_str(
                "the value assumes that one link carries most of the other traffic; if several links do, the capacity is \
                 20 to 40 % higher or more; measure again when there is less traffic",
            ),
            Self::GreyRegion { low, high } if low.to_string() == high.to_string() => {
                write!(f, "the value moved about {low} while it was measured")
            }
            Self::ElasticCrossTraffic => f.write_str(
                "cross traffic backed off while we probed, as TCP does: a longer transfer may get more",
            ),
            Self::GreyRegion { low, high } => write!(f, "the value moved between {low} and {high} while it was measured"),
            Self::CapacityAssumed { capacity } => write!(f, "rests on an assumed capacity of {capacity}"),
            Self::TrainExceedsBurstLimit => f.write_str("trains were longer than the path's burst limit"),
            Self::ClockSkew { ppm } => write!(f, "the two clocks drift apart by {ppm:.0} ppm"),
            Self::ClockStep => f.write_str("a clock was set during the measurement"),
            Self::HostStall => f.write_str("a host did not run for a while in the middle of a train"),
            Self::FewSamples { samples } => write!(f, "the value rests on {samples} sample(s) only"),
            Self::AsymmetricLimit => f.write_str("forward and reverse direction cannot be distinguished"),
            Self::AnswersLimited { burst, every } => write!(
                f,
                "the target answers {burst} probe(s) at once and then one per {}; it was probed no faster",
                format_duration(*every)
            ),
            Self::ReverseInfluence { reply_ip_octets } => write!(
                f,
                "answers of {reply_ip_octets} IP octets crossed the reverse direction: if that is narrower in proportion, the result is that of the reverse direction"
            ),
            Self::CoarseResolution => f.write_str("the interval is wider than asked for"),
            Self::TestTooShort => f.write_str("the transfer was still speeding up when it ended"),
            Self::StoppedEarly => f.write_str("stopped before the method had finished"),
            Self::LargestTried => f.write_str("the largest size tried survived; the limit lies beyond"),
            Self::MergedPackets { ratio } => write!(
                f,
                "{:.1} % of the captured packets stand for several on the wire; switch offloads off (ethtool -K IF gro off tso off gso off)",
                ratio * 100.0
            ),
            Self::CaptureMissed { packets } => write!(f, "the capture missed {packets} packet(s) at least"),
            Self::SilentRouter => f.write_str("no router answers here; this hop and the next were measured together"),
            Self::SlowRouter => {
                f.write_str("the router is slower to answer than its link is to send; this hop and the next were measured together")
            }
            Self::UncheckedRouter => f.write_str(
                "could not check whether this router itself delays long packets: the link may be faster, and the next one slower",
            ),
            Self::SeveralRouters { routers } => {
                write!(f, "{routers} routers answer at this hop limit: the path divides")
            }
            Self::RouteChanged => f.write_str("the route changed during the measurement"),
            Self::RoutingLoop { earlier_ttl } => {
                write!(f, "the router of hop limit {earlier_ttl} answers here again: packets go round in a loop")
            }
            Self::ForwardsExpired => {
                f.write_str("the router here forwards packets whose hop limit has expired, and the next one answers for it")
            }
            Self::QuotesUneven => f.write_str("the lengths of the answers follow no rule; they were ignored"),
            Self::SymmetryAssumed => f.write_str(
                "the value assumes the same rate in both directions of this hop; nothing contradicts that, and the interval allows for a difference",
            ),
            Self::StagesAssumed => f.write_str(
                "several links in a row inside this hop, assumed because their rates are standard: one slower link would look the same",
            ),
            Self::StagesAmbiguous => f.write_str("several combinations of standard links inside this hop would look the same"),
        }
    }
}

/// What set a value, or ended the search for it. The serialised names are the machine contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The path itself: what one hopes to see.
    Path,
    /// The sending host.
    Sender,
    /// The receiving host.
    Receiver,
    /// A TCP window or socket buffer.
    Window,
    /// A token bucket.
    Shaper,
    /// Clock, timer or stamp quality.
    Clock,
    /// The user's budget.
    Budget,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Path => "path",
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Window => "window",
            Self::Shaper => "shaper",
            Self::Clock => "clock",
            Self::Budget => "budget",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grey_region_without_width_has_one_rate() {
        let at = |kbps: u64| BitRate::from_bps(kbps * 1000);
        let text = |low, high| Caveat::GreyRegion { low, high }.to_string();
        assert_eq!(text(at(60_000), at(60_000)), "the value moved about 60 Mbit/s while it was measured");
        assert_eq!(
            text(at(60_000), at(70_000)),
            "the value moved between 60 Mbit/s and 70 Mbit/s while it was measured"
        );
    }

    #[test]
    fn ids_are_the_json_tags() {
        for caveat in [
            Caveat::Multimodal { other: BitRate::ZERO },
            Caveat::Loss { ratio: 0.5 },
            Caveat::TrainExceedsBurstLimit,
            Caveat::LargestTried,
            Caveat::Multichannel { channels: 2, each: BitRate::ZERO, by_flow: false },
            Caveat::MacAggregation { frames: 1, period: Duration::ZERO },
            Caveat::GrantScheduled { slot: Duration::ZERO },
            Caveat::BucketNotExcluded { deeper_than_octets: 1 },
            Caveat::OneLinkAssumed,
        ] {
            let json = serde_json::to_value(&caveat).unwrap();
            assert_eq!(json["id"], caveat.id());
        }
    }
}
