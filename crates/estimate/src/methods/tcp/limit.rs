//! Which limit to blame: a table of tests over the counters, first match first. Pure.

use std::time::Duration;

use units::{BitRate, Framing, Layer};

use crate::facts::PathFacts;
use crate::methods::bulk::series::{self, Slot, Sums};
use crate::outcome::Limit;
use crate::probe::{Congestion, TcpSample, TcpState, TransferReport};

use super::theory;

/// A verdict on what held the rate down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// The application did not offer enough, or its thread was busy.
    SendingHost,
    /// The receiving application or its thread was busy.
    ReceivingHost,
    /// The peer's window.
    PeerWindow,
    /// This side's send buffer, or a window that was asked for.
    SendBuffer,
    /// A pacing rate or a user's cap.
    Pacing,
    /// The interface's own rate.
    Interface,
    /// Loss without delay at a flat rate.
    Policer,
    /// Loss after the delay has risen: a queue that overflows.
    Queue,
    /// Loss without delay at about the rate that the loss model gives.
    RandomLoss,
    /// The window still grows.
    Growing,
}

impl Blame {
    /// What evidence calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SendingHost => "sending host",
            Self::ReceivingHost => "receiving host",
            Self::PeerWindow => "peer window",
            Self::SendBuffer => "send buffer",
            Self::Pacing => "pacing",
            Self::Interface => "interface",
            Self::Policer => "policer",
            Self::Queue => "queue",
            Self::RandomLoss => "random loss",
            Self::Growing => "window still growing",
        }
    }

    /// The same as the machine contract has it.
    pub(super) fn limit(self) -> Limit {
        match self {
            Self::SendingHost | Self::Interface => Limit::Sender,
            Self::ReceivingHost => Limit::Receiver,
            Self::PeerWindow | Self::SendBuffer => Limit::Window,
            Self::Pacing => Limit::Budget,
            Self::Policer => Limit::Shaper,
            Self::Queue | Self::RandomLoss | Self::Growing => Limit::Path,
        }
    }
}

/// Shares of the measured time, each 0..1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Shares {
    /// Nothing was outstanding or waiting: the application was idle.
    pub(super) idle: f64,
    /// Stalled by the peer's window.
    pub(super) peer_window: f64,
    /// Stalled by this side's send buffer.
    pub(super) send_buffer: f64,
    /// The rest: congestion window, pacing, network.
    pub(super) network: f64,
}

/// What the tests look at.
pub(super) struct Seen<'a> {
    pub(super) reports: &'a [TransferReport],
    pub(super) slots: &'a [Slot],
    pub(super) sums: Sums,
    pub(super) bps: f64,
    pub(super) facts: &'a PathFacts,
    /// Pacing that was asked for, per stream, or a user's cap.
    pub(super) pacing: Option<BitRate>,
}

/// A share of the time that makes a stall the limit; a CPU share that makes a thread the limit.
const STALLED: f64 = 0.2;
const BUSY: f32 = 0.9;
/// Rates this close to a pacing rate, and to the ceiling of an interface, are set by it.
const PACED: f64 = 0.95;
const CEILING: f64 = 0.98;
/// Loss from which a policer is considered (ours: a shallow queue loses less), and the steadiness of its rate.
const POLICED_LOSS: f64 = 0.02;
const POLICED_VARIATION: f64 = 0.10;

/// All verdicts that hold, the binding one first; and the shares behind them.
pub(super) fn diagnose(seen: &Seen<'_>) -> (Vec<Blame>, Shares) {
    let shares = shares(seen.reports);
    let cpu = |of: fn(&TransferReport) -> Option<f32>| seen.reports.iter().filter_map(of).fold(0.0, f32::max) > BUSY;
    let sending = shares.idle > STALLED || cpu(|report| report.sender_cpu) || application_limits(seen.reports);
    let window = shares.peer_window > STALLED || window_full(seen.reports);
    let receiving = cpu(|report| report.receiver_cpu);
    let paced = seen.pacing.is_some_and(|rate| {
        let payload = Framing::BARE.convert(
            rate,
            Layer::Ip,
            Layer::TcpPayload,
            u32::from(seen.facts.path_mtu),
            false,
        );
        payload.is_some_and(|rate| seen.bps >= PACED * rate.as_f64())
    });
    let losses = losses(seen);
    let table = [
        (sending, Blame::SendingHost),
        (receiving, Blame::ReceivingHost),
        (window, Blame::PeerWindow),
        (shares.send_buffer > STALLED, Blame::SendBuffer),
        (paced, Blame::Pacing),
        (at_interface(seen), Blame::Interface),
        (losses == Some(Blame::Policer), Blame::Policer),
        (losses == Some(Blame::Queue), Blame::Queue),
        (losses == Some(Blame::RandomLoss), Blame::RandomLoss),
        (!window && growing(seen), Blame::Growing),
    ];
    let verdicts = table.into_iter().filter(|(holds, _)| *holds).map(|(_, blame)| blame);
    (verdicts.collect(), shares)
}

/// What held a transfer down over one report, for whoever has samples and runs no method.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// All verdicts that hold, the binding one first; none if nothing but the path and its traffic held it.
    pub verdicts: Vec<&'static str>,
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
}

/// Judges a report by the same table as the method does. `pacing` is the IP-layer rate that was asked for. `None` if it has too few
/// samples.
pub fn limits(report: &TransferReport, facts: &PathFacts, pacing: Option<BitRate>) -> Option<Limits> {
    let slots = series::slots(report);
    let seconds: f64 = slots.iter().map(|slot| slot.seconds).sum();
    if seconds <= 0.0 {
        return None;
    }
    let sums = series::sums(report);
    let bps = sums.acked as f64 * 8.0 / seconds;
    let (blames, shares) = diagnose(&Seen {
        reports: std::slice::from_ref(report),
        slots: &slots,
        sums,
        bps,
        facts,
        pacing,
    });
    Some(Limits {
        verdicts: blames.into_iter().map(Blame::name).collect(),
        idle: shares.idle,
        peer_window: shares.peer_window,
        send_buffer: shares.send_buffer,
        network: shares.network,
        resent: sums.loss(),
        acked_bps: bps,
    })
}

fn samples(reports: &[TransferReport]) -> impl Iterator<Item = &TcpSample> {
    reports
        .iter()
        .flat_map(|report| &report.streams)
        .flat_map(|stream| &stream.samples)
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
    let full: Vec<bool> = samples(reports)
        .filter_map(|sample| Some(series::peer_window_used(sample)? >= series::WINDOW_FULL))
        .collect();
    full.iter().filter(|full| **full).count() * 2 > full.len()
}

fn at_interface(seen: &Seen<'_>) -> bool {
    let Some(rate) = seen
        .facts
        .sender
        .interface_rate
        .filter(|_| !seen.facts.sender.virtual_interface)
    else {
        return false;
    };
    let (mtu, ipv6) = (u32::from(seen.facts.path_mtu), seen.facts.ipv6);
    let ceiling = Framing::ETHERNET.convert(rate, Layer::Wire, Layer::TcpPayload, mtu, ipv6);
    ceiling.is_some_and(|ceiling| seen.bps >= CEILING * ceiling.as_f64())
}

/// What kind of loss there was, if any.
fn losses(seen: &Seen<'_>) -> Option<Blame> {
    let loss = seen.sums.loss();
    if loss <= 0.0 {
        return None;
    }
    let floor = samples(seen.reports)
        .map(|sample| sample.min_rtt.unwrap_or(sample.rtt))
        .min()?;
    let inflated = |rtt: Duration| rtt.saturating_sub(floor) >= Duration::from_millis(2).max(floor / 10);
    let hit: Vec<&Slot> = seen.slots.iter().filter(|slot| slot.retransmitted > 0).collect();
    let low = hit.iter().filter(|slot| !inflated(slot.rtt)).count();
    if low * 10 < hit.len() * 9 || hit.is_empty() {
        return Some(Blame::Queue);
    }
    let rates: Vec<f64> = seen.slots.iter().map(|slot| slot.bps).collect();
    let flat = stat::coefficient_of_variation(&rates).is_some_and(|variation| variation < POLICED_VARIATION);
    if loss >= POLICED_LOSS && flat {
        return Some(Blame::Policer);
    }
    let stream = seen.reports.first()?.streams.first()?;
    let mss = f64::from(stream.samples.first()?.mss_octets);
    let model = theory::loss_model_bps(&stream.congestion, loss, floor, mss);
    match (model, &stream.congestion) {
        (Some(model), _) if (0.5..=2.0).contains(&(seen.bps / model)) => Some(Blame::RandomLoss),
        (None, Congestion::Bbr | Congestion::Other(_)) => Some(Blame::RandomLoss),
        _ => Some(Blame::Queue),
    }
}

/// The windows only grew, nothing was lost, and the rate grew with them.
fn growing(seen: &Seen<'_>) -> bool {
    let calm = samples(seen.reports).all(|sample| sample.state == TcpState::Open);
    let windows: Vec<u32> = seen.slots.iter().map(|slot| slot.cwnd_segments).collect();
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return false;
    };
    let rising = windows.windows(2).all(|pair| pair[0] <= pair[1]) && f64::from(*last) > 1.1 * f64::from(*first);
    let (early, late) = seen.slots.split_at(seen.slots.len() / 2);
    let mean = |slots: &[Slot]| slots.iter().map(|slot| slot.bps).sum::<f64>() / slots.len().max(1) as f64;
    calm && rising && seen.sums.retransmitted == 0 && mean(late) > 1.05 * mean(early)
}
