//! What each agent is to do: pure, so that a plan can be looked at before it is made.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use narrows_fleet::clock::Hub as HubClock;
use narrows_fleet::config::{Command, Fleet};
use narrows_fleet::keys::{Key, Name, Path, Resource, link_slots};
use narrows_fleet::message::{Directed, PlannedRun};
use narrows_fleet::timetable::{Asker, Book, Budget, Request, ResourceId, compile, windows};
use narrows_record::Reservation;
use narrows_units::{BitRate, Octets, Stamp};
use uuid::Uuid;

use crate::cost::Cost;
use crate::network::{Bounds, Network};

/// How long a timetable is.
pub(crate) const LENGTH: Duration = Duration::from_secs(86_400);

/// Of each budget, the share of orders by hand.
const BY_HAND: f64 = 0.2;

/// Of a link of which only reservations count: it has one slot.
const ANY_PEAK: BitRate = BitRate::from_bps(u64::MAX);

/// What a timetable is made from.
pub(crate) struct Input<'a> {
    pub(crate) now_ms: i64,
    pub(crate) begin_ms: i64,
    pub(crate) seed: u64,
    pub(crate) fleet: &'a Fleet,
    pub(crate) network: &'a Network,
    pub(crate) bounds: &'a Bounds,
    /// Upper ends of newest capacities.
    pub(crate) capacity: &'a BTreeMap<(Name, Name), BitRate>,
    /// What agents have by their newest plans.
    pub(crate) placed: &'a [(Name, PlannedRun)],
    /// What is reserved, and what was as long ago as the budgets remember.
    pub(crate) reservations: &'a [Reservation],
    /// When a kind last succeeded over a pair.
    pub(crate) succeeded: &'a BTreeMap<(String, Name, Name), i64>,
    /// Kinds and pairs whose last run of the day was skipped.
    pub(crate) skipped: &'a BTreeSet<(String, Name, Name)>,
    /// Each path of the fleet is traced every day: one without a route will soon have one.
    pub(crate) traces_all: bool,
}

/// A timetable.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timetable {
    pub(crate) runs: Vec<(Name, PlannedRun)>,
    /// What is new in it.
    pub(crate) added: Vec<Reservation>,
    pub(crate) not_placed: Vec<NotPlaced>,
    pub(crate) keys: Vec<KeyUse>,
}

/// A run without a span.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct NotPlaced {
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) agent: Name,
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) target: Name,
    pub(crate) command: String,
    pub(crate) reason: String,
}

/// What loading runs take of a key in the timetable.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct KeyUse {
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) key: Key,
    pub(crate) busy_ms: u64,
    pub(crate) budget_ms: u64,
    pub(crate) octets: u64,
    pub(crate) budget_octets: Option<u64>,
}

/// A loading run that somebody wants.
pub(crate) struct Want<'a> {
    pub(crate) source: &'a Name,
    pub(crate) target: &'a Name,
    pub(crate) command: &'a Command,
    every: Duration,
    pub(crate) cost: Cost,
    pub(crate) resources: Vec<Resource>,
}

impl Input<'_> {
    /// What a run over this pair takes, and what it excludes.
    pub(crate) fn want<'a>(
        &self,
        (source, target): (&'a Name, &'a Name),
        command: &'a Command,
        every: Duration,
    ) -> Want<'a> {
        let declared = |host: &Name| {
            let site = self.fleet.site_of(host)?;
            self.fleet.sites.get(site)?.access.map(|access| (site, access))
        };
        let (from, to) = (declared(source), declared(target));
        let measured = self.capacity.get(&(source.clone(), target.clone())).copied();
        let limits = [measured, from.map(|(_, access)| access.up), to.map(|(_, access)| access.down)];
        let path = Path {
            source,
            target,
            source_site: from.map(|(site, _)| site),
            target_site: to.map(|(site, _)| site),
            forward: &self.network.shared_links(source, target),
            reverse: &self.network.shared_links(target, source),
            both_directions: true,
        };
        let cost = Cost::of(command.words(), limits.into_iter().flatten().min());
        let mut resources = path.resources();
        let is_known = self.network.knows(source, target) && self.network.knows(target, source);
        if self.traces_all && !is_known {
            resources.push(Resource::UNTRACED);
            resources.sort();
        }
        Want { source, target, command, every, cost, resources }
    }

    fn wants(&self) -> Vec<Want<'_>> {
        let loading = self.fleet.tests.iter().filter(|test| test.command.loads());
        loading
            .flat_map(|test| {
                test.pairs.iter().map(move |(source, target)| self.want((source, target), &test.command, test.every))
            })
            .collect()
    }

    fn budget(&self, resource: &Resource) -> Budget {
        let per_day = match resource {
            Resource::Access(site, _) => {
                self.fleet.sites.get(site).and_then(|site| site.access).and_then(|access| access.per_day)
            }
            Resource::Host(_) | Resource::Link(_) => None,
        };
        Budget { per_day, ..Budget::default() }
    }

    /// A book with all that is reserved, for these wants.
    pub(crate) fn book(&self, wants: &[Want<'_>]) -> Room {
        let mut peaks: BTreeMap<Resource, BitRate> = BTreeMap::new();
        for want in wants {
            for resource in &want.resources {
                let peak = peaks.entry(resource.clone()).or_insert(BitRate::ZERO);
                *peak = (*peak).max(want.cost.peak);
            }
        }
        // Links that no want crosses matter to those whose links nobody knows, and the reverse.
        for held in self.reservations.iter().filter(|held| matches!(held.key, Key::Link(..))) {
            peaks.entry(resource_of(&held.key)).or_insert(ANY_PEAK);
        }
        let mut book = Book::new(stamp(self.begin_ms), LENGTH, BY_HAND);
        let mut ids = BTreeMap::new();
        for (resource, peak) in peaks {
            let slots = match &resource {
                Resource::Link(link) => link_slots(self.bounds.get(link).copied(), peak),
                Resource::Host(_) | Resource::Access(..) => 1,
            };
            let budget = self.budget(&resource);
            ids.insert(resource.clone(), (book.add(resource.clone(), slots, budget), slots, budget));
        }
        for held in self.reservations {
            let slot = if let Key::Link(_, slot) = held.key { slot } else { 0 };
            if let Some((id, slots, _)) = ids.get(&resource_of(&held.key)) {
                let slot = Some(slot).filter(|slot| slot < slots);
                let span = (stamp(held.begin_ms), millis(held.end_ms - held.begin_ms));
                let asker = if held.by_hand { Asker::Hand } else { Asker::Plan };
                book.hold(*id, slot, span, Octets::new(held.octets), asker);
            }
        }
        Room { book, ids }
    }

    /// The timetable: what stays where it was, and what is new.
    pub(crate) fn timetable(&self) -> Timetable {
        let wants = self.wants();
        let mut room = self.book(&wants);
        let kept = self.kept(&wants);
        let mut table = Timetable {
            runs: kept.iter().map(|(_, agent, run)| ((*agent).clone(), (*run).clone())).collect(),
            ..Timetable::default()
        };
        let (mut requests, mut of) = (Vec::new(), Vec::new());
        let mut has: BTreeMap<usize, Vec<Stamp<HubClock>>> = BTreeMap::new();
        for (number, _, run) in &kept {
            has.entry(*number).or_default().push(stamp(run.at_ms));
        }
        let from = stamp(self.begin_ms.max(self.now_ms));
        let rest = LENGTH.saturating_sub(from.since(stamp(self.begin_ms)));
        for (number, want) in wants.iter().enumerate() {
            let kind = want.command.words()[0].clone();
            let work = (kind, want.source.clone(), want.target.clone());
            let succeeded = self.succeeded.get(&work).copied().map(stamp);
            let skipped = self.skipped.contains(&work);
            let has = has.get(&number).map_or(&[][..], Vec::as_slice);
            for (earliest, latest) in windows(want.every, succeeded, from, rest) {
                if !has.iter().any(|at| (earliest..latest).contains(at)) {
                    let request = room.request(want, requests.len() as u64, (earliest, latest), succeeded);
                    requests.push(Request { skipped, ..request });
                    of.push(number);
                }
            }
        }
        let made = compile(&mut room.book, &requests, self.seed);
        for placed in &made.placed {
            let (want, request) = (&wants[of[index(placed.run)]], &requests[index(placed.run)]);
            let run = room.run(want, request, placed.begin, &placed.slots);
            table.added.extend(reservations(want.source, &run));
            table.runs.push((want.source.clone(), run));
        }
        // A run that is due four times a day is short of the same thing four times.
        let mut said = BTreeSet::new();
        for (run, refusal) in &made.unplaced {
            let want = &wants[of[index(*run)]];
            if said.insert(of[index(*run)]) {
                table.not_placed.push(NotPlaced {
                    agent: want.source.clone(),
                    target: want.target.clone(),
                    command: want.command.words().join(" "),
                    reason: room.book.explain(*refusal),
                });
            }
        }
        table.runs.sort_by_key(|(_, run)| (run.at_ms, run.id));
        table.keys = room.uses(&table.runs);
        table
    }

    /// Runs of the newest plans that are still wanted, whose keys are still reserved: by the number
    /// of the want.
    fn kept<'a>(&'a self, wants: &[Want<'_>]) -> Vec<(usize, &'a Name, &'a PlannedRun)> {
        let mut reserved: BTreeMap<Uuid, BTreeSet<&Key>> = BTreeMap::new();
        for span in self.reservations {
            reserved.entry(span.run).or_default().insert(&span.key);
        }
        // Of a pair there are few wants, of a fleet many.
        let mut of_pair: BTreeMap<(&Name, &Name), Vec<usize>> = BTreeMap::new();
        for (number, want) in wants.iter().enumerate() {
            of_pair.entry((want.source, want.target)).or_default().push(number);
        }
        let end = self.begin_ms + i64::try_from(LENGTH.as_millis()).unwrap_or(i64::MAX);
        let mut kept = Vec::new();
        for (agent, run) in self.placed.iter().filter(|(_, run)| (self.now_ms..end).contains(&run.at_ms)) {
            let resources: BTreeSet<Resource> = run.keys.iter().map(resource_of).collect();
            let same = |number: &&usize| {
                let want = &wants[**number];
                want.command.words() == run.command && resources.iter().eq(&want.resources)
            };
            let holds = reserved.get(&run.id).is_some_and(|keys| run.keys.iter().all(|key| keys.contains(key)));
            let of_this = of_pair.get(&(agent, &run.target)).map_or(&[][..], Vec::as_slice);
            if let Some(number) = of_this.iter().find(same).filter(|_| holds) {
                kept.push((*number, agent, run));
            }
        }
        kept
    }

    /// Light tests of the configuration, by agent.
    pub(crate) fn directed(&self) -> BTreeMap<Name, Vec<Directed>> {
        let mut directed: BTreeMap<Name, Vec<Directed>> = BTreeMap::new();
        for test in self.fleet.tests.iter().filter(|test| !test.command.loads()) {
            let every_ms = u64::try_from(test.every.as_millis()).ok();
            for (source, target) in &test.pairs {
                let command = test.command.words().to_vec();
                directed.entry(source.clone()).or_default().push(Directed {
                    target: target.clone(),
                    command,
                    every_ms,
                });
            }
        }
        directed
    }
}

/// A book with the resources that it knows.
pub(crate) struct Room {
    pub(crate) book: Book,
    ids: BTreeMap<Resource, (ResourceId, u32, Budget)>,
}

impl Room {
    pub(crate) fn request(
        &self,
        want: &Want<'_>,
        run: u64,
        (earliest, latest): (Stamp<HubClock>, Stamp<HubClock>),
        succeeded: Option<Stamp<HubClock>>,
    ) -> Request {
        Request {
            run,
            resources: want.resources.iter().map(|resource| self.ids[resource].0).collect(),
            length: want.cost.length,
            octets: want.cost.octets,
            peak: want.cost.peak,
            earliest,
            latest,
            succeeded,
            skipped: false,
        }
    }

    /// The run in its span. Its number follows from what it is, so that a plan that is made again
    /// has the same.
    pub(crate) fn run(&self, want: &Want<'_>, request: &Request, begin: Stamp<HubClock>, slots: &[u32]) -> PlannedRun {
        let keys = request.resources.iter().zip(slots).filter_map(|(id, slot)| self.book.key(*id, *slot));
        let (at_ms, command) = (ms(begin), want.command.words().to_vec());
        let text = format!("{} {} {} {at_ms}", want.source, want.target, command.join(" "));
        PlannedRun {
            id: Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()),
            at_ms,
            length_ms: u64::try_from(want.cost.length.as_millis()).unwrap_or(u64::MAX),
            target: want.target.clone(),
            command,
            keys: keys.collect(),
            octets: want.cost.octets.count(),
        }
    }

    fn uses(&self, runs: &[(Name, PlannedRun)]) -> Vec<KeyUse> {
        let mut uses: BTreeMap<Key, KeyUse> = BTreeMap::new();
        for (_, run) in runs {
            for key in &run.keys {
                let budget = self.ids.get(&resource_of(key)).map(|(_, _, budget)| *budget).unwrap_or_default();
                let one = uses.entry(key.clone()).or_insert_with(|| KeyUse {
                    key: key.clone(),
                    busy_ms: 0,
                    budget_ms: narrows_units::rounded(budget.share * LENGTH.as_secs_f64() * 1e3),
                    octets: 0,
                    budget_octets: budget.per_day.map(Octets::count),
                });
                one.busy_ms += run.length_ms;
                one.octets += run.octets;
            }
        }
        uses.into_values().collect()
    }
}

/// What a run reserves.
pub(crate) fn reservations(agent: &Name, run: &PlannedRun) -> Vec<Reservation> {
    let end_ms = run.at_ms + i64::try_from(run.length_ms).unwrap_or(i64::MAX);
    let span = |key: &Key| Reservation {
        key: key.clone(),
        begin_ms: run.at_ms,
        end_ms,
        run: run.id,
        agent: agent.clone(),
        serial: 0,
        octets: run.octets,
        by_hand: false,
    };
    run.keys.iter().map(span).collect()
}

pub(crate) fn resource_of(key: &Key) -> Resource {
    match key {
        Key::Access(site, direction) => Resource::Access(site.clone(), *direction),
        Key::Host(host) => Resource::Host(host.clone()),
        Key::Link(link, _) => Resource::Link(*link),
    }
}

fn index(run: u64) -> usize {
    narrows_units::to_usize(run)
}

pub(crate) fn stamp(unix_ms: i64) -> Stamp<HubClock> {
    Stamp::from_nanos(unix_ms.saturating_mul(1_000_000))
}

pub(crate) fn ms(stamp: Stamp<HubClock>) -> i64 {
    stamp.nanos().div_euclid(1_000_000)
}

fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
