//! One test of a stock client, from its cookie to its end.

mod admission;

use std::collections::btree_map::Entry;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use narrows_wire::iperf3::{
    Cookie, Counters, ErrorNumber, GREETING_REPLY, Parameters, Results, ServerOrder, ServerSide, State, Transport,
    frame, stream_id,
};

use super::client::stream_result;
use super::connect;
use super::link::{Incoming, Link};
use super::options::{SessionEnd, SessionSummary};
use super::shared::Shared;
use super::stream::{Carrier, Snapshot, Stream};
use super::udp;
use super::worker::SendPlan;
use super::{cpu_since, cpu_times};
use crate::clock::{self, nanos};
use crate::send_budget::SendBudget;
use crate::socket::ProbeSocket;

/// A session looks at its control connection and at all flags this often.
const POLL_NS: i64 = 20_000_000;
/// A test may outlast what was asked for by this much, for both sides' timers (ours).
const GRACE: Duration = Duration::from_secs(10);
/// What is on its way when the client says that it is over is waited for: until this much silence,
/// and at most so long.
const QUIET_NS: i64 = 30_000_000;
const LATE_NS: i64 = 500_000_000;

/// Conducts a test, whatever the client does.
pub(super) fn conduct(
    shared: &Arc<Shared>,
    cookie: Cookie,
    stream: TcpStream,
    peer: SocketAddr,
    streams: Receiver<TcpStream>,
) {
    let mut summary =
        SessionSummary { peer, what: None, sent_octets: 0, received_octets: 0, lost: 0, end: SessionEnd::Vanished };
    let opened = connect::watch(&stream).and_then(|()| Link::new(stream));
    if let Ok(link) = opened {
        let session = Iperf3Session {
            shared,
            link,
            side: ServerSide::new(),
            peer,
            arriving: Some(streams),
            streams: Vec::new(),
            taken: 0,
        };
        summary.end = session.run(&mut summary);
    }
    shared.sessions().remove(&cookie);
    (shared.options.on_end)(&summary);
}

struct Iperf3Session<'a> {
    shared: &'a Arc<Shared>,
    link: Link,
    side: ServerSide,
    peer: SocketAddr,
    /// Data connections, until all are there.
    arriving: Option<Receiver<TcpStream>>,
    streams: Vec<Stream>,
    /// Streams taken out of what the server may have.
    taken: usize,
}

/// While clients of one address wait for UDP streams, the next one's test waits.
struct Greeting {
    shared: Arc<Shared>,
    address: IpAddr,
}

impl Drop for Greeting {
    fn drop(&mut self) {
        self.shared.greetings().remove(&self.address);
    }
}

impl Drop for Iperf3Session<'_> {
    fn drop(&mut self) {
        for stream in &self.streams {
            stream.ask_to_stop();
        }
        self.streams.clear();
        self.shared.streams.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

impl Iperf3Session<'_> {
    fn run(mut self, summary: &mut SessionSummary) -> SessionEnd {
        match self.test(summary) {
            Ok(end) | Err(end) => end,
        }
    }

    fn test(&mut self, summary: &mut SessionSummary) -> Result<SessionEnd, SessionEnd> {
        self.say(State::ParameterExchange)?;
        let ServerOrder::Parameters(parameters) = self.order(self.timeout())? else {
            return Err(SessionEnd::Terminated);
        };
        summary.what = Some((parameters.transport, parameters.flow, parameters.streams));
        let known = self.identify(&parameters)?;
        self.admit(&parameters, known).map_err(|number| self.refuse(number))?;
        self.open(&parameters)?;
        self.say(State::TestStart)?;
        self.say(State::TestRunning)?;
        let cpu = cpu_times();
        let began_ns = clock::now_ns();
        let mut counting = Counting {
            began_ns,
            at_ns: began_ns,
            before: self.streams.iter().map(|stream| stream.snapshot().zeroed()).collect(),
        };
        self.start(&parameters, began_ns)?;
        let ended = self.attend(&parameters, &mut counting);
        let over_ns = clock::now_ns();
        self.settle(ended.is_ok());
        let mut results = self.results(&parameters, &counting, over_ns);
        for (stream, counted) in self.streams.iter().zip(&results.streams) {
            let sum = if stream.sends { &mut summary.sent_octets } else { &mut summary.received_octets };
            *sum = sum.saturating_add(counted.octets);
            summary.lost = summary.lost.saturating_add(counted.lost);
        }
        ended?;
        let elapsed = Duration::from_nanos(u64::try_from(over_ns - began_ns).unwrap_or(0));
        results.cpu = cpu_since(cpu, elapsed);
        summary.end = SessionEnd::Complete;
        results.server_output = parameters.server_output.then(|| summary.to_string().into());
        self.exchange(&results)
    }

    fn timeout(&self) -> i64 {
        clock::now_ns() + nanos(self.shared.options.limits.timeout)
    }

    fn say(&mut self, state: State) -> Result<(), SessionEnd> {
        self.link.say(state).map_err(|_| SessionEnd::Vanished)
    }

    /// Says what is wrong, and gives up.
    fn refuse(&mut self, number: ErrorNumber) -> SessionEnd {
        let mut octets = vec![State::ServerError.octet()];
        octets.extend_from_slice(&number.0.to_be_bytes());
        octets.extend_from_slice(&0u32.to_be_bytes());
        // Whether the client hears it is its own affair.
        let _ = self.link.send(&octets);
        SessionEnd::Refused(number.to_string())
    }

    /// The client's next word.
    fn order(&mut self, deadline_ns: i64) -> Result<ServerOrder, SessionEnd> {
        let mut room = [0; 16 << 10];
        loop {
            match self.side.order() {
                Ok(Some(ServerOrder::Terminate)) => return Err(SessionEnd::Terminated),
                Ok(Some(order)) => return Ok(order),
                Ok(None) => {}
                Err(fault) => {
                    let _ = self.refuse(ErrorNumber::PARAMETERS);
                    return Err(SessionEnd::Refused(fault.to_string()));
                }
            }
            let now = clock::now_ns();
            if self.shared.ended.load(Ordering::Relaxed) {
                let _ = self.link.say(State::ServerTerminate);
                return Err(SessionEnd::ServerEnds);
            }
            if now >= deadline_ns {
                return Err(SessionEnd::Vanished);
            }
            match self.link.hear(&mut room, deadline_ns.min(now + POLL_NS)) {
                Incoming::Octets(count) => self.side.push(&room[..count]),
                Incoming::Nothing => {}
                Incoming::Closed => return Err(SessionEnd::Vanished),
            }
        }
    }

    fn open(&mut self, parameters: &Parameters) -> Result<(), SessionEnd> {
        let client = parameters.flow.client_sends(parameters.streams);
        // Those that come when it is gone are turned away at the door.
        let arriving = self.arriving.take();
        match (parameters.transport, arriving) {
            (Transport::Tcp, Some(arriving)) => {
                self.say(State::CreateStreams)?;
                let deadline = self.timeout();
                for client_sends in client {
                    let stream = self.wait_for(&arriving, deadline)?;
                    let accepted = connect::accepted(&stream, parameters, self.share_of_rate(parameters));
                    accepted.map_err(|_| SessionEnd::Vanished)?;
                    self.add(!client_sends, Carrier::Tcp(Arc::new(stream)), Counters::Bits64, parameters)?;
                }
                Ok(())
            }
            (Transport::Udp(counters), _) => self.open_udp(&client, counters, parameters),
            (Transport::Tcp, None) => Err(SessionEnd::ServerEnds),
        }
    }

    /// What each stream that this side sends may have of the server's rate, bit/s.
    fn share_of_rate(&self, parameters: &Parameters) -> u64 {
        let rate = self.shared.options.limits.rate;
        rate.map_or(u64::MAX, |rate| (rate.bps() / u64::from(parameters.streams.max(1))).max(1))
    }

    fn open_udp(&mut self, client: &[bool], counters: Counters, parameters: &Parameters) -> Result<(), SessionEnd> {
        let (greeting, greetings) = self.turn()?;
        self.say(State::CreateStreams)?;
        let deadline = self.timeout();
        let local = self.link.stream().local_addr().map_err(|_| SessionEnd::Vanished)?;
        let mut known = Vec::new();
        for &client_sends in client {
            let from = loop {
                let from = self.wait_for(&greetings, deadline)?;
                // A greeting that was sent again.
                if !known.contains(&from) {
                    break from;
                }
            };
            known.push(from);
            let socket =
                connect::datagrams(local, from, parameters, true).map_err(|_| self.refuse(ErrorNumber(203)))?;
            self.hand_on_unmatched_replies(&socket, from);
            // A client that does not hear it greets again, or gives up.
            let _ = socket.send(&GREETING_REPLY);
            self.add(!client_sends, Carrier::Udp(Arc::new(socket)), counters, parameters)?;
        }
        drop(greeting);
        Ok(())
    }

    /// Waits until no other test waits for UDP streams from this client's address.
    fn turn(&mut self) -> Result<(Greeting, Receiver<SocketAddr>), SessionEnd> {
        let address = self.peer.ip().to_canonical();
        let deadline = self.timeout();
        loop {
            let (sender, greetings) = mpsc::channel();
            let mut waiting = self.shared.greetings();
            if let Entry::Vacant(place) = waiting.entry(address) {
                place.insert(sender);
                let shared = Arc::clone(self.shared);
                return Ok((Greeting { shared, address }, greetings));
            }
            drop(waiting);
            if clock::now_ns() >= deadline {
                return Err(self.refuse(ErrorNumber::STREAM_ACCEPT));
            }
            self.poll(clock::now_ns() + POLL_NS / 4)?;
        }
    }

    /// Between being bound and being connected the socket may have got what was meant for the door.
    fn hand_on_unmatched_replies(&self, socket: &ProbeSocket, from: SocketAddr) {
        let mut packets = crate::receive::Receiver::new(socket, 16);
        if packets.receive(socket, clock::now_ns()).unwrap_or(0) > 0 {
            let unmatched_replies = packets.iter().filter_map(|datagram| datagram.from);
            unmatched_replies
                .filter(|&unmatched_reply| unmatched_reply != from)
                .for_each(|unmatched_reply| self.shared.greeted(unmatched_reply));
        }
    }

    /// What comes next by a channel; the client may go away while it is waited for.
    fn wait_for<T>(&mut self, channel: &Receiver<T>, deadline_ns: i64) -> Result<T, SessionEnd> {
        loop {
            match channel.recv_timeout(Duration::from_nanos(POLL_NS.unsigned_abs())) {
                Ok(next) => return Ok(next),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(SessionEnd::ServerEnds),
            }
            self.poll(clock::now_ns())?;
            if clock::now_ns() >= deadline_ns {
                return Err(self.refuse(ErrorNumber::STREAM_ACCEPT));
            }
        }
    }

    /// Looks at the control connection, for which it is not this side's turn, until `deadline_ns`.
    fn poll(&mut self, deadline_ns: i64) -> Result<(), SessionEnd> {
        let mut room = [0; 1 << 10];
        match self.link.hear(&mut room, deadline_ns) {
            Incoming::Octets(count) => self.side.push(&room[..count]),
            Incoming::Nothing => {}
            Incoming::Closed => return Err(SessionEnd::Vanished),
        }
        if self.shared.ended.load(Ordering::Relaxed) {
            let _ = self.link.say(State::ServerTerminate);
            return Err(SessionEnd::ServerEnds);
        }
        Ok(())
    }

    fn add(
        &mut self,
        sends: bool,
        carrier: Carrier,
        counters: Counters,
        parameters: &Parameters,
    ) -> Result<(), SessionEnd> {
        let id = stream_id(u32::try_from(self.streams.len()).unwrap_or(u32::MAX));
        let mut stream = Stream::new(id, sends, carrier, counters).map_err(|_| SessionEnd::Vanished)?;
        if !sends {
            let block = usize::try_from(parameters.block_octets).unwrap_or(0);
            let crowded = udp::crowded(parameters);
            stream.receive(block, crowded).map_err(|_| self.refuse(ErrorNumber(201)))?;
        }
        self.streams.push(stream);
        Ok(())
    }

    fn start(&mut self, parameters: &Parameters, began_ns: i64) -> Result<(), SessionEnd> {
        let until_ns = began_ns.saturating_add(nanos(self.longest(parameters)));
        let counters = match parameters.transport {
            Transport::Udp(counters) => counters,
            Transport::Tcp => Counters::Bits64,
        };
        for stream in self.streams.iter_mut().filter(|stream| stream.sends) {
            let plan = SendPlan {
                block: usize::try_from(parameters.block_octets).unwrap_or(0),
                rate_bps: parameters.rate_bps,
                burst: parameters.burst,
                counters,
                zero_copy: parameters.zero_copy,
                // The client ends a test by amount: datagrams may be lost, and it wants so much to
                // arrive.
                send_budget: Arc::new(SendBudget::new(None)),
                until_ns,
                seed: 1 + u64::from(stream.id),
            };
            if stream.send(plan).is_err() {
                return Err(self.refuse(ErrorNumber(201)));
            }
        }
        Ok(())
    }

    /// After this long the test ends, whatever the client says.
    fn longest(&self, parameters: &Parameters) -> Duration {
        let most = self.shared.options.limits.duration;
        if parameters.seconds == 0 {
            return most;
        }
        let asked = u64::from(parameters.seconds) + u64::from(parameters.omit_seconds);
        Duration::from_secs(asked).saturating_add(GRACE)
    }

    /// Watches the test until the client says that it is over.
    fn attend(&mut self, parameters: &Parameters, counting: &mut Counting) -> Result<(), SessionEnd> {
        let longest = counting.began_ns.saturating_add(nanos(self.longest(parameters)));
        let omit = Duration::from_secs(parameters.omit_seconds.into());
        let omit_ns = counting.began_ns.saturating_add(nanos(omit));
        let mut omitting = !omit.is_zero();
        loop {
            match self.side.order() {
                Ok(Some(ServerOrder::End)) => return Ok(()),
                Ok(Some(_)) => return Err(SessionEnd::Terminated),
                Ok(None) => {}
                Err(fault) => return Err(SessionEnd::Refused(fault.to_string())),
            }
            let now = clock::now_ns();
            if omitting && now >= omit_ns {
                omitting = false;
                counting.at_ns = now;
                counting.before = self.snapshots();
            }
            let octets = self.shared.options.limits.octets;
            if now >= longest || octets.is_some_and(|most| self.octets() > most) {
                let _ = self.link.say(State::ServerTerminate);
                return Err(SessionEnd::Limit);
            }
            self.poll(now + POLL_NS)?;
        }
    }

    fn octets(&self) -> u64 {
        let octets = self.streams.iter().map(|stream| stream.shared.octets.load(Ordering::Relaxed));
        octets.fold(0, u64::saturating_add)
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        self.streams.iter().map(Stream::snapshot).collect()
    }

    /// Senders stop at once; what is on its way is counted, if the client still is there to hear of
    /// it.
    fn settle(&mut self, in_order: bool) {
        for stream in self.streams.iter().filter(|stream| stream.sends || !in_order) {
            stream.ask_to_stop();
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.sends) {
            stream.finish();
        }
        let begun = clock::now_ns();
        let (mut seen, mut since) = (self.octets(), begun);
        let waits = in_order && self.streams.iter().any(|stream| !stream.sends);
        while waits && !self.streams.iter().all(|stream| stream.sends || stream.ended()) {
            clock::sleep_until_ns(clock::now_ns() + 2_000_000);
            let (now, octets) = (clock::now_ns(), self.octets());
            if octets != seen {
                (seen, since) = (octets, now);
            }
            if now - since > QUIET_NS || now - begun > LATE_NS {
                break;
            }
        }
        for stream in &self.streams {
            stream.ask_to_stop();
        }
        for stream in &mut self.streams {
            stream.end_thread();
        }
    }

    fn results(&self, parameters: &Parameters, counting: &Counting, over_ns: i64) -> Results {
        let now = self.snapshots();
        let seconds = |at: i64| (at - counting.began_ns).max(0) as f64 / 1e9;
        let span = (seconds(counting.at_ns), seconds(over_ns));
        let sends = self.streams.iter().any(|stream| stream.sends);
        let counted = now.iter().zip(&counting.before);
        Results {
            knows_retransmits: sends.then_some(parameters.transport == Transport::Tcp),
            congestion: self.streams.iter().find_map(Stream::congestion).map(str::to_owned),
            streams: counted.map(|(now, before)| stream_result(now, before, span)).collect(),
            ..Results::default()
        }
    }

    fn exchange(&mut self, results: &Results) -> Result<SessionEnd, SessionEnd> {
        self.say(State::ExchangeResults)?;
        let ServerOrder::Results(_) = self.order(self.timeout())? else {
            return Err(SessionEnd::Terminated);
        };
        let text = frame(&results.to_json());
        self.link.send(&text).map_err(|_| SessionEnd::Vanished)?;
        self.say(State::DisplayResults)?;
        match self.order(self.timeout()) {
            // Some clients close without a word: they have all they wanted.
            Ok(_) | Err(SessionEnd::Vanished) => Ok(SessionEnd::Complete),
            Err(end) => Err(end),
        }
    }
}

/// What was counted before counting began.
struct Counting {
    began_ns: i64,
    at_ns: i64,
    before: Vec<Snapshot>,
}
