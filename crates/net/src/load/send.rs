//! The sending side of a load: a thread per flow, each on an absolute schedule.
//!
//! A flow that is late catches up as [`Timetable`] has it, because a load is defined by its mean
//! rate.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_probe::timetable::{Slack, Timetable};
use narrows_units::BitRate;
use narrows_wire::Probe;

use crate::clock;
use crate::pace::Payloads;
use crate::send_budget::SendBudget;
use crate::socket::{ProbeSocket, is_queued_icmp};
use crate::spacing::Spacing;
use crate::sys::send::{self, Message};
use crate::thread_scheduling::ThreadScheduling;

/// What to offer. Can be changed while the load runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadSpec {
    /// IP-layer rate of all flows together; `None`: as fast as the host can.
    pub rate: Option<BitRate>,
    /// Packets that leave back to back at a time.
    pub burst: u16,
    /// No packet leaves after this (monotonic nanoseconds), whatever happens to whoever should stop
    /// the load.
    pub until_ns: i64,
    /// What is made up for of time that the host did not run.
    pub slack: Slack,
}

/// What has left so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadTotals {
    /// Packets.
    pub packets: u64,
    /// Their IP octets.
    pub ip_octets: u64,
    /// Packets that the host refused.
    pub failures: u64,
    /// CPU time of each sending thread, without the time for which it spun until the next packet
    /// was due: that it could spare.
    pub cpu: Vec<Duration>,
    /// Time for which the flow that was held up most did not run, and that it did not make up for.
    pub held_up: Duration,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    generation: AtomicU64,
    spec: Mutex<LoadSpec>,
    flows: Vec<Counters>,
    /// Packets that may still leave.
    send_budget: SendBudget,
}

#[derive(Debug, Default)]
struct Counters {
    packets: AtomicU64,
    failures: AtomicU64,
    cpu_ns: AtomicU64,
    held_up_ns: AtomicU64,
    spacing: Mutex<Spacing>,
}

/// A running load. Dropping it stops it.
#[derive(Debug)]
pub struct LoadSender {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    ip_octets: u16,
}

/// Packets of one system call at most.
const MOST_BURST: usize = 64;
/// Payload octets of one segmented send, below the largest IP packet.
const MOST_OCTETS: usize = 65_000;

impl LoadSender {
    /// Starts at once. `probe` is the header of every packet; its `seq` and `stamp_ns` are filled
    /// in. Packets that cannot hold it are an error.
    pub fn start(flows: &[Arc<ProbeSocket>], probe: Probe, ip_octets: u16, spec: LoadSpec) -> io::Result<Self> {
        Self::start_with(flows, probe, ip_octets, spec, None)
    }

    /// The same; no more than so many packets leave, all flows together.
    pub fn start_with(
        flows: &[Arc<ProbeSocket>],
        probe: Probe,
        ip_octets: u16,
        spec: LoadSpec,
        packets: Option<u64>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            spec: Mutex::new(spec),
            flows: flows.iter().map(|_| Counters::default()).collect(),
            send_budget: SendBudget::new(packets),
        });
        let mut sender = Self { shared: Arc::clone(&shared), threads: Vec::new(), ip_octets };
        for (index, socket) in flows.iter().enumerate() {
            let octets = socket.payload_octets(ip_octets).filter(|&octets| octets >= probe.header_octets());
            let octets = octets.ok_or(io::ErrorKind::InvalidInput)?;
            let most = (MOST_OCTETS / octets).clamp(1, MOST_BURST);
            let mut payloads = Payloads::new((0..most).map(|_| octets), 1 + index as u64);
            for k in 0..most {
                probe.write(payloads.get_mut(k)).ok_or(io::ErrorKind::InvalidInput)?;
            }
            let mut flow = Flow {
                shared: Arc::clone(&shared),
                socket: Arc::clone(socket),
                index,
                payloads,
                ip_octets,
                most,
                seq: 0,
                segments: true,
                spun_ns: 0,
                held_up_ns: 0,
                spacing: Spacing::default(),
            };
            let thread = std::thread::Builder::new().name(format!("load-{index}")).spawn(move || flow.run())?;
            sender.threads.push(thread);
        }
        Ok(sender)
    }

    /// Takes over at once, without a gap.
    pub fn steer(&self, spec: LoadSpec) {
        *self.shared.spec.lock().unwrap_or_else(PoisonError::into_inner) = spec;
        self.shared.generation.fetch_add(1, Ordering::Release);
    }

    /// All packets that were to leave have left.
    pub fn spent(&self) -> bool {
        self.shared.send_budget.is_empty()
    }

    /// What has left so far.
    pub fn totals(&self) -> LoadTotals {
        let sum = |field: fn(&Counters) -> &AtomicU64| {
            self.shared.flows.iter().map(|flow| field(flow).load(Ordering::Relaxed)).sum::<u64>()
        };
        let packets = sum(|flow| &flow.packets);
        LoadTotals {
            packets,
            ip_octets: packets * u64::from(self.ip_octets),
            failures: sum(|flow| &flow.failures),
            cpu: self
                .shared
                .flows
                .iter()
                .map(|flow| Duration::from_nanos(flow.cpu_ns.load(Ordering::Relaxed)))
                .collect(),
            held_up: Duration::from_nanos(
                self.shared.flows.iter().map(|flow| flow.held_up_ns.load(Ordering::Relaxed)).max().unwrap_or(0),
            ),
        }
    }

    /// How evenly each flow's packets have left so far.
    pub fn spacing(&self) -> Vec<Spacing> {
        let of = |flow: &Counters| flow.spacing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.shared.flows.iter().map(of).collect()
    }

    /// Stops every flow; what has left in all.
    pub fn stop(mut self) -> LoadTotals {
        self.end()
    }

    /// The same, where the sender is needed no more but cannot be given away.
    pub(crate) fn end(&mut self) -> LoadTotals {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A flow that panicked has stopped too.
            let _ = thread.join();
        }
        self.totals()
    }
}

impl Drop for LoadSender {
    fn drop(&mut self) {
        self.end();
    }
}

struct Flow {
    shared: Arc<Shared>,
    socket: Arc<ProbeSocket>,
    index: usize,
    payloads: Payloads,
    ip_octets: u16,
    most: usize,
    seq: u32,
    segments: bool,
    spun_ns: i64,
    held_up_ns: u64,
    spacing: Spacing,
}

/// A waiting flow looks for orders this often.
const POLL_NS: i64 = 10_000_000;
/// CPU time is noted this often.
const CPU_EVERY_NS: i64 = 5_000_000;
/// What comes later than this was held up; timers alone overshoot by less (ours).
const HELD_UP_NS: i64 = 1_000_000;

/// What a flow is at.
struct Course {
    generation: u64,
    spec: LoadSpec,
    burst: usize,
    timetable: Timetable,
    /// When the last burst left.
    last_ns: Option<i64>,
    /// Its time was over: the next order begins anew.
    over: bool,
}

impl Flow {
    /// Bits of a burst of this flow, times the number of flows: these take turns at the rate of
    /// all.
    fn bits(&self, burst: usize) -> u128 {
        burst as u128 * u128::from(self.ip_octets) * 8 * self.shared.flows.len() as u128
    }

    fn begin(&mut self, generation: u64, spec: LoadSpec) -> Course {
        let burst = usize::from(spec.burst).clamp(1, self.most);
        let rate_bps = spec.rate.map_or(0, BitRate::bps);
        let gap = Timetable::lasts_ns(rate_bps, self.bits(burst));
        let flows = i64::try_from(self.shared.flows.len().max(1)).unwrap_or(1);
        // Flows take turns instead of sending together.
        let turn = gap / flows * i64::try_from(self.index).unwrap_or(0);
        let first = Timetable::first_ns(clock::now_ns(), Duration::from_nanos((gap / flows).unsigned_abs()));
        self.spacing = Spacing::new(gap.unsigned_abs(), burst);
        Course {
            generation,
            spec,
            burst,
            timetable: Timetable::new(first.saturating_add(turn), rate_bps, spec.slack),
            last_ns: None,
            over: false,
        }
    }

    /// Takes over new orders. The same rate goes on as it was, without a packet too many or too
    /// few.
    fn obey(&mut self, course: &mut Course) {
        let generation = self.shared.generation.load(Ordering::Acquire);
        if generation == course.generation {
            return;
        }
        let spec = *self.shared.spec.lock().unwrap_or_else(PoisonError::into_inner);
        let same = (spec.rate, spec.burst) == (course.spec.rate, course.spec.burst);
        if same && !course.over {
            (course.generation, course.spec) = (generation, spec);
        } else {
            *course = self.begin(generation, spec);
        }
    }

    fn run(&mut self) {
        let _careful = ThreadScheduling::default().take();
        let generation = self.shared.generation.load(Ordering::Acquire);
        let spec = *self.shared.spec.lock().unwrap_or_else(PoisonError::into_inner);
        let mut course = self.begin(generation, spec);
        let (mut noted, mut returned) = (0, 0);
        loop {
            self.obey(&mut course);
            let now = clock::now_ns();
            if now - noted > CPU_EVERY_NS {
                noted = now;
                self.note(&course);
            }
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            if now >= course.spec.until_ns || self.shared.send_budget.is_empty() {
                // Its time is over, until it is given a new one; or there is nothing left to send.
                course.over = true;
                clock::sleep_until_ns(now + POLL_NS / 10);
                continue;
            }
            let target = course.timetable.next_ns();
            if now < target {
                self.spun_ns += rest(target.min(now + POLL_NS).min(course.spec.until_ns), now);
                continue;
            }
            if let Some(last) = course.last_ns.replace(now) {
                self.spacing.note(u64::try_from(now - last).unwrap_or(0));
            }
            let unrecovered_before = course.timetable.unrecovered_ns();
            course.timetable.leaves(now, self.bits(course.burst));
            // A send that blocks makes the next one late, and is no hold-up.
            if now - target.max(returned) > HELD_UP_NS {
                self.held_up_ns += course.timetable.unrecovered_ns() - unrecovered_before;
            }
            self.send(course.burst);
            returned = clock::now_ns();
        }
        self.note(&course);
    }

    fn note(&mut self, course: &Course) {
        self.note_cpu();
        self.spacing.give_up(course.timetable.unrecovered_ns());
        let mut shown = self.shared.flows[self.index].spacing.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone_from(&self.spacing);
    }

    fn note_cpu(&self) {
        let spun = Duration::from_nanos(u64::try_from(self.spun_ns).unwrap_or(0));
        let nanos = u64::try_from(clock::thread_cpu().saturating_sub(spun).as_nanos()).unwrap_or(u64::MAX);
        self.shared.flows[self.index].cpu_ns.fetch_max(nanos, Ordering::Relaxed);
        self.shared.flows[self.index].held_up_ns.store(self.held_up_ns, Ordering::Relaxed);
    }

    /// Sends a burst, or as much of it as there still is to send. Numbers of packets that did not
    /// leave are given to the next ones: the receiver must not miss them.
    fn send(&mut self, burst: usize) {
        let burst = usize::try_from(self.shared.send_budget.take(burst as u64)).unwrap_or(0);
        if burst == 0 {
            return;
        }
        let stamp = clock::now_ns().to_be_bytes();
        for (k, seq) in (0..burst).zip(self.seq..) {
            let header = self.payloads.get_mut(k);
            header[Probe::SEQ_OFFSET..Probe::SEQ_OFFSET + 4].copy_from_slice(&seq.to_be_bytes());
            header[Probe::STAMP_OFFSET..Probe::STAMP_OFFSET + 8].copy_from_slice(&stamp);
        }
        let sent = if burst > 1 && self.segments { self.send_segments(burst) } else { None };
        let sent = sent.unwrap_or_else(|| self.send_messages(burst));
        self.seq = self.seq.wrapping_add(u32::try_from(sent).unwrap_or(0));
        let counters = &self.shared.flows[self.index];
        counters.packets.fetch_add(sent as u64, Ordering::Relaxed);
        if sent < burst {
            self.shared.send_budget.give_back((burst - sent) as u64);
            counters.failures.fetch_add((burst - sent) as u64, Ordering::Relaxed);
        }
    }

    /// `None` if this kernel or card will not cut.
    fn send_segments(&mut self, burst: usize) -> Option<usize> {
        let octets = u16::try_from(self.payloads.get(0).len()).ok()?;
        let message = Message { payload: self.payloads.span(0, burst), hop_limit: None, segment_octets: Some(octets) };
        match self.push(&[message]) {
            Ok(_) => Some(burst),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE)) => {
                self.segments = false;
                None
            }
            Err(_) => Some(0),
        }
    }

    fn send_messages(&self, burst: usize) -> usize {
        let mut messages = [Message { payload: &[], hop_limit: None, segment_octets: None }; MOST_BURST];
        for (k, message) in messages.iter_mut().enumerate().take(burst) {
            message.payload = self.payloads.get(k);
        }
        let mut sent = 0;
        while sent < burst {
            match self.push(&messages[sent..burst]) {
                Ok(count) => sent += count,
                Err(_) => break,
            }
        }
        sent
    }

    /// Waits while the send buffer is full, as long as the load shall run.
    fn push(&self, messages: &[Message<'_>]) -> io::Result<usize> {
        let mut leftovers = 8;
        loop {
            match send::send(self.socket.as_fd(), messages, self.socket.ipv6()) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && !self.shared.stop.load(Ordering::Relaxed) =>
                {
                    self.socket.wait_to_send(clock::now_ns() + 1_000_000)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_queued_icmp(&error) && leftovers > 0 => leftovers -= 1,
                Err(error) => {
                    // Whatever it is, it will not be over in a microsecond; do not spin on it.
                    clock::sleep_until_ns(clock::now_ns() + 200_000);
                    return Err(error);
                }
                Ok(count) => return Ok(count),
            }
        }
    }
}

/// Sleeps while there is time, and spins for the last of it; the CPU time that the spinning took,
/// in nanoseconds. Not the clock's time: a thread that is preempted while it spins uses none. Below
/// a few microseconds asking would cost as much as it tells.
pub(crate) fn rest(target: i64, now: i64) -> i64 {
    const SPIN_NS: i64 = 100_000;
    const WORTH_NS: i64 = 5_000;
    if target - now > 2 * SPIN_NS {
        clock::sleep_until_ns(target - SPIN_NS);
        return 0;
    }
    let before = (target - now > WORTH_NS).then(clock::thread_cpu);
    while clock::now_ns() < target {
        std::hint::spin_loop();
    }
    before.map_or(0, |before| clock::nanos(clock::thread_cpu().saturating_sub(before)))
}
