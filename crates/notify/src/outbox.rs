//! Notices that are not delivered yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use narrows_watch::WallTime;

/// A notice on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number; later ones are greater.
    pub id: i64,
    /// The channel that it goes to.
    pub channel: String,
    /// The [`NoticeBody`](crate::NoticeBody) as JSON.
    pub body: String,
    /// When it was made.
    pub made: WallTime,
    /// When it is to be tried next.
    pub due: WallTime,
    /// How often it was tried in vain.
    pub tries: u32,
}

/// The outbox cannot be read or written now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("outbox: {0}")]
pub struct OutboxError(pub String);

/// Where notices wait. What was pushed is handed out until it is done, so it is delivered at least
/// once, whatever ends the program in between.
pub trait Outbox: Send + Sync {
    /// Takes a notice, due at once. Returns its number once it is safe.
    fn push(&self, channel: &str, body: &str, made: WallTime) -> Result<i64, OutboxError>;
    /// Those that are due and not done; also those that are due only after more than ten minutes,
    /// as when the clock was set back.
    fn due(&self, now: WallTime) -> Result<Vec<Entry>, OutboxError>;
    /// One was tried in vain; it is due again later.
    fn retry(&self, id: i64, due: WallTime) -> Result<(), OutboxError>;
    /// One was delivered, or is no notice.
    fn done(&self, id: i64, at: WallTime) -> Result<(), OutboxError>;
    /// One is given up. Whoever can tell people of it does.
    fn give_up(&self, of: &Undelivered) -> Result<(), OutboxError> {
        self.done(of.id, of.at)
    }
}

/// A notice that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// Its number.
    pub id: i64,
    /// The channel that did not take it.
    pub channel: String,
    /// The rule that it tells of.
    pub rule: String,
    /// The name of the target that it tells of.
    pub target: String,
    /// When it was made.
    pub made: WallTime,
    /// When it was given up.
    pub at: WallTime,
    /// Why the last attempt was in vain.
    pub why: String,
}

impl std::fmt::Display for Undelivered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { channel, rule, target, made, at, why, .. } = self;
        let hours = at.since(*made).as_secs() / 3600;
        write!(f, "channel {channel}: the notice about {target} (rule {rule}) was given up after {hours} h: {why}")
    }
}

/// How long to wait after so many tries in vain: 5 s, doubling up to 10 min. A peer may ask for
/// longer, but not for longer than that.
pub fn retry_after(tries: u32, asked: Option<Duration>) -> Duration {
    let doubled = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)));
    doubled.max(asked.unwrap_or_default()).min(LONGEST_RETRY)
}

/// Whether a time that was set for a retry has come. None lies farther ahead than the longest wait:
/// one that does was set before the clock was set back.
pub(crate) fn is_due(due: WallTime, now: WallTime) -> bool {
    due <= now || due > now.after(LONGEST_RETRY)
}

const FIRST_RETRY: Duration = Duration::from_secs(5);
const LONGEST_RETRY: Duration = Duration::from_secs(600);

/// An outbox that the end of the program empties.
#[derive(Debug)]
pub struct Memory {
    entries: Mutex<(i64, BTreeMap<i64, Entry>)>,
    tell: fn(&Undelivered),
}

impl Default for Memory {
    fn default() -> Self {
        Self::telling(|_| {})
    }
}

impl Memory {
    /// Tells so of what is given up.
    pub fn telling(tell: fn(&Undelivered)) -> Self {
        Self { entries: Mutex::default(), tell }
    }

    fn entries(&self) -> MutexGuard<'_, (i64, BTreeMap<i64, Entry>)> {
        // Each change is one insertion or removal: a panic elsewhere leaves the map whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbox for Memory {
    fn push(&self, channel: &str, body: &str, made: WallTime) -> Result<i64, OutboxError> {
        let (last, entries) = &mut *self.entries();
        *last += 1;
        let entry = Entry { id: *last, channel: channel.to_owned(), body: body.to_owned(), made, due: made, tries: 0 };
        entries.insert(*last, entry);
        Ok(*last)
    }

    fn due(&self, now: WallTime) -> Result<Vec<Entry>, OutboxError> {
        Ok(self.entries().1.values().filter(|entry| is_due(entry.due, now)).cloned().collect())
    }

    fn retry(&self, id: i64, due: WallTime) -> Result<(), OutboxError> {
        if let Some(entry) = self.entries().1.get_mut(&id) {
            entry.due = due;
            entry.tries += 1;
        }
        Ok(())
    }

    fn done(&self, id: i64, _at: WallTime) -> Result<(), OutboxError> {
        self.entries().1.remove(&id);
        Ok(())
    }

    fn give_up(&self, of: &Undelivered) -> Result<(), OutboxError> {
        (self.tell)(of);
        self.done(of.id, of.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_ten_minutes() {
        let waits: Vec<u64> = (1..=9).map(|tries| retry_after(tries, None).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(retry_after(u32::MAX, None), LONGEST_RETRY);
        let asked = |seconds| retry_after(1, Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!([asked(1), asked(30), asked(86_400)], [5, 30, 600]);
    }

    #[test]
    fn a_clock_that_is_set_back_delays_no_notice() {
        let at = |seconds: i64| WallTime::from_millis(seconds * 1000);
        assert!(!is_due(at(4200), at(3600)) && is_due(at(4201), at(3600)));
        let outbox = Memory::default();
        outbox.push("ops", "{}", at(7200)).unwrap();
        assert_eq!(outbox.due(at(3600)).unwrap().len(), 1);
    }

    #[test]
    fn what_is_pushed_is_due_until_it_is_done() {
        let at = |seconds: i64| WallTime::from_millis(seconds * 1000);
        let outbox = Memory::default();
        let first = outbox.push("ops", "{}", at(0)).unwrap();
        let second = outbox.push("ops", "{}", at(1)).unwrap();
        let due = |now| outbox.due(at(now)).unwrap().iter().map(|entry| entry.id).collect::<Vec<_>>();
        assert_eq!((due(0), due(1)), (vec![first], vec![first, second]));
        outbox.retry(first, at(6)).unwrap();
        assert_eq!((due(5), due(6)), (vec![second], vec![first, second]));
        assert_eq!(outbox.due(at(6)).unwrap()[0].tries, 1);
        outbox.done(first, at(6)).unwrap();
        assert_eq!(due(6), [second]);
    }
}
