//! The path: its queues, buckets, losses, sizes and directions.

use std::time::Duration;

use narrows_units::{Metric, Octets, format_duration};

use super::{Findings, Judged, Severity, command, limited, percent, place, rate};
use crate::limits::LimitingFactor;
use narrows_probe::outcome::Caveat;

/// An unpaced window larger than the burst limit overflows the queue: rate at most `8 MBS / RTT`
/// (`[Netest03]` §III.A); below this share of what is available that is the limit.
const SHORT: f64 = 0.8;
/// Losses at random of a share `p` end half of all bursts within `ln 2 / p` packets. Behind a short
/// queue TCP loses far less: once in about 3/8 of the squared window (RFC 3649 §1 has the formula),
/// where a burst is at most a window. A quarter parts both (ours: between 0.69 and a few
/// hundredths).
const AT_RANDOM: f64 = 0.25;

pub(super) fn shallow_queue(found: &Findings) -> Option<Judged> {
    let burst = found.burst_octets?;
    // A queue this short may spoil the measurement of what is available, too: then the capacity
    // bounds it.
    let measured = found.available_bps;
    let available = measured.or(found.capacity_bps)?;
    let unpaced = found.per_round_trip(burst)?;
    let paced = found.tcp.congestion.as_deref().is_some_and(|name| name.starts_with("bbr"));
    if paced || unpaced as f64 >= SHORT * available as f64 {
        return None;
    }
    // A connection that gets through all the same shows that the queue is none of its limits.
    if found.tcp_bps().is_some_and(|bps| bps as f64 > SHORT * available as f64) {
        return None;
    }
    if ends_at_random(found) {
        return None;
    }
    let streams = available.div_ceil(unpaced.max(1));
    let lossy = found.tcp.retransmitted.is_some_and(|share| share > 0.0);
    Some(
        Judged::new(
            Severity::Limiting,
            format!(
                "the path loses packets beyond bursts of {}: an unpaced TCP window of that size carries only {} of {}. Pace the sender (fq, or bbr), or use {streams} connections; keep UDP bursts below {}; narrows hops finds the router",
                Octets::new(burst),
                rate(unpaced),
                rate(available),
                Octets::new(burst / 2)
            ),
        )
        .with("maximum_burst_octets", burst)
        .with("unpaced_tcp_bps", unpaced)
        .with("available_bps", available)
        .and("retransmitted_share", found.tcp.retransmitted)
        .at(unpaced)
        .signals(usize::from(measured.is_some()) + usize::from(lossy))
        .command(command(
            found,
            true,
            "sysctl -w net.core.default_qdisc=fq net.ipv4.tcp_congestion_control=bbr".to_owned(),
        )),
    )
}

/// Whether the losses that TCP met anywhere explain where bursts end: then no queue is short.
fn ends_at_random(found: &Findings) -> bool {
    let expected = found.burst_packets.zip(found.tcp.retransmitted).map(|(packets, share)| packets as f64 * share);
    expected.is_some_and(|losses| losses > AT_RANDOM)
}

pub(super) fn mtu_black_hole(found: &Findings) -> Option<Judged> {
    let probed = found.black_hole == Some(true);
    let stalled = limited(found, LimitingFactor::MtuBlackHole);
    if !probed && !stalled {
        return None;
    }
    let size = found.path_mtu_octets;
    let passes = size
        .map_or_else(|| "packets of full size vanish".to_owned(), |size| format!("packets above {size} octets vanish"));
    Some(
        Judged::new(
            if stalled { Severity::Limiting } else { Severity::Warning },
            format!("{passes} without a word from any router, and smaller ones pass: TCP connections with larger segments hang; let it probe, or clamp its segments where the path narrows"),
        )
        .and("path_mtu_octets", size)
        .with("probes_vanish", probed)
        .with("tcp_stands_still", stalled)
        .at(stalled.then_some(0))
        .signals(usize::from(probed) + usize::from(stalled))
        .command(command(found, true, "sysctl -w net.ipv4.tcp_mtu_probing=1".to_owned())),
    )
}

/// What IPv6 demands of every link (RFC 8200 §5).
const LEAST_MTU: u64 = 1280;

pub(super) fn fragments(found: &Findings) -> Option<Judged> {
    // Who sends cuts up; answers are too small for that.
    let made = found.sender.counted.fragments.filter(|&count| count > 0);
    let small = found.path_mtu_octets.filter(|&octets| octets < LEAST_MTU);
    if made.is_none() && small.is_none() {
        return None;
    }
    let who = place(found, true);
    let text = match (made, small) {
        (Some(count), _) => format!(
            "{who} cut packets up: {count} fragments; one lost fragment loses the whole packet, and some routers drop all fragments: send packets that fit"
        ),
        (None, size) => format!(
            "only packets up to {} octets cross the path: look for a tunnel; larger datagrams travel in fragments, or not at all",
            size?
        ),
    };
    Some(
        Judged::new(Severity::Warning, text)
            .and("fragments", made)
            .and("path_mtu_octets", found.path_mtu_octets)
            .signals(usize::from(made.is_some()) + usize::from(small.is_some()))
            .command(command(found, true, "sysctl -w net.ipv4.tcp_mtu_probing=1".to_owned())),
    )
}

/// Losses that come so many times more together than by chance are bursts; at gaps that vary this
/// little they are periodic.
const BURSTY: f64 = 5.0;
const PERIODIC: f64 = 0.10;

pub(super) fn loss_pattern(found: &Findings) -> Option<Judged> {
    let pattern = found.tcp.pattern?;
    let loss = found.tcp.retransmitted.filter(|&share| share > 0.0)?;
    let periodic = pattern.spacing_variation.filter(|&variation| variation < PERIODIC);
    let bursty = pattern.burstiness > BURSTY;
    let text = match (bursty, periodic) {
        (_, Some(_)) => "losses come at even times: look for a policer, or something that scans or roams in step",
        (true, None) => {
            "losses come in bursts: queues overflow; a medium with errors loses one packet here and one there"
        }
        (false, None) => return None,
    };
    Some(
        Judged::new(Severity::Hint, format!("{} of what was sent was sent again, and {text}", percent(loss)))
            .with("retransmitted_share", loss)
            .with("burstiness", pattern.burstiness)
            .and("spacing_variation", pattern.spacing_variation)
            .signals(usize::from(bursty) + usize::from(periodic.is_some())),
    )
}

pub(super) fn token_bucket(found: &Findings) -> Option<Judged> {
    let policed = limited(found, LimitingFactor::Policer);
    let shaped = limited(found, LimitingFactor::Shaper);
    let reported = found.caveats.iter().find_map(|(_, caveat)| match caveat {
        Caveat::Policed => Some(true),
        Caveat::Shaped => Some(false),
        _ => None,
    });
    let (peak, burst) = found.bucket;
    let sustained = found.capacity_bps.filter(|&bps| peak.is_some_and(|peak| peak > bps));
    if !policed && !shaped && reported.is_none() && sustained.is_none() {
        return None;
    }
    let drops = policed || (reported == Some(true) && !shaped);
    let what = if drops { "policed: what exceeds the rate is dropped" } else { "shaped: what exceeds the rate waits" };
    let rates = sustained.or(found.tcp_bps()).map_or_else(String::new, |bps| {
        let after = burst.map_or_else(String::new, |octets| format!(" after {}", Octets::new(octets)));
        format!(", at about {}{after}", rate(bps))
    });
    let advice =
        if drops { "pace below the sustained rate" } else { "count on the sustained rate, whatever short tests say" };
    Some(
        Judged::new(
            if policed || shaped { Severity::Limiting } else { Severity::Warning },
            format!("traffic is {what}{rates}; {advice}, and ask the operator for what is agreed"),
        )
        .with("what_exceeds", if drops { "dropped" } else { "waits" })
        .and("sustained_bps", sustained)
        .and("peak_bps", peak)
        .and("burst_octets", burst)
        .at(sustained.or(found.tcp_bps()))
        .signals(usize::from(policed || shaped) + usize::from(reported.is_some()) + usize::from(sustained.is_some())),
    )
}

/// Share of packets overtaken from which it matters, and share of needless retransmissions.
const OVERTAKEN: f64 = 0.001;
const NEEDLESS: f64 = 0.5;

pub(super) fn reordering(found: &Findings) -> Option<Judged> {
    let share = found
        .caveat(|caveat| match caveat {
            Caveat::Reordering { ratio } => Some(*ratio),
            _ => None,
        })
        .filter(|&ratio| ratio > OVERTAKEN);
    let tcp = &found.tcp;
    let needless = tcp
        .needless
        .zip(tcp.retransmitted_segments)
        .filter(|(needless, resent)| *resent > 0.0 && needless > &(NEEDLESS * resent))
        .filter(|_| tcp.reordered.is_some_and(|events| events > 0.0));
    let reported = limited(found, LimitingFactor::Reordering);
    if share.is_none() && needless.is_none() && !reported {
        return None;
    }
    Some(
        Judged::new(
            if reported { Severity::Limiting } else { Severity::Warning },
            "packets overtake one another: look for parallel links among which packets are spread one by one; TCP takes it for loss and sends again what had arrived",
        )
        .and("reordered_share", share)
        .and("reordered_events", tcp.reordered)
        .and("needless_retransmissions", needless.map(|(needless, _)| needless))
        .at(if reported { found.tcp_bps() } else { None })
        .signals(usize::from(share.is_some()) + usize::from(needless.is_some()))
        .command(command(found, true, "sysctl -w net.ipv4.tcp_max_reordering=1000 net.ipv4.tcp_recovery=1".to_owned())),
    )
}

/// Directions are alike within a factor of two; below a tenth, with a link that could do both, a
/// duplex mismatch is likely.
const ALIKE: f64 = 0.5;
const MISMATCH: f64 = 0.1;

pub(super) fn asymmetry(found: &Findings) -> Option<Judged> {
    rates_apart(found).or_else(|| lost_back(found))
}

/// Round trips lose, and thousands of packets that only went there did not.
fn lost_back(found: &Findings) -> Option<Judged> {
    let loss = |(metric, caveat): &(Metric, Caveat)| match caveat {
        Caveat::Loss { ratio } => Some((*metric, *ratio)),
        _ => None,
    };
    let mut losses = found.caveats.iter().filter_map(loss);
    let (Some((Metric::RoundTripTime, ratio)), None) = (losses.next(), losses.next()) else { return None };
    let there = found.available_bps.is_some() && found.udp_bps.is_some();
    there.then(|| {
        Judged::new(
            Severity::Warning,
            format!(
                "{} of the answers were lost, and no packet forward: the reverse direction loses; measure it with --reverse",
                percent(ratio)
            ),
        )
        .with("lost_share", ratio)
    })
}

fn rates_apart(found: &Findings) -> Option<Judged> {
    // A transfer that was cut off carries less than it would have.
    let cut = |(metric, caveat): &(Metric, Caveat)| {
        *metric == Metric::TcpAchievableSingle && matches!(caveat, Caveat::StoppedEarly)
    };
    if found.caveats.iter().any(cut) {
        return None;
    }
    let (this, other) = (found.tcp_bps()?, found.other_way_tcp_bps?);
    let ratio = this as f64 / other.max(1) as f64;
    (ratio < ALIKE).then(|| {
        let why =
            if ratio < MISMATCH { "; one so far below the other is what a duplex mismatch looks like" } else { "" };
        Judged::new(
            Severity::Hint,
            format!(
                "TCP carries {} from {}, and {} from {}: the directions differ in route, rate, load or hosts{why}",
                rate(this),
                place(found, true),
                rate(other),
                place(found, false)
            ),
        )
        .with("this_bps", this)
        .with("other_bps", other)
        .signals(1 + usize::from(ratio < MISMATCH))
    })
}

/// Variation of the rate, spread of unloaded round trips, and the loss up to which they are the
/// link's own.
const VARIES: f64 = 0.3;
const SPREAD_NS: u64 = 10_000_000;
const LITTLE_LOSS: f64 = 0.01;

pub(super) fn variable_link(found: &Findings) -> Option<Judged> {
    let variation = found.tcp.variation.filter(|&variation| variation > VARIES)?;
    let spread = found.rtt_spread_ns.filter(|&spread| spread > SPREAD_NS);
    let little = found.tcp.retransmitted.is_none_or(|share| share < LITTLE_LOSS);
    let radio = [&found.sender, &found.receiver].iter().any(|host| host.wireless == Some(true));
    ((spread.is_some() && little) || radio).then(|| {
        Judged::new(
            Severity::Warning,
            "rates vary by more than the congestion control makes them, as over radio: measure for longer, and take the range for the answer",
        )
        .with("rate_variation", variation)
        .and("rtt_spread_ns", spread)
        .with("wireless", radio)
        .signals(usize::from(spread.is_some()) + usize::from(radio))
    })
}

/// Delay that a load may add.
const DEEP_NS: f64 = 100e6;

pub(super) fn deep_queue(found: &Findings) -> Option<Judged> {
    let tcp = &found.tcp;
    let added = tcp.rtt_loaded_ns? - tcp.rtt_min_ns?;
    (added > DEEP_NS).then(|| {
        let time = Duration::try_from_secs_f64(added / 1e9).unwrap_or_default();
        let queue = found.tcp_bps().map(|bps| super::super::findings::whole(added / 1e9 * bps as f64 / 8.0));
        let shape = found.capacity_bps.map_or_else(String::new, |bps| format!(" at {}", rate(bps / 100 * 95)));
        let size = queue.map_or_else(String::new, |octets| format!(" ({} in a queue)", Octets::new(octets)));
        Judged::new(
            Severity::Warning,
            format!("under load round trips take {} longer{size}: calls and games suffer; a fair queue (fq_codel, cake){shape} in front of the slow link cures it", format_duration(time)),
        )
        .and("queue_octets", queue)
        .with("added_delay_ns", added)
        .signals(1 + usize::from(limited(found, LimitingFactor::Queue)))
        .command(format!(
            "tc qdisc replace dev INTERFACE root cake bandwidth {}kbit   # on the router in front of the slow link",
            found.capacity_bps.or(found.tcp_bps()).unwrap_or(0) / 1000 * 95 / 100
        ))
    })
}

/// TCP's handshake ends nearer than UDP's echo by more than this, and by more than programs that
/// answer may add to what kernels do (ours).
const NEARER: f64 = 0.7;
/// See [`NEARER`].
const NEARER_NS: f64 = 1e6;

pub(super) fn proxy(found: &Findings) -> Option<Judged> {
    let (tcp, udp) = (found.tcp.rtt_min_ns?, found.rtt_ns?);
    (tcp > 0.0 && tcp < NEARER * udp as f64 && tcp + NEARER_NS < udp as f64).then(|| {
        let time = |nanos: f64| format_duration(Duration::try_from_secs_f64(nanos / 1e9).unwrap_or_default());
        Judged::new(
            Severity::Warning,
            format!("TCP's round trip takes {}, UDP's to the same host {}: something nearer answers TCP for that host (a proxy), and TCP results reach only to it", time(tcp), time(udp as f64)),
        )
        .with("tcp_rtt_ns", tcp)
        .with("udp_rtt_ns", udp)
        .signals(1)
        .command("traceroute -T -p PORT HOST; traceroute -U HOST")
    })
}

pub(super) fn per_flow_limit(found: &Findings) -> Option<Judged> {
    let (channels, each) = found.caveat(|caveat| match caveat {
        Caveat::Multichannel { channels, each, by_flow: true } => Some((*channels, *each)),
        _ => None,
    })?;
    Some(
        Judged::new(
            Severity::Warning,
            format!("one flow gets one of {channels} channels, {each}: only several connections carry more"),
        )
        .with("channels", u32::from(channels))
        .with("each_bps", each.bps())
        .at(each.bps())
        .signals(1),
    )
}

/// Less than this share of the capacity is left.
const NOTHING_LEFT: u64 = 10;

pub(super) fn busy(found: &Findings) -> Option<Judged> {
    let (capacity, available) = (found.capacity_bps?, found.available_bps?);
    (available.saturating_mul(NOTHING_LEFT) < capacity).then(|| {
        Judged::new(
            Severity::Limiting,
            format!("cross traffic leaves {} of {}: the path is busy, not slow; look for who fills it before changing any setting", rate(available), rate(capacity)),
        )
        .with("available_bps", available)
        .with("capacity_bps", capacity)
        .at(available)
        .signals(1)
    })
}
