//! Transfers: segments that continue one another over connections that stay open.

mod read;

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_probe::probes::{Congestion, StreamReport, TcpSample, Then, Transfer, TransferReport};
use narrows_probe::{Event, Refusal};
use narrows_units::{BitRate, Stamp};
use narrows_wire::{
    ClientMessage, DataHello, Direction, ServerMessage, TransferPlan, TransferReceived, TransferSegment, TransferSent,
};

use self::read::{RemoteRead, read_since};
use super::SocketWorld;
use super::control::Incoming;
use super::convert::{share, tcp_sample};
use super::options::TrafficOptions;
use crate::clock::{self, nanos};
use crate::error::{Error, PathError, PeerError};
use crate::load::busiest_share;
use crate::send_budget;
use crate::transfer::{BulkReceiver, BulkSender, Progress, TransferOptions, Writing, prepare};

/// A transfer under way.
pub(super) struct Running {
    id: u32,
    options: TransferOptions,
    opened: u16,
    traffic: Traffic,
    /// When the last forward segment ended, and the CPU time by then: what goes between two
    /// segments belongs to the next.
    reported: Option<(i64, Vec<Duration>)>,
    /// When the remote host will break it off.
    over_ns: i64,
}

enum Traffic {
    Forward { bulk: BulkSender, read: RemoteRead },
    Reverse(BulkReceiver),
}

/// What orders of segments take on their way, all together; the remote host allows more.
const ON_ITS_WAY: Duration = Duration::from_secs(3);
/// Longest wait, after a transfer's end, for what is still in buffers.
const DRAIN: Duration = Duration::from_secs(10);

fn options(transfer: &Transfer, traffic: &TrafficOptions) -> TransferOptions {
    TransferOptions {
        congestion: transfer.congestion.as_ref().map(|congestion| congestion.name().to_owned()),
        window_octets: transfer.window_octets,
        // Bursts of blocks are kept at their rate by the program.
        pacing: transfer.pacing.filter(|_| traffic.burst_blocks.is_none()),
        near: None,
        mss_octets: traffic.mss_octets,
        no_delay: traffic.no_delay,
        traffic_class: traffic.traffic_class,
    }
}

fn writing(transfer: &Transfer, traffic: &TrafficOptions) -> Writing {
    Writing {
        block_octets: traffic.block_octets,
        zero_copy: traffic.zero_copy,
        pace: transfer.pacing.zip(traffic.burst_blocks),
        payload_octets: traffic.payload_octets,
    }
}

impl SocketWorld {
    /// Payload octets that the receiving program read of the last transfer that was brought to its
    /// end, all its segments together, and the time from the first of them to the last.
    pub fn transfer_read(&self) -> Option<(u64, Duration)> {
        self.read
    }

    pub(super) fn transfer_segment(&mut self, transfer: &Transfer) -> Result<Event, Error> {
        if let Err(refusal) = self.transfer_fits(transfer) {
            self.end_transfer()?;
            return Ok(Event::Refused(refusal));
        }
        let continues = self.transfer.as_ref().is_some_and(|running| {
            let fits = clock::now_ns().saturating_add(nanos(transfer.duration)) < running.over_ns;
            running.options == options(transfer, &self.options.traffic) && transfer.streams >= running.opened && fits
        });
        if !continues {
            self.end_transfer()?;
        }
        let mut running = match self.transfer.take() {
            Some(running) => running,
            None => match self.begin_transfer(transfer)? {
                Ok(running) => running,
                Err(refusal) => return Ok(Event::Refused(refusal)),
            },
        };
        if transfer.streams > running.opened {
            // What goes while new connections are opened is not theirs to answer for.
            running.reported = None;
        }
        self.open_connections(&mut running, transfer.streams)?;
        let report = match self.options.direction {
            Direction::Forward => self.forward_transfer(running, transfer)?,
            Direction::Reverse => self.reverse_transfer(running, transfer)?,
        };
        Ok(report.map_or_else(Event::Refused, Event::Transfer))
    }

    fn transfer_fits(&self, transfer: &Transfer) -> Result<(), Refusal> {
        /// What the protocol can say.
        const MOST_WINDOW: u32 = 512 << 20;
        let plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'_' || octet == b'-';
        let named = transfer.congestion.as_ref().map_or("reno", Congestion::name);
        if !(1..=15).contains(&named.len()) || !named.bytes().all(plain) || transfer.pacing == Some(BitRate::ZERO) {
            return Err(Refusal::NotOffered);
        }
        let wide = transfer.window_octets.is_some_and(|octets| octets > MOST_WINDOW);
        let many = transfer.streams == 0 || transfer.streams > self.limits.max_streams;
        if wide || many || !self.limits.transfers || transfer.duration >= self.limits.max_duration() {
            return Err(Refusal::ForbiddenByPeer);
        }
        Ok(())
    }

    fn begin_transfer(&mut self, transfer: &Transfer) -> Result<Result<Running, Refusal>, Error> {
        if let Err(refusal) = self.load_slot()? {
            return Ok(Err(refusal));
        }
        let id = self.take_id();
        let traffic = &self.options.traffic;
        let (options, writing) = (options(transfer, traffic), writing(transfer, traffic));
        let (tuning, block) = (traffic.transfer().filter(|_| self.tunes()), traffic.block_octets);
        self.control.say(&ClientMessage::TransferBegin(TransferPlan {
            id,
            direction: self.options.direction,
            max_streams: self.limits.max_streams.clamp(1, 1024),
            max_duration_ns: self.limits.max_duration_ns,
            congestion: options.congestion.clone(),
            window_octets: options.window_octets,
            pacing_bps: transfer.pacing.map(BitRate::bps),
            tuning,
        }))?;
        let ready = self.control.await_answer("beginning a transfer", self.timeout(), |incoming| {
            matches!(incoming, Incoming::Message(ServerMessage::TransferReady { id: ready }) if ready == id)
                .then_some(())
        })?;
        Ok(ready.map(|()| Running {
            id,
            options,
            opened: 0,
            reported: None,
            traffic: match self.options.direction {
                Direction::Forward => Traffic::Forward { bulk: BulkSender::new(writing), read: RemoteRead::default() },
                Direction::Reverse => Traffic::Reverse(BulkReceiver::reading(block)),
            },
            // The remote host allows some more, for what is on its way.
            over_ns: clock::now_ns().saturating_add(nanos(self.limits.max_duration() + ON_ITS_WAY)),
        }))
    }

    fn open_connections(&mut self, running: &mut Running, streams: u16) -> Result<(), Error> {
        let mut opened: Vec<TcpStream> = Vec::new();
        for number in running.opened..streams {
            let peer = self.keys.peer;
            let silent =
                |_| PathError::Silent { peer, doing: "opening a data connection", waited: self.options.timeout };
            let options =
                TransferOptions { near: self.options.traffic.near(peer.is_ipv6(), number), ..running.options.clone() };
            let socket = prepare(peer, &options)
                .map_err(Error::host("prepare a data connection (its local address and port, or an option)"))?;
            socket.connect_timeout(&peer.into(), self.options.timeout).map_err(silent)?;
            let mut stream = TcpStream::from(socket);
            if number == 0 {
                self.ends.clear();
            }
            self.ends.extend(stream.local_addr().ok().zip(stream.peer_addr().ok()));
            let hello = DataHello { token: self.keys.token, transfer: running.id, stream: number };
            stream.write_all(&hello.encode()).map_err(|_| PeerError::Closed { peer })?;
            opened.push(stream);
        }
        // All are open before the first sends: none has a head start.
        for stream in opened {
            match &mut running.traffic {
                Traffic::Forward { bulk, .. } => bulk.add(stream).map_err(Error::host("send on a connection"))?,
                Traffic::Reverse(bulk) => bulk.add(stream).map_err(Error::host("read a connection"))?,
            }
        }
        running.opened = running.opened.max(streams);
        Ok(())
    }

    fn forward_transfer(
        &mut self,
        mut running: Running,
        transfer: &Transfer,
    ) -> Result<Result<TransferReport, Refusal>, Error> {
        let Traffic::Forward { bulk, read } = &mut running.traffic else {
            return Ok(Err(Refusal::NotOffered));
        };
        let (began, cpu) = running.reported.take().unwrap_or_else(|| (clock::now_ns(), bulk.cpu()));
        let before = (read.octets, read.span_ns);
        read.cpu = None;
        let ends = began.saturating_add(nanos(transfer.duration));
        let every = nanos(transfer.sample_every.max(Duration::from_millis(1)));
        let mut samples: Vec<Vec<TcpSample>> = vec![Vec::new(); bulk.len()];
        let mut next = began;
        let limit = self.options.traffic.payload_octets;
        let poll = limit.map_or(50_000_000, |_| nanos(send_budget::POLL));
        loop {
            let now = clock::now_ns();
            self.spent = bulk.spent();
            let last = now >= ends || self.spent || self.control.stop_requested();
            if now >= next || last {
                sample(bulk, &mut samples)?;
                next = next.saturating_add(every).max(now);
            }
            if bulk.broken() {
                return Err(self.connection_broke());
            }
            if last {
                break;
            }
            match self.control.hear(next.min(ends).min(now + poll))? {
                Some(Incoming::Message(ServerMessage::TransferReceived(received))) => read.take(&received),
                Some(Incoming::Message(ServerMessage::Refused { code, text, .. })) => {
                    return self.control.refusal(code, text).map(Err);
                }
                _ => {}
            }
        }
        let (ended, cpu_after, settings) = (clock::now_ns(), bulk.cpu(), bulk.settings());
        let finish = transfer.then == Then::Finish || self.spent || self.control.stop_requested();
        if finish {
            self.finish_forward_transfer(running.id, bulk, read)?;
            self.read = Some(read_since((0, None), (read.octets, read.span_ns)));
        }
        let elapsed = Duration::from_nanos(u64::try_from(ended - began).unwrap_or(0));
        let streams = settings.into_iter().zip(samples).map(|(settings, samples)| StreamReport {
            congestion: Congestion::from_name(&settings.congestion),
            granted_send_buffer_octets: settings.send_buffer_octets,
            samples,
        });
        let report = TransferReport {
            began: Stamp::from_nanos(began),
            ended: Stamp::from_nanos(ended),
            streams: streams.collect(),
            remote_read: finish.then(|| read_since(before, (read.octets, read.span_ns))),
            sender_cpu: busiest_share(&cpu, &cpu_after, elapsed),
            receiver_cpu: read.cpu,
        };
        if !finish {
            running.reported = Some((ended, cpu_after));
            self.transfer = Some(running);
        }
        Ok(Ok(report))
    }

    /// Closes the connections behind their last octet, and waits until the remote host has read it.
    fn finish_forward_transfer(&mut self, id: u32, bulk: &mut BulkSender, read: &mut RemoteRead) -> Result<(), Error> {
        bulk.finish_writing();
        self.control.say(&ClientMessage::TransferEnd { id })?;
        self.await_transfer_done(id, |received| read.take(received))
    }

    fn await_transfer_done(&mut self, id: u32, mut read: impl FnMut(&TransferReceived)) -> Result<(), Error> {
        let timeout = DRAIN + self.timeout();
        let deadline = clock::now_ns().saturating_add(nanos(timeout));
        loop {
            match self.control.hear(deadline)? {
                Some(Incoming::Message(ServerMessage::TransferDone { id: done })) if done == id => return Ok(()),
                // Broken off: over as well.
                Some(Incoming::Message(ServerMessage::Refused { .. })) => return Ok(()),
                Some(Incoming::Message(ServerMessage::TransferReceived(received))) => read(&received),
                Some(_) => {}
                None => {
                    return Err(PathError::Silent {
                        peer: self.control.peer(),
                        doing: "waiting for the end of a transfer",
                        waited: timeout,
                    }
                    .into());
                }
            }
        }
    }

    fn reverse_transfer(
        &mut self,
        mut running: Running,
        transfer: &Transfer,
    ) -> Result<Result<TransferReport, Refusal>, Error> {
        let Traffic::Reverse(bulk) = &mut running.traffic else {
            return Ok(Err(Refusal::NotOffered));
        };
        let (began, before) = (clock::now_ns(), bulk.progress());
        let every = transfer.sample_every.clamp(Duration::from_millis(1), Duration::from_secs(60));
        self.control.say(&ClientMessage::TransferSegment(TransferSegment {
            id: running.id,
            streams: transfer.streams,
            duration_ns: narrows_units::nanos(transfer.duration),
            sample_every_ns: narrows_units::nanos(every),
            continues: transfer.then == Then::Continue,
        }))?;
        let mut samples: Vec<Vec<TcpSample>> = vec![Vec::new(); transfer.streams.into()];
        let (sent, ending) = match self.await_segment(running.id, bulk, transfer.duration, &mut samples)? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.spent = sent.spent;
        self.stands = sent.streams.iter().filter_map(|stream| stream.stands).collect();
        let finish = transfer.then == Then::Finish || ending || sent.spent;
        let at_end = bulk.progress();
        let elapsed = Duration::from_nanos(u64::try_from(clock::now_ns() - began).unwrap_or(0));
        let after = if finish {
            let after = self.finish_reverse_transfer(running.id, bulk, ending)?;
            self.read = Some(read_since((0, None), (after.octets, after.span_ns)));
            after
        } else {
            at_end.clone()
        };
        let streams = sent.streams.iter().zip(samples).map(|(stream, samples)| StreamReport {
            congestion: Congestion::from_name(&stream.congestion),
            granted_send_buffer_octets: stream.granted_send_buffer_octets,
            samples,
        });
        let report = TransferReport {
            began: Stamp::from_nanos(sent.began_ns),
            ended: Stamp::from_nanos(sent.ended_ns),
            streams: streams.collect(),
            remote_read: finish.then(|| read_since((before.octets, before.span_ns), (after.octets, after.span_ns))),
            sender_cpu: sent.sender_cpu_permille.map(share),
            receiver_cpu: busiest_share(&before.cpu, &at_end.cpu, elapsed),
        };
        if !finish {
            self.transfer = Some(running);
        }
        Ok(Ok(report))
    }

    /// Waits for the end of a reverse segment and gathers its samples; whether it was cut short.
    fn await_segment(
        &mut self,
        id: u32,
        bulk: &BulkReceiver,
        duration: Duration,
        samples: &mut [Vec<TcpSample>],
    ) -> Result<Result<(TransferSent, bool), Refusal>, Error> {
        let timeout = duration + self.timeout() + self.options.timeout;
        let deadline = clock::now_ns().saturating_add(nanos(timeout));
        let mut ending = false;
        while clock::now_ns() < deadline {
            self.note_life(&bulk.progress());
            if self.control.stop_requested() && !ending {
                ending = true;
                self.control.say(&ClientMessage::TransferEnd { id })?;
            }
            match self.control.hear(deadline.min(clock::now_ns() + 50_000_000))? {
                Some(Incoming::Message(ServerMessage::TransferSamples { id: of, stream, samples: new }))
                    if of == id =>
                {
                    if let Some(kept) = samples.get_mut(usize::from(stream)) {
                        kept.extend(new.iter().map(tcp_sample));
                    }
                }
                Some(Incoming::Message(ServerMessage::TransferSent(sent))) if sent.id == id => {
                    return Ok(Ok((sent, ending)));
                }
                Some(Incoming::Message(ServerMessage::Refused { code, text, .. })) => {
                    return self.control.refusal(code, text).map(Err);
                }
                _ => {}
            }
        }
        Err(PathError::Silent {
            peer: self.control.peer(),
            doing: "waiting for the end of a transfer's segment",
            waited: timeout,
        }
        .into())
    }

    /// Reads to the end of every connection.
    fn finish_reverse_transfer(&mut self, id: u32, bulk: &BulkReceiver, ending: bool) -> Result<Progress, Error> {
        if !ending {
            let deadline = clock::now_ns().saturating_add(nanos(DRAIN));
            loop {
                let now = clock::now_ns();
                let progress = bulk.wait(deadline.min(now + 50_000_000), self.control.halt());
                self.note_life(&progress);
                if progress.open == 0 || now >= deadline || self.control.halt().load(Ordering::Relaxed) {
                    break;
                }
            }
            self.control.say(&ClientMessage::TransferEnd { id })?;
        }
        self.await_transfer_done(id, |_| {})?;
        Ok(bulk.wait(clock::now_ns().saturating_add(nanos(self.quiet())), &AtomicBool::new(false)))
    }

    /// Data that comes is the remote host's sign of life.
    fn note_life(&self, progress: &Progress) {
        if let Some((_, last_ns)) = progress.span_ns {
            self.control.last_received_at().fetch_max(last_ns, Ordering::Relaxed);
        }
    }

    fn connection_broke(&self) -> Error {
        PeerError::Protocol {
            peer: self.control.peer(),
            what: "it closed a data connection before its time".to_owned(),
        }
        .into()
    }

    /// Ends a transfer that runs on.
    pub(super) fn end_transfer(&mut self) -> Result<(), Error> {
        let Some(mut running) = self.transfer.take() else {
            return Ok(());
        };
        match &mut running.traffic {
            Traffic::Forward { bulk, read } => self.finish_forward_transfer(running.id, bulk, read),
            Traffic::Reverse(_) => {
                self.control.say(&ClientMessage::TransferEnd { id: running.id })?;
                self.await_transfer_done(running.id, |_| {})
            }
        }
    }
}

fn sample(bulk: &BulkSender, samples: &mut [Vec<TcpSample>]) -> Result<(), Error> {
    let now = bulk.samples().map_err(Error::host("read TCP_INFO"))?;
    for (kept, sample) in samples.iter_mut().zip(now) {
        kept.push(sample);
    }
    Ok(())
}
