//! Which limit explains a transfer's rate: a table of tests over the counters, first match first.
//! Pure.
//!
//! One interval or a whole test is judged by the same table ([`limits`]); methods call `diagnose`.
//! Every verdict rests on figures that are handed out beside it ([`Limits`]). The order is the
//! order in which limits bind: what never let a segment through, then the hosts' programs, windows
//! and buffers, then the interface, then the path.
//!
//! The tests are those of a kernel's counters: `busy`, `rwnd_limited` and `sndbuf_limited` are
//! exclusive times, so that a share of the interval tells how much of it a limit was binding.
//! Thresholds stand beside them; those without a source are ours, and a confusion matrix over
//! induced limits (`docs/results/verdicts.md`) holds them.

mod hosts;
mod loss;
mod shaper;
pub mod theory;
mod udp;

use std::time::Duration;

use narrows_units::{BitRate, Framing, Layer};

use narrows_probe::facts::PathFacts;
use narrows_probe::probes::{TcpSample, TcpState, TransferReport};
use narrows_train::bulk::series;
use narrows_train::bulk::series::{Slot, Sums};

pub use loss::pattern as loss_pattern;
pub use narrows_probe::outcome::LimitingFactor;
pub use udp::{UdpLimits, UdpStreamState, udp_limits};

/// Shares of the measured time, each 0..1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    /// Nothing was outstanding or waiting: the application was idle.
    pub idle: f64,
    /// Stalled by the peer's window.
    pub peer_window: f64,
    /// Stalled by this side's send buffer.
    pub send_buffer: f64,
    /// The rest: congestion window, pacing, network.
    pub network: f64,
}

/// What the tests look at.
pub struct TransferSamples<'a> {
    /// Reports of all streams.
    pub reports: &'a [TransferReport],
    /// The transfer in slots of time.
    pub slots: &'a [Slot],
    /// Sums over all streams.
    pub sums: Sums,
    /// Mean rate of TCP payload, bit/s.
    pub bps: f64,
    /// What was known of hosts and path.
    pub facts: &'a PathFacts,
    /// Pacing that was asked for, per stream, or a user's cap.
    pub pacing: Option<BitRate>,
}

/// A share of the time that makes a stall the limit; a CPU share that makes a thread the limit.
const STALLED: f64 = 0.2;
const BUSY: f32 = 0.9;
/// Rates this close to a pacing rate, and to the ceiling of an interface, are set by it.
const PACED: f64 = 0.95;
const CEILING: f64 = 0.98;
/// Retransmission timeouts after which full segments that were never acknowledged are taken for too
/// long (ours).
const UNHEARD: u32 = 2;
/// The peer's window falls below this share of what it was: nobody reads in time (ours).
const CLOSED: f64 = 0.8;

/// All verdicts that hold, the binding one first; and the shares behind them.
pub fn diagnose(seen: &TransferSamples<'_>) -> (Vec<LimitingFactor>, Shares) {
    let shares = shares(seen.reports);
    if unheard(seen) {
        return (vec![LimitingFactor::MtuBlackHole], shares);
    }
    let cpu = |of: fn(&TransferReport) -> Option<f32>| seen.reports.iter().filter_map(of).fold(0.0, f32::max) > BUSY;
    let blocked = shares.send_buffer > STALLED;
    // Linux calls a rate the application's whenever nothing unsent waits, also where that is
    // because the send buffer has no room.
    let application = shares.idle > STALLED || (application_limits(seen.reports) && !blocked);
    let held = shares.peer_window > STALLED || window_full(seen.reports);
    let receiving = cpu(|report| report.receiver_cpu) || (held && window_closes(seen.reports));
    let losses = loss::verdict(seen);
    let sending = cpu(|report| report.sender_cpu);
    let table = [
        (sending, LimitingFactor::SendingHost),
        (application, LimitingFactor::Application),
        (receiving, LimitingFactor::ReceivingHost),
        (held, LimitingFactor::PeerWindow),
        (blocked, LimitingFactor::SendBuffer),
        (paced(seen), LimitingFactor::Pacing),
        (at_interface(seen), LimitingFactor::Interface),
        (losses == Some(LimitingFactor::Reordering), LimitingFactor::Reordering),
        (losses == Some(LimitingFactor::Shaper), LimitingFactor::Shaper),
        (losses == Some(LimitingFactor::Policer), LimitingFactor::Policer),
        (losses == Some(LimitingFactor::Queue), LimitingFactor::Queue),
        (losses == Some(LimitingFactor::RandomLoss), LimitingFactor::RandomLoss),
        (losses == Some(LimitingFactor::Loss), LimitingFactor::Loss),
        (!held && growing(seen), LimitingFactor::Growing),
    ];
    let verdicts = table.into_iter().filter(|(holds, _)| *holds).map(|(_, verdict)| verdict);
    (verdicts.collect(), shares)
}

fn paced(seen: &TransferSamples<'_>) -> bool {
    let (mtu, streams) = (u32::from(seen.facts.path_mtu), streams(seen.reports));
    let payload = |rate| Framing::BARE.convert(rate, Layer::Ip, Layer::TcpPayload, mtu, seen.facts.ipv6);
    let rate = seen.pacing.and_then(payload);
    rate.is_some_and(|rate| late_bps(seen) >= PACED * rate.as_f64() * streams)
}

/// The rate of the second half, if that is higher: the ramp is no reason to doubt what follows it.
fn late_bps(seen: &TransferSamples<'_>) -> f64 {
    let late: Vec<f64> = seen.slots[seen.slots.len() / 2..].iter().map(|slot| slot.bps).collect();
    narrows_stat::median(&late).map_or(seen.bps, |late| late.max(seen.bps))
}

/// What held a transfer down over one report, for whoever has samples and runs no method.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// All verdicts that hold, the binding one first; none if nothing but the path and its traffic
    /// held it.
    pub verdicts: Vec<LimitingFactor>,
    /// Share of the time in which nothing was outstanding or waiting.
    pub idle: f64,
    /// Share stalled by the peer's window.
    pub peer_window: f64,
    /// Share stalled by this side's send buffer.
    pub send_buffer: f64,
    /// The rest: congestion window, pacing, network.
    pub network: f64,
    /// Share of what was sent that was sent again.
    pub resent: f64,
    /// Acknowledged payload, bit/s.
    pub acked_bps: f64,
    /// How much longer than the shortest the median round trip is.
    pub queued: Duration,
}

/// Judges a report by the same table as the method does. `pacing` is the IP-layer rate that was
/// asked for. `None` if it has too few samples.
pub fn limits(report: &TransferReport, facts: &PathFacts, pacing: Option<BitRate>) -> Option<Limits> {
    let slots = series::slots(report);
    let seconds: f64 = slots.iter().map(|slot| slot.seconds).sum();
    if seconds <= 0.0 {
        return None;
    }
    let sums = series::sums(report);
    let bps = sums.acked as f64 * 8.0 / seconds;
    let seen = TransferSamples { reports: std::slice::from_ref(report), slots: &slots, sums, bps, facts, pacing };
    let (limiting_factors, shares) = diagnose(&seen);
    Some(Limits {
        verdicts: limiting_factors,
        idle: shares.idle,
        peer_window: shares.peer_window,
        send_buffer: shares.send_buffer,
        network: shares.network,
        resent: sums.loss(),
        acked_bps: bps,
        queued: loss::queued(&seen),
    })
}

/// Connections that sent at once.
fn streams(reports: &[TransferReport]) -> f64 {
    reports.iter().map(|report| report.streams.len()).max().unwrap_or(1).max(1) as f64
}

/// Connections stand, and were open for small packets; but no full segment was ever acknowledged,
/// though sent again and again.
fn unheard(seen: &TransferSamples<'_>) -> bool {
    fn last(report: &TransferReport) -> impl Iterator<Item = &TcpSample> {
        report.streams.iter().filter_map(|stream| stream.samples.last())
    }
    let tried = |sample: &TcpSample| sample.timeouts.unwrap_or(sample.retransmitted_segments) >= UNHEARD;
    let silent = |sample: &TcpSample| sample.acked_octets < u64::from(sample.mss_octets);
    // Timeouts add up: the first segments of a transfer have few of them.
    let ended = seen.reports.iter().rev().find(|report| last(report).next().is_some());
    ended.is_some_and(|report| last(report).all(tried)) && seen.reports.iter().flat_map(last).all(silent)
}

/// The peer's window was open and shuts: its program does not read.
fn window_closes(reports: &[TransferReport]) -> bool {
    let windows: Vec<f64> = samples(reports).filter_map(|sample| sample.peer_window_octets.map(f64::from)).collect();
    let (early, late) = windows.split_at(windows.len() / 2);
    let most = early.iter().copied().fold(0.0, f64::max);
    narrows_stat::median(late).is_some_and(|typical| typical < CLOSED * most)
}

fn samples(reports: &[TransferReport]) -> impl Iterator<Item = &TcpSample> {
    reports.iter().flat_map(|report| &report.streams).flat_map(|stream| &stream.samples)
}

/// Means over all streams and segments, weighted by time.
fn shares(reports: &[TransferReport]) -> Shares {
    let (mut wall, mut busy, mut peer, mut buffer) = (0.0, 0.0, 0.0, 0.0);
    for stream in reports.iter().flat_map(|report| &report.streams) {
        let (Some(from), Some(to)) = (stream.samples.first(), stream.samples.last()) else {
            continue;
        };
        let passed = |of: fn(&TcpSample) -> Option<Duration>| Some(of(to)?.saturating_sub(of(from)?).as_secs_f64());
        let time = to.at.since(from.at).as_secs_f64();
        wall += time;
        // A kernel without the counter says nothing against the application.
        busy += passed(|s| s.busy).map_or(time, |busy| busy.min(time));
        peer += passed(|s| s.limited_by_receive_window).unwrap_or(0.0);
        buffer += passed(|s| s.limited_by_send_buffer).unwrap_or(0.0);
    }
    if wall <= 0.0 {
        return Shares::default();
    }
    Shares {
        idle: 1.0 - busy / wall,
        peer_window: (peer / wall).min(1.0),
        send_buffer: (buffer / wall).min(1.0),
        network: ((busy - peer - buffer) / wall).max(0.0),
    }
}

/// Most delivery-rate samples were limited by the application while nothing waited to be sent.
fn application_limits(reports: &[TransferReport]) -> bool {
    let rated: Vec<bool> = samples(reports)
        .filter_map(|sample| {
            let (_, limited) = sample.delivery_rate?;
            Some(limited && sample.unsent_octets? < sample.mss_octets)
        })
        .collect();
    rated.iter().filter(|limited| **limited).count() * 2 > rated.len()
}

/// Most samples had nine tenths of the peer's window in flight.
fn window_full(reports: &[TransferReport]) -> bool {
    let full: Vec<bool> =
        samples(reports).filter_map(|sample| Some(series::peer_window_used(sample)? >= series::WINDOW_FULL)).collect();
    full.iter().filter(|full| **full).count() * 2 > full.len()
}

fn at_interface(seen: &TransferSamples<'_>) -> bool {
    let Some(rate) = seen.facts.sender.interface_rate.filter(|_| !seen.facts.sender.virtual_interface) else {
        return false;
    };
    let (mtu, ipv6) = (u32::from(seen.facts.path_mtu), seen.facts.ipv6);
    let ceiling = Framing::ETHERNET.convert(rate, Layer::Wire, Layer::TcpPayload, mtu, ipv6);
    ceiling.is_some_and(|ceiling| late_bps(seen) >= CEILING * ceiling.as_f64())
}

/// The windows only grew, nothing was lost, and the rate grew with them.
fn growing(seen: &TransferSamples<'_>) -> bool {
    let calm = samples(seen.reports).all(|sample| sample.state == TcpState::Open);
    let windows: Vec<u32> = seen.slots.iter().map(|slot| slot.cwnd_segments).collect();
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return false;
    };
    let rising = windows.windows(2).all(|pair| pair[0] <= pair[1]) && f64::from(*last) > 1.1 * f64::from(*first);
    // The last third against the one before: a ramp that is over is none.
    let third = seen.slots.len() / 3;
    let (rest, late) = seen.slots.split_at(seen.slots.len() - third);
    let early = &rest[rest.len().saturating_sub(third.max(1))..];
    let mean = |slots: &[Slot]| slots.iter().map(|slot| slot.bps).sum::<f64>() / slots.len().max(1) as f64;
    calm && rising && seen.sums.retransmitted == 0 && mean(late) > 1.05 * mean(early)
}
