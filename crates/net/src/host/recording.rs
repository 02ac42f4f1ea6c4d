//! Records what this host does to packets and stamps, over loopback, for a host profile.
//!
//! A spinning thread sends trains and watches for times in which it did not run. A receiver sleeps
//! until packets come, as servers do. Where both ends and the path are to be on this machine, a
//! third thread stands between the two and forwards at once: it spins like a path in software, on a
//! processor of its own as such a path does, and the times in which it did not run are the
//! receiving end's stalls.

mod busy;
mod calls;
mod receiver;
mod relay;
mod sender;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use narrows_host_profile::{PacketRow, Rows, Span};

use super::bench::loopback;
use crate::clock;
use crate::socket::{ProbeSocket, SocketOptions};
use crate::thread_scheduling::{ThreadScheduling, last_allowed_cpu, stay_off};

pub use busy::BusyReading;

/// What to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingOptions {
    /// For how long.
    pub lasting: Duration,
    /// Both ends and the path between them are on this machine.
    pub both_ends: bool,
}

/// When a recording begins, and when it ends.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    begin: i64,
    end: i64,
}

/// Time to get all threads in place, and for the kernel's switch for stamps to take effect.
const LEAD_NS: i64 = 20_000_000;
/// The last packets are waited for so long.
const LINGER_NS: i64 = 50_000_000;

/// Records until the time is over or `stop` is set. Sends only on loopback, changes nothing.
pub fn record(options: &RecordingOptions, stop: &AtomicBool) -> io::Result<Rows> {
    let sockets = SocketOptions::default();
    let last = ProbeSocket::bind(loopback(), &sockets)?;
    let relay = if options.both_ends {
        let from = ProbeSocket::bind(loopback(), &sockets)?;
        Some((from, ProbeSocket::connected(last.local()?, &sockets)?))
    } else {
        None
    };
    let first_stop = relay.as_ref().map_or(&last, |(from, _)| from).local()?;
    let near = ProbeSocket::connected(first_stop, &sockets)?;
    let mut rows =
        Rows { clock_reads_ns: calls::clock_reads(), receive_calls_ns: calls::receives()?, ..Rows::default() };
    let begin = clock::now_ns() + LEAD_NS;
    let schedule = Schedule { begin, end: begin.saturating_add(clock::nanos(options.lasting)) };
    let deadline = schedule.end.saturating_add(10 * LINGER_NS);
    let over = AtomicBool::new(false);
    // As `narrows demo` and `narrows lab` place theirs.
    let path_cpu = relay.as_ref().and_then(|_| last_allowed_cpu());
    let at_an_end = || path_cpu.into_iter().for_each(stay_off);
    let (sent, came, held) = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            at_an_end();
            receiver::run(&last, deadline, &over)
        });
        let relaying = relay.as_ref().map(|(from, to)| {
            let over = &over;
            scope.spawn(move || {
                let _careful = ThreadScheduling { pin_to: path_cpu, ..ThreadScheduling::default() }.take();
                relay::run(from, to, deadline, over)
            })
        });
        let sending = scope.spawn(|| {
            at_an_end();
            sender::run(&near, schedule, stop)
        });
        let sent = joined(sending.join());
        clock::sleep_until_ns(clock::now_ns() + LINGER_NS);
        over.store(true, Ordering::Relaxed);
        (sent, joined(receiving.join()), relaying.map(|relaying| joined(relaying.join())).transpose())
    });
    let (sent, came) = (sent?, came?);
    rows.receiver_stalls = held?;
    rows.clock_steps = sent.stepped.len();
    rows.packets = sent
        .packets
        .iter()
        .filter(|row| sent.is_comparable(row))
        .filter_map(|row| {
            let index = usize::try_from(row.seq).ok()?;
            let (seen_ns, read_ns) = (*came.get(index)?)?;
            let left_ns = row.left_ns?;
            Some(PacketRow {
                planned_ns: row.planned_ns,
                stamped_ns: row.stamped_ns,
                left_ns,
                returned_ns: row.returned_ns,
                arrived_ns: left_ns,
                seen_ns,
                read_ns,
            })
        })
        .collect();
    rows.windows = lengthened(&sent.windows, rows.receiver_stalls.as_deref().unwrap_or_default());
    rows.sender_stalls = sent.stalls;
    Ok(rows)
}

/// The windows, each with the rest of the receiving end's stall in which it ended: packets waited
/// until then. None reaches into the next one.
fn lengthened(windows: &[Span], receiver_stalls: &[Span]) -> Vec<Span> {
    let next = windows.iter().skip(1).map(|window| window.from).chain([i64::MAX]);
    let lengthened = windows.iter().zip(next).map(|(window, next)| {
        let at = receiver_stalls.partition_point(|stall| stall.to <= window.to);
        let rest = receiver_stalls.get(at).filter(|stall| stall.from < window.to);
        Span { to: rest.map_or(window.to, |stall| stall.to.min(next)), ..*window }
    });
    lengthened.collect()
}

fn joined<T>(result: thread::Result<io::Result<T>>) -> io::Result<T> {
    result.unwrap_or_else(|_| Err(io::Error::other("a measuring thread panicked")))
}

impl Schedule {
    /// The windows in which stalls are watched for.
    fn windows(self) -> impl Iterator<Item = Span> {
        let starts = (0..).map(move |k| self.begin + k * (Rows::WINDOW_NS + Rows::PAUSE_NS));
        let starts = starts.take_while(move |start| *start < self.end);
        starts.map(move |from| Span { from, to: (from + Rows::WINDOW_NS).min(self.end) })
    }
}

/// A clock that notes when its reader did not run.
#[derive(Debug)]
struct Watch {
    last: i64,
    stalls: Vec<Span>,
}

impl Watch {
    fn new() -> Self {
        Self { last: clock::now_ns(), stalls: Vec::new() }
    }

    /// What happened since the last reading was not watched.
    fn restart(&mut self) -> i64 {
        self.last = clock::now_ns();
        self.last
    }

    fn now(&mut self) -> i64 {
        let now = clock::now_ns();
        if now.saturating_sub(self.last) > Rows::THRESHOLD_NS {
            self.stalls.push(Span { from: self.last, to: now });
        }
        self.last = now;
        now
    }

    fn spin_until(&mut self, target: i64) -> i64 {
        loop {
            let now = self.now();
            if now >= target {
                return now;
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_host_profile::{About, Ends, HostProfile, Recorded};

    use super::*;

    fn recorded(both_ends: bool) -> HostProfile {
        let options = RecordingOptions { lasting: Duration::from_millis(150), both_ends };
        let rows = record(&options, &AtomicBool::new(false)).unwrap();
        assert!(rows.packets.is_sorted_by_key(|row| row.stamped_ns));
        assert!(
            rows.packets.iter().all(|row| row.returned_ns >= row.stamped_ns && row.read_ns + 1_000_000 > row.seen_ns)
        );
        let recorded = Recorded {
            at: String::new(),
            seconds: 0.15,
            over: String::new(),
            machine: String::new(),
            busy_share: None,
        };
        let about = About { name: "here".to_owned(), about: String::new(), recorded, virtual_interface: true };
        HostProfile::of_rows(&rows, about).unwrap()
    }

    /// A profile comes of it, and reading it gives the same.
    #[test]
    #[ignore = "judge: a recording needs a machine that is not busy"]
    fn this_host_has_a_profile() {
        for (both_ends, ends) in [(false, Ends::One), (true, Ends::Both)] {
            let profile = recorded(both_ends);
            assert_eq!((profile.ends, profile.receive.stamps_wait), (ends, both_ends));
            assert_eq!(HostProfile::from_toml(&profile.to_toml()), Ok(profile));
        }
    }

    #[test]
    fn an_interrupt_ends_it() {
        let options = RecordingOptions { lasting: Duration::from_secs(3600), both_ends: true };
        let rows = record(&options, &AtomicBool::new(true)).unwrap();
        assert!(rows.packets.is_empty() && rows.windows.is_empty());
    }

    #[test]
    fn a_window_that_ends_in_a_stall_lasts_until_its_end() {
        let span = |(from, to)| Span { from, to };
        let windows = [(0, 10), (20, 30), (40, 50), (60, 70)].map(span);
        let stalls = [(8, 9), (12, 15), (28, 33), (49, 61), (70, 80)].map(span);
        assert_eq!(lengthened(&windows, &stalls), [(0, 10), (20, 33), (40, 60), (60, 70)].map(span));
        assert_eq!(lengthened(&windows, &[]), windows);
    }

    #[test]
    fn windows_have_pauses_between() {
        let end = Rows::WINDOW_NS + Rows::PAUSE_NS + 5;
        let windows: Vec<Span> = Schedule { begin: 0, end }.windows().collect();
        let second = Span { from: Rows::WINDOW_NS + Rows::PAUSE_NS, to: end };
        assert_eq!(windows, [Span { from: 0, to: Rows::WINDOW_NS }, second]);
    }
}
