//! The state machine of an agent that leases keys.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_units::Stamp;
use uuid::Uuid;

use super::held::{Held, Kind, Lease, Open, Unsure};
use super::{Action, Event, GUARD, Holder, KeyState, Obstacle, RequestId, Stopped, Timing, Want};
use crate::clock::Boot;
use crate::keys::{Key, Name};

/// Takes, renews and gives back the keys of one run at a time.
#[derive(Debug, Clone)]
pub struct Lessee {
    agent: Name,
    timing: Timing,
    random: SplitMix64,
    server: Option<String>,
    connected: bool,
    not_before: Stamp<Boot>,
    sights: BTreeMap<Key, Sight>,
    requests: RequestId,
    /// Reads of a try that was given up before they were answered.
    late: BTreeMap<RequestId, Key>,
    run: Option<Run>,
}

/// A revision of a key that is not free, and when we first saw it. There is at most one per key of
/// the fleet.
#[derive(Debug, Clone)]
struct Sight {
    revision: u64,
    /// `None`: nobody proved that it has the key.
    holder: Option<Holder>,
    since: Stamp<Boot>,
}

#[derive(Debug, Clone)]
struct Run {
    id: Uuid,
    start_by: Stamp<Boot>,
    after_new_bus: Duration,
    tries: u32,
    stage: Stage,
    keys: Vec<Held>,
    obstacle: Option<Obstacle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Since then, for the next try then.
    Waiting {
        since: Stamp<Boot>,
        until: Stamp<Boot>,
    },
    Taking,
    Sending,
}

impl Lessee {
    /// Of this agent. `seed` spreads its tries, and differs between agents.
    pub fn new(agent: Name, seed: u64) -> Self {
        Self::with_timing(agent, seed, Timing::default())
    }

    /// The same with other times, to show that a checker finds what they break.
    pub fn with_timing(agent: Name, seed: u64, timing: Timing) -> Self {
        Self {
            agent,
            timing,
            random: SplitMix64::new(seed),
            server: None,
            connected: false,
            not_before: Stamp::from_nanos(i64::MIN),
            sights: BTreeMap::new(),
            requests: 0,
            late: BTreeMap::new(),
            run: None,
        }
    }

    /// Begins to take the keys of a run. `None` if another run is not over yet.
    pub fn take(&mut self, want: Want, now: Stamp<Boot>) -> Option<Vec<Action>> {
        if self.run.is_some() {
            return None;
        }
        let mut keys = want.keys;
        keys.sort();
        keys.dedup();
        let keys = keys.into_iter().map(Held::new).collect();
        let (stage, after_new_bus) = (Stage::Waiting { since: now, until: now }, want.after_new_bus);
        let (id, start_by) = (want.run, want.start_by);
        let mut run = Run { id, start_by, after_new_bus, tries: 0, stage, keys, obstacle: None };
        if now < self.not_before {
            run.wait_for_new_bus(self.not_before);
        }
        self.run = Some(run);
        Some(self.handle(Event::Tick, now))
    }

    /// Whether no run is under way.
    pub const fn is_idle(&self) -> bool {
        self.run.is_none()
    }

    /// Whether a burst of at most 10 ms may start now.
    pub fn may_send(&self, now: Stamp<Boot>) -> bool {
        self.send_until().is_some_and(|until| now < until)
    }

    /// No burst starts from then on, unless a renewal comes in between; `None` if the run does not
    /// send.
    pub fn send_until(&self) -> Option<Stamp<Boot>> {
        self.run
            .as_ref()
            .filter(|run| run.stage == Stage::Sending)
            .and_then(|run| run.last_start(self.timing.valid_for))
    }

    /// The revision of the run's lease of a key: the fence that a peer compares with its own feed.
    pub fn revision(&self, key: &Key) -> Option<u64> {
        let held = self.run.as_ref()?.keys.iter().find(|held| held.key == *key);
        held?.lease.map(|lease| lease.revision)
    }

    /// Who has a key, and by which revision, as far as this agent knows: light runs over the key
    /// wait, and a peer admits this run and revision alone. A holder that did not renew for so long
    /// that another agent may overwrite it is gone.
    pub fn shown(&self, key: &Key, now: Stamp<Boot>) -> Option<(&Holder, u64)> {
        let sight = self.sights.get(key).filter(|sight| now.since(sight.since) < self.timing.taken_over_after);
        sight.and_then(|sight| Some((sight.holder.as_ref()?, sight.revision)))
    }

    /// When a tick is needed at the latest; `None` if nothing waits for time.
    pub fn due(&self) -> Option<Stamp<Boot>> {
        let run = self.run.as_ref()?;
        let asked = run.keys.iter().filter(|_| self.connected).filter_map(Held::due);
        let ends = run.last_start(self.timing.valid_for);
        match run.stage {
            Stage::Waiting { since, until } if self.connected => {
                Some(self.tries_at(run, since, until).max(self.not_before).min(run.start_by))
            }
            Stage::Waiting { .. } => Some(run.start_by),
            Stage::Taking => asked.chain(ends).chain([run.start_by]).min(),
            Stage::Sending => asked.chain(ends).min(),
        }
    }

    /// When a waiting run tries again: after its wait, or once the holder that kept it off has not
    /// renewed for so long that its key may be overwritten. A time that had come when the wait
    /// began is none: then somebody else was faster.
    fn tries_at(&self, run: &Run, since: Stamp<Boot>, until: Stamp<Boot>) -> Stamp<Boot> {
        let sight = run.obstacle.as_ref().and_then(|obstacle| self.sights.get(&obstacle.key));
        let stands = sight.map(|sight| sight.since + self.timing.taken_over_after);
        stands.filter(|stands| *stands > since).map_or(until, |stands| stands.min(until))
    }

    /// One event in, actions out, in the order in which they are to be carried out.
    pub fn handle(&mut self, event: Event, now: Stamp<Boot>) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Connected { server } => self.connected(server, now, &mut actions),
            Event::Disconnected => self.connected = false,
            Event::Read { request, revision, state } => self.read(request, revision, &state, now, &mut actions),
            Event::Accepted { request, revision } => self.accepted(request, revision),
            Event::Refused { request } => {
                if let Some((at, _)) = self.close(request) {
                    self.obstructed(at, None, now, &mut actions);
                }
            }
            Event::Republished { key, revision, state } => {
                self.republished(key, revision, &state, now, &mut actions);
            }
            Event::Tick => {}
            Event::Finished => self.release(&mut actions),
        }
        self.advance(now, &mut actions);
        actions
    }

    fn connected(&mut self, server: String, now: Stamp<Boot>, actions: &mut Vec<Action>) {
        self.connected = true;
        if self.server.as_ref() == Some(&server) {
            // What was open is overdue: its answer will not come on this connection.
            let open = self.run.iter_mut().flat_map(|run| &mut run.keys).filter_map(|held| held.open.as_mut());
            open.for_each(|open| open.sent = Stamp::from_nanos(i64::MIN));
            return;
        }
        // Revisions of another server, or of one that may have lost some, say nothing: it may give
        // them again. Nothing is written with them, not even to give a key back.
        self.server = Some(server);
        self.not_before = now + self.timing.taken_over_after;
        self.sights.clear();
        self.late.clear();
        if let Some(run) = &mut self.run {
            if run.stage == Stage::Sending {
                self.run = None;
                actions.push(Action::Stop(Stopped::BusRestarted));
            } else {
                run.forget();
                run.stage = Stage::Waiting { since: now, until: now };
                run.wait_for_new_bus(self.not_before);
            }
        }
    }

    fn read(
        &mut self,
        request: RequestId,
        revision: u64,
        state: &KeyState,
        now: Stamp<Boot>,
        actions: &mut Vec<Action>,
    ) {
        let Some((at, open)) = self.close(request) else {
            if let Some(key) = self.late.remove(&request) {
                self.note(key, revision, state, now);
            }
            return;
        };
        let ours = self.is_ours(state.holder());
        let free = *state == KeyState::Free;
        let stood = !free && self.stood(at, revision, state.holder(), now);
        let Some(run) = &mut self.run else { return };
        let held = &mut run.keys[at];
        match open.kind {
            Kind::ReadBack(unsure) if revision == unsure.expected => {
                // None was carried out so far; the next write does the same.
                self.ask(at, Kind::Write(unsure), now, actions);
            }
            Kind::ReadBack(unsure) if ours && revision > unsure.expected => {
                held.lease = Some(Lease { revision, sent: unsure.first_sent });
            }
            Kind::Read if free || ours || stood => held.free = Some(revision),
            _ => self.obstructed(at, state.holder().cloned(), now, actions),
        }
    }

    fn accepted(&mut self, request: RequestId, revision: u64) {
        if let (Some((at, open)), Some(run)) = (self.close(request), &mut self.run) {
            // It was accepted only because no earlier write with its revision was.
            run.keys[at].lease = Some(Lease { revision, sent: open.sent });
        }
    }

    fn republished(&mut self, key: Key, revision: u64, state: &KeyState, now: Stamp<Boot>, actions: &mut Vec<Action>) {
        let ours = self.is_ours(state.holder());
        let sending = self.run.as_ref().filter(|run| run.stage == Stage::Sending);
        let at = sending.and_then(|run| run.keys.iter().position(|held| held.key == key));
        let newer = |at: usize| self.run.as_ref()?.keys[at].lease.filter(|lease| revision > lease.revision);
        if let Some(at) = at.filter(|at| !ours && newer(*at).is_some()) {
            self.obstructed(at, state.holder().cloned(), now, actions);
        }
        if *state == KeyState::Free && self.sights.get(&key).is_some_and(|sight| sight.revision < revision) {
            self.freed(&key, now);
        }
        self.note(key, revision, state, now);
    }

    /// The key that a run waits for is free: it tries within a second, and not together with all
    /// others that wait.
    fn freed(&mut self, key: &Key, now: Stamp<Boot>) {
        let soon = now + AFTER_FREE.mul_f64(self.random.next_unit());
        let run = self.run.as_mut().filter(|run| run.obstacle.as_ref().is_some_and(|obstacle| obstacle.key == *key));
        if let Some(Stage::Waiting { until, .. }) = run.map(|run| &mut run.stage) {
            *until = soon.min(*until);
        }
    }

    /// Notes what stands at a key.
    fn note(&mut self, key: Key, revision: u64, state: &KeyState, now: Stamp<Boot>) {
        match self.sights.get(&key) {
            Some(sight) if sight.revision >= revision => {}
            _ if *state == KeyState::Free => {
                self.sights.remove(&key);
            }
            _ => {
                self.sights.insert(key, Sight { revision, holder: state.holder().cloned(), since: now });
            }
        }
    }

    /// Notes a revision of a key that is not free; whether it stood long enough to be overwritten.
    fn stood(&mut self, at: usize, revision: u64, holder: Option<&Holder>, now: Stamp<Boot>) -> bool {
        let Some(run) = &self.run else { return false };
        let key = &run.keys[at].key;
        match self.sights.get(key) {
            Some(sight) if sight.revision == revision => now.since(sight.since) >= self.timing.taken_over_after,
            // An answer from before what we saw already.
            Some(sight) if sight.revision > revision => false,
            _ => {
                self.sights.insert(key.clone(), Sight { revision, holder: holder.cloned(), since: now });
                false
            }
        }
    }

    /// Somebody else has a key, or a write was refused.
    fn obstructed(&mut self, at: usize, holder: Option<Holder>, now: Stamp<Boot>, actions: &mut Vec<Action>) {
        let Some(run) = &mut self.run else { return };
        let key = run.keys[at].key.clone();
        run.keys[at].lease = None;
        if run.stage == Stage::Sending {
            actions.push(Action::Stop(Stopped::Overwritten(key)));
            return self.release(actions);
        }
        let obstacle = Obstacle { key, holder };
        run.obstacle = Some(obstacle.clone());
        let until = self.back_off(now, actions);
        actions.push(Action::BackedOff { obstacle, until });
    }

    /// Gives back what was taken, and waits 1 to 4 s, twice as long with each try.
    ///
    /// Reads that are still open are heard later. Else a run with several keys of a holder that is
    /// gone would see each of them stand only after the one before was free.
    fn back_off(&mut self, now: Stamp<Boot>, actions: &mut Vec<Action>) -> Stamp<Boot> {
        let keys = self.run.iter().flat_map(|run| &run.keys);
        let reads = keys.filter_map(|held| {
            let open = held.open.filter(|open| open.kind == Kind::Read)?;
            Some((open.request, held.key.clone()))
        });
        self.late = reads.collect();
        self.give_back(actions);
        let wait = FIRST_WAIT.mul_f64(1.0 + 3.0 * self.random.next_unit());
        let Some(run) = &mut self.run else { return now };
        let until = now + wait * 2_u32.pow(run.tries.min(MOST_DOUBLINGS));
        run.tries += 1;
        run.stage = Stage::Waiting { since: now, until };
        until
    }

    fn release(&mut self, actions: &mut Vec<Action>) {
        self.give_back(actions);
        self.run = None;
    }

    /// Writes null where the last revision is surely ours. A write that is still open is left to
    /// itself: what it may leave on the bus is taken over in time.
    fn give_back(&mut self, actions: &mut Vec<Action>) {
        let Some(run) = &mut self.run else { return };
        for held in run.keys.iter().filter(|_| self.connected) {
            if let Some(lease) = held.lease {
                self.requests += 1;
                let (request, key) = (self.requests, held.key.clone());
                actions.push(Action::Write { request, key, expected: lease.revision, holder: None });
            }
        }
        run.forget();
    }

    /// What time and answers make due.
    fn advance(&mut self, now: Stamp<Boot>, actions: &mut Vec<Action>) {
        let tries_at = self.run.as_ref().and_then(|run| match run.stage {
            Stage::Waiting { since, until } => Some(self.tries_at(run, since, until)),
            Stage::Taking | Stage::Sending => None,
        });
        let Some(run) = &mut self.run else { return };
        let ended = run.last_start(self.timing.valid_for).is_some_and(|last| now >= last);
        if run.stage == Stage::Sending && ended {
            actions.push(Action::Stop(Stopped::Expired));
            return self.release(actions);
        }
        if run.stage != Stage::Sending && now >= run.start_by {
            actions.push(Action::Skipped { obstacle: run.obstacle.take() });
            return self.release(actions);
        }
        if self.connected && tries_at.is_some_and(|at| now >= at.max(self.not_before)) {
            run.stage = Stage::Taking;
        }
        match run.stage {
            Stage::Waiting { .. } => return,
            // The bus was too slow: the first lease ended before the last was there.
            Stage::Taking if ended => {
                self.back_off(now, actions);
                return;
            }
            Stage::Taking if run.keys.iter().all(|held| held.lease.is_some()) => {
                run.stage = Stage::Sending;
                actions.push(Action::Start);
            }
            Stage::Taking | Stage::Sending => {}
        }
        self.ask_what_is_needed(now, actions);
    }

    /// Reads go out together. First writes go out one by one in the order of the keys, so that of
    /// two runs with the same keys one gets all.
    fn ask_what_is_needed(&mut self, now: Stamp<Boot>, actions: &mut Vec<Action>) {
        let Some(run) = self.run.as_ref().filter(|_| self.connected) else { return };
        let all_read = run.keys.iter().all(|held| held.free.is_some());
        let next_write = run.keys.iter().position(|held| held.lease.is_none()).filter(|_| all_read);
        let needed: Vec<_> = run
            .keys
            .iter()
            .enumerate()
            .filter_map(|(at, held)| Some((at, held.needs(now, next_write == Some(at))?)))
            .collect();
        for (at, kind) in needed {
            self.ask(at, kind, now, actions);
        }
    }

    fn ask(&mut self, at: usize, kind: Kind, now: Stamp<Boot>, actions: &mut Vec<Action>) {
        let Some(run) = &mut self.run else { return };
        self.requests += 1;
        let request = self.requests;
        run.keys[at].open = Some(Open { request, sent: now, kind });
        let key = run.keys[at].key.clone();
        actions.push(match kind {
            Kind::Read | Kind::ReadBack(_) => Action::Read { request, key },
            Kind::Write(Unsure { expected, .. }) => {
                let holder = Some(Holder { agent: self.agent.clone(), run: run.id });
                Action::Write { request, key, expected, holder }
            }
        });
    }

    /// The key and the open request that an answer belongs to; `None` if it came too late.
    fn close(&mut self, request: RequestId) -> Option<(usize, Open)> {
        let keys = &mut self.run.as_mut()?.keys;
        let at = keys.iter().position(|held| held.open.is_some_and(|open| open.request == request))?;
        keys[at].open.take().map(|open| (at, open))
    }

    fn is_ours(&self, holder: Option<&Holder>) -> bool {
        let run = self.run.as_ref().map(|run| run.id);
        holder.is_some_and(|holder| holder.agent == self.agent && Some(holder.run) == run)
    }
}

impl Run {
    /// No burst starts from then on; `None` without any lease.
    fn last_start(&self, valid_for: Duration) -> Option<Stamp<Boot>> {
        let ends = self.keys.iter().filter_map(|held| held.ends(valid_for)).min();
        ends.map(|ends| Stamp::from_nanos(ends.nanos().saturating_sub(i64::try_from(GUARD.as_nanos()).unwrap_or(0))))
    }

    /// Leases are given from then on: it starts later than it wanted, if it may.
    fn wait_for_new_bus(&mut self, not_before: Stamp<Boot>) {
        if !self.after_new_bus.is_zero() {
            self.start_by = self.start_by.max(not_before + self.after_new_bus);
        }
    }

    fn forget(&mut self) {
        for held in &mut self.keys {
            *held = Held::new(held.key.clone());
        }
    }
}

const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How long a run may wait yet that hears that its key is free. Ours: shorter than most waits, and
/// longer than it takes to write all keys.
const AFTER_FREE: Duration = Duration::from_secs(1);
/// After this many, the wait stays: 16 to 64 s.
const MOST_DOUBLINGS: u32 = 4;
