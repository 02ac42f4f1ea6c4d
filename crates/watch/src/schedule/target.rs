//! The plan of one target: what is due, what it costs, what is left.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_units::{BitRate, Octets, rounded};
use serde::{Deserialize, Serialize};

use super::admission::{Backoff, doubled};
use super::cadence::{Jitter, cadence};
use super::evidence::Incident;
use super::job::{JobEnd, JobKind, Outcome, Why};
use super::ledger::{Ledger, MinuteWindow};
use super::settings::{NightTest, PULSE_OCTETS_PER_DAY, ROUTE_OCTETS_PER_DAY, TargetSettings};
use crate::time::{BootTime, Local, WallTime};

/// Octets that a target will cost in a day without incidents, and how they come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// Pulses and routes.
    pub base: Octets,
    /// Slices, and the weekly capacity.
    pub cadence: Octets,
    /// The night.
    pub night: Octets,
    /// Incidents add no more than this.
    pub evidence_at_most: Octets,
    /// All, incidents included, stay below this.
    pub limit: Octets,
    /// From slice to slice.
    pub cadence_time: Duration,
}

impl Forecast {
    /// Without incidents.
    pub fn total(&self) -> Octets {
        Octets::new(self.base.count() + self.cadence.count() + self.night.count())
    }
}

/// What the schedule knows of one target: what it spent, what is due, what jobs cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TargetPlan {
    pub(super) settings: TargetSettings,
    pub(super) capacity: BitRate,
    /// It is not just assumed.
    pub(super) measured: bool,
    pub(super) ledger: Ledger,
    pub(super) window: MinuteWindow,
    pub(super) backoff: Backoff,
    pub(super) incident: Option<Incident>,
    pub(super) capacity_due: bool,
    /// What people asked for and has not begun.
    pub(super) requested: Vec<JobKind>,
    costs: BTreeMap<JobKind, Cost>,
    next_slice: BootTime,
    next_route: BootTime,
    next_capacity: BootTime,
    /// Slices of the first minutes so far.
    first_slices: u32,
    /// Routes of the first minutes so far.
    #[serde(default)]
    first_routes: u32,
    /// Capacities in a row that have no answer.
    capacity_failures: u32,
    /// The newest capacity was measured without the server.
    single_ended: bool,
    night: Option<Night>,
}

/// What jobs of a kind took so far.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cost {
    octets: f64,
    seconds: f64,
}

/// The night before `day`, and what of it is left to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Night {
    day: i64,
    from: BootTime,
    left: Vec<JobKind>,
}

impl TargetPlan {
    pub(super) fn new(settings: TargetSettings, now: BootTime, jitter: &mut Jitter) -> Self {
        Self {
            capacity: settings.first_capacity,
            measured: false,
            ledger: Ledger::default(),
            window: MinuteWindow::default(),
            backoff: Backoff::default(),
            incident: None,
            capacity_due: true,
            requested: Vec::new(),
            costs: BTreeMap::new(),
            next_slice: now.after(FIRST_SLICE.mul_f64(1.0 + jitter.unit())),
            next_route: now,
            next_capacity: now.after(WEEK),
            first_slices: 0,
            first_routes: 0,
            capacity_failures: 0,
            single_ended: false,
            night: None,
            settings,
        }
    }

    /// What could start now, most urgent first. Budgets and links are not asked yet.
    pub(super) fn due(&mut self, now: BootTime, local: Local, jitter: &mut Jitter) -> Vec<(JobKind, Why)> {
        let mut due = Vec::new();
        if self.next_route <= now {
            due.push((JobKind::Route, Why::Base));
        }
        // Somebody waits for these.
        due.extend(self.requested.iter().map(|kind| (*kind, Why::Asked)));
        if self.incident.as_ref().is_some_and(|incident| incident.is_over(now)) {
            self.incident = None;
        }
        if let Some(incident) = &self.incident {
            due.extend(incident.due(now).into_iter().map(|kind| (kind, Why::Evidence)));
        }
        if self.capacity_due || self.next_capacity <= now {
            due.push((JobKind::Capacity, Why::Cadence));
        }
        if self.next_slice <= now {
            due.push((JobKind::Slice, Why::Cadence));
        }
        self.begin_night(now, local, jitter);
        if let Some(night) = &self.night
            && night.from <= now
            && self.settings.night.is_some_and(|hours| hours.covers(local))
        {
            due.extend(night.left.first().map(|kind| (*kind, Why::Night)));
        }
        let quiet = self.is_quiet(local);
        due.retain(|(kind, _)| !(quiet && kind.loads()) && (!kind.needs_server() || self.backoff.allows(now)));
        due
    }

    /// The octets a job of this kind may take: half more than usual, but never more than a minute
    /// has. `None` if the day has no more, or the last minute.
    pub(super) fn affordable(&self, kind: JobKind, why: Why, now: BootTime, day: i64) -> Result<Octets, Refused> {
        let octets = self.bookable(kind);
        if octets > self.left(day, why) || octets.count() == 0 {
            return Err(Refused::ByDay);
        }
        if kind != JobKind::Test && !self.window.fits(now, octets, self.minute()) {
            return Err(Refused::ByMinute);
        }
        Ok(octets)
    }

    /// Half more than usual, but never more than a minute has.
    pub(super) fn bookable(&self, kind: JobKind) -> Octets {
        let most = Octets::new(rounded(self.cost(kind).octets * HEADROOM));
        if kind == JobKind::Test { most } else { most.min(self.minute()) }
    }

    /// What jobs may take of a minute: pulses have theirs.
    fn minute(&self) -> Octets {
        let all = self.settings.minute_octets(self.capacity).count();
        Octets::new(all.saturating_sub(PULSES_PER_MINUTE))
    }

    /// What is left of a day.
    pub(super) fn left(&self, day: i64, why: Why) -> Octets {
        let spent = |why| self.ledger.spent(day, why).count();
        let spent = match why {
            Why::Evidence | Why::Asked => spent(Why::Evidence) + spent(Why::Asked),
            Why::Base | Why::Cadence | Why::Night => spent(why),
        };
        Octets::new(self.settings.share_of_day(self.capacity, why).saturating_sub(spent))
    }

    pub(super) fn is_quiet(&self, local: Local) -> bool {
        self.settings.quiet.iter().any(|hours| hours.covers(local))
    }

    /// Something is wanted as soon as it may begin.
    pub(super) fn is_urgent(&self) -> bool {
        self.incident.is_some() || !self.requested.is_empty()
    }

    /// It starts, or is skipped for lack of budget: the next one is planned.
    pub(super) fn planned(&mut self, kind: JobKind, why: Why, now: BootTime, next: Duration) {
        match (why, kind) {
            (Why::Asked, _) => self.requested.retain(|one| *one != kind),
            (Why::Base, _) => {
                let is_first = self.first_routes < FIRST_ROUTES;
                self.first_routes = self.first_routes.saturating_add(1).min(FIRST_ROUTES);
                self.next_route = now.after(if is_first { FIRST_ROUTE_EVERY } else { ROUTE_EVERY });
            }
            (Why::Evidence, _) => {
                if let Some(incident) = &mut self.incident {
                    incident.started(kind, now);
                }
            }
            (Why::Cadence, JobKind::Capacity) => {
                self.capacity_due = false;
                self.next_capacity = now.after(WEEK);
            }
            (Why::Cadence, _) => self.next_slice = now.after(next),
            (Why::Night, _) => {
                if let Some(night) = &mut self.night {
                    night.left.retain(|one| *one != kind);
                }
            }
        }
    }

    /// A job ended: its cost is learned, and what it says of the server moves the next one.
    pub(super) fn ended(&mut self, (kind, why): (JobKind, Why), began: BootTime, now: BootTime, end: JobEnd) {
        match end.outcome {
            Outcome::Done => {
                if let Some(octets) = end.octets {
                    self.took(kind, octets, now.since(began));
                }
            }
            Outcome::Inconclusive | Outcome::Void if kind == JobKind::Slice && self.first_slices < VERY_FIRST => {
                self.next_slice = self.next_slice.min(now.after(FIRST_SLICE));
            }
            Outcome::Inconclusive | Outcome::Void | Outcome::LinkBusy | Outcome::ServerBusy => {}
            Outcome::Refused => self.backoff.refused(now),
            Outcome::ServerGone => self.backoff.failed(now),
        }
        if kind == JobKind::Slice {
            self.first_slices = self.first_slices.saturating_add(1).min(FIRST_SLICES);
        }
        if kind.needs_server() && matches!(end.outcome, Outcome::Done | Outcome::Inconclusive) {
            self.backoff.answered();
            // With the server, the capacity is known better.
            self.capacity_due |= std::mem::take(&mut self.single_ended);
        }
        if let (Outcome::Refused | Outcome::ServerGone, Some(until)) = (end.outcome, self.backoff.until()) {
            // Not a cadence later, which may be half an hour.
            self.next_slice = until;
        }
        if kind == JobKind::Capacity {
            self.capacity_ended(why, now, end);
        }
    }

    /// A capacity without an answer is measured again long before the week is over.
    fn capacity_ended(&mut self, why: Why, now: BootTime, end: JobEnd) {
        // Without the server it was measured from this end alone, if the host answered to anything.
        let sent = end.octets.is_some_and(|octets| octets.count() > 0);
        if end.outcome == Outcome::Done || (end.outcome == Outcome::ServerGone && sent) {
            self.capacity_failures = 0;
            self.single_ended = self.backoff.is_gone() || end.outcome == Outcome::ServerGone;
        } else if why == Why::Cadence {
            self.next_capacity = now.after(doubled(self.capacity_failures, LONGEST_CAPACITY_RETRY));
            self.capacity_failures += 1;
        }
    }

    /// Learns what a job took.
    fn took(&mut self, kind: JobKind, octets: Octets, time: Duration) {
        let mut cost = self.cost(kind);
        cost.octets += (octets.count() as f64 - cost.octets) * LEARNED;
        cost.seconds += (time.as_secs_f64() - cost.seconds) * LEARNED;
        self.costs.insert(kind, cost);
    }

    /// The capacity is known anew: what grows with it is forecast anew.
    pub(super) fn capacity_is(&mut self, capacity: BitRate) {
        let ratio = capacity.as_f64() / self.capacity.as_f64().max(1.0);
        if !(0.8..1.25).contains(&ratio) {
            self.costs.clear();
        }
        self.capacity = capacity;
        self.measured = true;
    }

    /// The path is another: it may be much narrower than the old one.
    pub(super) fn moved(&mut self) {
        self.capacity_is(self.capacity.min(self.settings.first_capacity));
        (self.measured, self.capacity_due) = (false, true);
        self.backoff.ask_now();
    }

    /// Nothing is known of the hops of this path. A queue is placed by what their round trips were
    /// before it, so that some are needed soon.
    pub(super) fn routes_anew(&mut self, now: BootTime) {
        (self.first_routes, self.next_route) = (0, self.next_route.min(now.after(FIRST_ROUTE_EVERY)));
    }

    /// The server is asked soon, whatever it said last.
    pub(super) fn ask_server(&mut self, now: BootTime) {
        if !self.backoff.allows(now) {
            self.backoff.ask_now();
            self.next_slice = now;
        }
    }

    /// Another process than the one that kept this.
    pub(super) fn restarted(&mut self, now: BootTime, jitter: &mut Jitter) {
        self.ledger.abandon_open();
        self.window.restart(now);
        self.backoff.answered();
        self.resume(now, jitter);
        self.routes_anew(now);
    }

    /// Time of a slice.
    pub(super) fn slice_time(&self) -> Duration {
        Duration::from_secs_f64(self.cost(JobKind::Slice).seconds)
    }

    /// From slice to slice, without jitter.
    pub(super) fn cadence(&self, link_time: Duration) -> Duration {
        let slice = Octets::new(rounded(self.cost(JobKind::Slice).octets));
        // The weekly capacity comes out of the same share.
        let day = self.settings.share_of_day(self.capacity, Why::Cadence);
        let day = Octets::new(day / 100 * CADENCE_PERCENT);
        let time = cadence(slice, self.capacity, self.settings.share, day, link_time);
        self.settings.turn.map_or(time, |turn| turn.rounds(time))
    }

    /// To the next slice, with jitter. The first ones come soon: people wait for values, and no
    /// change can be found before some are there. The budget is asked as for others.
    pub(super) fn next_slice_in(&self, link_time: Duration, now: WallTime, jitter: &mut Jitter) -> Duration {
        let usual = self.cadence(link_time);
        let is_first = usual <= FIRST_ARE_CHEAP && self.first_slices < FIRST_SLICES;
        let time = if is_first { usual.min(FIRST_CADENCE.max(2 * link_time)) } else { usual };
        match self.settings.turn {
            Some(turn) => turn.after(time, now, jitter.unit()),
            None => jitter.around(time),
        }
    }

    /// Until what loads the path may begin: hosts that take turns leave each other's alone.
    pub(super) fn turn_in(&self, now: WallTime) -> Duration {
        self.settings.turn.map_or(Duration::ZERO, |turn| turn.wait(now))
    }

    pub(super) fn forecast(&self, link_time: Duration) -> Forecast {
        let cadence_time = self.cadence(link_time);
        let quiet: u32 = self.settings.quiet.iter().map(super::hours::WeeklyHours::seconds_per_week).sum();
        let active = 1.0 - f64::from(quiet.min(WEEK_S)) / f64::from(WEEK_S);
        let slices = 86_400.0 / cadence_time.as_secs_f64() * self.cost(JobKind::Slice).octets * active;
        let night: f64 = self.night_work().iter().map(|kind| self.cost(*kind).octets).sum();
        Forecast {
            base: Octets::new(PULSE_OCTETS_PER_DAY + ROUTE_OCTETS_PER_DAY),
            cadence: Octets::new(rounded(slices + self.cost(JobKind::Capacity).octets / 7.0)),
            night: Octets::new(rounded(night)),
            evidence_at_most: Octets::new(self.settings.share_of_day(self.capacity, Why::Evidence)),
            limit: self.settings.day_octets(self.capacity),
            cadence_time,
        }
    }

    /// Nothing that was due in the past is caught up: sleep, or a new boot.
    pub(super) fn resume(&mut self, now: BootTime, jitter: &mut Jitter) {
        self.next_slice = now.after(FIRST_SLICE.mul_f64(1.0 + jitter.unit()));
        self.next_route = now;
        self.next_capacity = now.after(WEEK.mul_f64(jitter.unit()));
        self.incident = None;
        if let Some(night) = &mut self.night {
            night.from = now;
        }
    }

    /// The wall clock stepped. A night that has begun is the same night by the new clock, also if
    /// the old one was days ahead.
    pub(super) fn clock_stepped(&mut self, from: Local, to: Local) {
        if from.day != to.day {
            self.ledger.stepped(from.day, to.day);
        }
        if let Some(night) = &mut self.night {
            night.day = night.day.min(night_of(to));
        }
    }

    /// When something may be due next, budgets aside.
    pub(super) fn next(&self) -> BootTime {
        let night = self.night.iter().filter(|night| !night.left.is_empty()).map(|night| night.from);
        let first = self.next_route.min(self.next_slice).min(self.next_capacity);
        night.fold(first, BootTime::min)
    }

    fn cost(&self, kind: JobKind) -> Cost {
        let first = || Cost {
            octets: kind.first_forecast(self.capacity).count() as f64,
            seconds: if kind == JobKind::Test { 60.0 } else { 3.0 },
        };
        self.costs.get(&kind).copied().unwrap_or_else(first)
    }

    fn begin_night(&mut self, now: BootTime, local: Local, jitter: &mut Jitter) {
        let Some(hours) = self.settings.night else { return };
        let day = night_of(local);
        if hours.covers(local) && self.night.as_ref().is_none_or(|night| day > night.day) {
            let from = now.after(Duration::from_secs_f64(NIGHT_SPREAD_S * jitter.unit()));
            self.night = Some(Night { day, from, left: self.night_work() });
        }
    }

    fn night_work(&self) -> Vec<JobKind> {
        let share = self.settings.share_of_day(self.capacity, Why::Night) as f64;
        let test = self.cost(JobKind::Test).octets * HEADROOM;
        match (self.settings.night, self.settings.test) {
            (None, _) | (_, NightTest::Off) => Vec::new(),
            (Some(_), NightTest::Full) if test <= share => vec![JobKind::Test],
            (Some(_), _) => vec![JobKind::Capacity, JobKind::Hops],
        }
    }
}

/// Nights are counted by their noon-to-noon day, so that one that passes midnight is one.
fn night_of(local: Local) -> i64 {
    (local.hour() + 12).div_euclid(24)
}

/// Why a job cannot be paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The day's share is spent.
    ByDay,
    /// Too much in the last minute.
    ByMinute,
}

/// A job may take half more than its kind usually does.
const HEADROOM: f64 = 1.5;

/// Of the cadence's share, the rest is for the weekly capacity, changes, and the headroom of the
/// day's last job.
const CADENCE_PERCENT: u64 = 95;

/// Weight of the newest job in what its kind costs.
const LEARNED: f64 = 0.1;

const PULSES_PER_MINUTE: u64 = PULSE_OCTETS_PER_DAY / 1440;
const ROUTE_EVERY: Duration = Duration::from_secs(300);
const FIRST_SLICE: Duration = Duration::from_secs(10);
/// If none of these has a value, the path may never have one.
const VERY_FIRST: u32 = 4;
/// A large change is known as such from eight values on, by four more.
const FIRST_SLICES: u32 = 12;
/// Three minutes of traces, each a block of its own. Those of before a change decide whether a
/// queue is placed: after six, noise of 30 us hides the place of a queue of 70 us, after twelve
/// less often.
const FIRST_ROUTES: u32 = 18;
/// A block of traces is as long: more of them would be one value.
const FIRST_ROUTE_EVERY: Duration = Duration::from_secs(10);
/// Three in a minute leave room for the half more than usual that a slice may take.
const FIRST_CADENCE: Duration = Duration::from_secs(20);
/// A day of slices so far apart has 432: twelve more at its start are within what the cadence
/// leaves of its share. Of a day with fewer, they would be missing at its end. At 1 Gbit/s slices
/// are about three minutes apart.
const FIRST_ARE_CHEAP: Duration = Duration::from_secs(200);
const LONGEST_CAPACITY_RETRY: Duration = Duration::from_secs(12 * 3600);
const WEEK_S: u32 = 7 * 86_400;
const WEEK: Duration = Duration::from_secs(7 * 86_400);
const NIGHT_SPREAD_S: f64 = 3600.0;
