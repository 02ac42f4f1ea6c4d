//! For how much of the time a hop has a queue.

use super::line::Line;
use super::picture::Picture;
use super::session::MethodRun;
use narrows_probe::outcome::{BoundKind, HopCapacity};

/// An answer that waited less than this met nobody: kernels that were at rest answer some tens of
/// us late. Stamps of packets are not so late (both ours, between kernels), ns.
const AT_REST_NS: f64 = 50_000.0;
const STAMPED_NS: f64 = 20_000.0;
/// Where noise is more than this share of a full-size packet's time, waits tell nothing, and so few
/// answers neither (ours: packets of others that fill half of a link make one answer in twelve wait
/// for less than a quarter of a packet's time).
const SOMEBODY: f64 = 0.25;
const ENOUGH: usize = 30;
/// Answers of an earlier hop that tell what was waited for there, and the share of them from which
/// on that is nothing (ours).
const EARLIER: usize = 12;
const NOTHING_EARLIER: f64 = 0.9;

/// Share of the time in which the hop has a queue. `None` where so few answers, or so uneven ones,
/// do not tell a packet of others from the noise of hosts and routers. Probes come at uneven times,
/// so the share of them that met nobody is the share of time in which nobody is there. What was
/// waited for at earlier hops is told by answers from there, by the same measure of waits.
pub(super) fn ratio(session: &MethodRun, picture: &Picture, of: (usize, Option<HopCapacity>)) -> Option<f64> {
    let (hop, capacity) = of;
    let capacity = capacity.filter(|capacity| capacity.rate.verdict == BoundKind::Estimated)?;
    let packet_ns = 8e9 * f64::from(session.full()) / capacity.rate.value.as_f64().max(1.0);
    let stamped = picture.by_stamps && session.hops[hop].remote;
    let (waits, line) = if stamped { session.remote_waits()? } else { answered(session, picture, hop)? };
    let noise = if stamped { STAMPED_NS } else { AT_REST_NS };
    let near = (3.0 * line.spread_ns).max(2.0 * session.floor_ns()).max(noise);
    if waits.len() < ENOUGH || near > SOMEBODY * packet_ns {
        return None;
    }
    let own = clean(&waits, near);
    let earlier = (0..hop).rev().find_map(|earlier| {
        let (waits, _) = answered(session, picture, earlier)?;
        (waits.len() >= EARLIER).then(|| clean(&waits, near))
    });
    // What answers from further on did not meet was the router's own.
    let earlier = earlier.unwrap_or(1.0).max(own);
    if stamped && earlier < NOTHING_EARLIER {
        // Answers waited on their way back as well, stamped packets did not.
        return None;
    }
    Some((1.0 - own / earlier.max(1e-3)).clamp(0.0, 1.0))
}

/// Waits of the answers of a hop, ns.
fn answered(session: &MethodRun, picture: &Picture, hop: usize) -> Option<(Vec<f64>, Line)> {
    let line = picture.lines[hop]?;
    Some((session.hops[hop].waits(&line, session.params.framing)?, line))
}

/// Share of waits that are no longer than `near`.
fn clean(waits: &[f64], near: f64) -> f64 {
    waits.iter().filter(|wait| **wait <= near).count() as f64 / waits.len().max(1) as f64
}
