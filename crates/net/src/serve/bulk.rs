//! TCP transfers, both ways.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use narrows_units::BitRate;
use narrows_wire::{
    BulkStream, Direction, ServerMessage, SocketStands, TransferPlan, TransferReceived, TransferSegment, TransferSent,
};

use super::conductor::{Conductor, POLL};
use super::convert::{permille, sample};
use super::orders::{BrokenOff, Order};
use super::session::{DataListener, lock};
use crate::clock;
use crate::load::busiest_share;
use crate::send_budget;
use crate::transfer::{BulkReceiver, BulkSender, TransferOptions, Writing, accepted};

/// How long a segment waits for its connections.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the end of a forward transfer waits for what its connections still carry.
const DRAIN: Duration = Duration::from_secs(10);
/// Samples of one stream come no faster than this times the number of streams (ours): ten thousand
/// in a second, about 5 MB of messages.
const SAMPLE_NS: i64 = 100_000;
/// A connection may still be on its way from the listener when the client says that all are closed.
const SETTLE: Duration = Duration::from_millis(200);
/// Samples are sent at least this often.
const SHIP_NS: i64 = 200_000_000;

/// Carries out a transfer.
pub(super) fn run(conductor: &Conductor, plan: &TransferPlan) -> Result<(), BrokenOff> {
    admit(conductor, plan)?;
    let (streams, listen_socket) = channel();
    *lock(&conductor.session.listen_socket) = Some(DataListener { transfer: plan.id, streams });
    conductor.say(ServerMessage::TransferReady { id: plan.id });
    let done = match plan.direction {
        Direction::Forward => receive(conductor, plan, &listen_socket),
        Direction::Reverse => Sending::new(conductor, plan, listen_socket).run(),
    };
    lock(&conductor.session.listen_socket).take();
    done?;
    conductor.say(ServerMessage::TransferDone { id: plan.id });
    Ok(())
}

fn admit(conductor: &Conductor, plan: &TransferPlan) -> Result<(), BrokenOff> {
    let session = &conductor.session;
    let limits = &session.limits;
    if !limits.transfers {
        return Err(BrokenOff::limit("this server allows no transfers"));
    }
    if !session.loads.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(BrokenOff::limit("a transfer needs the load slot"));
    }
    if plan.max_streams > limits.max_streams {
        return Err(BrokenOff::limit(format!("a transfer may have {} streams at most", limits.max_streams)));
    }
    if let Some(tuning) = &plan.tuning {
        if tuning.payload_octets.is_some_and(|octets| octets > limits.max_octets) {
            return Err(BrokenOff::limit(format!("a transfer may have {} octets at most", limits.max_octets)));
        }
        session.may_mark(tuning.traffic_class)?;
    }
    if Duration::from_nanos(plan.max_duration_ns) > limits.max_duration() {
        return Err(BrokenOff::limit(format!("a transfer may take {:?} at most", limits.max_duration())));
    }
    Ok(())
}

fn options(plan: &TransferPlan) -> TransferOptions {
    let tuning = plan.tuning.clone().unwrap_or_default();
    TransferOptions {
        congestion: plan.congestion.clone(),
        window_octets: plan.window_octets,
        // Bursts of blocks are kept at their rate by the program.
        pacing: plan.pacing_bps.map(BitRate::from_bps).filter(|_| tuning.burst_blocks.is_none()),
        no_delay: tuning.no_delay,
        traffic_class: tuning.traffic_class,
        ..TransferOptions::default()
    }
}

fn writing(plan: &TransferPlan) -> Writing {
    let tuning = plan.tuning.clone().unwrap_or_default();
    Writing {
        block_octets: tuning.block_octets,
        zero_copy: tuning.zero_copy,
        pace: plan.pacing_bps.map(BitRate::from_bps).zip(tuning.burst_blocks),
        payload_octets: tuning.payload_octets,
    }
}

/// The client sends.
fn receive(
    conductor: &Conductor,
    plan: &TransferPlan,
    listen_socket: &Receiver<(u16, TcpStream)>,
) -> Result<(), BrokenOff> {
    let block = plan.tuning.as_ref().and_then(|tuning| tuning.block_octets);
    let mut bulk = BulkReceiver::reading(block);
    let options = options(plan);
    let mut over_ns = clock::now_ns().saturating_add_unsigned(plan.max_duration_ns) + clock::nanos(CONNECT);
    let mut reported = (clock::now_ns(), bulk.progress());
    let (mut streams, mut octets, mut ended) = (0, 0, false);
    loop {
        while let Ok((_, stream)) = listen_socket.try_recv() {
            streams += 1;
            if streams > plan.max_streams {
                return Err(BrokenOff::limit("more connections than announced"));
            }
            accepted(&stream, &options).map_err(BrokenOff::host("set up a connection"))?;
            bulk.add(stream).map_err(BrokenOff::host("read a connection"))?;
        }
        let now = clock::now_ns();
        let progress = bulk.progress();
        if progress.octets > octets {
            // The transfer's own queue may well hold up the control connection's segments.
            conductor.session.hear();
            octets = progress.octets;
        }
        if now > over_ns && !ended {
            return Err(BrokenOff::limit("the transfer took longer than announced"));
        }
        if progress.octets > conductor.session.limits.max_octets {
            return Err(BrokenOff::limit("the transfer has more octets than a test may have"));
        }
        let settled = now > over_ns - clock::nanos(DRAIN) + clock::nanos(SETTLE);
        let over = ended && (progress.open == 0 && settled || now > over_ns);
        if over || now - reported.0 >= clock::nanos(narrows_wire::ALIVE_EVERY) {
            let elapsed = Duration::from_nanos((now - reported.0).unsigned_abs());
            conductor.say(ServerMessage::TransferReceived(TransferReceived {
                id: plan.id,
                octets: progress.octets,
                span_ns: progress.span_ns,
                receiver_cpu_permille: permille(busiest_share(&reported.1.cpu, &progress.cpu, elapsed)),
            }));
            reported = (now, progress);
        }
        if over {
            return Ok(());
        }
        if let Some(Order::TransferEnd) = conductor.order(if ended { Duration::from_millis(2) } else { POLL })? {
            ended = true;
            over_ns = clock::now_ns() + clock::nanos(DRAIN);
        }
    }
}

/// A reverse segment under way.
struct Segment {
    began_ns: i64,
    ends_ns: i64,
    continues: bool,
    every_ns: i64,
    next_ns: i64,
    shipped_ns: i64,
    cpu: Vec<Duration>,
    samples: Vec<Vec<narrows_wire::TcpSample>>,
}

/// The server sends.
struct Sending<'a> {
    conductor: &'a Conductor,
    plan: &'a TransferPlan,
    listen_socket: Receiver<(u16, TcpStream)>,
    /// Connections that do not send yet.
    waiting: BTreeMap<u16, TcpStream>,
    bulk: BulkSender,
    over_ns: i64,
    segment: Option<Segment>,
    /// When the last segment ended, if the transfer runs on after it.
    continues_from: Option<i64>,
}

impl<'a> Sending<'a> {
    fn new(conductor: &'a Conductor, plan: &'a TransferPlan, listen_socket: Receiver<(u16, TcpStream)>) -> Self {
        Self {
            conductor,
            plan,
            listen_socket,
            waiting: BTreeMap::new(),
            bulk: BulkSender::new(writing(plan)),
            over_ns: clock::now_ns().saturating_add_unsigned(plan.max_duration_ns) + clock::nanos(CONNECT),
            segment: None,
            continues_from: None,
        }
    }

    fn run(mut self) -> Result<(), BrokenOff> {
        loop {
            if clock::now_ns() > self.over_ns {
                return Err(BrokenOff::limit("the transfer took longer than announced"));
            }
            self.welcome()?;
            let mut timeout = POLL;
            if let Some(segment) = &self.segment {
                let now = clock::now_ns();
                if now >= segment.ends_ns {
                    self.end_segment()?;
                    continue;
                }
                if now >= segment.next_ns {
                    self.sample()?;
                    continue;
                }
                if self.bulk.spent() {
                    self.end_segment()?;
                    continue;
                }
                timeout = Duration::from_nanos((segment.next_ns.min(segment.ends_ns) - now).unsigned_abs());
                if self.limited() {
                    timeout = timeout.min(send_budget::POLL);
                }
            }
            match self.conductor.order(timeout)? {
                Some(Order::TransferSegment(segment)) => self.begin_segment(&segment)?,
                Some(Order::TransferEnd) => break,
                _ => {}
            }
        }
        if self.segment.is_some() {
            self.end_segment()?;
        }
        Ok(())
    }

    /// There is so much to send, and no more.
    fn limited(&self) -> bool {
        let tuning = self.plan.tuning.as_ref();
        tuning.is_some_and(|tuning| tuning.payload_octets.is_some())
    }

    /// Takes in connections that have come.
    fn welcome(&mut self) -> Result<(), BrokenOff> {
        while let Ok((number, stream)) = self.listen_socket.try_recv() {
            let known = usize::from(number) < self.bulk.len() || self.waiting.contains_key(&number);
            if known || number >= self.plan.max_streams {
                return Err(BrokenOff::limit("a connection that was not announced"));
            }
            accepted(&stream, &options(self.plan)).map_err(BrokenOff::host("set up a connection"))?;
            self.waiting.insert(number, stream);
        }
        Ok(())
    }

    fn begin_segment(&mut self, order: &TransferSegment) -> Result<(), BrokenOff> {
        if self.segment.is_some() {
            self.end_segment()?;
        }
        let timeout_ns = clock::now_ns() + clock::nanos(CONNECT);
        while self.bulk.len() < usize::from(order.streams) {
            self.welcome()?;
            let next = u16::try_from(self.bulk.len()).unwrap_or(u16::MAX);
            if let Some(stream) = self.waiting.remove(&next) {
                self.bulk.add(stream).map_err(BrokenOff::host("send on a connection"))?;
                continue;
            }
            self.conductor.still_there()?;
            if clock::now_ns() > timeout_ns {
                return Err(BrokenOff::limit("the transfer's connections did not come"));
            }
            clock::sleep_until_ns(clock::now_ns() + 1_000_000);
        }
        let now = clock::now_ns();
        // What went while the next order was on its way belongs to what that order began.
        let began_ns = self.continues_from.take().unwrap_or(now);
        self.segment = Some(Segment {
            began_ns,
            ends_ns: now.saturating_add_unsigned(order.duration_ns),
            continues: order.continues,
            every_ns: i64::try_from(order.sample_every_ns)
                .unwrap_or(i64::MAX)
                .max(SAMPLE_NS * i64::from(order.streams)),
            next_ns: now,
            shipped_ns: now,
            cpu: self.bulk.cpu(),
            samples: vec![Vec::new(); self.bulk.len()],
        });
        self.sample()
    }

    fn sample(&mut self) -> Result<(), BrokenOff> {
        let Some(segment) = &mut self.segment else {
            return Ok(());
        };
        if self.bulk.broken() {
            return Err(BrokenOff::limit("a connection of the transfer broke"));
        }
        let samples = self.bulk.samples().map_err(BrokenOff::host("read TCP_INFO"))?;
        let mut octets = 0u64;
        for (kept, new) in segment.samples.iter_mut().zip(&samples) {
            octets = octets.saturating_add(new.acked_octets);
            kept.push(sample(new));
        }
        if octets > self.conductor.session.limits.max_octets {
            return Err(BrokenOff::limit("the transfer has more octets than a test may have"));
        }
        let now = clock::now_ns();
        segment.next_ns =
            segment.next_ns.saturating_add(segment.every_ns).max(now.saturating_add(segment.every_ns / 2));
        let full = segment.samples.iter().any(|kept| kept.len() >= TransferSent::MAX_SAMPLES);
        if full || now - segment.shipped_ns > SHIP_NS {
            segment.shipped_ns = now;
            self.ship();
        }
        Ok(())
    }

    /// Sends what was sampled.
    fn ship(&mut self) {
        let Some(segment) = &mut self.segment else { return };
        for (stream, kept) in (0u16..).zip(&mut segment.samples) {
            if !kept.is_empty() {
                self.conductor.say(ServerMessage::TransferSamples {
                    id: self.plan.id,
                    stream,
                    samples: std::mem::take(kept),
                });
            }
        }
    }

    fn end_segment(&mut self) -> Result<(), BrokenOff> {
        self.sample()?;
        self.ship();
        let Some(segment) = self.segment.take() else {
            return Ok(());
        };
        let ended_ns = clock::now_ns();
        let cpu = self.bulk.cpu();
        let spent = self.bulk.spent();
        let continues = segment.continues && !spent;
        self.continues_from = continues.then_some(ended_ns);
        if !continues {
            self.bulk.finish_writing();
        }
        let elapsed = Duration::from_nanos((ended_ns - segment.began_ns).unsigned_abs());
        let streams = self.bulk.settings().into_iter().map(|settings| BulkStream {
            congestion: settings.congestion,
            granted_send_buffer_octets: settings.send_buffer_octets,
            stands: self.plan.tuning.as_ref().map(|_| SocketStands {
                traffic_class: settings.traffic_class.unwrap_or(0),
                no_delay: settings.no_delay.unwrap_or(false),
            }),
        });
        self.conductor.say(ServerMessage::TransferSent(TransferSent {
            id: self.plan.id,
            began_ns: segment.began_ns,
            ended_ns,
            streams: streams.collect(),
            sender_cpu_permille: permille(busiest_share(&segment.cpu, &cpu, elapsed)),
            spent,
        }));
        Ok(())
    }
}
