//! Trains: forward, echoed, reverse.

mod answers;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use narrows_probe::probes::{Fate, PacketPlan, PeerKind, Train};
use narrows_probe::{Event, Refusal};
use narrows_wire::{
    ArrivalRow, ClientMessage, DepartureRow, ECHO_OCTETS, PROBE_OCTETS, Pacing, PlanRow, Probe, ProbeKind, Rows,
    ServerMessage, StampSource, Table, TrainExpectation, TrainResult,
};

use super::control::Incoming;
use super::gather::{Gatherer, Wanted};
use super::{SocketWorld, nap};
use crate::clock::{self, nanos};
use crate::error::Error;
use crate::pace::{BackToBack, Departures, PaceOptions, Payloads, Sent, send_train, worth_stamping};
use crate::poll_interval::Expected;
use crate::socket::ProbeSocket;

/// A refusal is an answer, a fault is not.
type Answered<T> = Result<Result<T, Refusal>, Error>;

impl SocketWorld {
    pub(super) fn train(&mut self, train: &Train) -> Result<Event, Error> {
        let event = match (self.reverse(), train.peer_kind) {
            (false, PeerKind::Receiver) => self.forward_train(train)?,
            (false, PeerKind::Echo | PeerKind::EchoSized(_)) => return self.echo_train(train),
            (true, PeerKind::Receiver) => self.reverse_train(train)?,
            // There and back is the same from either end, as long as every packet takes both ways
            // whole.
            (true, PeerKind::Echo) if train.packets.iter().all(|packet| packet.hop_limit.is_none()) => {
                return self.echo_train(train);
            }
            // A peer that cooperates has better to offer; the other way round it would have to
            // be answered by this host.
            (_, PeerKind::ClosedPort | PeerKind::TcpSyn) | (true, PeerKind::Echo | PeerKind::EchoSized(_)) => {
                Err(Refusal::NotOffered)
            }
        };
        Ok(event.unwrap_or_else(Event::Refused))
    }

    /// Whether the train can be sent at all; its first size that cannot is the reason.
    fn fits(&self, train: &Train, header_octets: usize) -> Result<(), Refusal> {
        let least = u16::try_from(header_octets).unwrap_or(u16::MAX).saturating_add(if self.ipv6() { 48 } else { 28 });
        for packet in &train.packets {
            if packet.ip_octets > self.path_mtu {
                return Err(Refusal::TooLarge { max_ip_octets: self.path_mtu });
            }
            if packet.ip_octets < least {
                return Err(Refusal::TooSmall { min_ip_octets: least });
            }
        }
        let packets = u32::try_from(train.packets.len()).unwrap_or(u32::MAX);
        if packets == 0 || packets > self.limits.max_train_packets || train.duration() > self.limits.max_duration() {
            return Err(Refusal::ForbiddenByPeer);
        }
        Ok(())
    }

    fn forward_train(&mut self, train: &Train) -> Answered<Event> {
        if let Err(refusal) = self.fits(train, PROBE_OCTETS) {
            return Ok(Err(refusal));
        }
        if let Err(refusal) = self.admit(train.ip_octets())? {
            return Ok(Err(refusal));
        }
        let id = self.take_id();
        let payloads = self.payloads(train, id, ProbeKind::Train);
        self.control.say(&ClientMessage::ExpectTrain(TrainExpectation {
            id,
            flow: 0,
            packets: u32::try_from(train.packets.len()).unwrap_or(u32::MAX),
            ip_octets: train.ip_octets(),
            duration_ns: narrows_units::nanos(train.duration()),
            quiet_ns: narrows_units::nanos(self.quiet()),
        }))?;
        let armed = self.control.await_answer("announcing a train", self.timeout(), |incoming| {
            matches!(incoming, Incoming::Message(ServerMessage::Armed { id: armed }) if armed == id).then_some(())
        })?;
        if let Err(refusal) = armed {
            return Ok(Err(refusal));
        }
        let (socket, sent) = self.send(train, id, &payloads)?;
        let refused = sent.refused().len();
        let left = u32::try_from(train.packets.len() - refused).unwrap_or(u32::MAX);
        self.control.say(&ClientMessage::TrainSent { id, packets: left })?;
        let (result, arrivals) = match self.arrivals(id)? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        // Of what did not arrive, a router may have something to say.
        let arrived = |seq: usize| arrivals.iter().any(|row| row.seq as usize == seq);
        let limited = |seq: usize| train.packets[seq].hop_limit.is_some();
        let awaited: Vec<usize> =
            (0..train.packets.len()).filter(|&seq| limited(seq) && !arrived(seq) && !sent.is_refused(seq)).collect();
        let last_ns = sent.last_ns().unwrap_or(0);
        let answers = self.icmp_answers(train, id, &socket, || awaited.clone(), || last_ns);
        let departures = self.settle(train, sent, &socket);
        let report = rows::forward(train, &departures, &result, &arrivals, &answers);
        Ok(Ok(Event::Train(report)))
    }

    /// The result of a forward train and its rows.
    fn arrivals(&mut self, id: u32) -> Answered<(TrainResult, Vec<ArrivalRow>)> {
        let mut result = None;
        // The remote host waits for stragglers itself, and says in between that it is still there.
        let timeout = self.timeout() + 2 * self.quiet() + Duration::from_secs(8);
        self.control.await_answer("waiting for a train's arrivals", timeout, |incoming| match incoming {
            Incoming::Message(ServerMessage::TrainResult(announced)) if announced.id == id => {
                result = Some(announced);
                None
            }
            Incoming::Rows(Rows { table: Table::Arrivals(rows), .. }) => Some((result.take()?, rows)),
            _ => None,
        })
    }

    /// Sends a train on flow 0.
    fn send(&mut self, train: &Train, id: u32, payloads: &Payloads) -> Result<(Arc<ProbeSocket>, Sent), Error> {
        let socket = Arc::clone(&self.flows[0]);
        let mut wake = [0; PROBE_OCTETS];
        self.probe(ProbeKind::Wake, id, 0).write(&mut wake).expect("the array is as long as the header");
        let options = PaceOptions {
            back_to_back: self.back_to_back(),
            kernel_stamps: worth_stamping(&train.packets),
            wake: Some(&wake),
        };
        let sent = send_train(&socket, &train.packets, payloads, &options, &mut self.queue, self.control.halt())
            .map_err(Error::host("send a train"))?;
        Ok((socket, sent))
    }

    /// Segments only where the card is faster than single messages can be: they lose the stamps of
    /// all but the first packet.
    fn back_to_back(&self) -> BackToBack {
        let full = u64::from(self.path_mtu.min(1500));
        let at_wire = self.near.interface_rate.and_then(|rate| rate.time_for(full));
        if at_wire.is_some_and(|time| time < self.near.send_cost) { BackToBack::Segments } else { BackToBack::Messages }
    }

    fn settle(&mut self, train: &Train, sent: Sent, socket: &ProbeSocket) -> Departures {
        sent.settle(&train.packets, socket, &mut self.queue)
    }

    pub(super) fn probe(&self, kind: ProbeKind, id: u32, seq: u32) -> Probe {
        Probe { kind, tag: self.keys.token.tag(), id, seq, stamp_ns: 0 }
    }

    fn payloads(&self, train: &Train, id: u32, kind: ProbeKind) -> Payloads {
        let headers = if self.ipv6() { 48 } else { 28 };
        let lengths = train.packets.iter().map(|packet| usize::from(packet.ip_octets.saturating_sub(headers)));
        let mut payloads = Payloads::new(lengths, u64::from(id));
        for (k, seq) in (0..train.packets.len()).zip(0..) {
            self.probe(kind, id, seq).write(payloads.get_mut(k)).expect("sizes were checked against the header");
        }
        payloads
    }

    /// Sends a train that the remote host sends back.
    pub(super) fn echo_train(&mut self, train: &Train) -> Result<Event, Error> {
        let headers = if self.ipv6() { 48 } else { 28 };
        let fits = self.fits(train, ECHO_OCTETS);
        let reply_octets = match (fits, train.peer_kind) {
            (Err(refusal), _) => return Ok(Event::Refused(refusal)),
            (Ok(()), PeerKind::EchoSized(octets)) => {
                let largest = train.packets.iter().map(|packet| packet.ip_octets).min().unwrap_or(0);
                if octets > largest {
                    // The remote host never answers with more than it got.
                    return Ok(Event::Refused(Refusal::TooLarge { max_ip_octets: largest }));
                }
                let payload = octets.saturating_sub(headers);
                if usize::from(payload) < ECHO_OCTETS {
                    let min_ip_octets = headers + u16::try_from(ECHO_OCTETS).unwrap_or(u16::MAX);
                    return Ok(Event::Refused(Refusal::TooSmall { min_ip_octets }));
                }
                Some(payload)
            }
            (Ok(()), PeerKind::Echo | PeerKind::Receiver | PeerKind::ClosedPort | PeerKind::TcpSyn) => None,
        };
        if let Err(refusal) = self.admit(train.ip_octets())? {
            return Ok(Event::Refused(refusal));
        }
        let id = self.take_id();
        let payloads = self.payloads(train, id, ProbeKind::EchoRequest { reply_octets });
        let wanted = self.wanted(id, true, train);
        let gatherer = Gatherer::start(&self.flows[0], wanted, self.control.last_received_at())?;
        let (socket, sent) = self.send(train, id, &payloads)?;
        let last_ns = sent.last_ns().unwrap_or(0);
        let answers = self.icmp_answers(
            train,
            id,
            &socket,
            || gatherer.missing().into_iter().filter(|&seq| !sent.is_refused(seq)).collect(),
            || gatherer.progress().1.max(last_ns),
        );
        let departures = self.settle(train, sent, &socket);
        let came = gatherer.finish();
        let report = rows::echoed(train, &departures, &came, &answers);
        let echoes = report.arrivals.iter().filter_map(|row| match row.fate {
            Fate::Echoed { returned, .. } => Some(returned.since(row.departed)),
            Fate::Received(_) | Fate::Answered(_) | Fate::Lost => None,
        });
        self.rtt = echoes.min().map_or(self.rtt, |rtt| rtt.min(self.rtt));
        Ok(Event::Train(report))
    }

    fn wanted(&self, id: u32, echoes: bool, train: &Train) -> Wanted {
        Wanted { tag: self.keys.token.tag(), id, echoes, expected: Expected::of(train) }
    }

    /// Waits until so many packets came, or none did for a while since `last_ns`.
    fn await_quiet(&self, gatherer: &Gatherer, expected: usize, last_ns: i64) {
        loop {
            let (count, arrived_ns) = gatherer.progress();
            let deadline = last_ns.max(arrived_ns).saturating_add(nanos(self.quiet()));
            if count >= expected || clock::now_ns() >= deadline {
                return;
            }
            nap(deadline);
        }
    }

    fn reverse_train(&mut self, train: &Train) -> Answered<Event> {
        if train.packets.iter().any(|packet| packet.hop_limit.is_some()) {
            // Routers would answer the remote host, which keeps no such answers.
            return Ok(Err(Refusal::NotOffered));
        }
        if let Err(refusal) = self.fits(train, PROBE_OCTETS) {
            return Ok(Err(refusal));
        }
        if let Err(refusal) = self.admit(train.ip_octets())? {
            return Ok(Err(refusal));
        }
        let id = self.take_id();
        let wanted = self.wanted(id, false, train);
        let gatherer = Gatherer::start(&self.flows[0], wanted, self.control.last_received_at())?;
        self.control.say(&ClientMessage::SendTrain { id, flow: 0 })?;
        self.control.say_rows(&Rows { id, table: Table::Plan(train.packets.iter().map(plan_row).collect()) })?;
        let left = match self.departures(id, train.duration())? {
            Ok(left) => left,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.await_quiet(&gatherer, train.packets.len().saturating_sub(left.send_failures as usize), clock::now_ns());
        Ok(Ok(Event::Train(rows::reverse(train, &left, &gatherer.finish()))))
    }

    fn departures(&mut self, id: u32, duration: Duration) -> Answered<Left> {
        let mut announced = None;
        let timeout = self.timeout() + duration + Duration::from_secs(1);
        self.control.await_answer("waiting for a train's departures", timeout, |incoming| match incoming {
            Incoming::Message(ServerMessage::TrainLeft { id: left, stamps, pacing, send_failures }) if left == id => {
                announced = Some((stamps, pacing, send_failures));
                None
            }
            Incoming::Rows(Rows { table: Table::Departures(rows), .. }) => {
                let (stamps, pacing, send_failures) = announced.take()?;
                Some(Left { stamps, pacing, send_failures, rows })
            }
            _ => None,
        })
    }
}

/// What the remote host says of a train that it sent.
#[derive(Debug)]
struct Left {
    stamps: StampSource,
    pacing: Pacing,
    send_failures: u32,
    rows: Vec<DepartureRow>,
}

fn plan_row(packet: &PacketPlan) -> PlanRow {
    PlanRow {
        gap_ns: narrows_units::nanos(packet.gap),
        ip_octets: packet.ip_octets,
        hop_limit: packet.hop_limit.map_or(0, std::num::NonZero::get),
    }
}
