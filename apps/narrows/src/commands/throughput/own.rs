//! The same against `narrows serve`, as far as its data plane goes: TCP or UDP, one way, for a time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use estimate::probe::{Congestion, Load, LoadReport, Probe, Then, Transfer, TransferReport};
use estimate::{Event, Refusal, World};
use net::client::{ConnectOptions, SocketWorld};
use net::iperf3::{Connected, Finished, Outline, Part, Snapshot, StreamPart, TestOptions};
use units::BitRate;
use wire::iperf3::{ArrivalCounts, Flow, Results, StreamResult, Transport, stream_id};

use super::ThroughputArgs;
use crate::exit::{Exit, Failure};

/// Samples of a connection this far apart.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Segments last at most this long, so that an interrupt is heard.
const LONGEST: Duration = Duration::from_secs(1);

pub(super) fn run(
    args: &ThroughputArgs,
    options: &TestOptions,
    began: &mut dyn FnMut(&Outline),
    interval: &mut dyn FnMut(&Part),
) -> Result<Finished, Failure> {
    refuse(args, options)?;
    let reverse = options.parameters.flow == Flow::Reverse;
    let connect = ConnectOptions {
        port: options.port,
        version: options.version,
        direction: if reverse {
            wire::Direction::Reverse
        } else {
            wire::Direction::Forward
        },
        // An interrupt ends the test between two segments, with results.
        stop: Arc::new(AtomicBool::new(false)),
        ..ConnectOptions::default()
    };
    let world = SocketWorld::connect(&args.host, connect).map_err(|error| crate::connect::failure(&error))?;
    let mut test = Test::new(world, options, reverse);
    began(&test.outline);
    test.run(interval)?;
    Ok(test.finished())
}

/// What only stock peers can do.
fn refuse(args: &ThroughputArgs, options: &TestOptions) -> Result<(), Failure> {
    let parameters = &options.parameters;
    let wants = [
        (args.bidir, "--bidir"),
        (args.bytes.is_some(), "-n"),
        (args.blockcount.is_some(), "-k"),
        (args.length.is_some() && !args.udp, "-l with TCP"),
        (args.set_mss.is_some(), "-M"),
        (args.no_delay, "-N"),
        (args.zerocopy, "-Z"),
        (parameters.tos > 0, "--dscp and -S"),
        (args.bind.is_some(), "-B"),
        (args.cport.is_some(), "--cport"),
        (args.time.is_zero(), "-t 0"),
        (parameters.burst > 1 && !args.udp, "-b RATE/N with TCP"),
    ];
    let wanted: Vec<&str> = wants.iter().filter(|(on, _)| *on).map(|(_, what)| *what).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: only against iperf3's protocol (--iperf3, which `narrows serve --iperf3` speaks too)",
        wanted.join(", ")
    )))
}

struct Test<'a> {
    world: SocketWorld,
    options: &'a TestOptions,
    reverse: bool,
    outline: Outline,
    parts: Vec<Part>,
    last: Vec<Snapshot>,
    /// When counting began and what had been counted then.
    counting: Option<(Duration, Vec<Snapshot>)>,
    at: Duration,
    received_octets: u64,
    congestion: Option<String>,
    interrupted: bool,
}

impl<'a> Test<'a> {
    fn new(world: SocketWorld, options: &'a TestOptions, reverse: bool) -> Self {
        let parameters = &options.parameters;
        // Flows of a load are one account.
        let streams = if parameters.transport == Transport::Tcp {
            parameters.streams
        } else {
            1
        };
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let streams = (0..streams).map(|index| Connected {
            id: stream_id(index.into()),
            sends: !reverse,
            near: nowhere,
            far: nowhere,
            mss_octets: None,
            send_buffer_octets: None,
            receive_buffer_octets: None,
            congestion: None,
        });
        let outline = Outline {
            peer: nowhere,
            cookie: String::new(),
            streams: streams.collect(),
        };
        let last = outline
            .streams
            .iter()
            .map(|stream| empty(stream.id, !reverse))
            .collect();
        Self {
            world,
            options,
            reverse,
            outline,
            parts: Vec::new(),
            last,
            counting: None,
            at: Duration::ZERO,
            received_octets: 0,
            congestion: None,
            interrupted: false,
        }
    }

    fn run(&mut self, interval: &mut dyn FnMut(&Part)) -> Result<(), Failure> {
        let (omit, end) = (
            self.options.omit,
            self.options.omit.saturating_add(self.options.duration),
        );
        let mut planned = Duration::ZERO;
        let mut collected: Option<Part> = None;
        while planned < end {
            let omitted = planned < omit;
            let until = if omitted { omit } else { end };
            if !omitted && self.counting.is_none() {
                self.counting = Some((self.at, self.last.clone()));
            }
            let length = until.saturating_sub(planned).min(self.options.interval).min(LONGEST);
            self.interrupted |= self.options.stop.load(Ordering::Relaxed);
            planned += length;
            let finish = planned >= end || self.interrupted;
            let part = self.segment(length, finish, omitted)?;
            let whole = collected
                .take()
                .map_or_else(|| part.clone(), |before| joined(before, part.clone()));
            let due = whole.to.saturating_sub(whole.from) + SAMPLE_EVERY / 2 >= self.options.interval;
            if due || finish || planned == until {
                interval(&whole);
                self.parts.push(whole);
            } else {
                collected = Some(whole);
            }
            if finish {
                return Ok(());
            }
        }
        Ok(())
    }

    fn segment(&mut self, length: Duration, finish: bool, omitted: bool) -> Result<Part, Failure> {
        let then = if finish { Then::Finish } else { Then::Continue };
        let probe = if self.options.parameters.transport == Transport::Tcp {
            Probe::Transfer(self.transfer(length, then))
        } else {
            Probe::Load(self.load(length, then)?)
        };
        match self
            .world
            .send(probe)
            .map_err(|error| crate::connect::failure(&error))?
        {
            Event::Transfer(report) => Ok(self.transferred(&report, omitted)),
            Event::Load(report) => Ok(self.loaded(&report, omitted)),
            Event::Refused(Refusal::ForbiddenByPeer) => Err(Failure {
                exit: Exit::Refused,
                who: "peer",
                text: "the server forbids such a test: too many streams, too long, or too much".to_owned(),
            }),
            Event::Refused(refusal) => Err(Failure::usage(format!("such a test is not possible: {refusal:?}"))),
            other => Err(Failure::host(format!("an answer to another question: {other:?}"))),
        }
    }

    fn transfer(&self, duration: Duration, then: Then) -> Transfer {
        let parameters = &self.options.parameters;
        let rates = [parameters.rate_bps, parameters.fq_rate_bps];
        Transfer {
            streams: parameters.streams,
            congestion: parameters.congestion.as_deref().map(Congestion::from_name),
            window_octets: parameters.window_octets,
            pacing: rates.into_iter().filter(|&bps| bps > 0).min().map(BitRate::from_bps),
            duration,
            sample_every: SAMPLE_EVERY,
            then,
        }
    }

    fn load(&self, duration: Duration, then: Then) -> Result<Load, Failure> {
        let parameters = &self.options.parameters;
        let payload = match parameters.block_octets {
            0 => 1_472,
            octets => octets,
        };
        let ip_octets = u16::try_from(payload + HEADERS).map_err(|_| Failure::usage("-l: too long for one packet"))?;
        let bits = u128::from(parameters.rate_bps) * u128::from(parameters.streams) * u128::from(ip_octets);
        let rate = match u64::try_from(bits / u128::from(payload)) {
            Ok(bps) if bps > 0 => bps,
            _ => u64::MAX,
        };
        Ok(Load {
            rate: BitRate::from_bps(rate),
            ip_octets,
            burst: u16::try_from(parameters.burst).unwrap_or(u16::MAX).max(1),
            streams: parameters.streams,
            duration,
            status_every: duration,
            then,
        })
    }

    fn transferred(&mut self, report: &TransferReport, omitted: bool) -> Part {
        if let Some((octets, _)) = report.far_end {
            self.received_octets = self.received_octets.saturating_add(octets);
        }
        self.congestion = report.streams.first().map(|stream| stream.congestion.name().to_owned());
        let lasted = report.ended.since(report.began);
        let from = std::mem::take(&mut self.last);
        let mut streams = Vec::new();
        for (before, stream) in from.into_iter().zip(&report.streams) {
            let mut to = before.clone();
            to.at_ns = report.ended.nanos();
            if let Some(sample) = stream.samples.last() {
                to.octets = sample.acked_octets;
                to.tcp = Some(*sample);
            }
            let cpu = report.sender_cpu.unwrap_or(0.0).clamp(0.0, 1.0);
            to.cpu = before.cpu + lasted.mul_f32(cpu);
            let samples = stream.samples.clone();
            self.last.push(to.clone());
            streams.push(StreamPart {
                from: before,
                to,
                samples,
            });
        }
        self.part(lasted, omitted, streams)
    }

    fn loaded(&mut self, report: &LoadReport, omitted: bool) -> Part {
        let lasted = report.ended.since(report.began);
        let (packets, _, lost, drops) = report.totals();
        let payload = |packets: u64, ip_octets: u64| ip_octets.saturating_sub(packets.saturating_mul(HEADERS.into()));
        let received = payload(packets, report.totals().1);
        self.received_octets = self.received_octets.saturating_add(received);
        let from = self.last.first().cloned().unwrap_or_else(|| empty(1, !self.reverse));
        let mut to = from.clone();
        to.at_ns = report.ended.nanos();
        to.octets += if self.reverse {
            received
        } else {
            payload(report.sent_packets, report.sent_ip_octets)
        };
        to.datagrams += report.sent_packets;
        to.refused += report.send_failures;
        to.local_drops += if self.reverse { drops } else { 0 };
        let cpu = report.sender_cpu.unwrap_or(0.0).clamp(0.0, 1.0);
        to.cpu += lasted.mul_f32(cpu);
        let mut counts = from.arrivals.unwrap_or_default();
        counts.distinct += packets;
        counts.highest += packets + lost;
        to.arrivals = Some(counts);
        self.last = vec![to.clone()];
        self.part(
            lasted,
            omitted,
            vec![StreamPart {
                from,
                to,
                samples: Vec::new(),
            }],
        )
    }

    fn part(&mut self, lasted: Duration, omitted: bool, streams: Vec<StreamPart>) -> Part {
        let from = self.at;
        self.at += lasted;
        Part {
            from,
            to: self.at,
            omitted,
            streams,
        }
    }

    fn finished(self) -> Finished {
        let (from, before) = self.counting.unwrap_or_default();
        let tcp = self.options.parameters.transport == Transport::Tcp;
        let seconds = (from.as_secs_f64(), self.at.as_secs_f64());
        let mut sent = Vec::new();
        let mut taken = Vec::new();
        for (now, before) in self.last.iter().zip(&before) {
            let (counts, omitted) = (now.arrivals.unwrap_or_default(), before.arrivals.unwrap_or_default());
            let again = |at: &Snapshot| at.tcp.map(|tcp| u64::from(tcp.retransmitted_segments));
            let row = StreamResult {
                id: now.id,
                octets: now.octets.saturating_sub(before.octets),
                retransmits: again(now).map(|all| all.saturating_sub(again(before).unwrap_or(0))),
                jitter_seconds: 0.0,
                lost: 0,
                lost_omitted: None,
                datagrams: now.datagrams.saturating_sub(before.datagrams),
                datagrams_omitted: None,
                span_seconds: Some(seconds),
            };
            let arrived = counts.distinct.saturating_sub(omitted.distinct);
            taken.push(StreamResult {
                octets: if tcp {
                    row.octets
                } else {
                    arrived.saturating_mul(row.octets) / row.datagrams.max(1)
                },
                lost: counts.lost().saturating_sub(omitted.lost()),
                ..row.clone()
            });
            sent.push(row);
        }
        let side = |streams| Results {
            congestion: self.congestion.clone().filter(|_| tcp),
            streams,
            ..Results::default()
        };
        let (sender, receiver) = (side(sent), side(taken));
        let (ours, theirs) = if self.reverse {
            (receiver, sender)
        } else {
            (sender, receiver)
        };
        Finished {
            outline: self.outline,
            parts: self.parts,
            span: (from, self.at),
            ours,
            theirs,
            spacing: Vec::new(),
            interrupted: self.interrupted,
        }
    }
}

/// IPv4 and UDP headers, which a load's lengths hold.
const HEADERS: u32 = 28;

fn empty(id: u32, sends: bool) -> Snapshot {
    Snapshot {
        id,
        sends,
        at_ns: 0,
        octets: 0,
        datagrams: 0,
        arrivals: (!sends).then(ArrivalCounts::default),
        tcp: None,
        refused: 0,
        local_drops: 0,
        cpu: Duration::ZERO,
    }
}

/// Two segments as one interval.
fn joined(mut one: Part, other: Part) -> Part {
    one.to = other.to;
    for (stream, next) in one.streams.iter_mut().zip(other.streams) {
        stream.to = next.to;
        stream.samples.extend(next.samples);
    }
    one
}
