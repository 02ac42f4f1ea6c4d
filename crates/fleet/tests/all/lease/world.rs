//! Agents that contend for a few keys, their clocks, and a network that loses, delays and doubles.
//!
//! True time is in microseconds. An agent's clock runs at 0.9 to 1.1 of it, from an offset.

mod forger;
mod host;
mod record;

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_fleet::keys::Key;
use narrows_fleet::lease::{Action, Event, Inspector, KeyState, Stopped, Timing, Want};
use uuid::Uuid;

use super::bus::Bus;
use super::random::Random;
use host::{Host, Running};
use record::Record;
pub(super) use record::Report;

pub(super) const AGENTS: u32 = 6;
const KEYS: u64 = 4;
const SECOND: u64 = 1_000_000;
const WEEK: u64 = 7 * 86_400 * SECOND;

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faults {
    /// Messages are lost, late and doubled; agents pause, die and lose the bus; the bus dies.
    pub(super) any: bool,
    /// The bus keeps its identity over restarts.
    pub(super) hidden_restarts: bool,
    /// Somebody writes over leases what names nobody.
    pub(super) forger: bool,
    pub(super) hub: Hub,
}

/// What the hub does about keys that nobody will give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hub {
    /// It is not there.
    Absent,
    /// It frees them when nobody sends on them.
    Frees,
    /// It frees them at once.
    InHaste,
}

impl Faults {
    pub(super) const NONE: Self = Self { any: false, hidden_restarts: false, forger: false, hub: Hub::Absent };
    pub(super) const ALL: Self = Self { any: true, ..Self::NONE };
    pub(super) const HUB: Self = Self { hub: Hub::Frees, ..Self::ALL };
    pub(super) const FORGER: Self = Self { forger: true, ..Self::HUB };
}

/// How often what goes wrong, by the world's seed: what is rare in one kind is common in another.
#[derive(Debug, Clone, Copy)]
struct Weather {
    /// Percent of messages.
    lost: u64,
    late: u64,
    doubled: u64,
    /// Percent of faults; the rest are restarts of the bus.
    pauses: u64,
    deaths: u64,
    breaks: u64,
    /// Seconds between faults, on average.
    fault_each_s: f64,
}

const WEATHERS: [Weather; 3] = [
    Weather { lost: 3, late: 2, doubled: 2, pauses: 53, deaths: 11, breaks: 32, fault_each_s: 5.3 },
    Weather { lost: 30, late: 10, doubled: 5, pauses: 40, deaths: 10, breaks: 40, fault_each_s: 20.0 },
    Weather { lost: 2, late: 2, doubled: 2, pauses: 20, deaths: 50, breaks: 15, fault_each_s: 7.0 },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Steady,
    TenMinutesAWeek,
}

/// What happens to an agent, if its process still lives then; a pause puts it off.
#[derive(Debug, Clone)]
enum Turn {
    Want,
    Finish(Uuid),
    Connect,
    /// Of a connection, by its number.
    Received(u32, Event),
    Tick,
}

#[derive(Debug, Clone)]
enum Happening {
    Agent { at: usize, life: u32, turn: Turn },
    Resume { at: usize, life: u32 },
    Arrive(Message),
    Fault,
    BusStarts,
    Check,
    Forge,
    Inspect,
}

/// A request on its way to the bus.
#[derive(Debug, Clone)]
struct Message {
    from: usize,
    life: u32,
    connection: u32,
    incarnation: u32,
    action: Action,
}

pub(super) struct World {
    now: u64,
    sequence: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    random: Random,
    timing: Timing,
    faults: Faults,
    weather: Weather,
    pace: Pace,
    bus: Bus,
    hosts: Vec<Host>,
    inspector: Inspector,
    record: Record,
    runs: u128,
}

impl World {
    pub(super) fn new(seed: u64, timing: Timing, faults: Faults, pace: Pace) -> Self {
        let mut random = Random::new(seed);
        let hosts = (0..AGENTS).map(|number| Host::new(number, timing, &mut random)).collect();
        let bus = Bus::new();
        let record = Record::new(keys(), &bus);
        let (queue, now, sequence, runs) = (BTreeMap::new(), 0, 0, 0);
        let weather = WEATHERS[narrows_units::to_usize(seed) % WEATHERS.len()];
        let inspector = forger::inspector(faults.hub == Hub::InHaste);
        let mut world =
            Self { now, sequence, queue, random, timing, faults, weather, pace, bus, hosts, inspector, record, runs };
        for at in 0..world.hosts.len() {
            let (connects, wants) = (world.random.wait(1.0), world.random.wait(20.0));
            world.turn_in(connects, at, Turn::Connect);
            world.turn_in(wants, at, Turn::Want);
        }
        if faults.any {
            world.schedule(10 * SECOND, Happening::Fault);
        }
        if faults.forger {
            world.schedule(SECOND, Happening::Forge);
        }
        if faults.hub != Hub::Absent {
            world.schedule(SECOND, Happening::Inspect);
        }
        if pace == Pace::TenMinutesAWeek {
            world.schedule(WEEK / 2, Happening::Check);
        }
        world
    }

    pub(super) fn run_until(&mut self, end: u64) {
        while let Some(((now, _), happening)) = self.queue.pop_first() {
            if now > end {
                break;
            }
            self.now = now;
            self.happen(happening);
        }
        self.now = end;
    }

    /// The checkers' word on all that happened.
    pub(super) fn finish(mut self) -> Report {
        for host in &mut self.hosts {
            host.close(self.now, &self.bus, &mut self.record);
        }
        self.record.check(&self.bus);
        self.record.report
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Agent { at, life, turn } => {
                let host = &self.hosts[at];
                if host.life != life {
                    return;
                }
                if host.paused_until > self.now {
                    // The thread that sends may be the first to wake up.
                    let wakes = host.paused_until + SECOND / 100;
                    return self.schedule(wakes - self.now, Happening::Agent { at, life, turn });
                }
                self.turn(at, turn);
            }
            Happening::Resume { at, life } if self.hosts[at].life == life => self.hosts[at].resume(self.now),
            Happening::Resume { .. } => {}
            Happening::Arrive(message) => self.serve(message),
            Happening::Fault => self.fault(),
            Happening::BusStarts => {
                self.bus.start();
                self.record.bus_started(&self.bus);
                self.inspector.begin(forger::hub_time(self.now));
            }
            Happening::Forge => self.forge(),
            Happening::Inspect => self.inspect(),
            Happening::Check => {
                self.record.check(&self.bus);
                self.schedule(WEEK, Happening::Check);
            }
        }
    }

    fn turn(&mut self, at: usize, turn: Turn) {
        let host = &mut self.hosts[at];
        host.close(self.now, &self.bus, &mut self.record);
        let local = host.local(self.now);
        let actions = match turn {
            Turn::Want if host.lessee.is_idle() => {
                self.runs += 1;
                let run = Uuid::from_u128(self.runs);
                let mut keys = keys();
                let surely = self.random.between(0, KEYS - 1);
                keys.retain(|key| *key == Key::Link(surely, 0) || self.random.chance(30));
                let length = self.random.between(SECOND / 2, 25 * SECOND);
                host.run = Some(Running { id: run, keys: keys.clone(), length });
                let start_by = local + Duration::from_secs(25);
                // Every second run is an order.
                let after_new_bus = Duration::from_secs(10) * u32::from(self.runs.is_multiple_of(2));
                host.lessee.take(Want { run, keys, start_by, after_new_bus }, local).unwrap_or_default()
            }
            Turn::Finish(run) if host.run.as_ref().is_some_and(|running| running.id == run) => {
                host.run = None;
                self.want_later(at);
                self.hosts[at].lessee.handle(Event::Finished, local)
            }
            Turn::Connect if !self.bus.up => {
                self.turn_in(SECOND, at, Turn::Connect);
                Vec::new()
            }
            Turn::Connect => {
                host.connection += 1;
                host.incarnation = Some(self.bus.incarnation);
                host.last_incarnation = self.bus.incarnation;
                let shown = if self.faults.hidden_restarts { 1 } else { self.bus.incarnation };
                host.lessee.handle(Event::Connected { server: shown.to_string() }, local)
            }
            Turn::Received(connection, event) if connection == host.connection => {
                self.record.answered(at, host.life, &event, self.now);
                host.lessee.handle(event, local)
            }
            Turn::Want | Turn::Finish(_) | Turn::Received(..) => Vec::new(),
            Turn::Tick => host.lessee.handle(Event::Tick, local),
        };
        for action in &actions {
            self.act(at, action);
        }
        let host = &mut self.hosts[at];
        host.resume(self.now);
        if let Some(due) = host.tick_needed(self.now) {
            self.turn_in(due - self.now, at, Turn::Tick);
        }
    }

    fn act(&mut self, at: usize, action: &Action) {
        let host = &mut self.hosts[at];
        match action {
            Action::Read { .. } | Action::Write { .. } => return self.send(at, action),
            Action::Start => {
                self.record.report.started += 1;
                let (run, length) = host.run.as_ref().map_or((Uuid::nil(), 0), |run| (run.id, run.length));
                return self.turn_in(length, at, Turn::Finish(run));
            }
            Action::BackedOff { .. } => return,
            Action::Stop(Stopped::Expired) => self.record.report.expired += 1,
            Action::Stop(Stopped::Overwritten(_)) => self.record.report.overwritten += 1,
            Action::Stop(Stopped::BusRestarted) => self.record.report.bus_restarted += 1,
            Action::Skipped { .. } => self.record.report.skipped += 1,
        }
        host.run = None;
        self.want_later(at);
    }

    fn send(&mut self, from: usize, action: &Action) {
        let host = &self.hosts[from];
        let (life, connection) = (host.life, host.connection);
        let Some(incarnation) = host.incarnation else { return };
        let copies = self.copies();
        self.record.asked(from, life, incarnation, action, self.now, copies.len() > 1);
        for delay in copies {
            let message = Message { from, life, connection, incarnation, action: action.clone() };
            self.schedule(delay, Happening::Arrive(message));
        }
    }

    /// The bus carries out a request, however late, if it is the one that it was sent to.
    fn serve(&mut self, message: Message) {
        let Message { from, life, connection, incarnation, action } = message;
        if !self.bus.up || self.bus.incarnation != incarnation {
            return;
        }
        let answer = match action {
            Action::Read { request, key } => {
                let value = self.bus.read(&key);
                Event::Read { request, revision: value.revision, state: value.state }
            }
            Action::Write { request, key, expected, holder } => {
                let before = self.bus.read(&key).state;
                match self.bus.write(&key, expected, holder.clone(), self.now) {
                    None => Event::Refused { request },
                    Some(revision) => {
                        let of_another = before.holder().zip(holder.as_ref());
                        let of_another = of_another.is_some_and(|(before, holder)| before.agent != holder.agent);
                        self.record.report.taken_over += u64::from(of_another);
                        let state = holder.map_or(KeyState::Free, KeyState::Held);
                        self.republish(key, revision, state, expected);
                        Event::Accepted { request, revision }
                    }
                }
            }
            _ => return,
        };
        for delay in self.copies() {
            let turn = Turn::Received(connection, answer.clone());
            self.schedule(delay, Happening::Agent { at: from, life, turn });
        }
    }

    /// Everybody hears of a write, sooner or later; the hub at once.
    fn republish(&mut self, key: Key, revision: u64, state: KeyState, after: u64) {
        self.show_hub(key.clone(), revision, &state, after);
        let event = Event::Republished { key, revision, state };
        for at in 0..self.hosts.len() {
            let (life, connection) = (self.hosts[at].life, self.hosts[at].connection);
            for delay in self.copies() {
                let turn = Turn::Received(connection, event.clone());
                self.schedule(delay, Happening::Agent { at, life, turn });
            }
        }
    }

    /// One thing goes wrong, and the next is planned.
    fn fault(&mut self) {
        let at = narrows_units::to_usize(self.random.between(0, u64::from(AGENTS) - 1));
        let Weather { pauses, deaths, breaks, fault_each_s, .. } = self.weather;
        match self.random.between(0, 99) {
            drawn if drawn < pauses => {
                let longest = if self.random.chance(70) { 3 * SECOND } else { 40 * SECOND };
                let until = self.now + self.random.between(SECOND / 20, longest);
                let host = &mut self.hosts[at];
                host.close(self.now, &self.bus, &mut self.record);
                host.paused_until = host.paused_until.max(until);
                let (life, wakes) = (host.life, host.paused_until - self.now);
                self.schedule(wakes, Happening::Resume { at, life });
            }
            drawn if drawn < pauses + deaths => {
                self.hosts[at].close(self.now, &self.bus, &mut self.record);
                self.hosts[at].die(self.timing, &mut self.random);
                let revived = self.random.between(SECOND, 20 * SECOND);
                self.turn_in(revived, at, Turn::Connect);
                self.turn_in(revived + SECOND, at, Turn::Want);
            }
            drawn if drawn < pauses + deaths + breaks => self.disconnect(at),
            _ if self.bus.up => {
                self.bus.crash(self.now, &mut self.random);
                (0..self.hosts.len()).for_each(|at| self.disconnect(at));
                let down = self.random.between(SECOND / 10, 5 * SECOND);
                self.schedule(down, Happening::BusStarts);
            }
            _ => {}
        }
        let next = self.later(fault_each_s);
        self.schedule(next, Happening::Fault);
    }

    /// The agent notices up to three seconds later, and dials again.
    fn disconnect(&mut self, at: usize) {
        let noticed = self.random.between(1_000, 3 * SECOND);
        let host = &mut self.hosts[at];
        host.connection += 1;
        let (connection, was_up) = (host.connection, host.incarnation.take().is_some());
        if was_up {
            self.turn_in(noticed, at, Turn::Received(connection, Event::Disconnected));
            let dials = noticed + self.random.between(1_000, 8 * SECOND);
            self.turn_in(dials, at, Turn::Connect);
        }
    }

    fn want_later(&mut self, at: usize) {
        let wait = self.later(5.0);
        self.turn_in(wait, at, Turn::Want);
    }

    /// A random wait; in the next week if the ten minutes of this one are over by then.
    fn later(&mut self, mean_s: f64) -> u64 {
        let wait = self.random.wait(mean_s);
        let past_monday = (self.now + wait) % WEEK;
        let over = self.pace == Pace::TenMinutesAWeek && past_monday > 600 * SECOND;
        if over { wait + WEEK - past_monday + self.random.wait(mean_s) } else { wait }
    }

    /// When the copies of a message arrive: usually one, soon.
    fn copies(&mut self) -> Vec<u64> {
        let Weather { lost, late, doubled, .. } = self.weather;
        let mut delay = |late| match self.random.between(0, 99) {
            drawn if drawn < late => self.random.between(SECOND, LATEST),
            _ => self.random.between(500, 40_000),
        };
        if !self.faults.any {
            return vec![delay(0)];
        }
        let (first, second) = (delay(late), delay(late));
        match self.random.between(0, 99) {
            drawn if drawn < lost => Vec::new(),
            drawn if drawn < lost + doubled => vec![first, second],
            _ => vec![first],
        }
    }

    fn turn_in(&mut self, delay: u64, at: usize, turn: Turn) {
        let life = self.hosts[at].life;
        self.schedule(delay, Happening::Agent { at, life, turn });
    }

    fn schedule(&mut self, delay: u64, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((self.now + delay, self.sequence), happening);
    }
}

/// No message is later.
const LATEST: u64 = 30 * SECOND;

fn keys() -> Vec<Key> {
    (0..KEYS).map(|link| Key::Link(link, 0)).collect()
}
