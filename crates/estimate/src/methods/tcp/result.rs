//! From segments to an outcome.

use std::time::Duration;

use units::{BitRate, Delta, Layer, Metric};

use super::limit::{Blame, Seen, diagnose};
use super::ramp::RampEnd;
use super::theory;
use crate::facts::PathFacts;
use crate::methods::bulk::{self, series};
use crate::outcome::{Caveat, Confidence, Estimate, Limit, Outcome, Reason};
use crate::probe::{Congestion, TransferReport};

/// What the transfer has told.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Segments of the ramp, in order.
    pub(super) ramp: Vec<TransferReport>,
    /// How it ended.
    pub(super) ramp_end: Option<RampEnd>,
    /// The kernel had a threshold from an earlier connection.
    pub(super) cached_threshold: bool,
    /// Still in slow start when it was given up.
    pub(super) growing: bool,
    /// Segments of the measurement.
    pub(super) window: Vec<TransferReport>,
    /// What the last of them is worth.
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

/// A standard test runs this long; savings are reckoned against it (`[QuickMode03]` compares with 20 s).
const STANDARD_SECONDS: f64 = 20.0;
/// Rates of two halves further apart than this are not stable; nor are means less sure than that (ours).
const HALVES_APART: f64 = 0.10;
const UNSURE: f64 = 0.05;
const FEWEST_SLOTS: usize = 6;
/// Round trips longer than the shortest by this factor went through a queue (ours).
const QUEUED: f64 = 1.05;
/// BBR lets its window fall to this for 200 ms, to see the path's empty delay; such slots say nothing of the rate.
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

/// Whether a segment's rate stands: its halves agree, and its mean is sure, neighbours' likeness allowed for.
fn is_stable(report: &TransferReport) -> bool {
    let rates: Vec<f64> = telling(report).iter().map(|slot| slot.bps).collect();
    if rates.len() < FEWEST_SLOTS {
        return false;
    }
    let (early, late) = rates.split_at(rates.len() / 2);
    let (Some(early), Some(late)) = (stat::mean(early), stat::mean(late)) else {
        return false;
    };
    let Ok(interval) = stat::mean_interval_correlated(&rates, 0.95) else {
        return false;
    };
    let mean = f64::midpoint(early, late);
    mean > 0.0 && (late / early - 1.0).abs() < HALVES_APART && interval.width() / 2.0 < UNSURE * mean
}

/// Whether the window alone holds the rate, and the path does not yet: slow start was left without a loss, nothing has been lost
/// since, and the round trips show no queue. HyStart may leave slow start far below what the path would carry.
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
    // The newest segment alone if it is stable, else all of the measurement, else the ramp.
    let measured = match known.window.as_slice() {
        [.., last] if known.standing != Standing::Unstable => std::slice::from_ref(last),
        [] => known.ramp.as_slice(),
        all => all,
    };
    let slots: Vec<_> = measured.iter().flat_map(telling).collect();
    let sums = measured
        .iter()
        .map(series::sums)
        .fold(series::Sums::default(), series::Sums::plus);
    let Some(by_sender) = series::mean_bps(&slots).filter(|bps| *bps > 0.0) else {
        return Outcome::inconclusive(reason.unwrap_or(Reason::NoAnswer));
    };
    let received = measured.last().and_then(received_bps).filter(|_| measured.len() == 1);
    let bps = received.unwrap_or(by_sender);
    let rates: Vec<f64> = slots.iter().map(|slot| slot.bps).collect();
    let half = stat::mean_interval_correlated(&rates, 0.95).map_or(0.0, |interval| interval.width() / 2.0);
    let mut estimate = Estimate::new(
        Metric::TcpAchievableSingle,
        Some(Layer::TcpPayload),
        bulk::whole(bps),
        bulk::whole((bps - half).max(0.0)),
        bulk::whole(bps + half),
    );
    let seconds: f64 = slots.iter().map(|slot| slot.seconds).sum();
    estimate.interval = Duration::try_from_secs_f64(seconds).ok();
    let seen = Seen {
        reports: measured,
        slots: &slots,
        sums,
        bps,
        facts,
        pacing,
    };
    estimate = blame(estimate, &seen);
    estimate = judge(estimate, known, reason.is_some());
    estimate = window_evidence(estimate, known, &seen, seconds);
    estimate = estimate
        .with("sender_bps", bulk::whole(by_sender))
        .with("slot_bps", rates);
    if let Some(rate) = received {
        estimate = estimate.with("receiver_bps", bulk::whole(rate));
    }
    cost_evidence(estimate, known, bps).into()
}

/// The receiver's own account of a finished segment, if it covers most of it.
fn received_bps(report: &TransferReport) -> Option<f64> {
    let (octets, time) = report.far_end?;
    let lasted = report.ended.since(report.began);
    (time * 2 >= lasted && !time.is_zero()).then(|| octets as f64 * 8.0 / time.as_secs_f64())
}

fn blame(mut estimate: Estimate, seen: &Seen<'_>) -> Estimate {
    let (verdicts, shares) = diagnose(seen);
    estimate.limited_by = verdicts.first().map_or(Limit::Path, |blame| blame.limit());
    for blame in &verdicts {
        estimate = match blame {
            Blame::SendingHost => estimate.caveat(Caveat::SenderLimited),
            Blame::ReceivingHost => estimate.caveat(Caveat::ReceiverLimited),
            Blame::Policer => estimate.caveat(Caveat::Policed),
            Blame::Growing => estimate.caveat(Caveat::TestTooShort),
            Blame::PeerWindow
            | Blame::SendBuffer
            | Blame::Pacing
            | Blame::Interface
            | Blame::Queue
            | Blame::RandomLoss => estimate,
        };
    }
    let names: Vec<&str> = verdicts.iter().map(|blame| blame.name()).collect();
    estimate
        .with("limit", names.first().copied().unwrap_or("path"))
        .with("all_limits", names.join("; ").as_str())
        .with("share_idle", shares.idle)
        .with("share_peer_window", shares.peer_window)
        .with("share_send_buffer", shares.send_buffer)
        .with("share_network", shares.network)
}

/// How much the number is worth.
fn judge(mut estimate: Estimate, known: &Known, stopped: bool) -> Estimate {
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
    if known.standing == Standing::Unstable {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::VariableRate);
        if !known.full {
            estimate = estimate.caveat(Caveat::NotConverged);
        }
    }
    if known.standing == Standing::Unfilled {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::TestTooShort);
    }
    estimate
}

/// The state of the connection, and how far a short window may mislead.
fn window_evidence(mut estimate: Estimate, known: &Known, seen: &Seen<'_>, seconds: f64) -> Estimate {
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
        .with(
            "slow_start_expected_ns",
            Delta::from(theory::slow_start(segments, floor)),
        )
        .with("worst_case_share", share)
        .with("stable", known.standing == Standing::Stable);
    if let Some(recovery) = recovery {
        estimate = estimate.with("recovery_time_ns", bulk::whole(recovery * 1e9));
    }
    if let Some(octets) = sample.peer_window_octets {
        estimate = estimate.with("peer_window_octets", octets);
    }
    if let Some(octets) = stream.granted_send_buffer_octets {
        estimate = estimate.with("granted_send_buffer_octets", octets);
    }
    estimate
}

/// What the test took, and what it saved.
fn cost_evidence(estimate: Estimate, known: &Known, bps: f64) -> Estimate {
    let octets = |reports: &[TransferReport]| {
        reports
            .iter()
            .map(|report| series::sums(report).sent)
            .fold(0, u64::saturating_add)
    };
    let time = |reports: &[TransferReport]| {
        let lasted = reports.iter().map(|report| report.ended.since(report.began));
        lasted.sum::<Duration>()
    };
    let (ramp, window) = (time(&known.ramp), time(&known.window));
    let all = octets(&known.ramp).saturating_add(octets(&known.window));
    let standard_octets = bps * STANDARD_SECONDS / 8.0;
    estimate
        .with("ramp_end", known.ramp_end.map_or("none", RampEnd::name))
        .with("ramp_octets", octets(&known.ramp))
        .with("ramp_ns", Delta::from(ramp))
        .with("window_ns", Delta::from(window))
        .with("threshold_cached", known.cached_threshold)
        .with(
            "saved_time_share",
            1.0 - (ramp + window).as_secs_f64() / STANDARD_SECONDS,
        )
        .with("saved_octets_share", 1.0 - all as f64 / standard_octets.max(1.0))
}
