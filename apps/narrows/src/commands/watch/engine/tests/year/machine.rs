//! A machine of which a test sets the clocks, the path that it follows, and what it was reported.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use narrows_stat::SplitMix64;
use narrows_store::records::{Basis, PulseMinute, Sample};
use narrows_watch::Claim;

use super::super::super::super::jobs::{Level, Work};
use super::super::super::super::pulses::collect::{Closed, Collector};
use super::super::*;
use super::What;

/// A tick, in ms. Pulses go out once a second.
pub(super) const TICK_MS: u64 = 5_000;
/// 1 January 2028, 00:00 UTC: a leap year.
pub(super) const START_MS: i64 = 1_830_297_600_000;
/// What is left of the path as a rule.
pub(super) const USUAL_BPS: f64 = 60e6;
/// What cross traffic leaves of it, and the queue that it makes.
const SLOW: (f64, u64) = (25e6, 30_000);

/// What was kept and reported, each with the time since the start in ms, which nobody sets.
#[derive(Default)]
pub(super) struct Diary {
    pub(super) elapsed_ms: u64,
    memory: Memory,
    pub(super) events: Vec<(u64, Event)>,
    pub(super) notices: Vec<(u64, String)>,
    pub(super) pulses: u64,
    /// Of each signal: when the newest value came, and pauses of more than five minutes.
    newest: BTreeMap<Signal, u64>,
    pub(super) pauses: Vec<(Signal, u64, u64)>,
}

#[derive(Clone, Default)]
struct Pen(Arc<Mutex<Diary>>);

impl Pen {
    fn write<T>(&self, what: impl FnOnce(&mut Diary) -> T) -> T {
        what(&mut self.0.lock().unwrap())
    }
}

impl Keep for Pen {
    fn target(&mut self, name: &str, host: &str, port: Option<u16>) -> TargetId {
        self.write(|diary| diary.memory.target(name, host, port))
    }
    fn sample(&mut self, _: TargetId, signal: Signal, _: Basis, _: Sample) {
        self.write(|diary| {
            let now = diary.elapsed_ms;
            let before = diary.newest.insert(signal, now).unwrap_or(now);
            if now - before > 300_000 {
                diary.pauses.push((signal, before, now));
            }
        });
    }
    fn pulses(&mut self, _: TargetId, minute: PulseMinute) {
        self.write(|diary| diary.pulses += u64::from(minute.sent));
    }
    fn event(&mut self, event: Event) {
        self.write(|diary| diary.events.push((diary.elapsed_ms, event)));
    }
    fn state(&mut self, key: &str) -> Option<Vec<u8>> {
        self.write(|diary| diary.memory.state(key))
    }
    fn set_state(&mut self, key: &str, value: Vec<u8>) {
        self.write(|diary| diary.memory.set_state(key, value));
    }
}

impl Notices for Pen {
    fn tell(&mut self, _: &[String], body: NoticeBody) {
        self.write(|diary| diary.notices.push((diary.elapsed_ms, format!("{} {}", body.rule, body.state_name()))));
    }
    fn use_channels(&mut self, _: &toml::Table) -> Result<(), Failure> {
        Ok(())
    }
}

/// What one job sent: from when until when, how much, and what for.
pub(super) struct Sent {
    pub(super) began_ms: u64,
    pub(super) ended_ms: u64,
    pub(super) octets: u64,
    pub(super) job: Job,
}

pub(super) struct Machine {
    settings: Settings,
    zone: Zone,
    pen: Pen,
    clocks: Rc<Cell<ClockReading>>,
    engine: Engine,
    ends: Ends,
    collector: Collector,
    number: u32,
    loaded: bool,
    /// What the thread of pulses has reported and the scheduler has not yet heard.
    reported: Vec<Heard>,
    running: Vec<(u64, u64, Work)>,
    random: SplitMix64,
    /// What is free, in bit/s, and how long packets wait at most, in us.
    path: (f64, u64),
    pub(super) sent: Vec<Sent>,
    pub(super) pulses: u64,
}

impl Machine {
    /// Switched on so many minutes after the start.
    pub(super) fn new(settings: Settings, zone: Zone, from_minute: u64, seed: u64) -> Self {
        let pen = Pen::default();
        let at_ms = from_minute * 60_000;
        pen.write(|diary| diary.elapsed_ms = at_ms);
        let wall = (START_MS + i64::try_from(at_ms).unwrap()) * MS;
        let clocks = Rc::new(Cell::new(ClockReading { monotonic: MS, boot: MS, wall }));
        let (engine, ends) = begun(&settings, &zone, &pen, &clocks);
        Self {
            settings,
            zone,
            pen,
            clocks,
            engine,
            ends,
            collector: Collector::default(),
            number: 0,
            loaded: false,
            reported: Vec::new(),
            running: Vec::new(),
            random: SplitMix64::new(seed),
            path: (USUAL_BPS, 0),
            sent: Vec::new(),
            pulses: 0,
        }
    }

    pub(super) fn diary<T>(&self, read: impl FnOnce(&mut Diary) -> T) -> T {
        self.pen.write(read)
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        self.diary(|diary| diary.elapsed_ms)
    }

    /// The most that a day may have, pulses left out.
    pub(super) fn day_limit(&self) -> u64 {
        self.engine.planner.forecast(TargetId::new(1)).unwrap().limit.count()
    }

    /// Time passes; only one of the machine's clocks does not notice if it sleeps.
    fn pass(&mut self, ms: u64, awake: bool) {
        let ns = i64::try_from(ms).unwrap() * MS;
        let ClockReading { monotonic, boot, wall } = self.clocks.get();
        let monotonic = monotonic + if awake { ns } else { 0 };
        self.clocks.set(ClockReading { monotonic, boot: boot + ns, wall: wall + ns });
        self.pen.write(|diary| diary.elapsed_ms += ms);
    }

    pub(super) fn disturb(&mut self, what: What) {
        match what {
            What::Set(ms) => {
                let look = self.clocks.get();
                self.clocks.set(ClockReading { wall: look.wall + ms * MS, ..look });
            }
            What::Sleep(minutes) => self.pass(minutes * 60_000, false),
            What::Slow(slow) => self.path = if slow { SLOW } else { (USUAL_BPS, 0) },
            What::Kill => self.begin_again(),
            What::Reboot => {
                let wall = self.clocks.get().wall;
                self.clocks.set(ClockReading { monotonic: MS, boot: MS, wall });
                self.begin_again();
            }
        }
    }

    /// From now on so much is free, and the busy link's queue lasts so long.
    pub(super) const fn set_path(&mut self, free_bps: f64, queue_us: u64) {
        self.path = (free_bps, queue_us);
    }

    /// Another process, after `kill -9`: nobody knows what its jobs sent, so it was all.
    fn begin_again(&mut self) {
        let now = self.elapsed_ms();
        for (began_ms, _, work) in std::mem::take(&mut self.running) {
            self.sent.push(Sent { began_ms, ended_ms: now, octets: work.job.octets.count(), job: work.job });
        }
        (self.engine, self.ends) = begun(&self.settings, &self.zone, &self.pen, &self.clocks);
        (self.collector, self.loaded) = (Collector::default(), false);
        self.reported.clear();
    }

    pub(super) fn tick(&mut self) {
        self.pulse();
        self.pass(TICK_MS, true);
        let now = self.engine.now();
        let heard = std::mem::take(&mut self.reported);
        for one in heard {
            self.engine.take(Message::Heard(TargetId::new(1), one), now);
        }
        self.reported = self.collector.close(self.clocks.get().moment()).into_iter().map(heard_of).collect();
        self.end_jobs(now);
        self.engine.look(now);
        let elapsed = self.elapsed_ms();
        for work in self.ends.jobs.try_iter() {
            let takes = 1_000 + self.random.next_u64() % 4_000;
            self.running.push((elapsed, elapsed + takes, work));
        }
        for asked in self.ends.pulses.try_iter() {
            if let Asked::Loaded(_, loaded) = asked {
                self.loaded = loaded;
            }
        }
        self.ends.names.try_iter().for_each(drop);
    }

    fn pulse(&mut self) {
        let sent = self.clocks.get().moment().boot;
        for second in 0..TICK_MS / 1000 {
            self.number = self.number.wrapping_add(1);
            self.collector.sent(self.number, sent.after(Duration::from_secs(second)), self.loaded);
            self.pulses += u64::from(!self.loaded);
            let late_us = self.random.next_u64() % 400 + self.path.1;
            self.collector.answered(self.number, Duration::from_micros(20_000 + late_us));
        }
    }

    /// What a job of this kind takes over 100 Mbit/s, within what it may.
    fn takes(&mut self, job: Job) -> u64 {
        let usual = match job.kind {
            JobKind::Route => 6e3,
            JobKind::Slice => 1.1e6,
            JobKind::Capacity => 8e5,
            JobKind::Hops => 1.5e6,
            JobKind::Test => 5e7,
        };
        narrows_units::rounded(usual * (0.5 + 0.8 * self.random.next_unit())).min(job.octets.count())
    }

    fn end_jobs(&mut self, now: Moment) {
        let elapsed = self.elapsed_ms();
        let over: Vec<_> = self.running.extract_if(.., |(_, until, _)| *until <= elapsed).collect();
        for (began_ms, ended_ms, work) in over {
            let job = work.job;
            let octets = self.takes(job);
            self.sent.push(Sent { began_ms, ended_ms, octets, job });
            let level = |signal, value: f64| Level {
                signal,
                basis: Basis::Server,
                value,
                low: 0.96 * value,
                high: 1.04 * value,
                claim: Claim::Estimate,
                host_busy: false,
            };
            let noise = 0.97 + 0.06 * self.random.next_unit();
            let free = self.path.0;
            let values = match job.kind {
                JobKind::Slice => vec![level(Signal::AvailableForward, free * noise)],
                JobKind::Capacity => vec![level(Signal::Capacity, 1e8)],
                _ => Vec::new(),
            };
            let done = Done { outcome: Outcome::Done, octets: Some(octets), values, ..Done::of(work) };
            self.engine.take(Message::Done(Box::new(done)), now);
        }
    }
}

fn begun(settings: &Settings, zone: &Zone, pen: &Pen, clocks: &Rc<Cell<ClockReading>>) -> (Engine, Ends) {
    let ((threads, ends), clocks) = (Threads::new(), Rc::clone(clocks));
    let clocks = Clocks::read_by(move || clocks.get());
    let (now, lines) = (clocks.looked(), Lines::unread(zone.clone()));
    let keep: (Box<dyn Keep>, Box<dyn Notices>) = (Box::new(pen.clone()), Box::new(pen.clone()));
    let mut engine = Engine::new(settings.clone(), zone.clone(), lines, keep, threads, clocks);
    engine.host = Host::unread();
    engine.take(Message::Resolved(TargetId::new(1), vec![[127, 0, 0, 1].into()]), now);
    (engine, ends)
}

fn heard_of(closed: Closed) -> Heard {
    match closed {
        Closed::Block { at, block, round_trips, silent } => Heard::Block { at, block, round_trips, silent },
        Closed::Minute(minute) => Heard::Minute(minute),
    }
}

const MS: i64 = 1_000_000;
