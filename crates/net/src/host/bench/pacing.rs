//! How late sleeps end, and how well each way to pace keeps a gap.

use std::io;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use narrows_diagnose::host::{Costs, Pacer, PacingRow, SleepRow, Spread};
use narrows_probe::probes::{PacingCheck, PacketPlan};
use nix::sys::prctl::{get_timerslack, set_timerslack};

use super::MOST_NS;
use super::datagrams::{PAYLOAD, pair};
use crate::clock;
use crate::errors::ErrorQueue;
use crate::pace::{self, PaceOptions, Payloads, send_train};

const SLEEP_NS: i64 = 100_000;
const SLEEPS: usize = 250;
/// The kernel's own slack, and the least there is.
const SLACKS_NS: [u64; 2] = [50_000, 1];
/// Gaps that a spinning sender is tried with: the time of a full packet at 240 and at 1200 Mbit/s.
const SPUN: [(Duration, usize); 2] = [(Duration::from_micros(50), 400), (Duration::from_micros(10), 1000)];
const SLEPT: (Duration, usize) = (Duration::from_micros(400), 100);

pub(super) fn measure(costs: &mut Costs, qdisc: Option<&str>) -> io::Result<()> {
    costs.sleeps = SLACKS_NS.iter().filter_map(|slack| sleeps(*slack)).collect();
    costs.pacing.push(departure_times(qdisc));
    for (gap, packets) in SPUN {
        costs.pacing.push(spun(gap, packets)?);
    }
    costs.pacing.push(slept()?);
    Ok(())
}

/// In a thread of its own, whose slack dies with it.
fn sleeps(slack_ns: u64) -> Option<SleepRow> {
    let late = thread::spawn(move || {
        set_timerslack(slack_ns).ok()?;
        let slack_ns = u64::try_from(get_timerslack().ok()?).ok()?;
        let deadline = clock::now_ns().saturating_add(MOST_NS);
        let late: Vec<f64> = (0..SLEEPS)
            .map_while(|done| {
                let target = clock::now_ns() + SLEEP_NS;
                if target > deadline && done > 0 {
                    return None;
                }
                clock::sleep_until_ns(target);
                Some(clock::now_ns().saturating_sub(target) as f64)
            })
            .collect();
        Some((slack_ns, Spread::of(&late)?))
    });
    let (slack_ns, overshoot) = late.join().ok().flatten()?;
    Some(SleepRow { slack_ns, requested_ns: SLEEP_NS.unsigned_abs(), overshoot })
}

/// As every train is sent, and judged as every train is.
fn spun(gap: Duration, packets: usize) -> io::Result<PacingRow> {
    let (near, _remote) = pair()?;
    let plan = plan(gap, packets);
    let payloads = Payloads::new((0..packets).map(|_| PAYLOAD), 1);
    let mut queue = ErrorQueue::new();
    let sent = send_train(&near, &plan, &payloads, &PaceOptions::default(), &mut queue, &AtomicBool::new(false))?;
    let departures = sent.settle(&plan, &near, &mut queue);
    Ok(PacingRow {
        // A packet that was refused breaks a train, too.
        kept: Some(departures.pacing == PacingCheck::Kept),
        ..row(Pacer::Spin, gap, &departures.stamps_ns)
    })
}

/// Sleeping until each departure, without a spin.
fn slept() -> io::Result<PacingRow> {
    let (gap, packets) = SLEPT;
    let (near, _remote) = pair()?;
    let payload = [1; PAYLOAD];
    let begun = clock::now_ns() + 1_000_000;
    let mut left = Vec::with_capacity(packets);
    for k in 0..packets {
        let offset = i64::try_from(k).unwrap_or(i64::MAX).saturating_mul(clock::nanos(gap));
        clock::sleep_until_ns(begun.saturating_add(offset));
        left.push(clock::now_ns());
        near.send(&payload)?;
    }
    Ok(row(Pacer::Sleep, gap, &left))
}

fn plan(gap: Duration, packets: usize) -> Vec<PacketPlan> {
    let packet = PacketPlan { gap, ip_octets: 1500, hop_limit: None };
    vec![packet; packets]
}

/// Departures against a plan of even gaps, judged as every train is.
pub(in crate::host) fn row(pacer: Pacer, gap: Duration, left_ns: &[i64]) -> PacingRow {
    let wanted = clock::nanos(gap);
    let errors: Vec<f64> = left_ns
        .windows(2)
        .map(|two| two[1].saturating_sub(two[0]).saturating_sub(wanted).saturating_abs() as f64)
        .collect();
    PacingRow {
        pacer,
        gap_ns: u64::try_from(gap.as_nanos()).ok(),
        error: Spread::of(&errors),
        kept: Some(pace::check(&plan(gap, left_ns.len()), left_ns) == PacingCheck::Kept),
        unknown: None,
    }
}

/// What keeps departure times is the discipline of the card, and only packets that leave by it show
/// how well: loopback has none.
fn departure_times(qdisc: Option<&str>) -> PacingRow {
    let why = match qdisc {
        Some("fq" | "etf") => {
            "the discipline keeps departure times; how well can only be seen by sending over the card, to a server that is named".to_owned()
        }
        Some("mq") => "the card has several queues, each with a discipline of its own".to_owned(),
        Some(other) => format!("the interface's discipline {other} ignores departure times"),
        None => "the interface's discipline is not known".to_owned(),
    };
    PacingRow { pacer: Pacer::DepartureTimes, gap_ns: None, error: None, kept: None, unknown: Some(why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_count_either_way() {
        let row = row(Pacer::Spin, Duration::from_micros(10), &[0, 10_000, 19_000, 31_000]);
        let error = row.error.unwrap();
        assert_eq!((error.min_ns, error.median_ns, error.max_ns), (0, 1_000, 2_000));
    }

    #[test]
    fn departure_times_are_never_guessed() {
        for qdisc in [None, Some("fq"), Some("mq"), Some("noqueue"), Some("pfifo_fast")] {
            let row = departure_times(qdisc);
            assert!(row.error.is_none() && row.kept.is_none() && row.unknown.is_some());
        }
    }
}
