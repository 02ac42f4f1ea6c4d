//! What no world tells and no method asks: a file that says so was not written by a recorder, and
//! its numbers would overflow whoever computes with them.

use std::time::Duration;

use narrows_probe::probes::{CaptureReport, LoadReport, Probe, Train, TrainReport, TransferReport};
use narrows_probe::{HostFacts, PathFacts};
use narrows_units::{Clock, Stamp};

use crate::header::Header;
use crate::run::{Answer, End, Exchange, Request};

/// Longest time of anything: ours, a day.
const LONGEST: Duration = Duration::from_secs(86_400);
/// Largest stamp: ours, a century of nanoseconds from the clock's origin.
const LATEST: u64 = 3_200_000_000_000_000_000;
/// Largest count of octets or packets: ours, some 10^15.
const MOST: u64 = 1 << 50;
/// Smallest packet: an IPv4 header. Smallest MTU: RFC 791.
const LEAST_OCTETS: u16 = 20;
const LEAST_MTU: u16 = 68;

type Checked = Result<(), &'static str>;

fn check(good: bool, why: &'static str) -> Checked {
    if good { Ok(()) } else { Err(why) }
}

fn time(time: Duration) -> Checked {
    check(time <= LONGEST, "a time is longer than a day")
}

fn stamp<C: Clock>(stamp: Stamp<C>) -> Checked {
    check(stamp.nanos().unsigned_abs() <= LATEST, "a stamp is a century away")
}

fn count(count: u64) -> Checked {
    check(count <= MOST, "a count is implausible")
}

fn octets(octets: u16) -> Checked {
    check(octets >= LEAST_OCTETS, "a packet is shorter than its header")
}

fn share(share: Option<f32>) -> Checked {
    check(share.is_none_or(f32::is_finite), "a share is no number")
}

pub(crate) fn header(header: &Header) -> Checked {
    facts(&header.facts)?;
    count(header.budget.octets.min(MOST))?;
    time(header.budget.time)
}

fn facts(facts: &PathFacts) -> Checked {
    check(facts.path_mtu >= LEAST_MTU, "the path's MTU is below every path's")?;
    time(facts.rtt)?;
    host(&facts.sender)?;
    host(&facts.receiver)
}

fn host(facts: &HostFacts) -> Checked {
    let times = [facts.send_cost, facts.receive_cost, facts.clock_resolution, facts.stamp_error, facts.min_gap];
    times.into_iter().try_for_each(time)
}

pub(crate) fn end(end: &End) -> Checked {
    stamp(end.read.0)?;
    stamp(end.read.1)
}

pub(crate) fn exchange(exchange: &Exchange) -> Checked {
    stamp(exchange.read.0)?;
    stamp(exchange.read.1)?;
    match &exchange.asked {
        Request::Wait { until } => stamp(*until)?,
        Request::Probe(asked) => probe(asked)?,
    }
    match (&exchange.asked, &exchange.answer) {
        (Request::Probe(Probe::Train(asked)), Answer::Train(report)) => train(asked, report),
        (Request::Probe(Probe::Load(_)), Answer::Load(report)) => load(report),
        (Request::Probe(Probe::Transfer(_)), Answer::Transfer(report)) => transfer(report),
        (Request::Probe(Probe::Capture(_)), Answer::Capture(report)) => capture(report),
        (Request::Probe(_), Answer::Refused(_))
        | (Request::Wait { .. }, Answer::TimerFired)
        | (_, Answer::Fault(_)) => Ok(()),
        _ => Err("a question has the answer to another one"),
    }
}

fn probe(probe: &Probe) -> Checked {
    match probe {
        Probe::Train(train) => {
            check(!train.packets.is_empty(), "a train is empty")?;
            let whole = train.packets.iter().try_fold(Duration::ZERO, |sum, packet| sum.checked_add(packet.gap));
            time(whole.unwrap_or(Duration::MAX))?;
            train.packets.iter().try_for_each(|packet| octets(packet.ip_octets))
        }
        Probe::Load(load) => {
            octets(load.ip_octets)?;
            time(load.duration)?;
            time(load.status_every)?;
            check(load.streams > 0, "a load has no stream")
        }
        Probe::Transfer(transfer) => {
            time(transfer.duration)?;
            time(transfer.sample_every)?;
            check(transfer.streams > 0, "a transfer has no stream")
        }
        Probe::Capture(capture) => time(capture.duration),
    }
}

fn train(asked: &Train, report: &TrainReport) -> Checked {
    use narrows_probe::probes::{Fate, PacingCheck};
    check(asked.packets.len() == report.arrivals.len(), "a train has not one row per packet")?;
    if let PacingCheck::Broken { worst } = report.pacing {
        time(worst)?;
    }
    report.arrivals.iter().try_for_each(|row| {
        octets(row.ip_octets)?;
        stamp(row.departed)?;
        match row.fate {
            Fate::Received(at) => stamp(at),
            Fate::Echoed { returned, turned } => stamp(returned).and(turned.map_or(Ok(()), stamp)),
            Fate::Answered(reply) => stamp(reply.returned),
            Fate::Lost => Ok(()),
        }
    })
}

fn load(report: &LoadReport) -> Checked {
    stamp(report.began)?;
    stamp(report.ended)?;
    share(report.sender_cpu)?;
    [report.sent_packets, report.sent_ip_octets, report.send_failures].into_iter().try_for_each(count)?;
    report.statuses.iter().try_for_each(|status| {
        stamp(status.from)?;
        stamp(status.to)?;
        let counts =
            [status.packets, status.ip_octets, status.lost, status.reordered, status.duplicates, status.local_drops];
        counts.into_iter().try_for_each(count)?;
        status.delay_above_min.map_or(Ok(()), |(least, mean, most)| [least, mean, most].into_iter().try_for_each(time))
    })
}

fn transfer(report: &TransferReport) -> Checked {
    stamp(report.began)?;
    stamp(report.ended)?;
    share(report.sender_cpu)?;
    share(report.receiver_cpu)?;
    if let Some((octets, took)) = report.remote_read {
        count(octets)?;
        time(took)?;
    }
    let samples = report.streams.iter().flat_map(|stream| &stream.samples);
    samples.into_iter().try_for_each(|sample| {
        stamp(sample.at)?;
        let times = [
            Some(sample.rtt),
            Some(sample.rtt_var),
            sample.min_rtt,
            sample.busy,
            sample.limited_by_receive_window,
            sample.limited_by_send_buffer,
        ];
        times.into_iter().flatten().try_for_each(time)?;
        let counts = [Some(sample.acked_octets), sample.sent_octets, sample.retransmitted_octets];
        counts.into_iter().flatten().try_for_each(count)
    })
}

fn capture(report: &CaptureReport) -> Checked {
    count(report.dropped)?;
    report.packets.iter().try_for_each(|packet| stamp(packet.at))
}
