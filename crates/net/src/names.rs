//! Names of addresses, looked up beside the work: a few threads, a bounded wait, and nothing waits
//! for a resolver that does not answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::clock;
use crate::sys::name;

/// Looks names up.
#[derive(Debug, Clone)]
pub struct Names {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    asked: BTreeSet<IpAddr>,
    waiting: VecDeque<IpAddr>,
    /// Threads that run, and those of them that look something up.
    threads: usize,
    busy: usize,
    known: BTreeMap<IpAddr, String>,
}

/// Threads at most: a resolver that does not answer holds one for half a minute each.
const THREADS: usize = 4;
/// Addresses at most: a path has some dozens.
const MOST: usize = 512;
/// Longest name that DNS allows (RFC 1035 §2.3.4), in text.
const MOST_OCTETS: usize = 253;

impl Names {
    /// Nothing is asked yet.
    pub fn new() -> Self {
        Self { shared: Arc::new(Shared::default()) }
    }

    /// Asks for the name of an address, unless that was done before. Never waits.
    pub fn ask(&self, address: IpAddr) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.asked.len() >= MOST || !state.asked.insert(address) {
            return;
        }
        state.waiting.push_back(address);
        if state.threads < THREADS && state.waiting.len() > state.threads - state.busy {
            let shared = Arc::clone(&self.shared);
            let begun = std::thread::Builder::new().name("names".to_owned()).spawn(move || shared.work());
            state.threads += usize::from(begun.is_ok());
        }
        self.shared.changed.notify_all();
    }

    /// What is known by now.
    pub fn known(&self) -> BTreeMap<IpAddr, String> {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.known.clone()
    }

    /// What is known once all that was asked for is, or after `timeout`.
    pub fn settled(&self, timeout: Duration) -> BTreeMap<IpAddr, String> {
        let deadline = clock::now_ns().saturating_add(clock::nanos(timeout));
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = u64::try_from(deadline.saturating_sub(clock::now_ns())).unwrap_or(0);
            // Without a thread nobody will ever answer.
            let idle = state.waiting.is_empty() && state.busy == 0;
            if idle || left == 0 || state.threads == 0 {
                return state.known.clone();
            }
            let waited = self.shared.changed.wait_timeout(state, Duration::from_nanos(left));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    /// Until the process ends: the thread is nobody's to join, since a resolver may hold it.
    fn work(&self) {
        loop {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let address = loop {
                if let Some(address) = state.waiting.pop_front() {
                    break address;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            state.busy += 1;
            drop(state);
            let found = name::of(address).and_then(|name| clean(&name));
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.busy -= 1;
            if let Some(name) = found {
                state.known.insert(address, name);
            }
            drop(state);
            self.changed.notify_all();
        }
    }
}

/// Whoever holds an address writes its name: what no host name has is replaced, and what is too
/// long is none.
fn clean(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > MOST_OCTETS {
        return None;
    }
    let usual = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.', '%', ':'].contains(&c);
    Some(name.chars().map(|c| if usual(c) { c } else { '?' }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_are_cleaned() {
        assert_eq!(clean("r1.example.net"), Some("r1.example.net".to_owned()));
        assert_eq!(clean("a\u{1b}[2Jb"), Some("a??2Jb".to_owned()));
        assert_eq!(clean(""), None);
        assert_eq!(clean(&"a".repeat(254)), None);
    }

    #[test]
    fn a_wait_is_bounded_and_nothing_asked_is_settled() {
        let names = Names::new();
        assert!(names.settled(Duration::from_secs(60)).is_empty());
        // TEST-NET-1: nobody's, so that there is no name, or no resolver.
        for last in 1..20 {
            names.ask([192, 0, 2, last].into());
        }
        let begun = clock::now_ns();
        let known = names.settled(Duration::from_millis(50));
        assert!(known.len() < 20 && clock::now_ns() - begun < 30_000_000_000);
    }
}
