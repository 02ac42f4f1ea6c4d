//! Who spent what: by day, and within the last minute.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use narrows_units::Octets;
use serde::{Deserialize, Serialize};

use super::job::{JobId, Why};
use crate::time::BootTime;

/// What one job was booked with; the store keeps one row each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booking {
    /// The local day that pays.
    pub day: i64,
    /// The share that pays.
    pub why: Why,
    /// Octets.
    pub octets: Octets,
}

/// Octets of each day and share. A booking counts as spent until it is settled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    spent: BTreeMap<(i64, Why), u64>,
    open: BTreeMap<JobId, Booking>,
    /// Days into which a step of the clock led before they came.
    opened_by_step: BTreeSet<i64>,
}

impl Ledger {
    /// Octets spent and booked on `day` for `why`.
    pub fn spent(&self, day: i64, why: Why) -> Octets {
        Octets::new(self.spent.get(&(day, why)).copied().unwrap_or(0))
    }

    /// Books before a job starts.
    pub fn book(&mut self, job: JobId, booking: Booking) {
        *self.spent.entry((booking.day, booking.why)).or_default() += booking.octets.count();
        self.open.insert(job, booking);
        let oldest = booking.day - KEPT_DAYS;
        self.spent.retain(|(day, _), _| *day >= oldest);
        self.opened_by_step.retain(|day| *day >= oldest);
    }

    /// Settles after it ended: `None` keeps what was booked. A job that is not open has no effect.
    pub fn settle(&mut self, job: JobId, octets: Option<Octets>) -> Option<Booking> {
        let booking = self.open.remove(&job)?;
        let octets = octets.unwrap_or(booking.octets);
        if let Some(spent) = self.spent.get_mut(&(booking.day, booking.why)) {
            *spent = spent.saturating_sub(booking.octets.count()).saturating_add(octets.count());
        }
        Some(Booking { octets, ..booking })
    }

    /// A step of the clock led from one day to another. The new day begins with what the old one
    /// spent, so that no step opens a fresh budget. A step back from a day that only a step had
    /// opened takes that day's spending along: when the day comes, its budget is its own.
    pub fn stepped(&mut self, from: i64, to: i64) {
        if to > from && Why::ALL.iter().all(|why| !self.spent.contains_key(&(to, *why))) {
            self.opened_by_step.insert(to);
        }
        for why in Why::ALL {
            let carried = self.spent(from, why).max(self.spent(to, why));
            self.spent.insert((to, why), carried.count());
        }
        if to < from && self.opened_by_step.remove(&from) {
            self.spent.retain(|(day, _), _| *day != from);
            for booking in self.open.values_mut().filter(|booking| booking.day == from) {
                booking.day = to;
            }
        }
    }

    /// Jobs of a process that ended without settling them keep their bookings.
    pub fn abandon_open(&mut self) {
        self.open.clear();
    }
}

/// Octets of jobs that touched the last minute. No window of 60 s is above `limit` if each job asks
/// at its start: all jobs that a window meets met the 60 s before the last one's start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MinuteWindow {
    jobs: VecDeque<(JobId, Option<BootTime>, u64)>,
}

impl MinuteWindow {
    /// Whether `octets` more fit now.
    pub fn fits(&self, now: BootTime, octets: Octets, limit: Octets) -> bool {
        self.octets(now).saturating_add(octets.count()) <= limit.count()
    }

    fn octets(&self, now: BootTime) -> u64 {
        let recent = |ended: Option<BootTime>| ended.is_none_or(|ended| ended.after(MINUTE) >= now);
        self.jobs.iter().filter(|(_, ended, _)| recent(*ended)).map(|(.., octets)| octets).sum()
    }

    /// A job begins.
    pub fn begin(&mut self, job: JobId, octets: Octets) {
        self.jobs.push_back((job, None, octets.count()));
    }

    /// It ended, with what it sent.
    pub fn end(&mut self, job: JobId, now: BootTime, octets: Option<Octets>) {
        for (open, ended, booked) in &mut self.jobs {
            if *open == job {
                *ended = Some(now);
                *booked = octets.map_or(*booked, Octets::count);
            }
        }
        self.jobs.retain(|(_, ended, _)| ended.is_none_or(|ended| ended.after(MINUTE) >= now));
    }

    /// After a restart: jobs that were running count as ended now. So do those that ended at a time
    /// that has not come yet, since the machine was started again. Their numbers become one that no
    /// planner hands out.
    pub fn restart(&mut self, now: BootTime) {
        for (job, ended, _) in &mut self.jobs {
            *job = JobId::new(0);
            *ended = Some(ended.map_or(now, |ended| ended.min(now)));
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const KEPT_DAYS: i64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId::new(1);

    fn booking(day: i64, octets: u64) -> Booking {
        Booking { day, why: Why::Cadence, octets: Octets::new(octets) }
    }

    #[test]
    fn a_booking_is_spent_until_it_is_settled() {
        let mut ledger = Ledger::default();
        ledger.book(JOB, booking(5, 100));
        assert_eq!(ledger.spent(5, Why::Cadence), Octets::new(100));
        ledger.settle(JOB, Some(Octets::new(30)));
        ledger.settle(JOB, Some(Octets::new(30)));
        assert_eq!(ledger.spent(5, Why::Cadence), Octets::new(30));
        ledger.book(JobId::new(2), booking(5, 100));
        ledger.abandon_open();
        ledger.settle(JobId::new(2), Some(Octets::new(0)));
        assert_eq!(ledger.spent(5, Why::Cadence), Octets::new(130));
    }

    #[test]
    fn steps_of_the_clock_there_and_back_open_no_budget() {
        let mut ledger = Ledger::default();
        ledger.book(JOB, booking(5, 100));
        ledger.stepped(5, 6);
        ledger.book(JobId::new(2), booking(6, 20));
        ledger.stepped(6, 5);
        assert_eq!(ledger.spent(5, Why::Cadence), Octets::new(120));
        assert_eq!(ledger.spent(6, Why::Cadence), Octets::new(0), "that day has not come");
        ledger.settle(JobId::new(2), Some(Octets::new(5)));
        assert_eq!(ledger.spent(5, Why::Cadence), Octets::new(105), "what ends after the step back is settled too");
        // A day that came by itself keeps what it spent.
        ledger.book(JobId::new(3), booking(6, 40));
        ledger.stepped(6, 5);
        assert_eq!(ledger.spent(6, Why::Cadence), Octets::new(40));
    }

    #[test]
    fn a_window_counts_jobs_until_a_minute_after_their_end() {
        let second = |second: u64| BootTime::from_millis(second * 1000);
        let mut window = MinuteWindow::default();
        window.begin(JOB, Octets::new(80));
        assert!(!window.fits(second(500), Octets::new(30), Octets::new(100)));
        window.end(JOB, second(500), Some(Octets::new(80)));
        assert!(!window.fits(second(560), Octets::new(30), Octets::new(100)));
        assert!(window.fits(second(561), Octets::new(30), Octets::new(100)));
        window.restart(second(550));
        assert!(window.fits(second(561), Octets::new(30), Octets::new(100)));
        window.restart(second(10));
        assert!(!window.fits(second(70), Octets::new(30), Octets::new(100)));
    }
}
