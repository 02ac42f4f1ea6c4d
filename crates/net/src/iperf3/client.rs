//! A test against a stock server.

mod count;
mod open;
mod outcome;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_wire::iperf3::{
    ClientFault, ClientOrder, ClientSide, Cookie, ErrorNumber, Flow, Parameters, Results, State, Transport, frame,
};

use super::connect::{self, Near};
use super::intervals::{Intervals, Part, StreamPart, bound};
use super::link::{Incoming, Link};
use super::stream::{Snapshot, Stream};
use super::worker::SendPlan;
use super::{MOST_DRAIN, cpu_times};
use crate::clock::{self, nanos};
use crate::error::{Error, PathError, PeerError};
use crate::send_budget::SendBudget;

pub(super) use count::stream_result;
use open::datagram_octets;
pub use outcome::{Connected, Finished, Outline, TestOptions};

/// Runs a test; `began` and `interval` are told on the way.
pub fn run(
    host: &str,
    options: &TestOptions,
    began: &mut dyn FnMut(&Outline),
    interval: &mut dyn FnMut(&Part),
) -> Result<Finished, Error> {
    let near = Near { address: options.near, port: None };
    let mut last = None;
    for peer in crate::client::resolve(host, options.port, options.version)? {
        match connect::control(peer, near, options.timeout) {
            Ok(stream) => {
                let link = Link::new(stream).map_err(host_cannot("use its control connection"))?;
                return Test::new(link, peer, options)?.run(began, interval);
            }
            // The first address is the preferred one: its error is the one to tell.
            Err(error) => last = last.or(Some(unreachable(peer, error, options.timeout))),
        }
    }
    Err(last.unwrap_or_else(|| Error::Host { doing: "look up that name", source: ErrorKind::NotFound.into() }))
}

fn host_cannot(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Host { doing, source }
}

fn unreachable(peer: SocketAddr, source: io::Error, waited: Duration) -> Error {
    match source.kind() {
        ErrorKind::ConnectionRefused => PeerError::NoIperf3 { peer }.into(),
        ErrorKind::TimedOut => PathError::Silent { peer, doing: "connecting", waited }.into(),
        _ => PathError::Unreachable { peer, source }.into(),
    }
}

struct Test<'a> {
    link: Link,
    side: ClientSide,
    peer: SocketAddr,
    options: &'a TestOptions,
    parameters: Parameters,
    cookie: Cookie,
    streams: Vec<Stream>,
    send_budget: Arc<SendBudget>,
    outline: Outline,
    clock: Option<Running>,
    parts: Intervals,
    ours: Option<Results>,
    theirs: Option<Results>,
    interrupted: bool,
}

/// The test while senders send.
struct Running {
    began_ns: i64,
    /// When this side's senders stop by themselves.
    until_ns: i64,
    cpu: (Duration, Duration),
    /// Counting began; what each stream had counted by then.
    counting: Option<(i64, Vec<Snapshot>)>,
    interval_ns: i64,
    from: Vec<Snapshot>,
    samples: Vec<Vec<narrows_probe::probes::TcpSample>>,
    sampled_ns: i64,
    /// When the test was declared over.
    over_ns: Option<i64>,
}

/// Samples of an interval at most this far apart.
const SAMPLE_EVERY_NS: i64 = 100_000_000;
/// The test's thread looks around this often.
const POLL_NS: i64 = 10_000_000;
/// How long a server may take for its part of the end.
const ENDING_NS: i64 = 20_000_000_000;
/// Datagrams under way when the last one left are given this long, and so is a far program to read
/// what its kernel has.
const LATE_NS: i64 = 100_000_000;

impl<'a> Test<'a> {
    fn new(mut link: Link, peer: SocketAddr, options: &'a TestOptions) -> Result<Self, Error> {
        let mut random = [0; narrows_wire::iperf3::COOKIE_OCTETS - 1];
        getrandom::fill(&mut random).map_err(|error| Error::Host {
            doing: "draw random numbers",
            source: io::Error::other(error.to_string()),
        })?;
        let cookie = Cookie::new(random);
        link.send(cookie.octets()).map_err(|source| PathError::Unreachable { peer, source })?;
        let mut parameters = options.parameters.clone();
        let whole = |time: Duration| u32::try_from(time.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
        parameters.omit_seconds = whole(options.omit);
        let by_amount = parameters.octets > 0 || parameters.blocks > 0;
        parameters.seconds = if by_amount { 0 } else { whole(options.duration) };
        if parameters.transport != Transport::Tcp && parameters.block_octets == 0 {
            parameters.block_octets = datagram_octets(&link);
        }
        let octets = amount(&parameters);
        Ok(Self {
            link,
            side: ClientSide::new(),
            peer,
            options,
            parameters,
            cookie,
            streams: Vec::new(),
            send_budget: Arc::new(SendBudget::new(octets)),
            outline: Outline { peer, cookie: cookie.text().to_owned(), streams: Vec::new() },
            clock: None,
            parts: Intervals::default(),
            ours: None,
            theirs: None,
            interrupted: false,
        })
    }

    fn run(mut self, began: &mut dyn FnMut(&Outline), interval: &mut dyn FnMut(&Part)) -> Result<Finished, Error> {
        let mut room = [0; 16 << 10];
        let mut last_received_ns = clock::now_ns();
        loop {
            while let Some(order) = self.side.order().map_err(|fault| self.fault(fault))? {
                last_received_ns = clock::now_ns();
                if self.obey(order, began)? {
                    return self.finished();
                }
            }
            let now = clock::now_ns();
            if self.clock.as_ref().is_some_and(|clock| clock.over_ns.is_none()) {
                last_received_ns = now;
                self.tick(now, interval)?;
            }
            let timeout = if self.clock.is_some() { ENDING_NS } else { nanos(self.options.timeout) };
            if now - last_received_ns > timeout {
                return Err(self.silent("waiting for the iperf3 server"));
            }
            if self.options.stop.load(Ordering::Relaxed) && self.clock.is_none() {
                // Nothing was measured yet; the server need not wait for us.
                let _ = self.link.say(State::ClientTerminate);
                return Err(self.fault(ClientFault::Terminated));
            }
            match self.link.hear(&mut room, now + POLL_NS) {
                Incoming::Octets(count) => self.side.push(&room[..count]),
                Incoming::Nothing => {}
                Incoming::Closed => {
                    let fault = self.side.closed().unwrap_or(ClientFault::Terminated);
                    return Err(self.fault(fault));
                }
            }
        }
    }

    /// `true`: the test is finished.
    fn obey(&mut self, order: ClientOrder, began: &mut dyn FnMut(&Outline)) -> Result<bool, Error> {
        match order {
            ClientOrder::SendParameters => self.send(&frame(&self.parameters.to_json()))?,
            ClientOrder::OpenStreams => self.open_streams()?,
            ClientOrder::Start => began(&self.outline),
            ClientOrder::Run => self.start()?,
            ClientOrder::SendResults => {
                self.collect_late();
                let results = self.results();
                self.send(&frame(&results.to_json()))?;
                self.ours = Some(results);
            }
            ClientOrder::TakeResults(results) => self.theirs = Some(results),
            ClientOrder::Finish => {
                // The server has all it wants, and so have we.
                let _ = self.link.say(State::Done);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn send(&mut self, octets: &[u8]) -> Result<(), Error> {
        let peer = self.peer;
        self.link.send(octets).map_err(|source| match source.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => PeerError::Closed { peer }.into(),
            _ => PathError::Unreachable { peer, source }.into(),
        })
    }

    fn fault(&self, fault: ClientFault) -> Error {
        let peer = self.peer;
        match fault {
            ClientFault::Refused { number, .. } if number == ErrorNumber::AUTH => PeerError::NotAdmitted { peer },
            ClientFault::Busy | ClientFault::Refused { .. } => PeerError::Refused { peer, reason: fault.to_string() },
            ClientFault::Terminated | ClientFault::Closed { .. } => PeerError::Closed { peer },
            other => PeerError::Protocol { peer, what: other.to_string() },
        }
        .into()
    }

    fn silent(&self, doing: &'static str) -> Error {
        PathError::Silent { peer: self.peer, doing, waited: self.options.timeout }.into()
    }

    fn start(&mut self) -> Result<(), Error> {
        let began_ns = clock::now_ns();
        // Whatever happens to this thread: nobody floods for ever.
        let endless = self.amount().is_some() || self.options.duration.is_zero();
        let length = if endless { i64::MAX } else { nanos(self.options.duration) };
        let until_ns = began_ns.saturating_add(nanos(self.options.omit)).saturating_add(length);
        let counters = self.counters();
        for stream in &mut self.streams {
            if !stream.sends {
                continue;
            }
            let plan = SendPlan {
                block: usize::try_from(self.parameters.block_octets).unwrap_or(0),
                rate_bps: self.parameters.rate_bps,
                burst: self.parameters.burst,
                counters,
                zero_copy: self.parameters.zero_copy,
                send_budget: Arc::clone(&self.send_budget),
                until_ns,
                seed: 1 + u64::from(stream.id),
            };
            stream.send(plan).map_err(host_cannot("start a thread"))?;
        }
        let from: Vec<Snapshot> = self.streams.iter().map(|stream| stream.snapshot().zeroed()).collect();
        self.clock = Some(Running {
            began_ns,
            until_ns,
            cpu: cpu_times(),
            counting: self.options.omit.is_zero().then(|| (began_ns, from.clone())),
            interval_ns: began_ns,
            samples: from.iter().map(|snapshot| snapshot.tcp.into_iter().collect()).collect(),
            from,
            sampled_ns: began_ns,
            over_ns: None,
        });
        Ok(())
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        self.streams.iter().map(Stream::snapshot).collect()
    }

    /// Reports, and ends the test when it is time.
    fn tick(&mut self, now: i64, interval: &mut dyn FnMut(&Part)) -> Result<(), Error> {
        let Some(mut clock) = self.clock.take() else {
            return Ok(());
        };
        let every = nanos(self.options.interval).max(1);
        let omit_ns = clock.began_ns.saturating_add(nanos(self.options.omit));
        if now - clock.sampled_ns >= SAMPLE_EVERY_NS.min(every / 4).max(POLL_NS) {
            clock.sampled_ns = now;
            for (samples, stream) in clock.samples.iter_mut().zip(&self.streams) {
                samples.extend(stream.snapshot().tcp);
                bound(samples, self.streams.len());
            }
        }
        let counted = clock.counting.is_some();
        let over = self.is_over(now, &clock);
        let due = now - clock.interval_ns >= every;
        if due || over || (!counted && now >= omit_ns) {
            let ended = self.ended_at(&clock);
            let part = self.close_part(&mut clock, !counted, ended);
            interval(&part);
            self.parts.push(part);
        }
        if !counted && now >= omit_ns {
            clock.counting = Some((now, clock.from.clone()));
        }
        if over {
            clock.over_ns = Some(clock.interval_ns);
            self.clock = Some(clock);
            return self.declare_over();
        }
        self.clock = Some(clock);
        Ok(())
    }

    /// Now; or when the senders stopped, where nobody else sends and this thread only comes late to
    /// look.
    fn ended_at(&self, clock: &Running) -> i64 {
        let now = clock::now_ns();
        if self.parameters.flow == Flow::Forward { now.min(clock.until_ns) } else { now }
    }

    fn close_part(&self, clock: &mut Running, omitted: bool, ended: i64) -> Part {
        let to = self.snapshots();
        let since = |at: i64| Duration::from_nanos(u64::try_from(at - clock.began_ns).unwrap_or(0));
        let (from_time, to_time) = (since(clock.interval_ns), since(ended));
        let next: Vec<_> = to.iter().map(|snapshot| snapshot.tcp.into_iter().collect()).collect();
        let before = std::mem::replace(&mut clock.from, to.clone());
        let samples = std::mem::replace(&mut clock.samples, next);
        clock.interval_ns = ended;
        clock.sampled_ns = ended;
        let streams = before.into_iter().zip(to).zip(samples);
        Part {
            from: from_time,
            to: to_time,
            omitted,
            streams: streams
                .map(|((from, to), mut samples)| {
                    samples.extend(to.tcp);
                    StreamPart { from, to, samples }
                })
                .collect(),
        }
    }

    /// Octets after which the test is over.
    fn amount(&self) -> Option<u64> {
        amount(&self.parameters)
    }

    fn is_over(&mut self, now: i64, clock: &Running) -> bool {
        if self.options.stop.load(Ordering::Relaxed) {
            self.interrupted = true;
            return true;
        }
        // A stream that broke: the server says why, or results will.
        if self.streams.iter().any(|stream| stream.sends && stream.broken()) {
            return true;
        }
        if let Some(wanted) = self.amount() {
            let counted = |sends: bool| -> u64 {
                let these = self.streams.iter().filter(|stream| stream.sends == sends);
                these.map(|stream| stream.shared.octets.load(Ordering::Relaxed)).sum()
            };
            return counted(true) >= wanted || counted(false) >= wanted;
        }
        let length = nanos(self.options.omit).saturating_add(nanos(self.options.duration));
        !self.options.duration.is_zero() && now - clock.began_ns >= length
    }

    /// Senders stop, what was written arrives, and the server hears that it is over.
    fn declare_over(&mut self) -> Result<(), Error> {
        for stream in self.streams.iter().filter(|stream| stream.sends) {
            stream.ask_to_stop();
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.sends) {
            stream.end_thread();
        }
        let begun = clock::now_ns();
        let deadline = begun + nanos(MOST_DRAIN);
        while clock::now_ns() < deadline && !self.streams.iter().all(Stream::drained) {
            clock::sleep_until_ns(clock::now_ns() + 1_000_000);
        }
        // What the far kernel has, the far program must still read; and datagrams are under way.
        let rtt = self.streams.iter().filter_map(|stream| stream.snapshot().tcp).map(|tcp| tcp.rtt).max();
        let late = LATE_NS.max(rtt.map_or(0, nanos)).min(nanos(MOST_DRAIN));
        clock::sleep_until_ns(clock::now_ns() + late);
        self.send(&[State::TestEnd.octet()])
    }

    /// The server has stopped: what is still on its way is counted, until it has closed or time is
    /// up.
    fn collect_late(&mut self) {
        let deadline = clock::now_ns() + nanos(MOST_DRAIN);
        let receiving = || self.streams.iter().filter(|stream| !stream.sends);
        if self.parameters.transport == Transport::Tcp {
            while clock::now_ns() < deadline && !receiving().all(Stream::ended) {
                clock::sleep_until_ns(clock::now_ns() + 1_000_000);
            }
        } else if receiving().next().is_some() {
            clock::sleep_until_ns(clock::now_ns() + LATE_NS);
        }
        for stream in &mut self.streams {
            stream.finish();
        }
    }

    fn finished(mut self) -> Result<Finished, Error> {
        let peer = self.peer;
        let missing = || PeerError::Protocol { peer, what: "it ended without results".to_owned() };
        let (ours, theirs) = (self.ours.take().ok_or_else(missing)?, self.theirs.take().ok_or_else(missing)?);
        let began = self.clock.as_ref().map_or(0, |clock| clock.began_ns);
        let counted = self.clock.as_ref().and_then(|clock| clock.counting.as_ref()).map_or(began, |(at, _)| *at);
        let over = self.clock.as_ref().and_then(|clock| clock.over_ns).unwrap_or(began);
        let since = |at: i64| Duration::from_nanos(u64::try_from(at - began).unwrap_or(0));
        let udp = self.parameters.transport != Transport::Tcp;
        let spacing = self.streams.iter().filter(|stream| udp && stream.sends);
        Ok(Finished {
            spacing: spacing.map(|stream| (stream.id, stream.spacing())).collect(),
            outline: self.outline.clone(),
            parts: std::mem::take(&mut self.parts).into_parts(),
            span: (since(counted), since(over)),
            ours,
            theirs,
            interrupted: self.interrupted,
        })
    }
}

/// Octets after which a test is over, if it is by amount.
fn amount(parameters: &Parameters) -> Option<u64> {
    match (parameters.octets, parameters.blocks) {
        (0, 0) => None,
        (0, blocks) => Some(blocks.saturating_mul(parameters.block_octets.into())),
        (octets, _) => Some(octets),
    }
}
