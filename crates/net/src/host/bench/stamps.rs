//! How noisy receive stamps are: of the program, of the kernel.

use std::io;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use narrows_diagnose::host::{Costs, Spread, StampRow};
use narrows_probe::probes::PacketPlan;

use super::datagrams::{PAYLOAD, pair};
use crate::clock;
use crate::errors::ErrorQueue;
use crate::pace::{PaceOptions, Payloads, send_train};
use crate::receive::{ArrivalTimes, Receiver};

const PACKETS: usize = 400;
/// Far enough apart that none waits for another.
const GAP: Duration = Duration::from_micros(100);

pub(super) fn measure(costs: &mut Costs) -> io::Result<()> {
    let (near, remote) = pair()?;
    let stop = AtomicBool::new(false);
    let plan = vec![PacketPlan { gap: GAP, ip_octets: 1500, hop_limit: None }; PACKETS];
    let payloads = Payloads::new((0..PACKETS).map(|_| PAYLOAD), 1);
    let mut queue = ErrorQueue::new();
    let mut receiver = Receiver::new(&remote, 64);
    // The kernel's switch for stamps takes effect a moment after it is asked for.
    clock::sleep_until_ns(clock::now_ns() + 10_000_000);
    let deadline = clock::now_ns() + 2_000_000_000;
    let (seen, sent) = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut seen: Vec<ArrivalTimes> = Vec::with_capacity(PACKETS);
            let result = receiver.receive_until(&remote, deadline, &stop, |datagram| {
                seen.push(datagram.seen);
                seen.len() < PACKETS
            });
            result.map(|()| seen)
        });
        let sent = send_train(&near, &plan, &payloads, &PaceOptions::default(), &mut queue, &AtomicBool::new(false));
        let seen = waiting.join().unwrap_or_else(|_| Err(io::Error::other("a measuring thread panicked")));
        (seen, sent)
    });
    let (seen, departures) = (seen?, sent?.settle(&plan, &near, &mut queue));
    let delays = |stamp: fn(&ArrivalTimes) -> Option<i64>| -> Option<Vec<f64>> {
        // A packet that was lost would shift all that follow.
        let whole = seen.len() == PACKETS;
        let pairs = seen.iter().zip(&departures.stamps_ns).filter(|_| whole);
        pairs.map(|(seen, left)| Some(stamp(seen)?.saturating_sub(*left) as f64)).collect()
    };
    let row = |source, delays: Option<Vec<f64>>, why: &str| {
        let delay = delays.and_then(|delays| Spread::of(&delays));
        StampRow {
            source,
            delay,
            noise_ns: delay.map(|delay| delay.noise_ns()),
            unknown: delay.is_none().then(|| why.to_owned()),
        }
    };
    let lost = "packets were lost on loopback, or had no stamp";
    costs.stamps = vec![
        row("user", delays(|seen| Some(seen.user_ns)), lost),
        row("kernel", delays(|seen| seen.kernel_ns), lost),
        row("hardware", None, "loopback has no card; only a path through one shows it"),
    ];
    Ok(())
}
