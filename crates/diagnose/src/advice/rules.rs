//! The rules, by number. The page `docs/guide/advice.md` lists them.

mod hosts;
mod path;
mod tcp;
mod timing;

use narrows_units::BitRate;

use super::{Findings, Judge, Judged, Rule, Severity};
use crate::limits::LimitingFactor;

/// A share of the time that makes a stall the limit, and a share of a processor that makes a thread
/// the limit.
const STALLED: f64 = 0.2;
/// See [`STALLED`].
const BUSY: f64 = 0.9;

macro_rules! rule {
    ($number:literal $id:literal $brief:literal, $limiting_factors:expr, $trigger:literal => $judge:path) => {
        Rule {
            number: $number,
            id: $id,
            brief: $brief,
            trigger: $trigger,
            limiting_factors: $limiting_factors,
            judge: Judge::Path($judge),
        }
    };
    ($number:literal $id:literal $brief:literal, $limiting_factors:expr, $trigger:literal => each $judge:path) => {
        Rule {
            judge: Judge::Host($judge),
            ..rule!($number $id $brief, $limiting_factors, $trigger => nothing)
        }
    };
}

/// Every rule, by number.
pub const RULES: &[Rule] = &[
    rule!(1 "send_buffer" "raise the send buffer's limit", &[LimitingFactor::SendBuffer], "stalled by the send buffer for more than 20 % of the time, or its limit below twice what fills the path" => tcp::send_buffer),
    rule!(2 "receive_buffer" "raise the receive buffer's limit", &[LimitingFactor::PeerWindow], "stalled by the receiver's window for more than 20 % of the time while the receiver is idle, or its limit below twice what fills the path" => tcp::receive_buffer),
    rule!(3 "window_scaling" "let TCP scale its window", &[], "windows end at 65 535 octets and the path holds more" => tcp::window_scaling),
    rule!(4 "buffer_clamped" "leave socket buffers to the kernel", &[], "the kernel granted less buffer than was asked for" => tcp::buffer_clamped),
    rule!(5 "shallow_queue" "pace the sender (fq or bbr)", &[], "the largest burst that survives, sent once per round trip, makes less than 80 % of what is available" => path::shallow_queue),
    rule!(6 "congestion_control" "try another congestion control", &[LimitingFactor::RandomLoss], "reno or cubic, a path that holds over 1000 segments, and random loss above 0.001 %; or bbr, and over 5 % sent again" => tcp::congestion_control),
    rule!(7 "host_processor" "spread the load over processors", &[LimitingFactor::SendingHost, LimitingFactor::ReceivingHost, LimitingFactor::Application], "a thread busy for over 90 % of the time, a processor over 90 % in network interrupts, or a result that a host set" => each hosts::processor),
    rule!(8 "memory" "repeat from a host with faster memory", &[], "a rate over 80 % of what copying in memory allows (one copy and one DMA pass)" => each hosts::memory),
    rule!(9 "interface" "use a faster interface or slot", &[LimitingFactor::Interface], "a rate over 95 % of the interface's, or the slot slower than the interface" => each hosts::interface),
    rule!(10 "receive_batching" "let the receiver interrupt at once", &[], "packets arrive in batches, or the interface gathers for longer than 8 of them last" => timing::receive_batching),
    rule!(11 "offloads" "let the interface do the offloads", &[], "segmentation or joining of packets is off, a thread is busy, and the rate is below half of the interface's" => each hosts::offloads),
    rule!(12 "mtu_black_hole" "let TCP probe for the MTU", &[LimitingFactor::MtuBlackHole], "large packets vanish without a word, small ones pass" => path::mtu_black_hole),
    rule!(13 "fragments" "send packets that fit the path", &[], "this host cut packets up while it measured, or the path carries packets below 1280 octets only" => path::fragments),
    rule!(14 "duplex" "check the cable and what was negotiated", &[], "half duplex, a negotiated rate below what the interface has, or damaged frames" => each hosts::duplex),
    rule!(15 "loss_pattern" "find what drops packets together", &[], "segments are lost together over 5 times as often as by chance, or at even times (variation below 10 %)" => path::loss_pattern),
    rule!(16 "token_bucket" "pace below the sustained rate", &[LimitingFactor::Policer, LimitingFactor::Shaper], "a policer's or a shaper's signature" => path::token_bucket),
    rule!(17 "reordering" "look for parallel links", &[LimitingFactor::Reordering], "over 0.1 % of packets overtaken, or half of what was sent again without need" => path::reordering),
    rule!(18 "asymmetry" "compare both directions", &[], "one direction carries less than half of the other; or answers are lost, and no packet is lost forward" => path::asymmetry),
    rule!(19 "clock" "do not trust one-way delays", &[], "clocks that drift by more than 50 ppm or were set, or a slow clock source" => timing::clock),
    rule!(20 "variable_link" "measure for longer", &[], "rates vary by over 30 % and unloaded round trips by over 10 ms with little loss, or a radio interface with varying rates" => path::variable_link),
    rule!(21 "deep_queue" "put a fair queue before the slow link", &[LimitingFactor::Queue], "round trips grow by more than 100 ms under load" => path::deep_queue),
    rule!(22 "virtual_host" "repeat on a real host", &[], "a hypervisor takes more than 2 % of the processors, or an end sits behind a virtual interface" => each timing::virtual_host),
    rule!(23 "governor" "let the processors run at full frequency", &[], "the powersave governor and a busy thread, or idle states that take longer to leave than packets are apart" => each timing::governor),
    rule!(24 "receive_drops" "give the receiver more buffer", &[], "packets that reached a host and were dropped there" => each hosts::receive_drops),
    rule!(25 "proxy" "look for a proxy on the path", &[], "TCP's shortest round trip below 70 % of UDP's to the same host, and by over 1 ms" => path::proxy),
    rule!(26 "set_buffers" "set the socket buffers", &[], "with a window set by hand a connection carries over 1.5 times as much as with the kernel's own, and no counter says why" => tcp::set_buffers),
    rule!(27 "parallel_streams" "use several connections", &[], "one connection carries less than 80 % of what is available, and several fill it; or other programs send to the same host over so many connections that they take from cross traffic" => tcp::parallel_streams),
    rule!(28 "metrics_cache" "flush the kernel's table of destinations", &[], "slow start began with a threshold from an earlier connection" => tcp::metrics_cache),
    rule!(29 "per_flow_limit" "use several connections", &[], "one flow gets one of several channels" => path::per_flow_limit),
    rule!(30 "test_too_short" "repeat with --thorough", &[LimitingFactor::Growing], "the window still grew, or the value may be below 90 % of the long-term mean" => tcp::test_too_short),
    rule!(31 "path_busy" "find who fills the path", &[], "less than a tenth of the capacity is available" => path::busy),
];

/// A rule of each host has no other judge.
fn nothing(_: &Findings) -> Option<Judged> {
    None
}

fn rate(bps: u64) -> BitRate {
    BitRate::from_bps(bps)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A command for the sending or the receiving host: said so where that is the peer.
fn command(found: &Findings, at_sender: bool, command: String) -> String {
    if found.sends_here() == at_sender { command } else { format!("{command}   # on the server") }
}

/// The interface of the sending or the receiving host, as it may stand in a command.
fn card(found: &Findings, is_sender: bool) -> &str {
    found.end(is_sender).interface.as_deref().unwrap_or("INTERFACE")
}

/// Where the sending or the receiving host stands, seen from here.
fn place(found: &Findings, at_sender: bool) -> &'static str {
    if found.sends_here() == at_sender { "this host" } else { "the server" }
}

fn limited(found: &Findings, limiting_factor: LimitingFactor) -> bool {
    found.tcp.limits.contains(&limiting_factor)
}
