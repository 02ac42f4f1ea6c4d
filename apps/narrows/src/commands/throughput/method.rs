//! `narrows throughput --method NAME`: one of the methods that fill a path, over real sockets to
//! `narrows serve`.

use narrows_methods as methods;
use narrows_methods::DEFAULT;
use narrows_probe::Method;
use narrows_units::Metric;

use super::ThroughputArgs;
use super::arguments::wanted;
use crate::commands::measure::{self, MeasureArgs};
use crate::connect::ConnectArgs;
use crate::exit::{Exit, Failure};

/// What such methods measure; the first is what `default` means, and the second is that with -u.
const METRICS: [Metric; 5] = [
    Metric::TcpAchievableSingle,
    Metric::UdpAchievable,
    Metric::TcpAchievableParallel,
    Metric::TcpStreamsToFill,
    Metric::TcpWindowOctets,
];

/// Runs the method, and prints what `narrows udp` and its like print.
pub(super) fn run(args: &ThroughputArgs, name: &str) -> Result<Exit, Failure> {
    let method = choose(args, name)?;
    refuse(args)?;
    let info = method.info();
    let connect = ConnectArgs::to(args.host.clone(), args.port, args.key.clone(), (args.ipv4, args.ipv6));
    let measure = MeasureArgs::of(
        connect,
        (info.name.to_owned(), args.params.clone()),
        args.reverse,
        (args.json, args.output.clone()),
        args.fail_if.clone(),
        args.files.clone(),
    );
    measure::measure(&measure, info.metric, &extra(args, method)?)
}

fn choose(args: &ThroughputArgs, name: &str) -> Result<&'static dyn Method, Failure> {
    let found = if name == DEFAULT {
        methods::automatic(METRICS[usize::from(args.udp)])
    } else {
        METRICS
            .into_iter()
            .find_map(|metric| methods::named(name, metric).filter(|method| method.info().metric == metric))
    };
    found.ok_or_else(|| {
        let able = methods::METHODS.iter().map(|method| method.info());
        let able = able.filter(|info| METRICS.contains(&info.metric)).map(|info| info.name);
        let able: Vec<&str> = able.collect();
        Failure::usage(format!("--method {name}: one of {}, default", able.join(", ")))
    })
}

/// What the letters of a plain test mean to a method: the length of the test, and how it is paced
/// or shared out, as far as the method has a parameter for it.
fn extra(args: &ThroughputArgs, method: &dyn Method) -> Result<Vec<(String, String)>, Failure> {
    let name = method.info().name;
    let known = |parameter: &str| method.info().parameter(parameter).is_some();
    let mut extra = Vec::new();
    let mut set = |letter: &str, parameters: &[&str], value: String| {
        let found = parameters.iter().find(|parameter| known(parameter));
        let found = found.ok_or_else(|| Failure::usage(format!("{letter}: method {name} has nothing like it")))?;
        extra.push(((*found).to_owned(), value));
        Ok(())
    };
    if let Some(time) = args.time {
        set("-t", &["duration", "max_time"], format!("{} ns", time.as_nanos()))?;
    }
    if let Some(control) = &args.congestion {
        set("-C", &["congestion"], control.clone())?;
    }
    if let Some(rate) = args.bitrate {
        set("-b", &["max_bps"], format!("{} bit/s", rate.bps))?;
    }
    if let Some(length) = args.length {
        // IPv4 and UDP headers are part of what methods call a packet.
        set("-l", &["ip_octets"], (length.count() + 28).to_string())?;
    }
    if args.time.is_some() && known("mode") {
        extra.push(("mode".to_owned(), "full".to_owned()));
    }
    Ok(extra)
}

/// What a method does not leave to the caller.
fn refuse(args: &ThroughputArgs) -> Result<(), Failure> {
    let wants = [
        (args.iperf3, "--iperf3"),
        (args.ndt7.wanted(), "--ndt7"),
        (args.bidir, "--bidir"),
        (args.json_stream, "--json-stream"),
        (args.quick, "--quick"),
        (args.no_quick, "--no-quick"),
        (args.bytes.is_some(), "-n"),
        (args.blockcount.is_some(), "-k"),
        (args.parallel > 1, "-P"),
        (args.fq_rate.is_some(), "--fq-rate"),
        (args.window.is_some(), "-w"),
        (args.set_mss.is_some(), "-M"),
        (args.no_delay, "-N"),
        (!args.omit.is_zero(), "-O"),
        (args.zerocopy, "-Z"),
        (args.dscp.is_some() || args.tos.is_some(), "--dscp and -S"),
        (args.bind.is_some(), "-B"),
        (args.cport.is_some(), "--cport"),
    ];
    wanted(&wants).map_or(Ok(()), |wanted| {
        Err(Failure::usage(format!(
            "{wanted}: not with --method, which has its own parameters (--param; `narrows methods`)"
        )))
    })
}
