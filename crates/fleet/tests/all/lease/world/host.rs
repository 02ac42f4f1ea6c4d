//! One agent: its clock, its process, its connection, and what it sends.

use narrows_fleet::clock::Boot;
use narrows_fleet::keys::{Key, Name};
use narrows_fleet::lease::{Lessee, Timing};
use narrows_units::Stamp;
use uuid::Uuid;

use super::super::bus::Bus;
use super::super::random::Random;
use super::record::Record;

pub(super) struct Host {
    name: Name,
    pub(super) lessee: Lessee,
    /// Nanoseconds on its clock per true microsecond.
    rate: u64,
    offset: u64,
    /// Which process this is; what was meant for an earlier one is lost.
    pub(super) life: u32,
    /// Which connection this is.
    pub(super) connection: u32,
    /// Which start of the bus it is connected to.
    pub(super) incarnation: Option<u32>,
    /// The one that it was last connected to.
    pub(super) last_incarnation: u32,
    pub(super) paused_until: u64,
    pub(super) run: Option<Running>,
    sends_from: Option<u64>,
    next_tick: u64,
}

pub(super) struct Running {
    pub(super) id: Uuid,
    pub(super) keys: Vec<Key>,
    pub(super) length: u64,
}

impl Host {
    pub(super) fn new(number: u32, timing: Timing, random: &mut Random) -> Self {
        let name: Name = format!("a{number}").parse().expect("a letter and a number");
        // The slowest and the fastest clock are always there.
        let rate = match number {
            0 => 900,
            1 => 1_100,
            _ => random.between(900, 1_100),
        };
        Self {
            lessee: Lessee::with_timing(name.clone(), random.next(), timing),
            name,
            rate,
            offset: random.between(0, 1 << 50),
            life: 0,
            connection: 0,
            incarnation: None,
            last_incarnation: 0,
            paused_until: 0,
            run: None,
            sends_from: None,
            next_tick: 0,
        }
    }

    /// Its clock at a true time.
    pub(super) fn local(&self, now: u64) -> Stamp<Boot> {
        Stamp::from_nanos((self.offset + now * self.rate).cast_signed())
    }

    /// The first true microsecond at which its clock shows `local`.
    fn true_time(&self, local: Stamp<Boot>) -> u64 {
        local.nanos().cast_unsigned().saturating_sub(self.offset).div_ceil(self.rate)
    }

    /// Sends from now on, if it may.
    pub(super) fn resume(&mut self, now: u64) {
        if self.paused_until <= now && self.lessee.may_send(self.local(now)) {
            self.sends_from = Some(now);
        }
    }

    /// Records what it sent until now: its last burst began before the lease ended.
    pub(super) fn close(&mut self, now: u64, bus: &Bus, record: &mut Record) {
        let (Some(from), Some(run)) = (self.sends_from.take(), &self.run) else { return };
        let Some(until) = self.lessee.send_until() else { return };
        let until = now.min(self.true_time(until) + BURST);
        let same_bus = bus.up && bus.incarnation == self.last_incarnation;
        record.sent(run.id, &run.keys, from, until, same_bus.then_some(bus.incarnation));
    }

    pub(super) fn die(&mut self, timing: Timing, random: &mut Random) {
        self.life += 1;
        self.connection += 1;
        self.incarnation = None;
        self.run = None;
        self.paused_until = 0;
        self.next_tick = 0;
        self.lessee = Lessee::with_timing(self.name.clone(), random.next(), timing);
    }

    /// When it wants to be woken, if no wake-up is planned by then.
    pub(super) fn tick_needed(&mut self, now: u64) -> Option<u64> {
        let due = self.true_time(self.lessee.due()?).max(now + 1);
        let needed = self.next_tick <= now || due < self.next_tick;
        needed.then(|| {
            self.next_tick = due;
            due
        })
    }
}

/// Ten milliseconds, on the slowest clock.
const BURST: u64 = 11_112;
