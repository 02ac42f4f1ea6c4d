//! The receiving side of a load: a thread per flow, one account for all.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_units::nanos;
use narrows_wire::{Datagram, ProbeKind, Tag};

use super::account::{Account, Interval};
use crate::clock;
use crate::receive::Receiver;
use crate::socket::ProbeSocket;
use crate::spacing::Spacing;

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    account: Mutex<Account>,
    last_ns: AtomicI64,
    cpu_ns: Vec<AtomicU64>,
    spacing: Vec<Mutex<Departures>>,
}

/// How evenly a flow's packets left, by the stamps that they carry.
#[derive(Debug, Default)]
struct Departures {
    last: Option<(u32, i64)>,
    spacing: Option<Spacing>,
}

impl Departures {
    /// Packets that left at a time bear one stamp; where one is missing, so is the time between two
    /// sends.
    fn note(&mut self, seq: u32, stamp_ns: i64) {
        let last = self.last.replace((seq, stamp_ns));
        if let Some((before, then)) = last
            && seq == before.wrapping_add(1)
            && let Ok(gap @ 1..) = u64::try_from(stamp_ns.saturating_sub(then))
        {
            self.spacing.get_or_insert_with(|| Spacing::new(0, 1)).note(gap);
        }
    }
}

/// A load that is being received. Dropping it ends that.
#[derive(Debug)]
pub struct LoadReceiver {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Room for the probe header; the padding is not read.
const SLOT_OCTETS: usize = 64;

impl LoadReceiver {
    /// Starts to count the packets of load `id` with the session's mark. Other packets are passed
    /// over.
    pub fn start(flows: &[Arc<ProbeSocket>], tag: Tag, id: u32) -> io::Result<Self> {
        let now = clock::now_ns();
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            account: Mutex::new(Account::new(flows.len(), now)),
            last_ns: AtomicI64::new(now),
            cpu_ns: flows.iter().map(|_| AtomicU64::new(0)).collect(),
            spacing: flows.iter().map(|_| Mutex::default()).collect(),
        });
        let mut receiver = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        for (index, socket) in flows.iter().enumerate() {
            let (shared, socket) = (Arc::clone(&shared), Arc::clone(socket));
            let packets = Receiver::new(&socket, SLOT_OCTETS);
            let thread = std::thread::Builder::new()
                .name(format!("count-{index}"))
                .spawn(move || shared.count(index, &socket, packets, tag, id))?;
            receiver.threads.push(thread);
        }
        Ok(receiver)
    }

    /// Ends the interval, and begins the next.
    pub fn close_interval(&self) -> Interval {
        self.shared.account().close(clock::now_ns())
    }

    /// When the last packet of the load arrived; when counting began, before the first. Monotonic
    /// nanoseconds.
    pub fn last_ns(&self) -> i64 {
        self.shared.last_ns.load(Ordering::Relaxed)
    }

    /// CPU time of each receiving thread.
    pub fn cpu(&self) -> Vec<Duration> {
        self.shared.cpu_ns.iter().map(|nanos| Duration::from_nanos(nanos.load(Ordering::Relaxed))).collect()
    }

    /// How evenly each flow's packets left, as far as they came; what was planned is not in them.
    pub fn spacing(&self) -> Vec<Spacing> {
        let of = |departures: &Mutex<Departures>| {
            let departures = departures.lock().unwrap_or_else(PoisonError::into_inner);
            departures.spacing.clone().unwrap_or_default()
        };
        self.shared.spacing.iter().map(of).collect()
    }

    /// Stops counting; the last interval.
    pub fn stop(mut self) -> Interval {
        self.end();
        self.close_interval()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has stopped too.
            let _ = thread.join();
        }
    }
}

impl Drop for LoadReceiver {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn account(&self) -> std::sync::MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, flow: usize, socket: &ProbeSocket, mut packets: Receiver, tag: Tag, id: u32) {
        const POLL_NS: i64 = 10_000_000;
        const CPU_EVERY_NS: i64 = 5_000_000;
        let mut noted = 0;
        packets.gather(socket, true);
        while !self.stop.load(Ordering::Relaxed) {
            // An error of the socket itself shows as silence; the control connection tells more of
            // it.
            let count = packets.receive(socket, clock::now_ns() + POLL_NS).unwrap_or(0);
            let drops = packets.take_drops(socket);
            if count > 0 || drops > 0 {
                let mut account = self.account();
                account.local_drops(flow, drops);
                let mut departures = self.spacing[flow].lock().unwrap_or_else(PoisonError::into_inner);
                for datagram in packets.iter() {
                    let Ok(Datagram::Probe(probe)) = Datagram::parse(datagram.payload) else {
                        continue;
                    };
                    if probe.kind == ProbeKind::Load && probe.tag == tag && probe.id == id {
                        let received = datagram.seen.best_ns();
                        departures.note(probe.seq, probe.stamp_ns);
                        account.gathered(flow, datagram.gathered);
                        account.packet(
                            flow,
                            probe.seq,
                            probe.stamp_ns,
                            received,
                            socket.ip_octets(datagram.payload_octets),
                        );
                        self.last_ns.store(datagram.seen.user_ns, Ordering::Relaxed);
                    }
                }
            }
            let now = clock::now_ns();
            if now - noted > CPU_EVERY_NS {
                noted = now;
                let cpu = nanos(clock::thread_cpu());
                self.cpu_ns[flow].store(cpu, Ordering::Relaxed);
            }
        }
        packets.gather(socket, false);
    }
}

#[cfg(test)]
mod tests {
    use narrows_probe::timetable::Slack;
    use std::net::SocketAddr;

    use narrows_units::BitRate;
    use narrows_wire::{Probe, Token};

    use super::*;
    use crate::load::{LoadSender, LoadSpec};
    use crate::socket::SocketOptions;

    fn flows(count: usize) -> (Vec<Arc<ProbeSocket>>, Vec<Arc<ProbeSocket>>) {
        let options = SocketOptions::default();
        (0..count)
            .map(|_| {
                let remote = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &options).unwrap();
                let near = ProbeSocket::connected(remote.local().unwrap(), &options).unwrap();
                (Arc::new(near), Arc::new(remote))
            })
            .unzip()
    }

    fn probe() -> Probe {
        Probe { kind: ProbeKind::Load, tag: Token::new([3; 16]).tag(), id: 5, seq: 0, stamp_ns: 0 }
    }

    /// Both ends of a load of so many flows.
    fn ends(count: usize, spec: LoadSpec) -> (LoadReceiver, LoadSender) {
        let ((near, remote), probe) = (flows(count), probe());
        let receiver = LoadReceiver::start(&remote, probe.tag, probe.id).unwrap();
        (receiver, LoadSender::start(&near, probe, 1500, spec).unwrap())
    }

    #[test]
    fn what_left_arrived_and_the_rate_is_held() {
        let begun = clock::now_ns();
        let spec = LoadSpec {
            rate: Some(BitRate::from_mbps(24)),
            burst: 1,
            until_ns: begun + 3_000_000_000,
            slack: Slack::mean_rate(Duration::from_millis(10)),
        };
        let (receiver, sender) = ends(2, spec);
        clock::sleep_until_ns(begun + 100_000_000);
        let slow = sender.totals();
        sender.steer(LoadSpec { rate: Some(BitRate::from_mbps(240)), burst: 10, ..spec });
        clock::sleep_until_ns(begun + 200_000_000);
        let totals = sender.stop();
        let lasted = u64::try_from(clock::now_ns() - begun).unwrap();
        clock::sleep_until_ns(clock::now_ns() + 50_000_000);
        let interval = receiver.stop();
        assert_eq!(totals.failures, 0);
        assert_eq!(interval.packets + interval.lost, totals.packets);
        assert_eq!(interval.lost, interval.local_drops);
        assert_eq!(interval.ip_octets, interval.packets * 1500);
        assert_eq!((interval.duplicates, interval.reordered), (0, 0));
        // 24 Mbit/s are 2 packets per millisecond, never more save the flows' first bursts.
        assert!(slow.packets >= 20 && slow.packets <= lasted / 500_000 + 20, "{slow:?}");
        assert!(totals.packets <= lasted / 50_000 + 20 && totals.packets > slow.packets, "{totals:?}");
        assert!(interval.delay_ns.unwrap().0 >= -2_000, "{interval:?}");
        assert!(totals.cpu.iter().all(|cpu| !cpu.is_zero()));
    }

    #[test]
    fn departures_are_reported_where_nothing_is_missing() {
        let mut departures = Departures::default();
        for (seq, stamp) in [(0, 0), (1, 0), (2, 1_000), (4, 5_000), (3, 5_000), (5, 7_000), (6, 8_000)] {
            departures.note(seq, stamp);
        }
        // From 1 to 2 and from 5 to 6.
        let spacing = departures.spacing.unwrap();
        assert_eq!((spacing.count(), spacing.most()), (2, Duration::from_micros(1)));
    }

    #[test]
    fn a_rate_goes_on_over_orders() {
        let begun = clock::now_ns();
        let spec = LoadSpec {
            rate: Some(BitRate::from_bps(1_200_000)),
            burst: 1,
            until_ns: begun + 400_000_000,
            slack: Slack::mean_rate(Duration::from_secs(1)),
        };
        let (receiver, sender) = ends(1, spec);
        for k in 1..=40 {
            sender.steer(spec);
            clock::sleep_until_ns(begun + 10_000_000 * k);
        }
        clock::sleep_until_ns(spec.until_ns + 20_000_000);
        // 40 packets in 400 ms, however often the order was repeated; fewer where the host stalled
        // at the end. Each order that began anew would cost a gap, and so does a stall.
        let sent = sender.totals().packets;
        assert!((20..=40).contains(&sent), "{sent}");
        let left = &sender.spacing()[0];
        assert_eq!((left.planned(), left.group()), (Duration::from_millis(10), 1));
        assert!(left.count() < sent && left.count() > sent / 2, "{} gaps of {sent}", left.count());
        sender.stop();
        assert!(receiver.spacing()[0].count() < sent);
        receiver.stop();
    }

    #[test]
    fn a_load_ends_by_itself() {
        let (near, _remote) = flows(1);
        let spec = LoadSpec { rate: None, burst: 16, until_ns: clock::now_ns() + 20_000_000, slack: Slack::PROMPT };
        let sender = LoadSender::start(&near, probe(), 1500, spec).unwrap();
        clock::sleep_until_ns(spec.until_ns + 100_000_000);
        let then = sender.totals().packets;
        clock::sleep_until_ns(spec.until_ns + 120_000_000);
        assert!(then > 0);
        assert_eq!(sender.totals().packets, then);
        // And goes on when it is told to.
        let until_ns = clock::now_ns() + 20_000_000;
        sender.steer(LoadSpec { until_ns, ..spec });
        clock::sleep_until_ns(until_ns + 100_000_000);
        assert!(sender.totals().packets > then);
        assert!(LoadSender::start(&near, probe(), 55, spec).is_err());
    }
}
