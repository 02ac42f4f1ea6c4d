//! From trains and intervals to an outcome.

use narrows_units::{BitRate, Delta, Framing, Layer, Metric, Octets, rounded};

use super::machine::Run;
use super::params::{Preset, seconds};
use super::series::{Fall, Series};
use narrows_probe::outcome::{Caveat, Confidence, Details, Estimate, Limit, Outcome, Ranged, Reason};
use narrows_train::bucket::{BucketEvidence, EXCLUDED_RATIO, TurningPoint};

/// Least relative error of a rate that one sees in trains or intervals ("ours": clocks and the ends
/// of trains).
const LEAST_ERROR: f64 = 0.005;
/// Of what is left by the bucket's rate, the share that others may take before the number is called
/// theirs too.
const CROSS_TRAFFIC: f64 = 0.95;
/// Loss of single trains above which straight trains tell nothing.
const MOST_LOSS: f64 = 0.10;

/// A bucket, however it was found.
struct Bucket {
    peak: f64,
    peak_limited: bool,
    /// Others take tokens, nobody knows how many.
    lower_bound: bool,
    sustained: (f64, f64, f64),
    depth: (f64, f64, f64),
    policer: bool,
    /// What waited in front of the bucket at the end, and whether that is all that may wait.
    queue: (f64, bool),
}

pub(super) fn outcome(run: &Run, reason: Option<Reason>) -> Outcome {
    let bucket_evidence = run.search.bucket_evidence();
    // The tool reads no more of its trains than their rate.
    let turning_point = run.search.turning_point().filter(|_| run.params.preset == Preset::Adaptive);
    let outcome = match (run.probe.fall(), turning_point) {
        (Some(fall), _) => from_fall(run, &fall),
        (None, Some(turning_point)) => from_turning_point(run, &turning_point),
        (None, None) => return without(run, &bucket_evidence, reason),
    };
    let mut estimate = diagnostics(outcome, run, &bucket_evidence);
    if reason.is_some() {
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    estimate.into()
}

fn from_turning_point(run: &Run, turning_point: &TurningPoint) -> Estimate {
    let policer = turning_point.is_policer();
    let (slow, fast) = turning_point.sustained_range;
    let rate = turning_point.sustained.as_f64();
    // Long trains are paced; the short ones before them show what the links carry.
    let outpaces = turning_point.sender_limited && run.search.outpaces();
    let peak = if outpaces { run.search.peak_bps() } else { turning_point.peak.as_f64() };
    let mut estimate = bucket(&Bucket {
        peak: at_full_size(run, peak),
        peak_limited: turning_point.sender_limited && !outpaces,
        lower_bound: turning_point.uneven && turning_point.ours >= 1.0,
        sustained: (slow.as_f64() * (1.0 - LEAST_ERROR), rate, fast.as_f64() * (1.0 + LEAST_ERROR)),
        depth: (
            turning_point.depth_range.0 as f64,
            turning_point.depth_octets as f64,
            turning_point.depth_range.1 as f64,
        ),
        policer,
        queue: (turning_point.queued_octets as f64, turning_point.lost_share > 0.05),
    });
    estimate = estimate.with("agreeing_trains", turning_point.trains);
    if turning_point.trains >= 3 && turning_point.ours >= CROSS_TRAFFIC {
        estimate.confidence = Confidence::High;
    }
    if turning_point.ours < CROSS_TRAFFIC {
        estimate = estimate.with("token_share", turning_point.ours).caveat(Caveat::VariableRate);
    }
    estimate
}

fn from_fall(run: &Run, fall: &Fall) -> Estimate {
    let rate = fall.sustained_bps;
    let error = (fall.mad_bps / rate.max(1.0)).max(LEAST_ERROR);
    let unfilled = run.unfilled(rate);
    let depth = fall.depth_octets + unfilled;
    let half = fall.half_bin_octets + 2.0 * f64::from(run.ip_octets) + UNFILLED_ERROR * unfilled;
    let excess = run.probe_rate.as_f64() - rate;
    let dropped = fall.loss * run.probe_rate.as_f64() / excess.max(1.0);
    let queued = fall.delay_s * rate / 8.0;
    let estimate = bucket(&Bucket {
        peak: at_full_size(run, fall.peak_bps),
        // A single flow's intervals differ by a packet or two.
        lower_bound: fall.mad_bps * fall.bin_s > 8.0 * f64::from(run.ip_octets)
            || fall.spread_bps > (32.0 * f64::from(run.ip_octets) / fall.bin_s).max(0.005 * rate),
        // The flow is sent at what the capacity phase found: it cannot show more.
        peak_limited: fall.peak_bps >= CROSS_TRAFFIC * run.probe_rate.as_f64() && run.rate_was_capped,
        sustained: (rate * (1.0 - error), rate, rate * (1.0 + error)),
        depth: ((depth - half).max(0.0), depth, depth + half),
        policer: dropped >= 0.5 && queued < (0.05 * depth).max(POLICER_PACKETS * f64::from(run.ip_octets)),
        queue: (queued, fall.loss > 0.005),
    });
    let mut estimate = estimate
        .with("sustained_mad_bps", fall.mad_bps)
        .with("intervals_before", fall.before)
        .with("intervals_after", fall.after)
        .with("loss_after", fall.loss)
        .with("unfilled_octets", rounded(unfilled));
    if fall.loss > 0.0 {
        estimate = estimate.caveat(Caveat::Loss { ratio: fall.loss });
    }
    estimate.interval = Some(seconds(run.probe.seconds(), 1e6));
    estimate
}

/// Share by which what the bucket lacked at the begin of the long probe may be off ("ours").
const UNFILLED_ERROR: f64 = 0.1;
/// Packets of delay that a policer's neighbours may add.
const POLICER_PACKETS: f64 = 3.0;

/// The IP-layer rate of packets of the path's MTU on a link of Ethernet that carries this rate of
/// the packets that were sent.
fn at_full_size(run: &Run, bps: f64) -> f64 {
    let share = |octets: u16| f64::from(octets) / f64::from(Framing::ETHERNET.wire_octets(u32::from(octets)));
    bps * share(run.facts.path_mtu.max(run.ip_octets)) / share(run.ip_octets)
}

fn bps(value: f64) -> BitRate {
    BitRate::from_bps_f64(value.max(0.0)).unwrap_or(BitRate::ZERO)
}

fn bucket(found: &Bucket) -> Estimate {
    let (low, rate, high) = found.sustained;
    let (shallow, depth, deep) = found.depth;
    let mut main = Estimate::ip_rate(Metric::IpCapacity, bps(rate), bps(low), bps(high));
    main.limited_by = Limit::Shaper;
    let kind = if found.policer { "policer" } else { "shaper" };
    main = main
        .caveat(if found.policer { Caveat::Policed } else { Caveat::Shaped })
        .with("token_bucket", kind)
        .with("sustained_bps", bps(rate))
        .with("peak_bps", bps(found.peak))
        .with("bucket_octets", rounded(depth));
    let drain = found.peak - rate;
    if drain > 0.0 {
        main = main.with("peak_lasts_ns", delta(8.0 * depth / drain));
    }
    if rate > 0.0 {
        main = main.with("refill_ns", delta(8.0 * depth / rate));
    }
    if !found.policer {
        let name = if found.queue.1 { "buffer_octets" } else { "buffer_octets_at_least" };
        main = main.with(name, rounded(found.queue.0));
    }
    let peak = Estimate::ip_rate(Metric::PeakRate, bps(found.peak), bps(found.peak * 0.98), bps(found.peak * 1.02));
    let peak = if found.peak_limited { peak.at_least(Limit::Sender) } else { peak };
    let depths = Ranged::new(rounded(depth), rounded(shallow), rounded(deep)).map(Octets::new);
    let burst = Estimate::new(Metric::CommittedBurstOctets, Some(Layer::Ip), depths);
    if !found.lower_bound {
        main.also = vec![peak, burst];
        return main;
    }
    let at_least = |estimate: Estimate| estimate.at_least(Limit::Shaper).caveat(Caveat::VariableRate);
    main.adjust(|rate: &mut Ranged<BitRate>| rate.value = rate.low);
    main = at_least(main);
    let burst = Estimate::new(Metric::CommittedBurstOctets, Some(Layer::Ip), Ranged { value: depths.low, ..depths });
    main.also = vec![peak, at_least(burst)];
    main
}

fn delta(time: f64) -> Delta {
    Delta::from(seconds(time, 1e6))
}

/// No bucket was found: whether that says something depends on what was sent.
fn without(run: &Run, bucket_evidence: &BucketEvidence, reason: Option<Reason>) -> Outcome {
    let unproven = |why: Reason| {
        let Outcome::Estimated(shell) =
            diagnostics(Estimate::new(Metric::IpCapacity, None, Ranged::exactly(BitRate::ZERO)), run, bucket_evidence)
                .into()
        else {
            return Outcome::inconclusive(why);
        };
        Outcome::Inconclusive {
            reason: why,
            caveats: shell.caveats,
            details: Details::default(),
            diagnostics: shell.diagnostics,
        }
    };
    if !run.answered() {
        return Outcome::inconclusive(reason.unwrap_or(Reason::NoAnswer));
    }
    if run.sent_packets > 0 && (run.probe.lossy() || run.loss() > MOST_LOSS) {
        return unproven(Reason::TooMuchLoss { lost: run.lost_packets, sent: run.sent_packets });
    }
    let by_trains = bucket_evidence.excluded_octets as f64;
    let by_probe = excluded_by_probe(run, &run.probe);
    let excluded = by_trains.max(by_probe);
    let fastest = bucket_evidence.fastest_bps;
    if fastest <= 0.0 {
        return unproven(reason.unwrap_or(Reason::NotConverged));
    }
    if excluded <= 0.0 && bucket_evidence.bent > 0 {
        return unproven(reason.unwrap_or(Reason::NoAgreement));
    }
    if run.sender_is_slower(bucket_evidence) {
        return unproven(Reason::SenderTooSlow { reached: bps(fastest) });
    }
    // Others' packets may be in every train, so a whole train is no bound from above; its closest
    // neighbours are a safer one.
    let rate = bps(at_full_size(run, fastest.max(run.search.closest_bps)));
    let mut main = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate).at_most().with("token_bucket", "none seen");
    main.adjust(|rate: &mut Ranged<BitRate>| rate.low = BitRate::ZERO);
    if bucket_evidence.is_unclear() || excluded <= 0.0 {
        main = main.caveat(Caveat::VariableRate);
    }
    if reason.is_some() {
        main = main.caveat(Caveat::StoppedEarly);
    }
    diagnostics(main, run, bucket_evidence).into()
}

/// Octets of the deepest bucket of [`EXCLUDED_RATIO`] of the rate that the long probe would have
/// emptied, eight intervals before its end.
fn excluded_by_probe(run: &Run, probe: &Series) -> f64 {
    let after = run.params.bin.as_secs_f64() * (run.params.min_after as f64);
    let time = probe.seconds() - after;
    let Some(rate) = probe.mean_bps() else { return 0.0 };
    ((1.0 - EXCLUDED_RATIO) * rate * time / 8.0).max(0.0)
}

fn diagnostics(mut estimate: Estimate, run: &Run, bucket_evidence: &BucketEvidence) -> Estimate {
    let excluded = (bucket_evidence.excluded_octets as f64).max(excluded_by_probe(run, &run.probe));
    estimate = estimate
        .with("ip_octets", u32::from(run.ip_octets))
        .with("trains", bucket_evidence.bent + bucket_evidence.straight)
        .with("bent_trains", bucket_evidence.bent);
    if estimate.limited_by != Limit::Shaper {
        estimate = estimate
            .with("bucket_excluded_octets", rounded(excluded))
            .with("bucket_excluded_rate_ratio", EXCLUDED_RATIO);
    }
    if let Some(capacity) = run.capacity {
        estimate = estimate.with("capacity_phase_bps", capacity);
    }
    if !run.probe.bins.is_empty() {
        estimate = estimate.with("probe_rate_bps", run.probe_rate).with("interval_rates_bps", run.probe.rates());
        if let Some(rate) = narrows_stat::median(&run.probe.rates()) {
            estimate = estimate.with("median_rate_bps", rounded(rate));
        }
    }
    if run.local_drops > 0 {
        let packets = run.local_drops;
        estimate = estimate.caveat(Caveat::LocalDrops { packets });
    }
    estimate
}
