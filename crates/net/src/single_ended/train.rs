//! Trains: out by the pacer, back by the socket or its error queue.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use narrows_probe::probes::{Fate, HopReply, HopReplyKind, PeerKind, Train, TrainReport};
use narrows_probe::{Refusal, World};
use narrows_units::Stamp;

use super::limit;
use super::marks::{self, Echo, Form, Mark, Marks, Quote};
use super::rows::{self, Side};
use super::{SingleEndedWorld, Via};
use crate::client::gather::Gatherer;
use crate::clock::{self, nanos};
use crate::error::Error;
use crate::pace::{BackToBack, PaceOptions, Payloads, Sent, send_train, worth_stamping};
use crate::poll_interval::Expected;
use crate::receive::Datagram;
use crate::socket::Kind;

/// Octets that are read of an answer: IP header with options, and any header of ours.
pub(super) const SLOT_OCTETS: usize = 60 + narrows_wire::stamp::STAMP_AUTH_OCTETS;
/// First source port of SYNs, below those that Linux gives to connections of its own
/// (`ip_local_port_range`).
const FIRST_PORT: u16 = 15_000;
/// Source ports of one train.
const PORTS: u16 = 1_000;

/// Answers as they come in.
type Sides = Arc<Mutex<Vec<Option<Side>>>>;

impl SingleEndedWorld {
    /// Why a train cannot be sent.
    pub(super) fn refusal(&self, train: &Train) -> Option<Refusal> {
        let whole = |octets: u16| train.packets.iter().all(|packet| packet.ip_octets == octets);
        let offered = match (self.options.via, train.peer_kind) {
            (Via::Icmp | Via::Stamp { .. }, PeerKind::Echo)
            | (Via::Stamp { .. }, PeerKind::Receiver)
            | (Via::Udp { .. }, PeerKind::ClosedPort)
            | (Via::Tcp { .. }, PeerKind::TcpSyn) => true,
            (Via::Icmp | Via::Stamp { .. }, PeerKind::EchoSized(octets)) => whole(octets),
            _ => false,
        };
        let most = if matches!(self.options.via, Via::Tcp { .. }) { usize::from(PORTS) } else { usize::from(u16::MAX) };
        if !offered || train.packets.is_empty() || train.packets.len() > most {
            return Some(Refusal::NotOffered);
        }
        let least = self.least_ip_octets();
        let sizes = || train.packets.iter().map(|packet| packet.ip_octets);
        if sizes().any(|octets| octets > self.path_mtu) {
            Some(Refusal::TooLarge { max_ip_octets: self.path_mtu })
        } else if sizes().any(|octets| octets < least) {
            Some(Refusal::TooSmall { min_ip_octets: least })
        } else {
            None
        }
    }

    /// The smallest packet that can be told from others.
    pub(super) fn least_ip_octets(&self) -> u16 {
        self.socket.ip_octets(self.marks(0, 0).least_payload())
    }

    /// Sends a train that was not refused, and reports what came of it.
    pub(super) fn carry_out(&mut self, train: &Train) -> Result<TrainReport, Error> {
        self.await_tokens(train.packets.len());
        let count = u32::try_from(train.packets.len()).unwrap_or(u32::MAX);
        self.next_id = self.next_id.wrapping_add(1);
        let marks = Arc::new(self.marks(self.next_id, count));
        self.next_seq = self.next_seq.wrapping_add(count);
        let payloads = self.payloads(train, &marks);
        let sides: Sides = Arc::new(Mutex::new(vec![None; train.packets.len()]));
        let gatherer = self.gather(train, &marks, &sides)?;
        let sent = self.dispatch(train, &payloads)?;
        let expected = train.packets.iter().filter(|packet| packet.hop_limit.is_none()).count();
        let expected = expected.saturating_sub(sent.refused().len());
        let mut answers =
            Answers { replies: vec![None; train.packets.len()], by_kernel: true, duplicates: 0, nameless: Vec::new() };
        self.await_all(&mut answers, &marks, gatherer.as_ref(), expected, &sent, train);
        let departures = sent.settle(&train.packets, &self.socket, &mut self.queue);
        self.sort_answers(&mut answers, &marks, &[], train);
        let came = gatherer.map(Gatherer::finish).unwrap_or_default();
        let nameless = std::mem::take(&mut answers.nameless);
        let sides = std::mem::take(&mut *sides.lock().unwrap_or_else(PoisonError::into_inner));
        let mut report = rows::report(train, self.peer.ip(), &departures, &came, &sides, &answers);
        if self.options.per_hop {
            self.responders.learn(train, &report);
            self.name(train, &nameless)?;
        }
        let last = departures.stamps_ns.last().copied().unwrap_or(0);
        self.learn(&report, train.peer_kind, &sides);
        if let Some(burst) = self.account(train, &mut report, last) {
            self.learn_refill(burst, rows::last_answered_ns(&report))?;
        }
        Ok(report)
    }

    /// What a train's packets carry.
    fn marks(&self, id: u32, count: u32) -> Marks {
        let mark = Mark { tag: self.tag, id };
        let form = match self.options.via {
            Via::Icmp => Form::Icmp {
                mark,
                ipv6: self.ipv6(),
                identifier: self.identifier,
                // Over IPv6 the checksum covers addresses, and the kernel always computes it.
                checksum: self.socket.kind() == Kind::RawIcmp && !self.ipv6(),
            },
            Via::Udp { .. } => Form::Udp { mark },
            Via::Stamp { .. } => Form::Stamp {
                first: self.next_seq,
                packet: marks::session_packet(clock::wall_ns(), self.ssid),
                key: self.options.psk.clone(),
            },
            Via::Tcp { port } => {
                // Ports and numbers move on from train to train, so that late answers are not taken
                // for another's.
                let [a, b, c, d, ..] = self.tag;
                let start = u32::from_be_bytes([a, b, c, d]);
                let one_port = self.options.per_hop;
                let moved = if one_port { start } else { start.wrapping_add(id) };
                let block = u16::try_from(moved % 17).unwrap_or(0);
                let within = if one_port { u16::from_be_bytes([a, b]) % PORTS } else { 0 };
                Form::Tcp {
                    one_port,
                    near: self.socket.local().map_or(self.peer.ip(), |local| local.ip()),
                    remote: self.peer.ip(),
                    remote_port: port,
                    first_port: FIRST_PORT + block * PORTS + within,
                    first_sequence: start.wrapping_add(id.wrapping_mul(0x9e37_79b9)),
                }
            }
        };
        Marks { form, count }
    }

    fn payloads(&self, train: &Train, marks: &Marks) -> Payloads {
        let lengths = train.packets.iter().map(|packet| self.socket.payload_octets(packet.ip_octets).unwrap_or(0));
        let mut payloads = Payloads::new(lengths, u64::from(self.next_id));
        for (k, seq) in (0..train.packets.len()).zip(0..) {
            marks.write(seq, payloads.get_mut(k));
        }
        payloads
    }

    /// Starts to receive, where answers are packets of the remote host's own.
    fn gather(&self, train: &Train, marks: &Arc<Marks>, sides: &Sides) -> Result<Option<Gatherer>, Error> {
        if matches!(self.options.via, Via::Udp { .. }) {
            return Ok(None);
        }
        let (marks, sides) = (Arc::clone(marks), Arc::clone(sides));
        let (kind, ipv6) = (self.socket.kind(), self.ipv6());
        let header = self.socket.header_octets();
        let read = move |datagram: &Datagram<'_>| {
            let (payload, ip_octets) = if kind.receives_ip_header(ipv6) {
                (marks::behind_ipv4(datagram.payload), u16::try_from(datagram.payload_octets).ok()?)
            } else {
                let ip_octets = u16::try_from(datagram.payload_octets).ok()?.checked_add(header)?;
                (datagram.payload, ip_octets)
            };
            let Echo { seq, turned_ns, residence_ns, behind, clock } =
                marks.read_echo(payload, usize::from(ip_octets))?;
            let side = Side { ip_octets, residence_ns, behind, clock };
            let mut sides = sides.lock().unwrap_or_else(PoisonError::into_inner);
            sides.get_mut(seq as usize)?.get_or_insert(side);
            Some((seq, turned_ns))
        };
        Gatherer::reading(&self.socket, Expected::of(train), SLOT_OCTETS, &self.last_received_ns, read).map(Some)
    }

    fn dispatch(&mut self, train: &Train, payloads: &Payloads) -> Result<Sent, Error> {
        let full = u64::from(self.path_mtu.min(1500));
        let at_wire = self.near.interface_rate.and_then(|rate| rate.time_for(full));
        let cut = self.socket.kind() == Kind::Udp && at_wire.is_some_and(|time| time < self.near.send_cost);
        let options = PaceOptions {
            back_to_back: if cut { BackToBack::Segments } else { BackToBack::Messages },
            kernel_stamps: worth_stamping(&train.packets),
            wake: None,
        };
        send_train(&self.socket, &train.packets, payloads, &options, &mut self.queue, &self.options.stop)
            .map_err(Error::host("send a train"))
    }

    /// Waits until every packet is accounted for, or nothing came for a while.
    fn await_all(
        &mut self,
        answers: &mut Answers,
        marks: &Marks,
        gatherer: Option<&Gatherer>,
        expected: usize,
        sent: &Sent,
        train: &Train,
    ) {
        let limited: Vec<usize> =
            (0..train.packets.len()).filter(|&seq| train.packets[seq].hop_limit.is_some()).collect();
        let quiet = nanos(self.quiet());
        let mut last = sent.last_ns().unwrap_or(0);
        loop {
            self.queue.drain(&self.socket);
            if self.sort_answers(answers, marks, &limited, train) {
                last = last.max(clock::now_ns());
            }
            let (echoed, arrived_ns) = gatherer.map_or((0, i64::MIN), Gatherer::progress);
            let answered = answers.replies.iter().flatten().count();
            let deadline = last.max(arrived_ns).saturating_add(quiet);
            if echoed + answered >= expected + limited.len() || clock::now_ns() >= deadline {
                return;
            }
            clock::sleep_until_ns(deadline.min(clock::now_ns() + 500_000));
        }
    }

    /// Enters the ICMP answers that came at the packets that they quote; whether any did. One that
    /// quotes too little is about the only packet of `limited` that is still open, if there is just
    /// one, or just one with the hop limit at which that router answers.
    fn sort_answers(&mut self, answers: &mut Answers, marks: &Marks, limited: &[usize], train: &Train) -> bool {
        let mut any = false;
        for answer in self.queue.take_answers() {
            if answer.bound_for.is_some_and(|bound_for| bound_for.ip() != self.peer.ip()) {
                self.responders.unmatched_replies.foreign += 1;
                continue;
            }
            let seq = match marks.read_quote(&answer.quoted) {
                Quote::Packet(seq) => Ok(seq as usize),
                Quote::Short => self.only_open(answers, limited, train, answer.from).ok_or(Quote::Short),
                other => Err(other),
            };
            let seq = match seq {
                Ok(seq) => seq,
                Err(why) => {
                    self.responders.unmatched_replies.count(why);
                    if why == Quote::Short {
                        answers.nameless.push(answer.from);
                    }
                    continue;
                }
            };
            // Only who saw the packet may say how long one may be.
            if let HopReplyKind::PacketTooBig { mtu: Some(mtu) } = answer.kind {
                self.path_mtu = self.path_mtu.min(mtu);
            }
            let Some(place) = answers.replies.get_mut(seq) else {
                continue;
            };
            if place.is_some() {
                self.responders.unmatched_replies.duplicate += 1;
                answers.duplicates = answers.duplicates.saturating_add(1);
                continue;
            }
            any = true;
            answers.by_kernel &= answer.by_kernel;
            if let (Some(plan), Some(extensions)) = (train.packets.get(seq), &answer.extensions) {
                self.responders.reported(plan.hop_limit, answer.from, extensions);
            }
            *place = Some(HopReply {
                from: answer.from,
                returned: Stamp::from_nanos(answer.returned_ns),
                reply_ip_octets: answer.ip_octets,
                kind: answer.kind,
            });
        }
        any
    }

    /// The packet that an answer without a readable quote must be about.
    fn only_open(&self, answers: &Answers, limited: &[usize], train: &Train, from: IpAddr) -> Option<usize> {
        let known = self.responders.limit_of(from);
        let is_open = |seq: &usize| answers.replies.get(*seq).is_some_and(Option::is_none);
        let fits = |seq: &usize| {
            let limit = train.packets.get(*seq).and_then(|plan| plan.hop_limit);
            known.is_none() || limit == known
        };
        let mut open = limited.iter().copied().filter(is_open).filter(fits);
        let only = open.next()?;
        open.next().is_none().then_some(only)
    }

    /// Asks alone at each hop limit where somebody may have answered that quotes too little and is
    /// not known, so that later answers of it can be told from others.
    fn name(&mut self, train: &Train, nameless: &[IpAddr]) -> Result<(), Error> {
        if train.packets.len() < 2 || nameless.iter().all(|from| self.responders.limit_of(*from).is_some()) {
            return Ok(());
        }
        let limits: std::collections::BTreeSet<_> = train.packets.iter().filter_map(|plan| plan.hop_limit).collect();
        for limit in limits {
            if self.responders.answered_at(limit) || self.responders.asked_alone(limit) || self.stop_requested() {
                continue;
            }
            let mut alone = Train::uniform(train.id, 1, self.least_ip_octets().max(64), std::time::Duration::ZERO);
            alone.peer_kind = train.peer_kind;
            alone.packets[0].hop_limit = Some(limit);
            self.carry_out(&alone)?;
        }
        Ok(())
    }

    fn await_tokens(&self, packets: usize) {
        if let Some(tokens) = &self.tokens {
            let ready = tokens.ready_at(packets);
            crate::pace::wait_until(ready, &self.options.stop);
        }
    }

    /// Round trip, and the remote host's count of packets, from one more train.
    fn learn(&mut self, report: &TrainReport, peer_kind: PeerKind, sides: &[Option<Side>]) {
        self.rtt = [self.rtt, rows::least_round_trip(report, peer_kind)].into_iter().flatten().min();
        self.losses.take(report, sides);
        self.remote_clock = sides.iter().flatten().rev().find_map(|side| side.clock).or(self.remote_clock);
        self.largest_reply = self.largest_reply.max(rows::largest_reply(report, sides));
    }

    /// What the remote host's limit left for the train, and so which losses are the limit's.
    /// Returns how many answers came before one that was not known of.
    fn account(&mut self, train: &Train, report: &mut TrainReport, last_ns: i64) -> Option<u16> {
        let lost = u32::try_from(report.lost()).unwrap_or(u32::MAX);
        // Per hop it is the method that learns who limits what.
        let remote_limits = matches!(self.options.via, Via::Udp { .. }) && !self.options.per_hop;
        if let Some(tokens) = &mut self.tokens {
            let granted = tokens.spend(train.packets.len(), last_ns);
            if remote_limits {
                let refused = u32::try_from(train.packets.len() - granted).unwrap_or(u32::MAX);
                report.local_drops = refused.min(lost);
            }
            return None;
        }
        // A larger bucket than the first dozen packets could show.
        if !remote_limits || train.packets.len() <= super::DOZEN {
            return None;
        }
        let answered: Vec<bool> = report.arrivals.iter().map(|row| row.fate != Fate::Lost).collect();
        let burst = limit::cut_off(&answered).filter(|burst| *burst > 0)?;
        report.local_drops = lost;
        Some(burst)
    }
}

/// The ICMP answers to a train.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) replies: Vec<Option<HopReply>>,
    /// All of them were stamped by the kernel.
    pub(super) by_kernel: bool,
    /// Answers beyond the first to a packet.
    pub(super) duplicates: u32,
    /// Who answered without quoting enough to tell to what.
    nameless: Vec<IpAddr>,
}
