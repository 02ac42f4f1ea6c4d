//! Asks for the addresses of names, off the thread that measures.

use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use narrows_net::clock;
use narrows_watch::schedule::TargetId;

use super::settings::Family;
use crate::interrupt;

/// What the thread is asked.
pub(super) enum Asked {
    /// Ask for this name from now on, instead of another one that the target had.
    Follow(Name),
    Forget(TargetId),
}

/// A name that is asked for again and again.
pub(super) struct Name {
    target: TargetId,
    host: String,
    family: Family,
    next_ns: i64,
    /// Until the next try after a failure.
    retry: Duration,
}

impl Name {
    pub(super) const fn new(target: TargetId, host: String, family: Family) -> Self {
        Self { target, host, family, next_ns: 0, retry: FIRST_RETRY }
    }

    /// When to ask again.
    fn plan(&mut self, known: bool, now_ns: i64) {
        let wait = if known { EVERY } else { self.retry };
        self.retry = if known { FIRST_RETRY } else { (self.retry * 2).min(EVERY) };
        self.next_ns = now_ns + clock::nanos(wait);
    }

    fn addresses(&self) -> Vec<IpAddr> {
        let bare = self.host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&self.host);
        let answers = (bare, 0).to_socket_addrs().into_iter().flatten().map(|address| address.ip());
        answers.filter(|address| self.family.has(*address)).collect()
    }
}

/// Runs until nobody listens, or the end.
pub(super) fn run(asked: &Receiver<Asked>, answered: impl Fn(TargetId, Vec<IpAddr>) -> bool, stop: &Arc<AtomicBool>) {
    let mut names: Vec<Name> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for asked in asked.try_iter() {
            take(&mut names, asked);
        }
        for name in &mut names {
            if name.next_ns > clock::now_ns() {
                continue;
            }
            let addresses = name.addresses();
            name.plan(!addresses.is_empty(), clock::now_ns());
            if !answered(name.target, addresses) {
                return;
            }
        }
        interrupt::nap(LOOK);
    }
}

fn take(names: &mut Vec<Name>, asked: Asked) {
    let target = match &asked {
        Asked::Follow(name) => name.target,
        Asked::Forget(target) => *target,
    };
    names.retain(|name| name.target != target);
    if let Asked::Follow(name) = asked {
        names.push(name);
    }
}

const EVERY: Duration = Duration::from_secs(300);
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_an_answer_is_asked_again_soon() {
        let mut name = Name::new(TargetId::new(1), "far.example".to_owned(), Family::Auto);
        let waits: Vec<i64> = [false, false, true, false]
            .into_iter()
            .map(|known| {
                name.plan(known, 0);
                name.next_ns / 1_000_000_000
            })
            .collect();
        assert_eq!(waits, [2, 4, 300, 2]);
    }

    #[test]
    fn a_target_has_one_name() {
        let (mut names, target) = (Vec::new(), TargetId::new(1));
        for host in ["old.example", "new.example"] {
            take(&mut names, Asked::Follow(Name::new(target, host.to_owned(), Family::Auto)));
        }
        assert_eq!(names.iter().map(|name| name.host.as_str()).collect::<Vec<_>>(), ["new.example"]);
        take(&mut names, Asked::Forget(target));
        assert!(names.is_empty());
    }

    #[test]
    fn addresses_are_of_the_family() {
        let of = |host: &str, family| Name::new(TargetId::new(1), host.to_owned(), family).addresses();
        assert_eq!(of("[::1]", Family::V6).len(), 1);
        assert!(of("127.0.0.1", Family::V6).is_empty());
        assert_eq!(of("127.0.0.1", Family::Auto), [IpAddr::from([127, 0, 0, 1])]);
    }
}
