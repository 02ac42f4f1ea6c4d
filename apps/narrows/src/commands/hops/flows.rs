//! Whom other flows meet: routers choose among parallel paths by flow, and a measurement is of one
//! flow.

use std::num::NonZeroU8;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_probe::probes::{Fate, PacketPlan, Probe, Train, TrainId};
use narrows_probe::{Event, World};
use narrows_report::hops::ProbeFindings;

use crate::exit::Failure;
use crate::remote::Remote;

/// Time between two packets: some flows' worth of it is slower than any limit but Linux's own.
const GAP: Duration = Duration::from_millis(20);
/// Length of the packets; enough for any mark.
const IP_OCTETS: u16 = 100;

/// Sends one small packet to each hop for every flow but the first, and notes who answers. A flow
/// is a world of its own.
pub(super) fn poll(
    flows: u16,
    connect: impl Fn() -> Result<Remote, Failure>,
    found: &mut ProbeFindings,
    stop: &AtomicBool,
) {
    let last = found.statistics.last();
    for _ in 1..flows {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // Whom another flow meets is an extra: what is measured stands without it.
        let Ok(mut remote) = connect() else { return };
        let packets = (1..=last).filter_map(NonZeroU8::new).map(|limit| PacketPlan {
            gap: GAP,
            ip_octets: IP_OCTETS,
            hop_limit: Some(limit),
        });
        let train =
            Train { id: TrainId(0), packets: packets.collect(), peer_kind: remote.facts().answering.peer_kind() };
        if train.packets.is_empty() {
            return;
        }
        let limits: Vec<Option<NonZeroU8>> = train.packets.iter().map(|plan| plan.hop_limit).collect();
        let Ok(Event::Train(report)) = remote.send(Probe::Train(train)) else {
            return;
        };
        for (limit, row) in limits.into_iter().zip(&report.arrivals) {
            if let (Some(limit), Fate::Answered(reply)) = (limit, row.fate) {
                found.statistics.meet(limit.get(), reply.from);
            }
        }
    }
}
