//! Asks for the addresses of names, off the thread that measures.

use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_net::clock;
use narrows_watch::schedule::TargetId;

use super::settings::Family;
use crate::interrupt;

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
pub(super) fn run(mut names: Vec<Name>, answered: impl Fn(TargetId, Vec<IpAddr>) -> bool, stop: &Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
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
    fn addresses_are_of_the_family() {
        let of = |host: &str, family| Name::new(TargetId::new(1), host.to_owned(), family).addresses();
        assert_eq!(of("[::1]", Family::V6).len(), 1);
        assert!(of("127.0.0.1", Family::V6).is_empty());
        assert_eq!(of("127.0.0.1", Family::Auto), [IpAddr::from([127, 0, 0, 1])]);
    }
}
