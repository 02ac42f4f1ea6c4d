//! What is reserved of each key, and what its budget leaves.

use std::time::Duration;

use narrows_units::{Octets, Stamp, nanos, rounded, to_u32};

use super::request::{Budget, Limit, Placed, Refusal, Request, ResourceId};
use crate::clock::Hub;
use crate::keys::{Key, Resource};

/// The reservations of one timetable. Budgets count over the whole of it: by chance, a part of it
/// may have more than its share.
#[derive(Debug, Clone)]
pub struct Book {
    begin: Stamp<Hub>,
    length: u32,
    by_hand: f64,
    entries: Vec<Entry>,
    /// When some link that was traced is loaded, and when a path that was not.
    traced: Slot,
    untraced: Slot,
}

#[derive(Debug, Clone)]
struct Entry {
    resource: Resource,
    budget: Budget,
    slots: Vec<Slot>,
}

/// One key: spans in milliseconds since the begin, sorted, without overlap.
#[derive(Debug, Clone, Default)]
struct Slot {
    busy: Vec<(u32, u32)>,
    spent: Spent,
    spent_by_hand: Spent,
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    millis: u64,
    octets: u64,
}

/// Whose share of a budget a span takes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The compiler's.
    Plan,
    /// That of orders.
    Hand,
}

impl Book {
    /// An empty book from `begin` on, at most 49 days long. Orders by hand may spend the share
    /// `by_hand` of each budget, and the plan the rest.
    pub fn new(begin: Stamp<Hub>, length: Duration, by_hand: f64) -> Self {
        Self {
            begin,
            length: millis(length),
            by_hand: by_hand.clamp(0.0, 1.0),
            entries: Vec::new(),
            traced: Slot::default(),
            untraced: Slot::default(),
        }
    }

    /// Adds a resource with so many slots, at least one.
    pub fn add(&mut self, resource: Resource, slots: u32, budget: Budget) -> ResourceId {
        let id = ResourceId(to_u32(self.entries.len()));
        self.entries.push(Entry { resource, budget, slots: vec![Slot::default(); slots.max(1) as usize] });
        id
    }

    /// A span that a run has or had: by an order, or by an older plan that its agent may still go
    /// by. The asker's share of the budget pays for it. A span before the begin of the book is
    /// only paid for. `slot` is `None` if the older plan counted other slots of the resource: the
    /// run may then meet any of these.
    pub fn hold(
        &mut self,
        id: ResourceId,
        slot: Option<u32>,
        (begin, length): (Stamp<Hub>, Duration),
        octets: Octets,
        asker: Asker,
    ) {
        let starts_before = millis(self.begin.since(begin));
        let from = millis(begin.since(self.begin));
        let until = from.saturating_add(millis(length).saturating_sub(starts_before)).min(self.length);
        let Some(entry) = self.entries.get_mut(id.0 as usize).filter(|_| from < self.length) else { return };
        for (number, one) in (0..).zip(&mut entry.slots) {
            if slot.is_none_or(|slot| slot == number) {
                one.spend(millis(length), octets, asker);
                if from < until {
                    one.book(from, until);
                }
            }
        }
        if from < until {
            self.keep_apart(id, from, until);
        }
    }

    /// Gives a run that somebody asked for the earliest span.
    pub fn order(&mut self, request: &Request) -> Result<Placed, Refusal> {
        let (first, last) = self.starts(request)?;
        let found = self.gap(request, first, last, Asker::Hand)?;
        Ok(self.take(request, found, Asker::Hand))
    }

    /// The key that a run gets of its resource.
    pub fn key(&self, id: ResourceId, slot: u32) -> Option<Key> {
        self.entries.get(id.0 as usize).map(|entry| entry.resource.key(slot))
    }

    /// A refusal in words.
    pub fn explain(&self, refusal: Refusal) -> String {
        let name = refusal.resource.and_then(|id| self.entries.get(id.0 as usize));
        let name = name.map_or_else(|| "the timetable".to_owned(), |entry| entry.resource.to_string());
        match refusal.limit {
            Limit::Peak => format!("its rate is above what the budget of {name} allows"),
            Limit::Time => format!("the budget of {name} has no time left"),
            Limit::Octets => format!("the budget of {name} has no octets left"),
            Limit::Gap => format!("{name} has no gap in common with what else the run needs"),
            Limit::Window => format!("{name} has no room from its earliest to its latest start"),
        }
    }

    /// The first and last start of a run, in milliseconds since the begin.
    pub(super) fn starts(&self, request: &Request) -> Result<(u32, u32), Refusal> {
        let first = millis(request.earliest.since(self.begin));
        let last = self.length.checked_sub(millis(request.length));
        let asked = (request.latest >= self.begin).then(|| millis(request.latest.since(self.begin)));
        let last = last.zip(asked).map(|(fits, asked)| fits.min(asked)).filter(|last| first <= *last);
        last.map(|last| (first, last)).ok_or(Refusal { resource: None, limit: Limit::Window })
    }

    /// The first start from `first` to `last` at which every resource has a slot: the start, and
    /// the slots.
    pub(super) fn gap(&self, request: &Request, first: u32, last: u32, asker: Asker) -> Result<Gap, Refusal> {
        let length = millis(request.length);
        let mut slots = vec![0; request.resources.len()];
        let mut start = first;
        loop {
            let before = start;
            for (id, slot) in request.resources.iter().zip(&mut slots) {
                let entry = &self.entries[id.0 as usize];
                let refused = |limit| Refusal { resource: Some(*id), limit };
                let fits = |slot: &Slot| self.fits(&entry.budget, slot, request, asker);
                let (free, number) = entry.next_free(start, length, fits).map_err(refused)?;
                if free > last {
                    return Err(refused(Limit::Gap));
                }
                (start, *slot) = (free, number);
                start = self.apart(&entry.resource).map_or(start, |apart| apart.next_free(start, late(length)));
                if start > last {
                    return Err(refused(Limit::Gap));
                }
            }
            if start == before {
                return Ok(Gap { start, slots });
            }
        }
    }

    /// Reserves what [`Self::gap`] returned.
    pub(super) fn take(&mut self, request: &Request, gap: Gap, asker: Asker) -> Placed {
        let until = gap.start + millis(request.length);
        for (id, slot) in request.resources.iter().zip(&gap.slots) {
            let slot = &mut self.entries[id.0 as usize].slots[*slot as usize];
            slot.book(gap.start, until);
            slot.spend(until - gap.start, request.octets, asker);
        }
        for id in &request.resources {
            self.keep_apart(*id, gap.start, until);
        }
        let begin = self.begin + Duration::from_millis(u64::from(gap.start));
        Placed { run: request.run, begin, slots: gap.slots.into() }
    }

    /// What a resource has to be kept apart from although it shares no key with it.
    fn apart(&self, resource: &Resource) -> Option<&Slot> {
        if *resource == Resource::UNTRACED {
            return Some(&self.traced);
        }
        resource.is_traced_link().then_some(&self.untraced)
    }

    /// Notes a span of a resource for what has to be kept apart from it.
    fn keep_apart(&mut self, id: ResourceId, from: u32, until: u32) {
        let resource = &self.entries[id.0 as usize].resource;
        let slot = if *resource == Resource::UNTRACED {
            &mut self.untraced
        } else if resource.is_traced_link() {
            &mut self.traced
        } else {
            return;
        };
        slot.book(from, from.saturating_add(late(until - from)));
    }

    fn fits(&self, budget: &Budget, slot: &Slot, request: &Request, asker: Asker) -> Result<(), Limit> {
        if budget.peak.is_some_and(|peak| request.peak > peak) {
            return Err(Limit::Peak);
        }
        let (spent, part) = match asker {
            Asker::Plan => (slot.spent, 1.0 - self.by_hand),
            Asker::Hand => (slot.spent_by_hand, self.by_hand),
        };
        let days = f64::from(self.length) / DAY_MS;
        if spent.millis + u64::from(millis(request.length)) > rounded(budget.share * part * f64::from(self.length)) {
            return Err(Limit::Time);
        }
        let octets = budget.per_day.map(|octets| rounded(octets.count() as f64 * part * days));
        if octets.is_some_and(|octets| spent.octets.saturating_add(request.octets.count()) > octets) {
            return Err(Limit::Octets);
        }
        Ok(())
    }
}

/// A start, and a slot of each resource that is free from there on.
#[derive(Debug)]
pub(super) struct Gap {
    start: u32,
    slots: Vec<u32>,
}

impl Entry {
    /// The earliest span from `from` on, of all slots whose budget allows it: start and slot.
    fn next_free(
        &self,
        from: u32,
        length: u32,
        fits: impl Fn(&Slot) -> Result<(), Limit>,
    ) -> Result<(u32, u32), Limit> {
        let mut best: Result<(u32, u32), Limit> = Err(Limit::Gap);
        for (number, slot) in (0..).zip(&self.slots) {
            match (fits(slot), best) {
                (Ok(()), Ok((start, _))) if start <= from => break,
                (Ok(()), _) => {
                    let found = (slot.next_free(from, length), number);
                    best = Ok(best.map_or(found, |earlier| earlier.min(found)));
                }
                (Err(limit), Err(_)) => best = Err(limit),
                (Err(_), Ok(_)) => {}
            }
        }
        best
    }
}

impl Slot {
    /// The first start from `from` on with `length` free.
    fn next_free(&self, from: u32, length: u32) -> u32 {
        let later = &self.busy[self.busy.partition_point(|(_, until)| *until <= from)..];
        let mut start = from;
        for (begin, until) in later {
            if u64::from(start) + u64::from(length) <= u64::from(*begin) {
                break;
            }
            start = *until;
        }
        start
    }

    /// Spans that touch become one: they stay few, and sorted by their ends too.
    fn book(&mut self, from: u32, until: u32) {
        let first = self.busy.partition_point(|(_, end)| *end < from);
        let after = self.busy.partition_point(|(begin, _)| *begin <= until);
        match self.busy[first..after] {
            [] => self.busy.insert(first, (from, until)),
            [(begin, _), ..] => {
                let end = self.busy[after - 1].1;
                self.busy[first] = (from.min(begin), until.max(end));
                self.busy.drain(first + 1..after);
            }
        }
    }

    fn spend(&mut self, millis: u32, octets: Octets, asker: Asker) {
        let spent = match asker {
            Asker::Plan => &mut self.spent,
            Asker::Hand => &mut self.spent_by_hand,
        };
        spent.millis += u64::from(millis);
        spent.octets = spent.octets.saturating_add(octets.count());
    }
}

/// How long after the begin of its span a run may still send: it may start when that ends. A lease
/// would keep others off so long; here is none that both want.
const fn late(length: u32) -> u32 {
    length.saturating_mul(2)
}

fn millis(time: Duration) -> u32 {
    u32::try_from(nanos(time).div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

const DAY_MS: f64 = 86_400_000.0;
