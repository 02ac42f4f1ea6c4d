//! The same against `narrows serve`, by our own protocol: TCP or UDP, either way or both, for a
//! time, an amount, or until quick mode knows.

mod both;
mod course;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_measure::tcp::{Quick, Rule};
use narrows_net::client::{ConnectOptions, SocketWorld, TrafficOptions};
use narrows_net::iperf3::{Finished, Outline, Part, TestOptions};
use narrows_probe::World;
use narrows_wire::iperf3::{Flow, Transport};

use super::ThroughputArgs;
use super::arguments::wanted;
use super::quick::Quickened;
use crate::exit::{Exit, Failure};
use course::{Course, by_amount, headers, payload_octets};

pub(super) fn run(
    args: &ThroughputArgs,
    options: &TestOptions,
    began: &mut dyn FnMut(&Outline),
    interval: &mut dyn FnMut(&Part),
) -> Result<(Finished, Beside), Failure> {
    refuse(args, options)?;
    if options.parameters.flow == Flow::Both {
        return both::run(args, options, began, interval);
    }
    let reverse = options.parameters.flow == Flow::Reverse;
    let mut world = connect(args, options, reverse, &Arc::default())?;
    // A refusal is told by the first segment.
    let _ = world.take_load_slot().map_err(|error| crate::connect::failure(&error))?;
    let idle = world.facts().rtt;
    let mut course = Course::new(world, options, reverse, 0);
    if args.may_end_early() {
        let paced = options.parameters.rate_bps > 0 || options.parameters.fq_rate_bps > 0;
        course.quicken(Quick::new(Rule::Composite, paced));
    }
    began(&course.outline);
    if options.parameters.transport == Transport::Tcp {
        course.poll_from_outside();
    }
    course.run(interval)?;
    Ok(course.finished((!idle.is_zero()).then_some(idle)))
}

/// What ended a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It ran its length.
    Time,
    /// All was sent that was to be sent.
    Amount,
    /// Quick mode.
    Quick,
    /// The user.
    Interrupt,
    /// The longest test that the server allows.
    Limit,
}

impl Ending {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Amount => "amount",
            Self::Quick => "quick",
            Self::Interrupt => "interrupt",
            Self::Limit => "server_limit",
        }
    }
}

/// What a test against our own server tells beside iperf3's account.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Round trip before the load.
    pub(super) idle_rtt: Option<Duration>,
    /// What quick mode made of it, if it was on.
    pub(super) quick: Option<Quickened>,
    /// How long other connections took to open under load, those that did not as `None`; `None`:
    /// none was opened.
    pub(super) foreign: Option<Vec<Option<Duration>>>,
    /// What ended it; `None`: a stock peer's test.
    pub(super) ending: Option<Ending>,
}

/// What does not go together here.
fn refuse(args: &ThroughputArgs, options: &TestOptions) -> Result<(), Failure> {
    let parameters = &options.parameters;
    let omits = by_amount(options) && !args.omit.is_zero();
    let bursts = burst(options).is_some() && parameters.fq_rate_bps > 0;
    for (on, text) in [
        (omits, "-O: not with -n or -k"),
        (bursts, "-b RATE/N with TCP: not with --fq-rate, the program keeps the rate"),
    ] {
        if on {
            return Err(Failure::usage(text));
        }
    }
    let sockets = u32::from(parameters.streams) * if args.bidir { 2 } else { 1 };
    if args.cport.is_some_and(|port| u32::from(port) + sockets > 65_536) {
        return Err(Failure::usage("--cport: the ports of the streams do not fit"));
    }
    Ok(())
}

/// Blocks at a time, of connections that the program paces.
fn burst(options: &TestOptions) -> Option<u16> {
    let parameters = &options.parameters;
    let paced = parameters.transport == Transport::Tcp && parameters.rate_bps > 0 && parameters.burst > 0;
    u16::try_from(parameters.burst).ok().filter(|_| paced)
}

/// A session for one way of the test; with `stop` it ends early.
fn connect(
    args: &ThroughputArgs,
    options: &TestOptions,
    reverse: bool,
    stop: &Arc<AtomicBool>,
) -> Result<SocketWorld, Failure> {
    let direction = if reverse { narrows_wire::Direction::Reverse } else { narrows_wire::Direction::Forward };
    let connect = ConnectOptions {
        port: options.port,
        version: options.version,
        direction,
        // An interrupt ends the test between two segments, with results.
        stop: Arc::clone(stop),
        measure_host: false,
        traffic: traffic(args, options, reverse),
        ..ConnectOptions::default()
    };
    let mut world = SocketWorld::connect(&args.host, args.key.read()?.give(connect))
        .map_err(|error| crate::connect::failure(&error))?;
    understood(args, options, &world)?;
    allowed(options, &mut world)?;
    Ok(world)
}

fn traffic(args: &ThroughputArgs, options: &TestOptions, reverse: bool) -> TrafficOptions {
    let parameters = &options.parameters;
    let tcp = parameters.transport == Transport::Tcp;
    // In a test of both ways the remote host's streams come behind ours.
    let behind = if args.bidir && reverse { parameters.streams } else { 0 };
    let amount = match (parameters.octets, parameters.blocks) {
        (0, blocks) => blocks.saturating_mul(parameters.block_octets.into()),
        (octets, _) => octets,
    };
    TrafficOptions {
        near: args.bind,
        near_port: args.cport.map(|port| port.saturating_add(behind)),
        payload_octets: Some(amount).filter(|&octets| tcp && octets > 0),
        // What an amount is in datagrams is known when the path is.
        packets: None,
        block_octets: args.length.filter(|_| tcp).map(|_| parameters.block_octets),
        burst_blocks: burst(options),
        mss_octets: args.set_mss.filter(|_| tcp),
        no_delay: args.no_delay && tcp,
        zero_copy: args.zerocopy && tcp,
        mean_rate: !tcp,
        traffic_class: parameters.tos,
    }
}

/// An older server would ignore what it does not know, and something else would be measured.
fn understood(args: &ThroughputArgs, options: &TestOptions, world: &SocketWorld) -> Result<(), Failure> {
    if world.tunes() {
        return Ok(());
    }
    let parameters = &options.parameters;
    let (tcp, remote) = (!args.udp, args.bidir || args.reverse);
    let needed = [
        (args.bidir, "--bidir"),
        (remote && args.bytes.is_some(), "-n"),
        (remote && args.blockcount.is_some(), "-k"),
        (remote && tcp && args.length.is_some(), "-l with TCP"),
        (remote && tcp && args.no_delay, "-N"),
        (remote && tcp && args.zerocopy, "-Z"),
        (remote && burst(options).is_some(), "-b RATE/N with TCP"),
        ((remote || tcp) && parameters.tos > 0, "--dscp and -S"),
    ];
    wanted(&needed).map_or(Ok(()), |wanted| {
        Err(Failure {
            exit: Exit::Protocol,
            who: "peer",
            text: format!(
                "the server speaks version {} of the protocol, which knows nothing of {wanted}: upgrade narrows there, or use --iperf3",
                world.version()
            ),
        })
    })
}

/// What this server allows is known now.
fn allowed(options: &TestOptions, world: &mut SocketWorld) -> Result<(), Failure> {
    let refused = |text: String| Failure { exit: Exit::Refused, who: "peer", text };
    let limits = world.limits().clone();
    let length = options.omit.saturating_add(options.duration);
    if !by_amount(options) && length > limits.max_duration() {
        return Err(refused(format!(
            "the server allows tests of {} s at most (its --max-duration)",
            limits.max_duration().as_secs_f64()
        )));
    }
    let parameters = &options.parameters;
    let udp = parameters.transport != Transport::Tcp;
    let payload = u64::from(payload_octets(world, options));
    let block = if udp { payload } else { parameters.block_octets.into() };
    let octets = match (parameters.octets, parameters.blocks) {
        (0, blocks) => blocks.saturating_mul(block),
        (octets, _) => octets,
    };
    let packets = octets.div_ceil(payload);
    let all = if udp { packets.saturating_mul(payload.saturating_add(headers(world).into())) } else { octets };
    if all > limits.max_octets {
        return Err(refused(format!(
            "the server allows tests of {} octets at most (its --max-octets)",
            limits.max_octets
        )));
    }
    if udp && octets > 0 {
        world.limit_packets(packets);
    }
    Ok(())
}
