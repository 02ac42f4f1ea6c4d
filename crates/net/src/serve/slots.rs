//! Who may test now, and who waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narrows_wire::SlotKind;
use tokio::sync::mpsc::UnboundedSender;

/// What a waiting session is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotNews {
    /// The slot is yours.
    GrantedScheduling(SlotKind),
    /// Your place, from 1.
    Queued(SlotKind, u32),
    /// The queue is full.
    Busy(SlotKind),
}

/// One kind of slot: holders and a queue, both by session number.
#[derive(Debug)]
struct Line {
    kind: SlotKind,
    room: usize,
    queue_room: usize,
    holders: Vec<u64>,
    /// Sessions that share what a holder has: the sharer, and its host.
    sharers: Vec<(u64, u64)>,
    waiting: Vec<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    session: u64,
    reported: UnboundedSender<SlotNews>,
    last_place: u32,
}

impl Line {
    fn ask(&mut self, session: u64, reported: UnboundedSender<SlotNews>) {
        if self.waiting.is_empty() && self.holders.len() < self.room {
            self.holders.push(session);
            // A session that is gone gives its slot back when it is dropped, so a failed message
            // needs no care.
            let _ = reported.send(SlotNews::GrantedScheduling(self.kind));
        } else if self.waiting.len() >= self.queue_room {
            let _ = reported.send(SlotNews::Busy(self.kind));
        } else {
            self.waiting.push(Waiter { session, reported, last_place: 0 });
        }
        self.advance();
    }

    /// A holder has one sharer at most, and sharers have none.
    fn share(&mut self, host: u64, sharer: u64) -> bool {
        let fits = self.holders.contains(&host)
            && !self.holders.contains(&sharer)
            && !self.sharers.iter().any(|&(one, other)| one == sharer || other == host);
        if fits {
            self.waiting.retain(|waiter| waiter.session != sharer);
            self.sharers.push((sharer, host));
        }
        fits
    }

    fn leave(&mut self, session: u64) {
        self.sharers.retain(|&(sharer, _)| sharer != session);
        // A sharer whose host leaves holds the slot in its place.
        let sharer = self.sharers.iter().position(|&(_, host)| host == session);
        match (self.holders.iter_mut().find(|holder| **holder == session), sharer) {
            (Some(holder), Some(at)) => *holder = self.sharers.remove(at).0,
            _ => self.holders.retain(|holder| *holder != session),
        }
        self.waiting.retain(|waiter| waiter.session != session);
        self.advance();
    }

    /// Gives what is free to who waits longest, and tells the others where they stand now.
    fn advance(&mut self) {
        while self.holders.len() < self.room && !self.waiting.is_empty() {
            let first = self.waiting.remove(0);
            self.holders.push(first.session);
            let _ = first.reported.send(SlotNews::GrantedScheduling(self.kind));
        }
        for (place, waiter) in (1u32..).zip(&mut self.waiting) {
            if waiter.last_place != place {
                waiter.last_place = place;
                let _ = waiter.reported.send(SlotNews::Queued(self.kind, place));
            }
        }
    }
}

/// All slots of a server.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    light: Arc<Mutex<Line>>,
    load: Arc<Mutex<Line>>,
}

impl Slots {
    pub(super) fn new(light: usize, load: usize, queue: usize) -> Self {
        let line = |kind, room| {
            Arc::new(Mutex::new(Line {
                kind,
                room,
                queue_room: queue,
                holders: Vec::new(),
                sharers: Vec::new(),
                waiting: Vec::new(),
            }))
        };
        Self { light: line(SlotKind::Light, light), load: line(SlotKind::Load, load) }
    }

    fn line(&self, kind: SlotKind) -> MutexGuard<'_, Line> {
        let line = match kind {
            SlotKind::Light => &self.light,
            SlotKind::Load => &self.load,
        };
        line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks; every answer comes by `reported`.
    pub(super) fn ask(&self, kind: SlotKind, session: u64, reported: UnboundedSender<SlotNews>) {
        self.line(kind).ask(session, reported);
    }

    /// Lets a session share the slot that another one holds; whether that may be.
    pub(super) fn share(&self, kind: SlotKind, host: u64, sharer: u64) -> bool {
        self.line(kind).share(host, sharer)
    }

    /// Gives back, or leaves the queue.
    pub(super) fn leave(&self, kind: SlotKind, session: u64) {
        self.line(kind).leave(session);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn news(from: &mut UnboundedReceiver<SlotNews>) -> Vec<SlotNews> {
        std::iter::from_fn(|| from.try_recv().ok()).collect()
    }

    #[test]
    fn first_come_first_served_and_everyone_is_reported() {
        let kind = SlotKind::Load;
        let slots = Slots::new(8, 1, 2);
        let mut ears: Vec<_> = (0..4)
            .map(|session| {
                let (reported, ear) = unbounded_channel();
                slots.ask(kind, session, reported);
                ear
            })
            .collect();
        assert_eq!(news(&mut ears[0]), [SlotNews::GrantedScheduling(kind)]);
        assert_eq!(news(&mut ears[1]), [SlotNews::Queued(kind, 1)]);
        assert_eq!(news(&mut ears[2]), [SlotNews::Queued(kind, 2)]);
        assert_eq!(news(&mut ears[3]), [SlotNews::Busy(kind)]);
        slots.leave(kind, 0);
        assert_eq!(news(&mut ears[1]), [SlotNews::GrantedScheduling(kind)]);
        assert_eq!(news(&mut ears[2]), [SlotNews::Queued(kind, 1)]);
        slots.leave(kind, 2);
        slots.leave(kind, 1);
        let (reported, mut ear) = unbounded_channel();
        slots.ask(kind, 9, reported);
        assert_eq!(news(&mut ear), [SlotNews::GrantedScheduling(kind)]);
    }

    #[test]
    fn a_sharer_takes_no_place_and_keeps_what_its_host_leaves() {
        let kind = SlotKind::Load;
        let slots = Slots::new(8, 1, 2);
        let (reported, mut host) = unbounded_channel();
        assert!(!slots.share(kind, 1, 2), "nobody holds it");
        slots.ask(kind, 1, reported);
        assert_eq!(news(&mut host), [SlotNews::GrantedScheduling(kind)]);
        assert!(!slots.share(kind, 1, 1) && slots.share(kind, 1, 2));
        assert!(!slots.share(kind, 1, 3) && !slots.share(kind, 2, 3), "one sharer");
        let (reported, mut next) = unbounded_channel();
        slots.ask(kind, 4, reported);
        assert_eq!(news(&mut next), [SlotNews::Queued(kind, 1)]);
        slots.leave(kind, 1);
        assert_eq!(news(&mut next), []);
        assert!(slots.share(kind, 2, 5));
        slots.leave(kind, 5);
        assert_eq!(news(&mut next), []);
        slots.leave(kind, 2);
        assert_eq!(news(&mut next), [SlotNews::GrantedScheduling(kind)]);
    }

    #[test]
    fn light_and_load_do_not_wait_for_each_other() {
        let slots = Slots::new(1, 1, 1);
        for (session, kind) in [(1, SlotKind::Light), (2, SlotKind::Load)] {
            let (reported, mut ear) = unbounded_channel();
            slots.ask(kind, session, reported);
            assert_eq!(news(&mut ear), [SlotNews::GrantedScheduling(kind)]);
        }
    }
}
