//! The clock of one end, as its TCP timestamps show it (RFC 7323): how long packets took from
//! there, but for a constant.

/// One end's timestamps against the capture's clock.
#[derive(Debug, Clone, Default)]
pub(in crate::passive) struct PeerClock {
    first: Option<(i64, u32)>,
    last: u32,
    ticks: i64,
    /// Nanoseconds per tick, once known.
    tick: Option<f64>,
    /// Length of a slot, and when the last one begins.
    slot: i64,
    slot_begin: i64,
    /// What the last slot has by now: here and not behind `floor`'s pointer, since nearly every
    /// packet asks for it.
    newest: (i64, i64),
    /// Per slot of time the packet that took least: when it passed, in nanoseconds since the first,
    /// and its time under way, but for a constant.
    floor: Vec<(i64, i64)>,
}

/// Slots at most; then two become one.
const SLOTS: usize = 64;
const FIRST_SLOT: i64 = 250_000_000;
/// The tick is known after so long: then its nearest common length is clear.
const LEARN_NS: i64 = 150_000_000;
/// Common ticks (RFC 7323 §5.4 asks for 1 ms to 1 s; Linux has 1 ms, or 1 us by route option, older
/// ones 4 and 10 ms).
const TICKS: [f64; 4] = [1_000.0, 1_000_000.0, 4_000_000.0, 10_000_000.0];
/// Two crystals drift apart by less (ours: twice the 50 ppm that common ones are sold with is 100;
/// those of hosts that keep time by NTP lie within 50).
const MOST_DRIFT: f64 = 50e-6;

impl PeerClock {
    /// One more packet from there; its timestamp in ticks since the first, [`super::NO_TICKS`]
    /// without one or beyond 31 bits.
    pub(super) fn see(&mut self, at: i64, stamp: Option<u32>) -> i32 {
        let Some(stamp) = stamp else { return super::NO_TICKS };
        let Some((begun, _)) = self.first else {
            self.first = Some((at, stamp));
            self.last = stamp;
            (self.slot, self.slot_begin, self.newest) = (FIRST_SLOT, i64::MAX, (0, i64::MAX));
            return 0;
        };
        let step = super::distance(self.last, stamp);
        let ticks = self.ticks + i64::from(step);
        if step > 0 {
            (self.last, self.ticks) = (stamp, ticks);
        }
        let since = at.saturating_sub(begun);
        match self.tick {
            None if since >= LEARN_NS && self.ticks > 0 => self.learn(since),
            None => {}
            Some(tick) => self.lower(since, ticks, tick),
        }
        i32::try_from(ticks).unwrap_or(super::NO_TICKS)
    }

    /// Nanoseconds per tick; `None` while nothing or nothing common is known.
    pub(in crate::passive) fn tick(&self) -> Option<f64> {
        self.tick
    }

    pub(super) fn held_octets(&self) -> usize {
        self.floor.capacity() * size_of::<(i64, i64)>()
    }

    /// How long a packet was under way beyond the least that any packet near it needed; a lower
    /// bound as far as drift goes, and up to a tick too much.
    pub(in crate::passive) fn waited(&self, at: i64, ticks: i32) -> Option<f64> {
        let (tick, (begun, _)) = (self.tick?, self.first?);
        if ticks == super::NO_TICKS {
            return None;
        }
        let since = at.saturating_sub(begun);
        let taken = under_way(since, i64::from(ticks), tick);
        let floor = self
            .floor
            .iter()
            .chain([&self.newest])
            .map(|&(when, least)| least as f64 + MOST_DRIFT * (since - when).abs() as f64)
            .fold(f64::INFINITY, f64::min);
        // The connection's first packet is as good a witness as any.
        let floor = floor.min(MOST_DRIFT * since.abs() as f64);
        Some(taken as f64 - floor)
    }

    fn learn(&mut self, since: i64) {
        let measured = since as f64 / self.ticks as f64;
        let near = |tick: &f64| (measured / tick - 1.0).abs() < 0.15;
        self.tick = TICKS.into_iter().find(near);
    }

    fn lower(&mut self, since: i64, ticks: i64, tick: f64) {
        let taken = under_way(since, ticks, tick);
        // Nearly every packet falls into the last slot.
        if (self.slot_begin..self.slot_begin.saturating_add(self.slot)).contains(&since) {
            if taken < self.newest.1 {
                self.newest = (since, taken);
            }
            return;
        }
        if let Some(last) = self.floor.last_mut() {
            *last = self.newest;
        }
        while since / self.slot >= i64::try_from(SLOTS).unwrap_or(i64::MAX) {
            self.slot = self.slot.saturating_mul(2);
            let pairs = self.floor.chunks(2);
            self.floor = pairs.filter_map(|pair| pair.iter().copied().min_by_key(|&(_, least)| least)).collect();
        }
        let place = usize::try_from(since / self.slot).unwrap_or(0);
        match self.floor.get_mut(place) {
            Some(least) if taken < least.1 => *least = (since, taken),
            Some(_) => {}
            None => self.floor.resize(place + 1, (since, taken)),
        }
        if place + 1 == self.floor.len() {
            self.slot_begin = since / self.slot * self.slot;
        }
        if let Some(last) = self.floor.last() {
            self.newest = *last;
        }
    }
}

fn under_way(since: i64, ticks: i64, tick: f64) -> i64 {
    since.saturating_sub(nanos(ticks as f64 * tick))
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which is what is wanted")]
fn nanos(value: f64) -> i64 {
    value as i64
}
