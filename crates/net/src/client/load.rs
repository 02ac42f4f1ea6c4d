//! Loads: segments that continue one another, steered while they run.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use narrows_probe::probes::{Load, LoadReport, LoadStatus, Then};
use narrows_probe::timetable::{Slack, Timetable};
use narrows_probe::{Event, Refusal};
use narrows_units::{BitRate, Stamp};
use narrows_wire::{ClientMessage, Direction, LoadPlan, LoadSegment, LoadSent, PROBE_OCTETS, ProbeKind, ServerMessage};

use super::SocketWorld;
use super::control::Incoming;
use super::convert::share;
use crate::clock::{self, nanos};
use crate::error::{Error, PathError};
use crate::load::{Interval, LoadReceiver, LoadSender, LoadSpec, LoadTotals, busiest_share};
use crate::send_budget;
use crate::spacing::Spacing;

/// A load under way.
pub(super) struct Running {
    id: u32,
    streams: u16,
    ip_octets: u16,
    status_every: Duration,
    traffic: Traffic,
    /// Statuses since the last report.
    statuses: Vec<LoadStatus>,
    /// Smallest delay of the whole load, offset of the clocks included.
    floor_ns: Option<i64>,
    /// What had left at the last report, and when that was: what leaves between two segments
    /// belongs to the next.
    reported: (LoadTotals, i64),
    /// Packets sent, and packets that statuses account for, since the load began.
    sent: u64,
    accounted: u64,
    /// When the remote host will break it off.
    over_ns: i64,
}

enum Traffic {
    Forward(LoadSender),
    Reverse { receiver: LoadReceiver, next_ns: i64 },
}
/// A running load whose next segment does not come stops by itself after this.
const ORPHANED: Duration = Duration::from_secs(2);

impl Running {
    /// Whether a segment continues this load.
    fn takes(&self, load: &Load) -> bool {
        let fits = clock::now_ns().saturating_add(nanos(load.duration)) < self.over_ns;
        (self.streams, self.ip_octets, self.status_every) == (load.streams, load.ip_octets, load.status_every) && fits
    }

    /// Takes in what the receiver saw.
    fn status(&mut self, interval: &Interval) {
        self.accounted = self.accounted.saturating_add(interval.packets).saturating_add(interval.lost);
        if let Some((least, ..)) = interval.delay_ns {
            self.floor_ns = Some(self.floor_ns.map_or(least, |floor| floor.min(least)));
        }
        let above = |delay: i64| {
            let floor = self.floor_ns.unwrap_or(delay);
            Duration::from_nanos(u64::try_from(delay.saturating_sub(floor)).unwrap_or(0))
        };
        self.statuses.push(LoadStatus {
            from: Stamp::from_nanos(interval.from_ns),
            to: Stamp::from_nanos(interval.to_ns),
            packets: interval.packets,
            ip_octets: interval.ip_octets,
            lost: interval.lost,
            reordered: interval.reordered,
            duplicates: interval.duplicates,
            local_drops: interval.local_drops,
            delay_above_min: interval.delay_ns.map(|(least, mean, most)| (above(least), above(mean), above(most))),
        });
    }

    /// Packets behind the last that arrived are missed by no sequence number; the sender's own
    /// count tells of them.
    fn count_tail(&mut self) {
        let missing = self.sent.saturating_sub(self.accounted);
        if let Some(last) = self.statuses.last_mut() {
            last.lost += missing;
            self.accounted += missing;
        }
    }

    /// Closes the receiver's interval if its time has come. Notes what came as the remote host's
    /// sign of life.
    fn close_interval(&mut self, last_received_ns: &AtomicI64) {
        let every = nanos(self.status_every);
        if let Traffic::Reverse { receiver, .. } = &self.traffic {
            last_received_ns.fetch_max(receiver.last_ns(), Ordering::Relaxed);
        }
        let interval = match &mut self.traffic {
            Traffic::Reverse { receiver, next_ns } if clock::now_ns() >= *next_ns => {
                *next_ns = (*next_ns + every).max(clock::now_ns());
                receiver.close_interval()
            }
            _ => return,
        };
        self.status(&interval);
    }

    /// Takes in a message about the load; the end of a reverse segment is handed back.
    fn incoming(&mut self, incoming: Incoming) -> Option<LoadSent> {
        match incoming {
            Incoming::Message(ServerMessage::LoadStatus(status)) if status.id == self.id => {
                self.status(&interval(&status));
                None
            }
            Incoming::Message(ServerMessage::LoadSent(sent)) if sent.id == self.id => {
                self.sent = self.sent.saturating_add(sent.packets);
                Some(sent)
            }
            _ => None,
        }
    }
}

fn interval(status: &narrows_wire::LoadStatus) -> Interval {
    Interval {
        from_ns: status.from_ns,
        to_ns: status.to_ns,
        packets: status.packets,
        ip_octets: status.ip_octets,
        lost: status.lost,
        reordered: status.reordered,
        duplicates: status.duplicates,
        local_drops: status.local_drops,
        delay_ns: status.delay_ns,
    }
}

/// What the far sender was asked for, beside how evenly its packets left.
fn planned_as(seen: Vec<Spacing>, load: &Load) -> Vec<Spacing> {
    let burst = usize::from(load.burst.max(1));
    let bits = burst as u128 * u128::from(load.ip_octets) * 8 * u128::from(load.streams);
    let rate = if load.rate.bps() == u64::MAX { 0 } else { load.rate.bps() };
    let planned = Timetable::lasts_ns(rate, bits).unsigned_abs();
    seen.into_iter().map(|spacing| spacing.planned_as(planned, burst)).collect()
}

impl SocketWorld {
    /// How evenly packets of the last load left, for each of its flows, since its rate was last
    /// changed; empty before any.
    pub fn load_spacing(&self) -> &[Spacing] {
        &self.spacing
    }

    pub(super) fn load_segment(&mut self, load: Load) -> Result<Event, Error> {
        // What the protocol demands of intervals; a coarser answer is still an answer.
        let status_every = load.status_every.clamp(Duration::from_millis(5), Duration::from_secs(10));
        let load = Load { status_every, ..load };
        if let Err(refusal) = self.load_fits(&load) {
            self.end_load()?;
            return Ok(Event::Refused(refusal));
        }
        if self.load.as_ref().is_some_and(|running| !running.takes(&load)) {
            self.end_load()?;
        }
        let running = match self.load.take() {
            Some(running) => running,
            None => match self.begin_load(&load)? {
                Ok(running) => running,
                Err(refusal) => return Ok(Event::Refused(refusal)),
            },
        };
        let report =
            if self.reverse() { self.reverse_segment(running, &load)? } else { self.forward_segment(running, &load)? };
        Ok(report.map_or_else(Event::Refused, Event::Load))
    }

    fn load_fits(&self, load: &Load) -> Result<(), Refusal> {
        let headers: u16 = if self.ipv6() { 48 } else { 28 };
        let min_ip_octets = headers + u16::try_from(PROBE_OCTETS).unwrap_or(u16::MAX);
        if load.ip_octets > self.path_mtu {
            return Err(Refusal::TooLarge { max_ip_octets: self.path_mtu });
        }
        if load.ip_octets < min_ip_octets {
            return Err(Refusal::TooSmall { min_ip_octets });
        }
        let most = self.limits.max_load_rate_bps;
        let too_fast = load.rate.bps() != u64::MAX && load.rate.bps() > most;
        if too_fast || load.rate == BitRate::ZERO || load.streams == 0 || load.streams > self.limits.max_streams {
            return Err(Refusal::ForbiddenByPeer);
        }
        if most == 0 || load.duration >= self.limits.max_duration() {
            return Err(Refusal::ForbiddenByPeer);
        }
        Ok(())
    }

    fn begin_load(&mut self, load: &Load) -> Result<Result<Running, Refusal>, Error> {
        if let Err(refusal) = self.load_slot()? {
            return Ok(Err(refusal));
        }
        let flows = self.flows(load.streams)?;
        self.ends = flows.iter().filter_map(|flow| flow.local().ok().zip(flow.peer().ok())).collect();
        let class = self.options.traffic.traffic_class;
        if class > 0 {
            let marked = flows.iter().try_for_each(|flow| flow.set_traffic_class(class));
            marked.map_err(Error::host("mark packets with that DSCP"))?;
        }
        let id = self.take_id();
        self.control.say(&ClientMessage::LoadBegin(LoadPlan {
            id,
            direction: self.options.direction,
            streams: load.streams,
            ip_octets: load.ip_octets,
            max_rate_bps: None,
            max_duration_ns: self.limits.max_duration_ns,
            status_every_ns: narrows_units::nanos(load.status_every),
            quiet_ns: narrows_units::nanos(self.quiet()),
            tuning: self.options.traffic.load().filter(|_| self.tunes()),
        }))?;
        let ready = self.control.await_answer("beginning a load", self.timeout(), |incoming| {
            matches!(incoming, Incoming::Message(ServerMessage::LoadReady { id: ready }) if ready == id).then_some(())
        })?;
        if let Err(refusal) = ready {
            return Ok(Err(refusal));
        }
        let now = clock::now_ns();
        let traffic = match self.options.direction {
            Direction::Forward => {
                let probe = self.probe(ProbeKind::Load, id, 0);
                let packets = self.options.traffic.packets;
                let sender = LoadSender::start_with(&flows, probe, load.ip_octets, self.spec(load), packets);
                Traffic::Forward(sender.map_err(Error::host("start a load"))?)
            }
            Direction::Reverse => Traffic::Reverse {
                receiver: LoadReceiver::start(&flows, self.keys.token.tag(), id)
                    .map_err(Error::host("receive a load"))?,
                next_ns: now.saturating_add(nanos(load.status_every)),
            },
        };
        Ok(Ok(Running {
            id,
            streams: load.streams,
            ip_octets: load.ip_octets,
            status_every: load.status_every,
            traffic,
            statuses: Vec::new(),
            floor_ns: None,
            reported: (LoadTotals::default(), now),
            sent: 0,
            accounted: 0,
            // A remote host that tunes allows some more, for what is on its way; an older one does
            // not, if it sends.
            over_ns: now.saturating_add(nanos(self.limits.max_duration() + self.on_their_way())),
        }))
    }

    fn on_their_way(&self) -> Duration {
        if self.tunes() || !self.reverse() { Duration::from_millis(800) } else { Duration::ZERO }
    }

    /// What the local sender shall do from now on.
    fn spec(&self, load: &Load) -> LoadSpec {
        /// A limit this high limits nothing: pacing by it would only cost.
        const UNPACED: BitRate = BitRate::from_gbps(100);
        let rate = load.rate.min(BitRate::from_bps(self.limits.max_load_rate_bps));
        let runs_on = match load.then {
            Then::Continue => ORPHANED,
            Then::Finish => Duration::ZERO,
        };
        LoadSpec {
            rate: (rate < UNPACED).then_some(rate),
            burst: load.burst.max(1),
            until_ns: clock::now_ns().saturating_add(nanos(load.duration + runs_on)),
            slack: if self.options.traffic.mean_rate { Slack::mean_rate(load.duration) } else { Slack::PROMPT },
        }
    }

    fn forward_segment(&mut self, mut running: Running, load: &Load) -> Result<Result<LoadReport, Refusal>, Error> {
        let Traffic::Forward(sender) = &running.traffic else {
            return Ok(Err(Refusal::NotOffered));
        };
        let spec = self.spec(load);
        sender.steer(spec);
        let ends = clock::now_ns().saturating_add(nanos(load.duration));
        let poll = if self.options.traffic.packets.is_some() { nanos(send_budget::POLL) } else { 50_000_000 };
        let spent = |running: &Running| matches!(&running.traffic, Traffic::Forward(sender) if sender.spent());
        while clock::now_ns() < ends && !self.control.stop_requested() && !spent(&running) {
            match self.control.hear(ends.min(clock::now_ns() + poll))? {
                Some(Incoming::Message(ServerMessage::Refused { code, text, .. })) => {
                    return self.control.refusal(code, text).map(Err);
                }
                Some(incoming) => drop(running.incoming(incoming)),
                None => {}
            }
        }
        self.spent = spent(&running);
        let finish = load.then == Then::Finish || self.spent || self.control.stop_requested();
        let (totals, ended) = match &running.traffic {
            Traffic::Forward(sender) if !finish => (sender.totals(), clock::now_ns()),
            _ => {
                let (totals, ended) = self.finish_forward(&mut running, spec.until_ns)?;
                running.sent = totals.packets;
                running.count_tail();
                (totals, ended)
            }
        };
        let (before, began) = std::mem::replace(&mut running.reported, (totals.clone(), ended));
        let elapsed = Duration::from_nanos(u64::try_from(ended - began).unwrap_or(0));
        if let Traffic::Forward(sender) = &running.traffic {
            self.spacing = sender.spacing();
        }
        let report = LoadReport {
            began: Stamp::from_nanos(began),
            ended: Stamp::from_nanos(ended),
            sent_packets: totals.packets - before.packets,
            sent_ip_octets: totals.ip_octets - before.ip_octets,
            send_failures: totals.failures - before.failures,
            sender_cpu: busiest_share(&before.cpu, &totals.cpu, elapsed),
            held_up: totals.held_up.saturating_sub(before.held_up),
            statuses: std::mem::take(&mut running.statuses),
        };
        if !finish {
            self.load = Some(running);
        }
        Ok(Ok(report))
    }

    /// Stops the local sender and waits for the receiver's last words.
    fn finish_forward(&mut self, running: &mut Running, until_ns: i64) -> Result<(LoadTotals, i64), Error> {
        let totals = match &mut running.traffic {
            Traffic::Forward(sender) => sender.end(),
            Traffic::Reverse { .. } => LoadTotals::default(),
        };
        // Nothing left after its time, however late this thread comes to look.
        let ended = clock::now_ns().min(until_ns);
        self.control.say(&ClientMessage::LoadEnd { id: running.id })?;
        self.await_load_done(running)?;
        Ok((totals, ended))
    }

    fn await_load_done(&mut self, running: &mut Running) -> Result<(), Error> {
        let timeout = self.timeout() + self.quiet() + Duration::from_secs(8);
        let deadline = clock::now_ns().saturating_add(nanos(timeout));
        loop {
            match self.control.hear(deadline)? {
                Some(Incoming::Message(ServerMessage::LoadDone { id })) if id == running.id => return Ok(()),
                // Broken off: over as well.
                Some(Incoming::Message(ServerMessage::Refused { .. })) => return Ok(()),
                Some(incoming) => drop(running.incoming(incoming)),
                None => {
                    return Err(PathError::Silent {
                        peer: self.control.peer(),
                        doing: "waiting for the end of a load",
                        waited: timeout,
                    }
                    .into());
                }
            }
        }
    }

    fn reverse_segment(&mut self, mut running: Running, load: &Load) -> Result<Result<LoadReport, Refusal>, Error> {
        self.control.say(&ClientMessage::LoadSegment(LoadSegment {
            id: running.id,
            rate_bps: (load.rate.bps() != u64::MAX).then_some(load.rate.bps()),
            burst: load.burst.max(1),
            duration_ns: narrows_units::nanos(load.duration),
            continues: load.then == Then::Continue,
        }))?;
        let timeout = load.duration + self.timeout();
        let deadline = clock::now_ns().saturating_add(nanos(timeout));
        let (mut sent, mut ending) = (None, false);
        while sent.is_none() {
            if clock::now_ns() > deadline {
                return Err(PathError::Silent {
                    peer: self.control.peer(),
                    doing: "waiting for the end of a load's segment",
                    waited: timeout,
                }
                .into());
            }
            if self.control.stop_requested() && !ending {
                ending = true;
                self.control.say(&ClientMessage::LoadEnd { id: running.id })?;
            }
            let poll = clock::now_ns() + 50_000_000;
            let next = match &running.traffic {
                Traffic::Reverse { next_ns, .. } => poll.min(*next_ns),
                Traffic::Forward(_) => poll,
            };
            match self.control.hear(next)? {
                Some(Incoming::Message(ServerMessage::Refused { code, text, .. })) => {
                    return self.control.refusal(code, text).map(Err);
                }
                Some(incoming) => sent = running.incoming(incoming),
                None => {}
            }
            running.close_interval(self.control.last_received_at());
        }
        let Some(sent) = sent else {
            return Ok(Err(Refusal::NotOffered));
        };
        self.spent = sent.spent;
        let finish = load.then == Then::Finish || sent.spent;
        if finish || ending {
            self.finish_reverse(&mut running, ending)?;
        }
        if let Traffic::Reverse { receiver, .. } = &running.traffic {
            self.spacing = planned_as(receiver.spacing(), load);
        }
        let report = LoadReport {
            began: Stamp::from_nanos(sent.began_ns),
            ended: Stamp::from_nanos(sent.ended_ns),
            sent_packets: sent.packets,
            sent_ip_octets: sent.ip_octets,
            send_failures: sent.send_failures,
            sender_cpu: sent.sender_cpu_permille.map(share),
            held_up: Duration::from_nanos(sent.held_up_ns),
            statuses: std::mem::take(&mut running.statuses),
        };
        if !finish && !ending {
            self.load = Some(running);
        }
        Ok(Ok(report))
    }

    /// Waits for what is on its way, and for the remote host's goodbye to the load.
    fn finish_reverse(&mut self, running: &mut Running, ending: bool) -> Result<(), Error> {
        if !ending {
            let quiet = nanos(self.quiet());
            let began = clock::now_ns();
            while let Traffic::Reverse { receiver, .. } = &running.traffic {
                let over = receiver.last_ns().max(began).saturating_add(quiet);
                // A remote host that does not stop is not waited for.
                if clock::now_ns() >= over.min(began + 2_000_000_000) {
                    break;
                }
                super::nap(over);
                running.close_interval(self.control.last_received_at());
            }
            self.control.say(&ClientMessage::LoadEnd { id: running.id })?;
        }
        self.await_load_done(running)?;
        if let Traffic::Reverse { receiver, .. } = &running.traffic {
            let interval = receiver.close_interval();
            running.status(&interval);
        }
        running.count_tail();
        Ok(())
    }

    /// Ends a load that runs on.
    pub(super) fn end_load(&mut self) -> Result<(), Error> {
        let Some(mut running) = self.load.take() else {
            return Ok(());
        };
        match running.traffic {
            Traffic::Forward(_) => self.finish_forward(&mut running, i64::MAX).map(|_| ()),
            Traffic::Reverse { .. } => {
                self.control.say(&ClientMessage::LoadEnd { id: running.id })?;
                self.await_load_done(&mut running)
            }
        }
    }
}
