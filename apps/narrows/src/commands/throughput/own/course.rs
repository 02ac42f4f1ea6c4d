//! One way of a test against `narrows serve`: segments until its end, and what they come to.

mod reported;
mod window;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_measure::tcp::{Quick, QuickVerdict, Stop};
use narrows_net::client::SocketWorld;
use narrows_net::foreign::Foreign;
use narrows_net::iperf3::{Connected, Finished, Intervals, Outline, Part, Snapshot, StreamPart, TestOptions, joined};
use narrows_net::spacing;
use narrows_probe::probes::{Congestion, Load, LoadReport, Probe, Then, Transfer, TransferReport};
use narrows_probe::{Event, Refusal, World};
use narrows_units::BitRate;
use narrows_wire::iperf3::{Results, StreamResult, Transport, stream_id};

use self::reported::reported_by_receiver;
use super::{Beside, Ending};
use crate::exit::{Exit, Failure};

/// Samples of a connection this far apart.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Segments last at most this long, so that an interrupt is heard.
const LONGEST: Duration = Duration::from_secs(1);

/// A session, and what it has measured.
pub(super) struct Course<'a> {
    world: SocketWorld,
    options: &'a TestOptions,
    reverse: bool,
    /// Number of the first stream.
    first: u32,
    pub(super) outline: Outline,
    parts: Intervals,
    last: Vec<Snapshot>,
    /// When counting began and what had been counted then.
    counting: Option<(Duration, Vec<Snapshot>)>,
    at: Duration,
    received_octets: u64,
    congestion: Option<String>,
    interrupted: bool,
    /// What ended it.
    ending: Ending,
    quick: Option<Quick>,
    stop: Option<Stop>,
    /// What other connections see of the load, of a TCP test.
    foreign: Option<Foreign>,
    /// The sender's clock at the begin.
    began_ns: Option<i64>,
}

impl<'a> Course<'a> {
    /// Streams are numbered from `first` on.
    pub(super) fn new(world: SocketWorld, options: &'a TestOptions, reverse: bool, first: u32) -> Self {
        let parameters = &options.parameters;
        // Flows of a load are one account.
        let streams = if parameters.transport == Transport::Tcp { parameters.streams } else { 1 };
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let streams = (0..streams).map(|index| Connected {
            id: stream_id(first + u32::from(index)),
            sends: !reverse,
            near: nowhere,
            remote: nowhere,
            mss_octets: None,
            send_buffer_octets: None,
            receive_buffer_octets: None,
            congestion: None,
        });
        let outline = Outline { peer: nowhere, cookie: String::new(), streams: streams.collect() };
        let last = outline.streams.iter().map(|stream| Snapshot::nothing(stream.id, !reverse)).collect();
        Self {
            world,
            options,
            reverse,
            outline,
            first,
            parts: Intervals::default(),
            last,
            counting: None,
            at: Duration::ZERO,
            received_octets: 0,
            congestion: None,
            interrupted: false,
            ending: Ending::Time,
            quick: None,
            stop: None,
            foreign: None,
            began_ns: None,
        }
    }

    /// Lets quick mode end it.
    pub(super) fn quicken(&mut self, quick: Quick) {
        self.quick = Some(quick);
    }

    /// When the test ends at the latest, and by what: a test without a length is as long as the
    /// server lets it be.
    fn end(&self) -> (Duration, Ending) {
        if self.options.duration.is_zero() || by_amount(self.options) {
            return (self.world.limits().max_duration(), Ending::Limit);
        }
        let length = self.options.omit.saturating_add(self.options.duration);
        (length, Ending::Time)
    }

    /// Has other connections look at the load.
    pub(super) fn poll_from_outside(&mut self) {
        self.foreign = Some(Foreign::start(self.world.peer(), self.options.near));
    }

    /// How long they took while the test counted, if they looked.
    fn seen_from_outside(&mut self) -> Option<Vec<Option<Duration>>> {
        let from = self.counting.as_ref().map_or(Duration::ZERO, |(from, _)| *from);
        let opened = self.foreign.take()?.stop();
        let counted = opened.into_iter().filter(|one| (from..self.at).contains(&one.at));
        Some(counted.map(|one| one.took).collect())
    }

    pub(super) fn run(&mut self, interval: &mut dyn FnMut(&Part)) -> Result<(), Failure> {
        let omit = self.options.omit;
        let (end, ending) = self.end();
        self.ending = ending;
        let mut planned = Duration::ZERO;
        let mut collected: Option<Part> = None;
        while planned < end {
            let omitted = planned < omit;
            let until = if omitted { omit } else { end };
            if !omitted && self.counting.is_none() {
                self.counting = Some((self.at, self.last.clone()));
            }
            let poll = if self.quick.is_some() { POLL } else { LONGEST };
            let length = until.saturating_sub(planned).min(self.options.interval).min(poll);
            self.interrupted |= self.options.stop.load(Ordering::Relaxed);
            planned += length;
            // What quick mode has decided, this segment carries out.
            let finish = planned >= end || self.interrupted || self.stop.is_some();
            let part = self.segment(length, finish, omitted)?;
            let spent = self.world.spent();
            let whole = collected.take().map_or_else(|| part.clone(), |before| joined(before, part.clone()));
            let due = whole.to.saturating_sub(whole.from) + SAMPLE_EVERY / 2 >= self.options.interval;
            if due || finish || spent || planned == until {
                interval(&whole);
                self.parts.push(whole);
            } else {
                collected = Some(whole);
            }
            if finish || spent {
                self.ending = match (spent, self.interrupted, &self.stop) {
                    (true, ..) => Ending::Amount,
                    (_, true, _) => Ending::Interrupt,
                    (.., Some(_)) => Ending::Quick,
                    _ => ending,
                };
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
        match self.world.send(probe).map_err(|error| crate::connect::failure(&error))? {
            Event::Transfer(report) => Ok(self.transferred(&report, omitted)),
            Event::Load(report) => Ok(self.loaded(&report, omitted)),
            Event::Refused(Refusal::ForbiddenByPeer) => Err(Failure {
                exit: Exit::Refused,
                who: "peer",
                text: match self.world.refused_because() {
                    Some(because) => format!("the server forbids such a test: {because}"),
                    None => "the server forbids such a test: too many streams, too fast, or too much".to_owned(),
                },
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
            sample_every: if self.quick.is_some() { POLL / 4 } else { SAMPLE_EVERY },
            then,
        }
    }

    /// IP and UDP headers, which a load's lengths hold.
    fn headers(&self) -> u32 {
        headers(&self.world)
    }

    fn load(&self, duration: Duration, then: Then) -> Result<Load, Failure> {
        let parameters = &self.options.parameters;
        let payload = payload_octets(&self.world, self.options);
        let ip_octets =
            u16::try_from(payload + self.headers()).map_err(|_| Failure::usage("-l: too long for one packet"))?;
        let bits = u128::from(parameters.rate_bps) * u128::from(parameters.streams) * u128::from(ip_octets);
        let rate = match u64::try_from(bits / u128::from(payload)) {
            Ok(bps) if bps > 0 => bps,
            _ => u64::MAX,
        };
        Ok(Load {
            rate: BitRate::from_bps(rate),
            ip_octets,
            burst: self.burst(payload),
            streams: parameters.streams,
            duration,
            status_every: duration,
            then,
        })
    }

    /// Datagrams at a time: as asked for, else as few as the rate allows, all that fit into one
    /// send where there is no rate.
    fn burst(&self, payload: u32) -> u16 {
        let parameters = &self.options.parameters;
        let gap_ns = (u64::from(payload) * 8_000_000_000).checked_div(parameters.rate_bps);
        let burst = match parameters.burst {
            0 => u32::try_from(spacing::group(gap_ns, MOST_BURST)).unwrap_or(1),
            asked => asked,
        };
        u16::try_from(burst).unwrap_or(u16::MAX).max(1)
    }

    fn transferred(&mut self, report: &TransferReport, omitted: bool) -> Part {
        self.began_ns.get_or_insert(report.began.nanos());
        if let Some(quick) = self.quick.as_mut().filter(|_| self.stop.is_none())
            && let QuickVerdict::Stop(stop) = quick.take(&report.streams)
        {
            self.stop = Some(stop);
        }
        if let Some((octets, _)) = report.remote_read {
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
            streams.push(StreamPart { from: before, to, samples });
        }
        self.part(lasted, omitted, streams)
    }

    fn loaded(&mut self, report: &LoadReport, omitted: bool) -> Part {
        let lasted = report.ended.since(report.began);
        let (packets, _, lost, drops) = report.totals();
        let headers = u64::from(self.headers());
        let payload = |packets: u64, ip_octets: u64| ip_octets.saturating_sub(packets.saturating_mul(headers));
        let received = payload(packets, report.totals().1);
        self.received_octets = self.received_octets.saturating_add(received);
        let from =
            self.last.first().cloned().unwrap_or_else(|| Snapshot::nothing(stream_id(self.first), !self.reverse));
        let mut to = from.clone();
        to.at_ns = report.ended.nanos();
        to.octets += if self.reverse { received } else { payload(report.sent_packets, report.sent_ip_octets) };
        to.datagrams += report.sent_packets;
        to.refused += report.send_failures;
        to.local_drops += drops;
        let cpu = report.sender_cpu.unwrap_or(0.0).clamp(0.0, 1.0);
        to.cpu += lasted.mul_f32(cpu);
        let mut counts = from.arrivals.unwrap_or_default();
        counts.distinct += packets;
        counts.highest += packets + lost;
        to.arrivals = Some(counts);
        self.last = vec![to.clone()];
        self.part(lasted, omitted, vec![StreamPart { from, to, samples: Vec::new() }])
    }

    fn part(&mut self, lasted: Duration, omitted: bool, streams: Vec<StreamPart>) -> Part {
        let from = self.at;
        self.at += lasted;
        Part { from, to: self.at, omitted, streams }
    }

    /// What was sent and what was taken of each stream since counting began.
    fn rows(&self, before: &[Snapshot], seconds: (f64, f64)) -> (Vec<StreamResult>, Vec<StreamResult>) {
        let tcp = self.options.parameters.transport == Transport::Tcp;
        let payload = u64::from(payload_octets(&self.world, self.options));
        let mut sent = Vec::new();
        let mut taken = Vec::new();
        for (now, before) in self.last.iter().zip(before) {
            let (counts, omitted) = (now.arrivals.unwrap_or_default(), before.arrivals.unwrap_or_default());
            let again = |at: &Snapshot| at.tcp.map(|tcp| u64::from(tcp.retransmitted_segments));
            let octets = now.octets.saturating_sub(before.octets);
            let datagrams = now.datagrams.saturating_sub(before.datagrams);
            let arrived = counts.distinct.saturating_sub(omitted.distinct);
            let row = StreamResult {
                id: now.id,
                // What a stream of datagrams is seen to do is what arrived, where the remote host
                // sends.
                octets: if tcp { octets } else { datagrams.saturating_mul(payload) },
                retransmits: again(now).map(|all| all.saturating_sub(again(before).unwrap_or(0))),
                jitter_seconds: 0.0,
                lost: 0,
                lost_omitted: None,
                datagrams,
                datagrams_omitted: None,
                span_seconds: Some(seconds),
            };
            taken.push(StreamResult {
                octets: if tcp { octets } else { arrived.saturating_mul(payload) },
                lost: counts.lost().saturating_sub(omitted.lost()),
                ..row.clone()
            });
            sent.push(row);
        }
        (sent, taken)
    }

    pub(super) fn finished(mut self, idle_rtt: Option<Duration>) -> (Finished, Beside) {
        for (stream, (near, remote)) in self.outline.streams.iter_mut().zip(self.world.ends()) {
            (stream.near, stream.remote) = (*near, *remote);
        }
        let quick = self.quickened();
        let stop = self.stop.take();
        let stopped = stop.is_some();
        if let Some(stop) = stop {
            self.count_window(&stop);
        }
        let foreign = self.seen_from_outside();
        let beside = Beside { foreign, idle_rtt, quick, ending: Some(self.ending) };
        let tcp = self.options.parameters.transport == Transport::Tcp;
        // What was left out at the begin, or decided on before the end, only the sender can tell
        // apart.
        let counted_whole = tcp && !stopped && self.options.omit.is_zero();
        let (from, before) = self.counting.take().unwrap_or_default();
        let seconds = (from.as_secs_f64(), self.at.as_secs_f64());
        let (mut sent, mut taken) = self.rows(&before, seconds);
        let side =
            |streams| Results { congestion: self.congestion.clone().filter(|_| tcp), streams, ..Results::default() };
        if counted_whole && let Some((octets, time)) = self.world.transfer_read() {
            reported_by_receiver(&mut sent, &mut taken, octets, time);
        }
        let (sender, receiver) = (side(sent), side(taken));
        let (ours, theirs) = if self.reverse { (receiver, sender) } else { (sender, receiver) };
        let finished = Finished {
            outline: self.outline,
            parts: self.parts.into_parts(),
            span: (from, self.at),
            ours,
            theirs,
            spacing: (1 + self.first..).zip(self.world.load_spacing().iter().cloned()).filter(|_| !tcp).collect(),
            interrupted: self.interrupted,
        };
        (finished, beside)
    }
}

/// Quick mode looks this often.
const POLL: Duration = Duration::from_millis(100);

/// Datagrams of one send at most: what the kernel cuts out of one buffer.
const MOST_BURST: usize = 64;

/// IP and UDP headers of this path's datagrams.
pub(super) fn headers(world: &SocketWorld) -> u32 {
    if world.facts().ipv6 { 48 } else { 28 }
}

/// Payload of a datagram: as asked for, else what fits an Ethernet frame and the path.
pub(super) fn payload_octets(world: &SocketWorld, options: &TestOptions) -> u32 {
    const ETHERNET: u16 = 1_500;
    match options.parameters.block_octets {
        0 => u32::from(world.facts().path_mtu.min(ETHERNET)).saturating_sub(headers(world)).max(1),
        octets => octets,
    }
}

/// It is over when so much has been sent, not when so long has passed.
pub(super) fn by_amount(options: &TestOptions) -> bool {
    options.parameters.octets > 0 || options.parameters.blocks > 0
}
