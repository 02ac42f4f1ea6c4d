//! UDP loads, both ways.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use narrows_probe::timetable::Slack;
use narrows_units::BitRate;
use narrows_wire::{Direction, LoadPlan, LoadSegment, LoadSent, LoadStatus, Probe, ProbeKind, ServerMessage};

use super::collect::{Collector, LoadShare, Tally};
use super::conductor::{Conductor, POLL};
use super::convert::permille;
use super::flow::Flow;
use super::orders::{BrokenOff, Order};
use super::session::lock;
use crate::clock;
use crate::load::{Account, Interval, LoadSender, LoadSpec, LoadTotals, busiest_share};
use crate::send_budget;

/// Carries out a load.
pub(super) fn run(conductor: &Conductor, plan: &LoadPlan) -> Result<(), BrokenOff> {
    let flows = admit(conductor, plan)?;
    let class = plan.tuning.as_ref().map_or(0, |tuning| tuning.traffic_class);
    let _marked = Marked::new(&flows, class)?;
    match plan.direction {
        Direction::Forward => Receiving::begin(conductor, plan, &flows).run(),
        Direction::Reverse => Sending::begin(conductor, plan, flows).run(),
    }
}

/// Flows that are marked for as long as the load lasts.
struct Marked(Vec<Arc<Flow>>);

impl Marked {
    fn new(flows: &[Arc<Flow>], class: u8) -> Result<Self, BrokenOff> {
        let marked = Self(if class > 0 { flows.to_vec() } else { Vec::new() });
        for flow in &marked.0 {
            let set = flow.socket.set_traffic_class(class);
            set.map_err(BrokenOff::host("mark packets with that DSCP"))?;
        }
        Ok(marked)
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        for flow in &self.0 {
            // What could be set can be set back.
            let _ = flow.socket.set_traffic_class(0);
        }
    }
}

fn admit(conductor: &Conductor, plan: &LoadPlan) -> Result<Vec<Arc<Flow>>, BrokenOff> {
    let session = &conductor.session;
    let limits = &session.limits;
    if limits.max_load_rate_bps == 0 {
        return Err(BrokenOff::limit("no UDP load without a key from outside this server's network"));
    }
    if !session.loads.load(Ordering::Relaxed) {
        return Err(BrokenOff::limit("a load needs the load slot"));
    }
    if plan.max_rate_bps.is_some_and(|rate| rate > limits.max_load_rate_bps) {
        let most = BitRate::from_bps(limits.max_load_rate_bps);
        return Err(BrokenOff::limit(format!("a load may have {most} at most")));
    }
    if plan.streams > limits.max_streams {
        return Err(BrokenOff::limit(format!("a load may have {} streams at most", limits.max_streams)));
    }
    if let Some(tuning) = &plan.tuning {
        let octets = tuning.packets.unwrap_or(0).saturating_mul(plan.ip_octets.into());
        if octets > limits.max_octets {
            return Err(BrokenOff::limit(format!("a load may have {} octets at most", limits.max_octets)));
        }
        session.may_mark(tuning.traffic_class)?;
    }
    if Duration::from_nanos(plan.max_duration_ns) > limits.max_duration() {
        return Err(BrokenOff::limit(format!("a load may take {:?} at most", limits.max_duration())));
    }
    session.first_flows(plan.streams).ok_or_else(|| BrokenOff::limit("not all flows of the load are open"))
}

/// Monotonic time at which a load must be over, come what may.
fn deadline_ns(duration_ns: u64) -> i64 {
    clock::now_ns().saturating_add_unsigned(duration_ns)
}

/// The client sends.
struct Receiving<'a> {
    conductor: &'a Conductor,
    plan: &'a LoadPlan,
    flows: &'a [Arc<Flow>],
    tally: Arc<Tally>,
    octets: u64,
    cpu: Vec<Duration>,
    began_ns: i64,
    reported_ns: i64,
}

impl<'a> Receiving<'a> {
    fn begin(conductor: &'a Conductor, plan: &'a LoadPlan, flows: &'a [Arc<Flow>]) -> Self {
        let now = clock::now_ns();
        let tally =
            Arc::new(Tally { account: Mutex::new(Account::new(flows.len(), now)), last_ns: AtomicI64::new(now) });
        for (flow, number) in flows.iter().zip(0..) {
            *lock(&flow.collector) =
                Collector::Load(LoadShare { id: plan.id, flow: number, tally: Arc::clone(&tally) });
        }
        Self { conductor, plan, flows, tally, octets: 0, cpu: cpu(flows), began_ns: now, reported_ns: now }
    }

    fn run(mut self) -> Result<(), BrokenOff> {
        self.conductor.say(ServerMessage::LoadReady { id: self.plan.id });
        // The plan's time, and some for what is on its way.
        let over_ns =
            deadline_ns(self.plan.max_duration_ns).saturating_add_unsigned(self.plan.quiet_ns + 1_000_000_000);
        let every_ns = i64::try_from(self.plan.status_every_ns).unwrap_or(i64::MAX);
        let mut next_ns = clock::now_ns() + every_ns;
        let mut ended_ns = None;
        loop {
            let now = clock::now_ns();
            if now >= next_ns {
                self.report()?;
                next_ns = (next_ns + every_ns).max(now);
            }
            if now > over_ns {
                return Err(BrokenOff::limit("the load took longer than announced"));
            }
            if let Some(ended_ns) = ended_ns {
                let last_ns = self.tally.last_ns.load(Ordering::Relaxed).max(ended_ns);
                if now >= last_ns.saturating_add_unsigned(self.plan.quiet_ns) {
                    break;
                }
            }
            let timeout = Duration::from_nanos(u64::try_from(next_ns - now).unwrap_or(0));
            if let Some(Order::LoadEnd) = self.conductor.order(timeout)? {
                ended_ns = Some(clock::now_ns());
            }
        }
        self.report()?;
        self.conductor.say(ServerMessage::LoadDone { id: self.plan.id });
        Ok(())
    }

    fn report(&mut self) -> Result<(), BrokenOff> {
        let interval = lock(&self.tally.account).close(clock::now_ns());
        let cpu = cpu(self.flows);
        let elapsed = Duration::from_nanos(u64::try_from(interval.to_ns - self.reported_ns).unwrap_or(0));
        let share = permille(busiest_share(&self.cpu, &cpu, elapsed));
        self.reported_ns = interval.to_ns;
        self.cpu = cpu;
        self.octets = self.octets.saturating_add(interval.ip_octets);
        self.conductor.say(ServerMessage::LoadStatus(status(self.plan.id, &interval, share)));
        if self.octets > self.conductor.session.limits.max_octets {
            return Err(BrokenOff::limit("the load has more octets than a test may have"));
        }
        let most = BitRate::from_bps(self.conductor.session.limits.max_load_rate_bps);
        let lasted = Duration::from_nanos(u64::try_from(interval.to_ns - self.began_ns).unwrap_or(0));
        if self.octets > most.octets_in(lasted + RATE_SLACK) {
            return Err(BrokenOff::limit(format!("the load is faster than the {most} allowed")));
        }
        Ok(())
    }
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        for flow in self.flows {
            *lock(&flow.collector) = Collector::Idle;
        }
    }
}

fn cpu(flows: &[Arc<Flow>]) -> Vec<Duration> {
    flows.iter().map(|flow| Duration::from_nanos(flow.cpu_ns.load(Ordering::Relaxed))).collect()
}

fn status(id: u32, interval: &Interval, receiver_cpu_permille: Option<u16>) -> LoadStatus {
    LoadStatus {
        id,
        from_ns: interval.from_ns,
        to_ns: interval.to_ns,
        packets: interval.packets,
        ip_octets: interval.ip_octets,
        lost: interval.lost,
        reordered: interval.reordered,
        duplicates: interval.duplicates,
        local_drops: interval.local_drops,
        delay_ns: interval.delay_ns,
        receiver_cpu_permille,
    }
}

/// A reverse segment under way.
struct Segment {
    began_ns: i64,
    ends_ns: i64,
    continues: bool,
    before: LoadTotals,
}

/// The server sends.
struct Sending<'a> {
    conductor: &'a Conductor,
    plan: &'a LoadPlan,
    flows: Vec<Arc<Flow>>,
    sender: Option<LoadSender>,
    /// What left by senders that are no more.
    left: LoadTotals,
    over_ns: i64,
    segment: Option<Segment>,
    /// What had left, and when, at the end of a segment after which the load runs on.
    reported: Option<(LoadTotals, i64)>,
}

impl<'a> Sending<'a> {
    fn begin(conductor: &'a Conductor, plan: &'a LoadPlan, flows: Vec<Arc<Flow>>) -> Self {
        Self {
            conductor,
            plan,
            flows,
            sender: None,
            left: LoadTotals::default(),
            // As with transfers, some for orders that are on their way.
            over_ns: deadline_ns(plan.max_duration_ns).saturating_add(clock::nanos(ORDERS)),
            segment: None,
            reported: None,
        }
    }

    fn run(mut self) -> Result<(), BrokenOff> {
        self.conductor.say(ServerMessage::LoadReady { id: self.plan.id });
        loop {
            self.check()?;
            let now = clock::now_ns();
            let mut timeout = POLL;
            if let Some(segment) = &self.segment {
                if now >= segment.ends_ns || self.spent() {
                    self.end_segment();
                    continue;
                }
                timeout = Duration::from_nanos((segment.ends_ns - now).unsigned_abs());
                if self.packets().is_some() {
                    timeout = timeout.min(send_budget::POLL);
                }
            }
            match self.conductor.order(timeout)? {
                Some(Order::LoadSegment(segment)) => self.begin_segment(&segment)?,
                Some(Order::LoadEnd) => break,
                _ => {}
            }
        }
        self.end_segment();
        self.sender = None;
        self.conductor.say(ServerMessage::LoadDone { id: self.plan.id });
        Ok(())
    }

    /// Packets that may leave, where there is such a limit.
    fn packets(&self) -> Option<u64> {
        let packets = self.plan.tuning.as_ref().and_then(|tuning| tuning.packets)?;
        Some(packets.saturating_sub(self.left.packets))
    }

    /// All of them have left.
    fn spent(&self) -> bool {
        self.sender.as_ref().is_some_and(LoadSender::spent)
    }

    fn check(&self) -> Result<(), BrokenOff> {
        if clock::now_ns() > self.over_ns {
            return Err(BrokenOff::limit("the load took longer than announced"));
        }
        let octets = self.sender.as_ref().map_or(0, |sender| sender.totals().ip_octets);
        let octets = octets.saturating_add(self.left.ip_octets);
        if octets > self.conductor.session.limits.max_octets {
            return Err(BrokenOff::limit("the load has more octets than a test may have"));
        }
        Ok(())
    }

    fn begin_segment(&mut self, order: &LoadSegment) -> Result<(), BrokenOff> {
        let most = self.conductor.session.limits.max_load_rate_bps.min(self.plan.max_rate_bps.unwrap_or(u64::MAX));
        if order.rate_bps.is_some_and(|rate| rate > most) {
            return Err(BrokenOff::limit("a segment is faster than the load was announced"));
        }
        self.end_segment();
        let now = clock::now_ns();
        let ends_ns = now.saturating_add_unsigned(order.duration_ns);
        let spec = LoadSpec {
            // As fast as the host can, but never faster than allowed.
            rate: Some(BitRate::from_bps(order.rate_bps.unwrap_or(most))).filter(|rate| rate.bps() < UNPACED_BPS),
            burst: order.burst,
            until_ns: if order.continues { self.over_ns } else { ends_ns.min(self.over_ns) },
            slack: if self.plan.tuning.as_ref().is_some_and(|tuning| tuning.mean_rate) {
                Slack::mean_rate(Duration::from_nanos(order.duration_ns))
            } else {
                Slack::PROMPT
            },
        };
        if let Some(sender) = &self.sender {
            sender.steer(spec);
        } else {
            let probe =
                Probe { kind: ProbeKind::Load, tag: self.conductor.session.tag, id: self.plan.id, seq: 0, stamp_ns: 0 };
            let sockets: Vec<_> = self.flows.iter().map(|flow| Arc::clone(&flow.socket)).collect();
            let sender = LoadSender::start_with(&sockets, probe, self.plan.ip_octets, spec, self.packets());
            self.sender = Some(sender.map_err(BrokenOff::host("start the load"))?);
        }
        // What left while the next order was on its way belongs to what that order began.
        let began = self.reported.take().unwrap_or((LoadTotals::default(), now));
        let (before, began_ns) = began;
        self.segment = Some(Segment { began_ns, ends_ns, continues: order.continues, before });
        Ok(())
    }

    /// Reports the segment under way, if there is one.
    fn end_segment(&mut self) {
        let Some(segment) = self.segment.take() else { return };
        let spent = self.spent();
        let continues = segment.continues && !spent;
        let ended_ns = if continues {
            clock::now_ns()
        } else {
            // Nothing left after its time, however late this thread comes to look.
            clock::now_ns().min(segment.ends_ns)
        };
        let totals = match self.sender.take() {
            Some(sender) if continues => {
                let totals = sender.totals();
                self.sender = Some(sender);
                totals
            }
            Some(sender) => {
                let totals = sender.stop();
                self.left.packets = self.left.packets.saturating_add(totals.packets);
                self.left.ip_octets = self.left.ip_octets.saturating_add(totals.ip_octets);
                totals
            }
            None => LoadTotals::default(),
        };
        let elapsed = Duration::from_nanos(u64::try_from(ended_ns - segment.began_ns).unwrap_or(0));
        self.reported = continues.then(|| (totals.clone(), ended_ns));
        self.conductor.say(ServerMessage::LoadSent(LoadSent {
            id: self.plan.id,
            began_ns: segment.began_ns,
            ended_ns,
            packets: totals.packets.saturating_sub(segment.before.packets),
            ip_octets: totals.ip_octets.saturating_sub(segment.before.ip_octets),
            send_failures: totals.failures.saturating_sub(segment.before.failures),
            sender_cpu_permille: permille(busiest_share(&segment.before.cpu, &totals.cpu, elapsed)),
            held_up_ns: narrows_units::nanos(totals.held_up.saturating_sub(segment.before.held_up)),
            spent,
        }));
    }
}

/// What orders of a load's segments may take on their way, all together (ours).
const ORDERS: Duration = Duration::from_secs(5);

/// How far ahead of its highest rate a load may arrive: what a full buffer lets go at once (ours).
const RATE_SLACK: Duration = Duration::from_secs(1);

/// A limit this high limits nothing: pacing by it would only cost.
const UNPACED_BPS: u64 = 100_000_000_000;
