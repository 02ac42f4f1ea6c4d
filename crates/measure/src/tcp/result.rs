//! From segments to an outcome.

use std::time::Duration;

use narrows_units::{BitRate, Delta, Layer, Metric, Sender, Stamp, rounded};

use super::quick::Stop;
use super::ramp::RampEnd;
use narrows_diagnose::limits::theory;
use narrows_diagnose::limits::{LimitingFactor, TransferSamples, diagnose, limits, loss_pattern};
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::{
    Caveat, Confidence, Details, Diagnostics, Estimate, Finding, Limit, LossPattern, Outcome, Ranged, Reason,
    TcpFinding,
};
use narrows_probe::probes::{Congestion, StreamReport, TcpSample, TransferReport};
use narrows_train::bulk::series;

/// What the transfer has told.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Segments of the ramp, in order.
    pub(super) ramp: Vec<TransferReport>,
    /// How it ended.
    pub(super) ramp_end: Option<RampEnd>,
    /// The kernel had a threshold from an earlier connection.
    pub(super) cached_threshold: bool,
    /// Still in slow start when it was abandoned.
    pub(super) growing: bool,
    /// Segments of the measurement.
    pub(super) window: Vec<TransferReport>,
    /// Quick: why it could end.
    pub(super) stop: Option<Stop>,
    /// Full: what the measurement is worth.
    pub(super) standing: Standing,
    /// The full length was run on purpose.
    pub(super) full: bool,
}

/// What the newest segment of the measurement is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Standing {
    /// Its rate does not stand.
    #[default]
    Unstable,
    /// Its rate stands, but nothing on the path holds it: it will grow.
    Unfilled,
    /// Its rate stands.
    Stable,
}

/// A standard test runs this long; savings are reckoned against it (`[QuickMode03]` compares with
/// 20 s).
const STANDARD_SECONDS: f64 = 20.0;
/// Rates of two halves further apart than this are not stable; nor are means less sure than that
/// (ours).
const HALVES_APART: f64 = 0.10;
const UNSURE: f64 = 0.05;
const FEWEST_SLOTS: usize = 6;
/// Round trips longer than the shortest by this factor went through a queue (ours).
const QUEUED: f64 = 1.05;
/// BBR lets its window fall to this for 200 ms, to see the path's empty delay; such slots say
/// nothing of the rate.
const PROBE_RTT_SEGMENTS: u32 = 4;

/// Slots that say something of the rate.
fn telling(report: &TransferReport) -> Vec<series::Slot> {
    let bbr = report.streams.iter().any(|stream| stream.congestion == Congestion::Bbr);
    let mut slots = series::slots(report);
    slots.retain(|slot| !bbr || slot.cwnd_segments > PROBE_RTT_SEGMENTS);
    slots
}

/// What a segment is worth; a cap on the rate holds a window without any queue.
pub(super) fn standing(report: &TransferReport, capped: bool) -> Standing {
    match is_stable(report) {
        false => Standing::Unstable,
        true if !capped && is_unfilled(report) => Standing::Unfilled,
        true => Standing::Stable,
    }
}

/// Whether a segment's rate stands: its halves agree, and its mean is sure.
fn is_stable(report: &TransferReport) -> bool {
    let rates: Vec<f64> = telling(report).iter().map(|slot| slot.bps).collect();
    if rates.len() < FEWEST_SLOTS {
        return false;
    }
    let (early, late) = rates.split_at(rates.len() / 2);
    let (Some(early), Some(late)) = (narrows_stat::mean(early), narrows_stat::mean(late)) else {
        return false;
    };
    let Ok(interval) = narrows_stat::mean_interval_correlated(&rates, 0.95) else {
        return false;
    };
    let mean = f64::midpoint(early, late);
    mean > 0.0 && (late / early - 1.0).abs() < HALVES_APART && interval.width() / 2.0 < UNSURE * mean
}

/// Whether the window alone holds the rate, and the path does not yet: slow start was left without
/// a loss, nothing has been lost since, and the round trips show no queue. HyStart may leave slow
/// start far below what the path would carry.
fn is_unfilled(report: &TransferReport) -> bool {
    let slots = telling(report);
    report.streams.iter().all(|stream| {
        let Some(last) = stream.samples.last() else {
            return false;
        };
        let floor = last.min_rtt.unwrap_or(last.rtt);
        let queued = series::median_rtt(&slots).is_some_and(|rtt| rtt > floor.mul_f64(QUEUED));
        let held = series::peer_window_used(last).is_some_and(|share| share >= series::WINDOW_FULL);
        let by_window = f64::from(last.in_flight_segments) >= series::WINDOW_FULL * f64::from(last.cwnd_segments);
        stream.congestion != Congestion::Bbr
            && last.ssthresh_segments.is_some()
            && last.retransmitted_segments == 0
            && by_window
            && !queued
            && !held
    })
}

pub(super) fn outcome(known: &Known, facts: &PathFacts, pacing: Option<BitRate>, reason: Option<Reason>) -> Outcome {
    let merged = merged(known);
    let measured = match (&merged, known.window.as_slice()) {
        (Some(merged), _) => std::slice::from_ref(merged),
        (None, []) => known.ramp.as_slice(),
        (None, all) => all,
    };
    let worth = match (&known.stop, &merged) {
        _ if known.full => known.standing,
        (Some(_), _) => Standing::Stable,
        (None, Some(merged)) if standing(merged, pacing.is_some()) != Standing::Unstable => Standing::Unfilled,
        _ => Standing::Unstable,
    };
    let slots: Vec<_> = measured.iter().flat_map(telling).collect();
    let sums = measured.iter().map(series::sums).fold(series::Sums::default(), series::Sums::plus);
    let Some(by_sender) = series::mean_bps(&slots).filter(|bps| *bps > 0.0) else {
        return nothing_arrived(known, facts, pacing, reason);
    };
    let received = measured.last().and_then(received_bps).filter(|_| measured.len() == 1);
    let bps = received.unwrap_or(by_sender);
    let rates: Vec<f64> = slots.iter().map(|slot| slot.bps).collect();
    let half = narrows_stat::mean_interval_correlated(&rates, 0.95).map_or(0.0, |interval| interval.width() / 2.0);
    let range = Ranged::new(rounded(bps), rounded((bps - half).max(0.0)), rounded(bps + half)).map(BitRate::from_bps);
    let mut estimate = Estimate::new(Metric::TcpAchievableSingle, Some(Layer::TcpPayload), range);
    let seconds: f64 = slots.iter().map(|slot| slot.seconds).sum();
    estimate.interval = Duration::try_from_secs_f64(seconds).ok();
    let seen = TransferSamples { reports: measured, slots: &slots, sums, bps, facts, pacing };
    let mut found = TcpFinding::default();
    estimate = limiting_factor(estimate, &seen, &mut found);
    estimate = judge(estimate, known, worth, reason.is_some());
    estimate = window_evidence(estimate, worth, &seen, seconds, &mut found);
    if let Some(stop) = &known.stop {
        estimate = estimate.with("held_by", stop.held.name()).with("risk_share", stop.risk);
    }
    found.bps = Some(range.value);
    found.variation = narrows_stat::coefficient_of_variation(&rates);
    found.threshold_cached = Some(known.cached_threshold);
    estimate = estimate.found(Finding::Tcp(Box::new(found)));
    estimate = estimate.with("sender_bps", rounded(by_sender)).with("slot_bps", rates);
    if let Some(rate) = received {
        estimate = estimate.with("receiver_bps", rounded(rate));
    }
    cost_evidence(estimate, known, bps).into()
}

/// Nothing was acknowledged: what is known of why.
fn nothing_arrived(known: &Known, facts: &PathFacts, pacing: Option<BitRate>, reason: Option<Reason>) -> Outcome {
    let mut diagnostics = Diagnostics::default();
    let mut found = TcpFinding::default();
    let last = known.window.last().or(known.ramp.last());
    if let Some(limiting_factor) =
        last.and_then(|report| limits(report, facts, pacing)).and_then(|limits| limits.verdicts.first().copied())
    {
        diagnostics.insert("limit", limiting_factor.name());
        found.limits.push(limiting_factor);
    }
    if let Some(sample) = last.and_then(|report| report.streams.first()?.samples.last()) {
        diagnostics.insert("mss_octets", sample.mss_octets);
        diagnostics.insert("retransmitted_segments", sample.retransmitted_segments);
        found.mss_octets = Some(f64::from(sample.mss_octets));
        found.retransmitted_segments = Some(f64::from(sample.retransmitted_segments));
    }
    let vanish = found.limits.first() == Some(&LimitingFactor::MtuBlackHole);
    Outcome::Inconclusive {
        reason: reason.unwrap_or(if vanish { Reason::MtuBlackHole } else { Reason::NoAnswer }),
        caveats: Vec::new(),
        details: Details { finding: Finding::Tcp(Box::new(found)), ..Details::default() },
        diagnostics,
    }
}

/// The quick measurement as one report, in slots of the rule or of a tenth of a second.
fn merged(known: &Known) -> Option<TransferReport> {
    if known.full || known.window.is_empty() {
        return None;
    }
    let (first, last) = (known.window.first()?, known.window.last()?);
    let from = known.stop.as_ref().map_or(first.began, |stop| stop.from);
    let whole = last.ended.since(from);
    let slots = match &known.stop {
        Some(stop) => u32::try_from(stop.parts_bps.len()).unwrap_or(MOST_SLOTS),
        None => u32::try_from(whole.as_millis() / 100).unwrap_or(MOST_SLOTS),
    };
    let slots = slots.clamp(1, MOST_SLOTS);
    let count = known.window.iter().map(|report| report.streams.len()).min()?;
    let streams = (0..count).map(|place| {
        let samples = known.window.iter().flat_map(|report| &report.streams[place].samples);
        let samples: Vec<TcpSample> = samples.copied().collect();
        StreamReport { samples: thinned(&samples, from, whole, slots), ..last.streams[place].clone() }
    });
    Some(TransferReport {
        began: from,
        streams: streams.collect(),
        sender_cpu: busiest(known, |report| report.sender_cpu),
        receiver_cpu: busiest(known, |report| report.receiver_cpu),
        ..last.clone()
    })
}

/// More slots than this are worth no more.
const MOST_SLOTS: u32 = 100;

fn busiest(known: &Known, of: fn(&TransferReport) -> Option<f32>) -> Option<f32> {
    known.window.iter().filter_map(of).reduce(f32::max)
}

/// The newest sample at each of `slots + 1` times.
fn thinned(samples: &[TcpSample], from: Stamp<Sender>, whole: Duration, slots: u32) -> Vec<TcpSample> {
    let mut chosen: Vec<TcpSample> = Vec::new();
    for slot in 0..=slots {
        let at = from + whole.mul_f64(f64::from(slot) / f64::from(slots));
        let next = samples.partition_point(|sample| sample.at.nanos() <= at.nanos());
        let sample = samples.get(next.saturating_sub(1));
        let newer = |sample: &&TcpSample| chosen.last().is_none_or(|last| sample.at.nanos() > last.at.nanos());
        if let Some(sample) = sample.filter(newer) {
            chosen.push(*sample);
        }
    }
    chosen
}

/// The receiver's own account of a finished segment, if it covers most of it.
fn received_bps(report: &TransferReport) -> Option<f64> {
    let (octets, time) = report.remote_read?;
    let lasted = report.ended.since(report.began);
    (time * 2 >= lasted && !time.is_zero()).then(|| octets as f64 * 8.0 / time.as_secs_f64())
}

fn limiting_factor(mut estimate: Estimate, seen: &TransferSamples<'_>, found: &mut TcpFinding) -> Estimate {
    let (verdicts, shares) = diagnose(seen);
    estimate.limited_by = verdicts.first().map_or(Limit::Path, |limiting_factor| limiting_factor.limit());
    for limiting_factor in &verdicts {
        estimate = match limiting_factor {
            LimitingFactor::SendingHost | LimitingFactor::Application => estimate.caveat(Caveat::SenderLimited),
            LimitingFactor::ReceivingHost => estimate.caveat(Caveat::ReceiverLimited),
            LimitingFactor::Policer => estimate.caveat(Caveat::Policed),
            LimitingFactor::Shaper => estimate.caveat(Caveat::Shaped),
            LimitingFactor::Growing => estimate.caveat(Caveat::TestTooShort),
            LimitingFactor::PeerWindow
            | LimitingFactor::SendBuffer
            | LimitingFactor::Pacing
            | LimitingFactor::Interface
            | LimitingFactor::Queue
            | LimitingFactor::RandomLoss
            | LimitingFactor::Loss
            | LimitingFactor::Reordering
            | LimitingFactor::MtuBlackHole => estimate,
        };
    }
    let names: Vec<&str> = verdicts.iter().map(|limiting_factor| limiting_factor.name()).collect();
    found.share_idle = finite(shares.idle);
    found.share_peer_window = finite(shares.peer_window);
    found.share_send_buffer = finite(shares.send_buffer);
    found.limits.clone_from(&verdicts);
    estimate
        .with("limit", names.first().copied().unwrap_or("path"))
        .with("all_limits", names.join("; ").as_str())
        .with("share_idle", shares.idle)
        .with("share_peer_window", shares.peer_window)
        .with("share_send_buffer", shares.send_buffer)
        .with("share_network", shares.network)
}

/// How much the number is worth.
fn judge(mut estimate: Estimate, known: &Known, worth: Standing, stopped: bool) -> Estimate {
    if stopped {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    if known.window.is_empty() {
        estimate.confidence = Confidence::Low;
        if known.growing {
            let limit = estimate.limited_by;
            return estimate.at_least(limit).caveat(Caveat::TestTooShort);
        }
        return estimate.caveat(Caveat::NotConverged);
    }
    if worth == Standing::Unstable {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::VariableRate);
        if !known.full {
            estimate = estimate.caveat(Caveat::NotConverged);
        }
    }
    if worth == Standing::Unfilled {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::TestTooShort);
    }
    estimate
}

/// The state of the connection, and how far a short window may mislead.
fn window_evidence(
    mut estimate: Estimate,
    worth: Standing,
    seen: &TransferSamples<'_>,
    seconds: f64,
    found: &mut TcpFinding,
) -> Estimate {
    let last = seen.reports.last().and_then(|report| report.streams.first());
    let Some((stream, sample)) = last.and_then(|stream| Some((stream, stream.samples.last()?))) else {
        return estimate;
    };
    let floor = sample.min_rtt.unwrap_or(sample.rtt);
    let loaded = series::median_rtt(seen.slots).unwrap_or(sample.rtt);
    let mss = f64::from(sample.mss_octets.max(1));
    let segments = theory::window_segments(seen.bps, floor, mss);
    let (share, recovery) = if estimate.limited_by == Limit::Path {
        (
            theory::worst_case(&stream.congestion, segments, floor, seconds),
            theory::recovery_time(&stream.congestion, segments, floor),
        )
    } else {
        // Nothing cuts the window of a connection that is held by something else.
        (1.0, None)
    };
    found.congestion = Some(stream.congestion.name().to_owned());
    found.mss_octets = Some(f64::from(sample.mss_octets));
    found.rtt_min_ns = Some(Delta::from(floor).as_f64());
    found.rtt_loaded_ns = Some(Delta::from(loaded).as_f64());
    found.retransmitted = finite(seen.sums.loss());
    found.worst_case_share = finite(share);
    let delay = loaded.as_secs_f64() / floor.as_secs_f64().max(1e-9) - 1.0;
    estimate = estimate
        .with("congestion", stream.congestion.name())
        .with("mss_octets", sample.mss_octets)
        .with("cwnd_segments", sample.cwnd_segments)
        .with("rtt_min_ns", Delta::from(floor))
        .with("rtt_loaded_ns", Delta::from(loaded))
        .with("buffer_delay_percent", 100.0 * delay)
        .with("efficiency_percent", 100.0 * (1.0 - seen.sums.loss()))
        .with("retransmitted_share", seen.sums.loss())
        .with("slow_start_expected_ns", Delta::from(theory::slow_start(segments, floor)))
        .with("worst_case_share", share)
        .with("stable", worth == Standing::Stable);
    if let Some(recovery) = recovery {
        estimate = estimate.with("recovery_time_ns", rounded(recovery * 1e9));
    }
    if let Some(octets) = sample.peer_window_octets {
        estimate = estimate.with("peer_window_octets", octets);
    }
    estimate = host_evidence(estimate, seen, found);
    if let Some(octets) = stream.granted_send_buffer_octets {
        estimate = estimate.with("granted_send_buffer_octets", octets);
    }
    estimate
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// What the hosts and the kernel's marks say.
fn host_evidence(mut estimate: Estimate, seen: &TransferSamples<'_>, found: &mut TcpFinding) -> Estimate {
    let busiest = |of: fn(&TransferReport) -> Option<f32>| {
        let shares = seen.reports.iter().filter_map(of);
        shares.filter(|share| share.is_finite()).reduce(f32::max)
    };
    if let Some(share) = busiest(|report| report.sender_cpu) {
        estimate = estimate.with("sender_cpu_share", f64::from(share));
        found.sender_cpu = Some(f64::from(share));
    }
    if let Some(share) = busiest(|report| report.receiver_cpu) {
        estimate = estimate.with("receiver_cpu_share", f64::from(share));
        found.receiver_cpu = Some(f64::from(share));
    }
    let streams = seen.reports.last().map_or(&[][..], |report| &report.streams);
    let Some(last) = streams.first().and_then(|stream| stream.samples.last()) else {
        return estimate;
    };
    if let Some(scaled) = last.marks.window_scaled {
        estimate = estimate.with("window_scaled", scaled);
    }
    found.window_scaled = last.marks.window_scaled;
    found.reordered = last.marks.reordered.map(f64::from);
    found.needless = last.marks.needless.map(f64::from);
    found.retransmitted_segments = Some(f64::from(last.retransmitted_segments));
    for (name, count) in [
        ("reordered", last.marks.reordered),
        ("needless_retransmissions", last.marks.needless),
        ("path_mtu_octets", last.marks.path_mtu_octets),
    ] {
        if let Some(count) = count {
            estimate = estimate.with(name, count);
        }
    }
    if let Some((burstiness, spacing)) = loss_pattern(seen) {
        estimate = estimate.with("loss_burstiness", burstiness);
        found.pattern = finite(burstiness)
            .map(|burstiness| LossPattern { burstiness, spacing_variation: spacing.and_then(finite) });
        if let Some(spacing) = spacing {
            estimate = estimate.with("loss_spacing_variation", spacing);
        }
    }
    estimate.with("retransmitted_segments", last.retransmitted_segments)
}

/// What a test of the standard length would show, its ramp counted, if this one ended early.
fn over_standard(known: &Known, bps: f64, elapsed: f64) -> Option<f64> {
    known.stop.as_ref()?;
    let last = known.window.last().or(known.ramp.last())?;
    let newest = || last.streams.iter().filter_map(|stream| stream.samples.last());
    let acked = newest().map(|sample| sample.acked_octets).fold(0, u64::saturating_add);
    let first = newest().next()?;
    let floor = first.min_rtt.unwrap_or(first.rtt);
    let congestion = &last.streams.first()?.congestion;
    Some(over_20_s(congestion, floor, acked, elapsed, bps))
}

/// What a test of 20 s would show, payload bit/s, its ramp counted: one that acknowledged so many
/// octets until it ended early, after so many seconds, at this rate. `floor` is the empty round
/// trip, which BBR looks for now and then.
pub fn over_20_s(congestion: &Congestion, floor: Duration, acked_octets: u64, seconds: f64, bps: f64) -> f64 {
    let looks = theory::looks(congestion, floor.as_secs_f64());
    let rest = (STANDARD_SECONDS - seconds).max(0.0);
    (acked_octets as f64 * 8.0 + bps * (1.0 - looks) * rest) / (seconds + rest).max(1e-9)
}

/// What the test took, and what it saved.
fn cost_evidence(estimate: Estimate, known: &Known, bps: f64) -> Estimate {
    let octets = |reports: &[TransferReport]| {
        reports.iter().map(|report| series::sums(report).sent).fold(0, u64::saturating_add)
    };
    let time = |reports: &[TransferReport]| {
        let lasted = reports.iter().map(|report| report.ended.since(report.began));
        lasted.sum::<Duration>()
    };
    let (ramp, window) = (time(&known.ramp), time(&known.window));
    let all = octets(&known.ramp).saturating_add(octets(&known.window));
    let standard_octets = bps * STANDARD_SECONDS / 8.0;
    let estimate = match over_standard(known, bps, (ramp + window).as_secs_f64()) {
        Some(over) => estimate.with("over_20_s_bps", rounded(over)),
        None => estimate,
    };
    estimate
        .with("ramp_end", known.ramp_end.map_or("none", RampEnd::name))
        .with("ramp_octets", octets(&known.ramp))
        .with("ramp_ns", Delta::from(ramp))
        .with("window_ns", Delta::from(window))
        .with("threshold_cached", known.cached_threshold)
        .with("saved_time_share", 1.0 - (ramp + window).as_secs_f64() / STANDARD_SECONDS)
        .with("saved_octets_share", 1.0 - all as f64 / standard_octets.max(1.0))
}
