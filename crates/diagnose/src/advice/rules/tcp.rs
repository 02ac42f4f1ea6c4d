//! Windows, buffers, congestion control and connections.

use std::fmt::Write as _;

use narrows_units::Octets;

use super::{BUSY, Findings, Judged, STALLED, Severity, command, limited, percent, place, rate};
use crate::limits::LimitingFactor;
use narrows_probe::outcome::Caveat;

/// Twice what fills the path: the kernel charges its own overhead to the buffer.
fn needed(found: &Findings) -> Option<u64> {
    Some(found.product()?.saturating_mul(2))
}

pub(super) fn send_buffer(found: &Findings) -> Option<Judged> {
    let most = found.sender.tcp_wmem_octets.map(|[_, _, most]| most);
    let need = needed(found);
    let small = most.zip(need).is_some_and(|(most, need)| most < need);
    let stalled = found.tcp.share_send_buffer.filter(|&share| share > STALLED);
    if !small && stalled.is_none() {
        return None;
    }
    let severity = if stalled.is_some() { Severity::Limiting } else { Severity::Warning };
    let cause = match (stalled, most) {
        (Some(share), _) => {
            format!("its send buffer stalled {} for {} of the time", place(found, true), percent(share))
        }
        (None, most) => format!("a TCP sender on {} can hold {} at most", place(found, true), Octets::new(most? / 2)),
    };
    let path = need.map_or_else(String::new, |need| format!("; the path needs {} of payload", Octets::new(need / 2)));
    // What a connection got by is all that is known where the path's own need is not.
    let need = need.unwrap_or(16 << 20).max(4 << 20);
    let binds_at = most.and_then(|most| found.per_round_trip(most / 2)).or(found.tcp_bps());
    Some(
        Judged::new(
            severity,
            format!("{cause}{path}: raise the send buffer's limit, and let the program leave its size to the kernel"),
        )
        .with("needed_octets", need)
        .and("tcp_wmem_max_octets", most)
        .and("share_send_buffer", stalled)
        .and("rtt_ns", found.rtt_ns)
        .signals(usize::from(small) + usize::from(stalled.is_some()))
        .at(binds_at)
        .command(command(
            found,
            true,
            format!("sysctl -w net.ipv4.tcp_wmem=\"4096 16384 {need}\" net.core.wmem_max={need}"),
        )),
    )
}

pub(super) fn receive_buffer(found: &Findings) -> Option<Judged> {
    let most = found.receiver.tcp_rmem_octets.map(|[_, _, most]| most);
    let need = needed(found);
    let small = most.zip(need).is_some_and(|(most, need)| most < need);
    let idle =
        found.tcp.receiver_cpu.is_none_or(|share| share < BUSY) && !limited(found, LimitingFactor::ReceivingHost);
    let window = found.tcp.share_peer_window.filter(|&share| share > STALLED).filter(|_| idle);
    let full = idle && limited(found, LimitingFactor::PeerWindow);
    let fixed = found.receiver.receive_autotuning == Some(false);
    if !small && window.is_none() && !full {
        return None;
    }
    let stalls = window.is_some() || full;
    let severity = if stalls { Severity::Limiting } else { Severity::Warning };
    let cause = match (window, most) {
        (Some(share), _) => {
            format!("the window of {} stalled the sender for {} of the time", place(found, false), percent(share))
        }
        (None, Some(most)) if !stalls => {
            format!("a TCP receiver on {} can hold {} of payload at most", place(found, false), Octets::new(most / 2))
        }
        (None, _) => format!("the window of {} was full most of the time", place(found, false)),
    };
    let path = need.map_or_else(String::new, |need| format!("; the path needs {}", Octets::new(need / 2)));
    let also = if fixed { ", and let it tune itself (net.ipv4.tcp_moderate_rcvbuf=1)" } else { "" };
    let need = need.unwrap_or(16 << 20).max(6 << 20);
    let binds_at = most.and_then(|most| found.per_round_trip(most / 2)).or(found.tcp_bps());
    Some(
        Judged::new(severity, format!("{cause}{path}: raise the receive buffer's limit{also}"))
            .with("needed_octets", need)
            .and("tcp_rmem_max_octets", most)
            .and("share_peer_window", window)
            .and("receive_autotuning", found.receiver.receive_autotuning)
            .and("rtt_ns", found.rtt_ns)
            .signals(usize::from(small) + usize::from(window.is_some()) + usize::from(full) + usize::from(fixed))
            .at(binds_at)
            .command(command(
                found,
                false,
                format!("sysctl -w net.ipv4.tcp_rmem=\"4096 131072 {need}\" net.ipv4.tcp_moderate_rcvbuf=1"),
            )),
    )
}

/// RFC 7323: without the option a window has 16 bits.
const UNSCALED: u64 = 65_535;

pub(super) fn window_scaling(found: &Findings) -> Option<Judged> {
    let product = found.product().filter(|&octets| octets > UNSCALED)?;
    let off = [true, false].into_iter().find(|&is_sender| found.end(is_sender).window_scaling == Some(false));
    let stripped = found.tcp.window_scaled == Some(false);
    if off.is_none() && !stripped {
        return None;
    }
    let most = found.per_round_trip(UNSCALED)?;
    let why = match off {
        Some(is_sender) => format!("TCP window scaling is off on {}", place(found, is_sender)),
        None => "the server, or a middlebox on the path, does not let TCP windows scale".to_owned(),
    };
    let advice = Judged::new(
        Severity::Limiting,
        format!(
            "{why}: one connection carries at most {} here; the path holds {} per round trip",
            rate(most),
            Octets::new(product)
        ),
    );
    let advice = advice
        .with("product_octets", product)
        .and("rtt_ns", found.rtt_ns)
        .and("window_scaled", found.tcp.window_scaled)
        .signals(usize::from(off.is_some()) + usize::from(stripped))
        .at(most);
    Some(match off {
        Some(is_sender) => advice.command(command(found, is_sender, "sysctl -w net.ipv4.tcp_window_scaling=1".to_owned())),
        None => advice.command("sysctl net.ipv4.tcp_window_scaling   # on the server; if it is 1, look for a middlebox that strips TCP options"),
    })
}

pub(super) fn buffer_clamped(found: &Findings) -> Option<Judged> {
    if found.buffer_clamped != Some(true) {
        return None;
    }
    let need = needed(found).unwrap_or(16 << 20);
    let most = found.sender.wmem_max_octets;
    Some(
        Judged::new(
            Severity::Warning,
            "the kernel granted less buffer than was asked for: a program that sets its buffers gets these and loses self-tuning; leave them unset, or raise the limits",
        )
        .with("buffer_clamped", true)
        .and("wmem_max_octets", most)
        .signals(1 + usize::from(most.is_some_and(|most| most < need)))
        .command(format!("sysctl -w net.core.wmem_max={need} net.core.rmem_max={need}")),
    )
}

/// Segments that fill the path from which loss recovery takes long (ours), and shares of loss.
const LONG_PATH: f64 = 1000.0;
const SOME_LOSS: f64 = 1e-5;
const BBR_LOSS: f64 = 0.05;

pub(super) fn congestion_control(found: &Findings) -> Option<Judged> {
    let name = found.tcp.congestion.as_deref()?;
    let loss = found.tcp.retransmitted?;
    if name.starts_with("bbr") {
        return (loss > BBR_LOSS).then(|| {
            Judged::new(
                Severity::Warning,
                format!("{name} sent {} of its segments again: it overruns a policer or a shallow queue; pace it at the sustained rate, or try cubic", percent(loss)),
            )
            .with("congestion", name)
            .with("retransmitted_share", loss)
            .command("sysctl -w net.ipv4.tcp_congestion_control=cubic")
        });
    }
    let mss = found.tcp.mss_octets.filter(|&octets| octets > 0.0)?;
    let segments = found.product()? as f64 / mss;
    let by_loss = name == "reno" || name == "cubic";
    let random = limited(found, LimitingFactor::RandomLoss);
    if !(by_loss && random && loss > SOME_LOSS && segments > LONG_PATH) {
        return None;
    }
    let available = &found.sender.congestion_controls;
    let load =
        if available.is_empty() || available.iter().any(|one| one == "bbr") { "" } else { "modprobe tcp_bbr && " };
    Some(
        Judged::new(
            Severity::Limiting,
            format!("{name} takes each loss for congestion, but {} is lost at random and {segments:.0} segments fill this path: its window never grows enough; a congestion control that goes by rate (bbr) does", percent(loss)),
        )
        .with("congestion", name)
        .with("retransmitted_share", loss)
        .with("segments", segments)
        .at(found.tcp_bps())
        .signals(2)
        .command(command(found, true, format!("{load}sysctl -w net.ipv4.tcp_congestion_control=bbr"))),
    )
}

/// A gain from which set buffers are another kernel's work, and a loss and stalls that would
/// explain it (`[Netest03]` figure 4: 22 times).
const GAIN: f64 = 1.5;
const NO_LOSS: f64 = 1e-4;

pub(super) fn set_buffers(found: &Findings) -> Option<Judged> {
    let gain = found.set_buffers_gain.filter(|&gain| gain > GAIN)?;
    let tcp = &found.tcp;
    let quiet = |share: Option<f64>| share.is_none_or(|share| share < STALLED);
    let explained = tcp.retransmitted.is_some_and(|loss| loss > NO_LOSS)
        || !quiet(tcp.share_peer_window)
        || !quiet(tcp.share_send_buffer)
        || !quiet(tcp.share_idle)
        || limited(found, LimitingFactor::Growing);
    (!explained).then(|| {
        Judged::new(
            Severity::Limiting,
            format!("with both buffers of both hosts set TCP carries {gain:.1} times as much, and no counter of the kernel says why; its self-tuning may be at fault: set the buffers by hand"),
        )
        .with("gain", gain)
        .and("tcp_bps", found.tcp_bps())
        .at(found.tcp_bps())
        .signals(1)
    })
}

/// `[Netest03]` §IV; the share is ours.
const SHORT: f64 = 0.8;

pub(super) fn parallel_streams(found: &Findings) -> Option<Judged> {
    let (fill, intrusive, harmful) = found.streams;
    let asked = found.streams_asked.unwrap_or(1);
    let too_many = intrusive.or(harmful).filter(|&most| asked >= most && asked > 1);
    if let Some(most) = too_many {
        let fill = fill.unwrap_or(1);
        return Some(
            Judged::new(
                Severity::Warning,
                format!(
                    "programs of {} send over {asked} connections to the same host; from {most} on they take from cross traffic, and {fill} fill the path",
                    place(found, true)
                ),
            )
            .with("asked", asked)
            .with("fill", fill)
            .with("intrusive", most)
            .signals(2),
        );
    }
    let (single, fill, available) = (found.tcp_bps()?, fill?, found.available_bps?);
    let short = (single as f64) < SHORT * available as f64;
    (fill >= 2 && short).then(|| {
        let mut text = format!(
            "one TCP connection carries {} of {}; {fill} fill the path. Mend window and buffers first: parallel connections take their share from cross traffic",
            rate(single),
            rate(available)
        );
        if let Some(most) = intrusive {
            let _ = write!(text, ", from {most} on more than theirs");
        }
        Judged::new(Severity::Hint, text)
            .with("tcp_bps", single)
            .with("available_bps", available)
            .with("fill", fill)
            .and("intrusive", intrusive)
            .and("harmful", harmful)
            .signals(1)
    })
}

pub(super) fn metrics_cache(found: &Findings) -> Option<Judged> {
    (found.tcp.threshold_cached == Some(true)).then(|| {
        Judged::new(
            Severity::Hint,
            "slow start began with what an earlier connection had left in the kernel's table of destinations: the first seconds are slower than they need be",
        )
        .with("threshold_cached", true)
        .command(command(found, true, "ip tcp_metrics flush".to_owned()))
    })
}

/// Share of the long-term mean below which a short test misleads (ours).
const MISLEADS: f64 = 0.9;

pub(super) fn test_too_short(found: &Findings) -> Option<Judged> {
    let growing = limited(found, LimitingFactor::Growing)
        || found.caveat(|caveat| matches!(caveat, Caveat::TestTooShort).then_some(())).is_some();
    let worst = found.tcp.worst_case_share.filter(|&share| share < MISLEADS);
    if !growing && worst.is_none() {
        return None;
    }
    let text = match (growing, worst) {
        (true, _) => "the transfer was still growing when it was read".to_owned(),
        (false, share) => format!("a transfer this short shows at worst {} of its long-term mean", percent(share?)),
    };
    Some(
        Judged::new(Severity::Hint, format!("{text}: --thorough runs it to its end"))
            .and("worst_case_share", worst)
            .and("tcp_bps", found.tcp_bps())
            .signals(usize::from(growing) + usize::from(worst.is_some())),
    )
}
