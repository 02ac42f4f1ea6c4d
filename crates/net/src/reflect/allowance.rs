//! What a reflector remembers: how much each sender was answered, and how far each session has
//! counted. Bounded, whoever sends.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use crate::pending_connections::network;

/// Senders and sessions that are remembered; beyond, the one that was silent the longest is
/// forgotten.
const MOST: usize = 1_024;
/// A session that was silent so long begins anew with its next packet.
const FORGET_NS: i64 = 60_000_000_000;

/// Limits and counters.
#[derive(Debug)]
pub(super) struct Allowance {
    per_source: Rate,
    sources: BTreeMap<IpAddr, Bucket>,
    total_rate: Rate,
    total: Bucket,
    sessions: BTreeMap<(SocketAddr, u16), ReflectedSession>,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    burst: f64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at_ns: i64,
}

#[derive(Debug, Clone, Copy)]
struct ReflectedSession {
    next: u32,
    at_ns: i64,
    last: Option<(u32, u64)>,
}

/// What a session knows of its latest packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// Its number, from 0: so many came before, and as many were answered.
    pub(super) number: u32,
    /// Number of the answer before, and when it left.
    pub(super) last: Option<(u32, u64)>,
}

impl Rate {
    fn fresh(self, now_ns: i64) -> Bucket {
        Bucket { left: self.burst, at_ns: now_ns }
    }
}

impl Bucket {
    fn refill(&mut self, rate: Rate, now_ns: i64) {
        let gained = now_ns.saturating_sub(self.at_ns).max(0) as f64 * 1e-9 * rate.per_second;
        self.left = (self.left + gained).min(rate.burst);
        self.at_ns = self.at_ns.max(now_ns);
    }
}

impl Allowance {
    /// Packets per second and at once for each sender; per second for all, with a burst in the same
    /// proportion.
    pub(super) fn new(per_source: u32, burst: u32, total: u32) -> Self {
        let (per_source, burst, total) = (f64::from(per_source), f64::from(burst), f64::from(total));
        let total_rate = Rate { per_second: total, burst: (total * burst / per_source.max(1.0)).max(burst) };
        Self {
            per_source: Rate { per_second: per_source, burst },
            sources: BTreeMap::new(),
            total_rate,
            total: total_rate.fresh(i64::MIN),
            sessions: BTreeMap::new(),
        }
    }

    /// Whether one more packet of this sender is answered.
    pub(super) fn admit(&mut self, from: IpAddr, now_ns: i64) -> bool {
        let source = network(from);
        if self.sources.len() >= MOST && !self.sources.contains_key(&source) {
            forget_oldest(&mut self.sources, |bucket| bucket.at_ns);
        }
        let rate = self.per_source;
        let bucket = self.sources.entry(source).or_insert_with(|| rate.fresh(now_ns));
        bucket.refill(rate, now_ns);
        self.total.refill(self.total_rate, now_ns);
        if bucket.left < 1.0 || self.total.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        self.total.left -= 1.0;
        true
    }

    /// The number of this packet in its session: counted from 0 (RFC 8762 §4.3). A sender that
    /// starts again at 0 starts a new session.
    pub(super) fn number(&mut self, from: SocketAddr, ssid: u16, seq: u32, now_ns: i64) -> Counted {
        let key = (from, ssid);
        if self.sessions.len() >= MOST && !self.sessions.contains_key(&key) {
            forget_oldest(&mut self.sessions, |session| session.at_ns);
        }
        let fresh = ReflectedSession { next: 0, at_ns: now_ns, last: None };
        let session = self.sessions.entry(key).or_insert(fresh);
        if seq == 0 || now_ns.saturating_sub(session.at_ns) > FORGET_NS {
            *session = fresh;
        }
        let number = session.next;
        session.next = session.next.wrapping_add(1);
        session.at_ns = now_ns;
        Counted { number, last: session.last }
    }

    /// An answer left, at `stamp` as stamps are written.
    pub(super) fn left(&mut self, from: SocketAddr, ssid: u16, number: u32, stamp: u64) {
        if let Some(session) = self.sessions.get_mut(&(from, ssid)) {
            session.last = Some((number, stamp));
        }
    }
}

fn forget_oldest<K: Ord + Copy, V>(entries: &mut BTreeMap<K, V>, at_ns: impl Fn(&V) -> i64) {
    let oldest = entries.iter().min_by_key(|(_, value)| at_ns(value)).map(|(key, _)| *key);
    if let Some(key) = oldest {
        entries.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn host(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn each_sender_has_its_own_share_of_a_common_one() {
        let mut allowance = Allowance::new(10, 20, 15);
        let admitted = |allowance: &mut Allowance, from, now| (0..100).filter(|_| allowance.admit(from, now)).count();
        assert_eq!(admitted(&mut allowance, host(1), 0), 20);
        // In common there are 30 at once.
        assert_eq!(admitted(&mut allowance, host(2), 0), 10);
        assert_eq!(admitted(&mut allowance, host(3), 0), 0);
        // A second later 15 in common, of which each may have 10.
        assert_eq!(admitted(&mut allowance, host(1), SECOND), 10);
        assert_eq!(admitted(&mut allowance, host(2), SECOND), 5);
        // One network is one sender.
        let mut allowance = Allowance::new(10, 20, 1_000);
        let v6 = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]);
        assert_eq!(admitted(&mut allowance, v6(1), 0), 20);
        assert_eq!(admitted(&mut allowance, v6(2), 0), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut allowance = Allowance::new(1, 1, u32::MAX);
        for k in 0..5_000u32 {
            let from = IpAddr::from(k.to_be_bytes());
            assert!(allowance.admit(from, i64::from(k)));
            allowance.number(SocketAddr::new(from, 1), 1, 7, i64::from(k));
        }
        assert_eq!((allowance.sources.len(), allowance.sessions.len()), (MOST, MOST));
        // The latest are still known.
        assert!(!allowance.admit(IpAddr::from(4_999u32.to_be_bytes()), 5_000));
    }

    #[test]
    fn sessions_count_for_themselves() {
        let mut allowance = Allowance::new(10, 20, 15);
        let from = SocketAddr::new(host(1), 7);
        let seqs = [0, 1, 4, 5];
        let numbers = seqs.map(|seq| allowance.number(from, 9, seq, 0).number);
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(allowance.number(from, 8, 6, 0).number, 0, "another session");
        assert_eq!(allowance.number(from, 9, 0, 0).number, 0, "started again");
        assert_eq!(allowance.number(from, 9, 1, 0).number, 1);
        assert_eq!(allowance.number(from, 9, 2, 61 * SECOND).number, 0, "forgotten");
    }
}
