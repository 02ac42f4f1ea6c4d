//! Whether this machine can play a path in time just now: a second of the idle path decides, before
//! anything is measured over it.

use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_net::clock;
use narrows_scenario::Scenario;

use crate::error::LabError;
use crate::placement::Placement;
use crate::plan::Side;
use crate::realtime::{RealTimePath, StartOptions};
use crate::timing_report::TimingReport;

/// Packets of one try, and the time between two of them: together a second.
const PACKETS: u32 = 1_000;
const EVERY_NS: i64 = 1_000_000;
/// Time between two tries, and what the last packets need to arrive.
const PAUSE_NS: i64 = 1_000_000_000;
const ARRIVAL_NS: i64 = 100_000_000;
/// A limit that is exceeded so many times is no accident: one try is enough.
const GROSSLY: f64 = 10.0;
/// Tries, each of which may show that the machine can.
const TRIES: u32 = 2;

/// Why this machine cannot play a path in time now: the limit of the timing report that was
/// exceeded most.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfit {
    times: f64,
    what: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Whether there is a processor for the path and another one for its hosts.
pub fn has_processors() -> bool {
    Placement::choose(None).is_some()
}

/// Plays the idle path of a scenario for a second, with 1 000 packets, and again a second later if
/// it was a little late; says whether the machine can play it in time.
pub fn check_fitness(scenario: &Scenario, options: StartOptions) -> Result<Result<(), Unfit>, LabError> {
    let path = RealTimePath::start(scenario, options)?;
    let unfit = judge(|tries_before| {
        if tries_before > 0 {
            clock::sleep_until_ns(clock::now_ns() + PAUSE_NS);
        }
        path.take_timing_report()?;
        cross(&path)?;
        path.take_timing_report()
    })?;
    path.stop()?;
    Ok(unfit.map_or(Ok(()), Err))
}

/// Unfit is a machine that exceeds a limit grossly once, or at all in each try.
fn judge<E>(mut attempt: impl FnMut(u32) -> Result<TimingReport, E>) -> Result<Option<Unfit>, E> {
    let mut last = None;
    for tries_before in 0..TRIES {
        last = exceeded(&attempt(tries_before)?);
        match &last {
            None => return Ok(None),
            Some(unfit) if unfit.times > GROSSLY => break,
            Some(_) => {}
        }
    }
    Ok(last)
}

/// The limit that was exceeded most.
fn exceeded(report: &TimingReport) -> Option<Unfit> {
    let late = |share: &str, late_ns: u64, limit_ns: u64| Unfit {
        times: late_ns as f64 / limit_ns as f64,
        what: format!("{share} of packets {} late, limit {}", millis(late_ns), millis(limit_ns)),
    };
    let stalled = report.stalled_ns as f64 / report.ran.as_nanos().max(1) as f64 * 1_000.0;
    let stall_limit = TimingReport::STALLED_PER_MILLE as f64;
    let [near, far] = report.kernel_drops;
    let lost = near + far + report.refusals;
    let limits = [
        late("1 %", report.late_p99_ns, TimingReport::LATE_P99_NS),
        late("50 %", report.late_p50_ns, TimingReport::LATE_P50_NS),
        Unfit {
            times: stalled / stall_limit,
            what: format!("it stood still for {:.1} % of the time, limit {:.0} %", stalled / 10.0, stall_limit / 10.0),
        },
        // None may be lost; the first counts as twice a limit.
        Unfit { times: 1.0 + lost as f64, what: format!("its kernel lost {lost} packets, limit 0") },
    ];
    let over = limits.into_iter().filter(|limit| limit.times > 1.0);
    over.max_by(|one, other| one.times.total_cmp(&other.times))
}

/// In milliseconds, as exact as they are small.
fn millis(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    let digits = if ms < 0.095 { 2 } else { 1 };
    format!("{ms:.digits$} ms")
}

/// Sends the packets of one try over the path, and takes them from it.
fn cross(path: &RealTimePath) -> Result<(), LabError> {
    let bound = |side: Side| -> Result<UdpSocket, LabError> {
        let address = path.host(side).addresses().ipv4;
        path.host(side).run(|| UdpSocket::bind((address, 0)))?.map_err(|error| kernel("opening a socket", error))
    };
    let (near, far) = (bound(Side::Sender)?, bound(Side::Receiver)?);
    let target = far.local_addr().map_err(|error| kernel("asking a socket for its port", error))?;
    far.set_read_timeout(Some(Duration::from_millis(50))).map_err(|error| kernel("setting a timeout", error))?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| path.host(Side::Receiver).run(|| take(&far, &over)));
        let sent = path.host(Side::Sender).run(|| {
            let begun = clock::now_ns();
            for packet in 0..PACKETS {
                clock::sleep_until_ns(begun + i64::from(packet) * EVERY_NS);
                near.send_to(&[0; 100], target)?;
            }
            clock::sleep_until_ns(clock::now_ns() + ARRIVAL_NS);
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        receiving.join().map_err(|_| LabError::PlayerDied)??;
        sent?.map_err(|error| kernel("sending over the idle path", error))
    })
}

/// Whatever comes, until it is over. What does not come is the path's affair.
fn take(socket: &UdpSocket, over: &AtomicBool) {
    let mut room = [0; 128];
    while !over.load(Ordering::Relaxed) {
        let _ = socket.recv(&mut room);
    }
}

fn kernel(doing: &str, source: io::Error) -> LabError {
    LabError::kernel(doing, source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing_report::tests::good;

    fn late(p99_ns: u64) -> TimingReport {
        TimingReport { late_p99_ns: p99_ns, ..good() }
    }

    /// What is said after these tries, and how many of them were made.
    fn said(tries: &[TimingReport]) -> (Option<String>, u32) {
        let mut made = 0;
        let unfit = judge(|before| {
            assert_eq!(before, made);
            made += 1;
            Ok::<_, ()>(tries[before as usize].clone())
        });
        (unfit.unwrap().map(|unfit| unfit.to_string()), made)
    }

    #[test]
    fn a_little_late_is_tried_again_and_far_too_late_is_not() {
        assert_eq!(said(&[good()]), (None, 1));
        assert_eq!(said(&[late(100_000)]), (None, 1));
        assert_eq!(said(&[late(100_001), good()]), (None, 2));
        let unfit = "1 % of packets 0.3 ms late, limit 0.1 ms".to_owned();
        assert_eq!(said(&[late(100_001), late(300_000)]), (Some(unfit), 2));
        // Ten times the limit is not more than that.
        assert_eq!(said(&[late(1_000_000), good()]), (None, 2));
        let unfit = "1 % of packets 1.7 ms late, limit 0.1 ms".to_owned();
        assert_eq!(said(&[late(1_700_000)]), (Some(unfit), 1));
    }

    #[test]
    fn the_limit_that_is_exceeded_most_is_told() {
        let what = |report: TimingReport| exceeded(&report).map(|unfit| unfit.to_string());
        assert_eq!(what(good()), None);
        let both = TimingReport { late_p50_ns: 60_000, ..late(200_000) };
        assert_eq!(what(both).as_deref(), Some("50 % of packets 0.06 ms late, limit 0.01 ms"));
        let stood = TimingReport { stalled_ns: 310_000_000, ..good() };
        assert_eq!(what(stood).as_deref(), Some("it stood still for 3.1 % of the time, limit 1 %"));
        let lost = TimingReport { kernel_drops: [2, 1], refusals: 1, ..good() };
        assert_eq!(what(lost).as_deref(), Some("its kernel lost 4 packets, limit 0"));
    }

    /// Whatever the rule calls fit, the report calls valid.
    #[test]
    fn no_limit_of_the_report_is_forgotten() {
        let broken: [fn(&mut TimingReport); 5] = [
            |run| run.late_p50_ns = 10_001,
            |run| run.late_p99_ns = 100_001,
            |run| run.stalled_ns = 100_000_001,
            |run| run.kernel_drops = [0, 1],
            |run| run.refusals = 1,
        ];
        for breaks in broken {
            let mut run = good();
            breaks(&mut run);
            assert!(!run.timing_valid() && exceeded(&run).is_some(), "{run:?}");
        }
    }
}
