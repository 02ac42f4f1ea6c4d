//! `narrows throughput`: what a transfer gets through, with the letters that iperf3's users know.

mod arguments;
mod document;
mod limit;
mod login;
mod method;
mod metrics;
mod ndt7;
mod own;
mod quick;
mod report;
mod streams;
mod text;
mod watched;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_net::client::IpVersion;
use narrows_net::iperf3::{Finished, Outline, Part, TestOptions};
use narrows_probe::progress::{Feed, OnPath, Progress as Event};
use narrows_report::answer_text;
use narrows_wire::iperf3::{Counters, Flow, MOST_STREAMS, Parameters, Transport};

use crate::exit::{Exit, Failure};
use crate::fail_if::FailIfArgs;
use crate::files::FileArgs;
use crate::key::KeyArgs;
use crate::progress::Progress;
use crate::screen::ScreenArgs;
use crate::{interrupt, output};
use arguments::{Rate, Size};

/// Send as fast as possible, or at the rate asked for, and say what limited it. Rates are payload;
/// K, M, G mean 1000 in rates, 1024 in sizes
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command")]
#[derive(Debug, clap::Args)]
pub(crate) struct ThroughputArgs {
    /// Host to measure to: one that runs `narrows serve`, or with --iperf3 a stock iperf3 server or
    /// `narrows serve --iperf3`
    #[arg(add = crate::complete::hosts())]
    host: String,
    /// Speak iperf3's protocol
    #[arg(long)]
    iperf3: bool,
    /// Let this method measure, to a host that runs `narrows serve`: tcp, udp, streams, window,
    /// rfc9097 …; see `narrows methods`. Of the other flags it takes --psk-file, --key-name,
    /// -t, -b, -l, -C, and also -R, -J, -o, -p, -4, -6
    #[arg(long, value_name = "NAME", add = crate::complete::methods())]
    method: Option<String>,
    /// Parameter of the method, NAME=VALUE; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "method")]
    params: Vec<String>,
    #[command(flatten)]
    key: KeyArgs,
    /// Its port [default: 8620, with --iperf3 5201]
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// UDP instead of TCP
    #[arg(long, short)]
    udp: bool,
    /// Length; 0: until interrupted [default: 10, or less in quick mode]
    #[arg(long, short, value_name = "TIME", value_parser = narrows_units::parse_duration_or_seconds,
          conflicts_with_all = ["bytes", "blockcount"])]
    time: Option<Duration>,
    /// End as soon as the rate is steady and its limit is known; on by default for TCP to
    /// `narrows serve` without -t
    #[arg(long, conflicts_with_all = ["no_quick", "udp", "iperf3", "bidir", "bytes", "blockcount"])]
    quick: bool,
    /// Run the whole length
    #[arg(long)]
    no_quick: bool,
    /// Ethernet rate of the narrow link, if known, for RFC 6349's transfer time ratio [default: the
    /// interface's]
    #[arg(long, value_name = "RATE")]
    bottleneck: Option<Rate>,
    /// Payload octets of all streams together, instead of a length
    #[arg(long, short = 'n', value_name = "SIZE", conflicts_with = "blockcount")]
    bytes: Option<Size>,
    /// The same in blocks
    #[arg(long, short = 'k', value_name = "COUNT")]
    blockcount: Option<Size>,
    /// Time between reports; 0: one report
    #[arg(long, short, value_name = "TIME", default_value = "1", value_parser = narrows_units::parse_duration_or_seconds)]
    interval: Duration,
    /// Streams, per direction
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_STREAMS)))]
    parallel: u16,
    /// The server sends
    #[arg(long, short = 'R', conflicts_with = "bidir")]
    reverse: bool,
    /// Both send
    #[arg(long)]
    bidir: bool,
    /// Payload rate per stream, 0: as fast as it goes; with /N, N datagrams at a time [default: UDP
    /// 1 Mbit/s, TCP 0]
    #[arg(long, short, value_name = "RATE[/N]")]
    bitrate: Option<Rate>,
    /// Pacing by the kernel, payload rate per stream
    #[arg(long, value_name = "RATE")]
    fq_rate: Option<Rate>,
    /// Octets of one write, or payload of one datagram [default: TCP 128K, UDP what fits a packet]
    #[arg(long, short, value_name = "SIZE")]
    length: Option<Size>,
    /// Socket buffers
    #[arg(long, short, value_name = "SIZE")]
    window: Option<Size>,
    /// Congestion control
    #[arg(long, short = 'C', value_name = "NAME")]
    congestion: Option<String>,
    /// Largest TCP segment, octets
    #[arg(long, short = 'M', value_name = "N", value_parser = clap::value_parser!(u32).range(88..=9216))]
    set_mss: Option<u32>,
    /// Turn Nagle's algorithm off
    #[arg(long, short = 'N')]
    no_delay: bool,
    /// Leave out the first seconds
    #[arg(long, short = 'O', value_name = "TIME", default_value = "0", value_parser = narrows_units::parse_duration_or_seconds)]
    omit: Duration,
    /// Do not copy what is sent
    #[arg(long, short = 'Z')]
    zerocopy: bool,
    /// DSCP of packets: 0 to 63, or a name such as ef
    #[arg(long, value_name = "DSCP", value_parser = arguments::dscp)]
    dscp: Option<u8>,
    /// IP type of service, 0 to 255
    #[arg(long, short = 'S', value_name = "N", value_parser = arguments::octet, conflicts_with = "dscp")]
    tos: Option<u8>,
    /// Local address
    #[arg(long, short = 'B', value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Local port of the first stream; those of others follow
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    cport: Option<u16>,
    /// Only IPv4
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// Only IPv6
    #[arg(short = '6')]
    ipv6: bool,
    /// 64-bit counters in UDP datagrams
    #[arg(long = "udp-counters-64bit")]
    udp_counters_64bit: bool,
    /// Datagrams must not be fragmented on the path
    #[arg(long)]
    dont_fragment: bool,
    /// Ask the server for its own output
    #[arg(long, requires = "iperf3")]
    get_server_output: bool,
    /// A title that the JSON repeats
    #[arg(long, short = 'T', value_name = "TEXT")]
    title: Option<String>,
    /// A text for the JSON of both sides
    #[arg(long, value_name = "TEXT")]
    extra_data: Option<String>,
    #[command(flatten)]
    login: login::LoginArgs,
    #[command(flatten)]
    ndt7: ndt7::Ndt7Args,
    /// Longest wait for a connection or an answer, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    connect_timeout: u64,
    #[command(flatten)]
    fail_if: FailIfArgs,
    /// Print JSON in iperf3's shape
    #[arg(long, short = 'J')]
    json: bool,
    /// Print one JSON object per event while it measures, the result in the last one
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
    #[command(flatten)]
    screen: ScreenArgs,
    /// Write the result to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    files: FileArgs,
}

/// iperf3's default rate of UDP, bit/s.
const UDP_BPS: u64 = 1 << 20;
/// A report is never closer than this to the last.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
/// No report but the last.
const NO_INTERVAL: Duration = Duration::from_secs(1_000_000_000);

pub(crate) fn run(args: &ThroughputArgs) -> Result<Exit, Failure> {
    output::check(args.output.as_ref())?;
    args.files.check()?;
    if let Some(name) = &args.method {
        return method::run(args, name);
    }
    args.check_conditions()?;
    let stop = interrupt::flag()?;
    let _link = crate::link::LinkLock::by_hand(&args.host, &Progress::new(true))?;
    if args.ndt7.wanted() {
        return over_ndt7(args, stop);
    }
    let parameters = args.parameters()?;
    let options = args.options(parameters, Arc::clone(stop))?;
    let started_at = crate::moment::Moment::now();
    let judge = limit::Judge::new(args, &options);
    let mut lines = String::new();
    let progress = Progress::start(args.progress(), watched::announced(args))?;
    let live = !args.json && args.output.is_none() && !progress.is_watched();
    let redaction = args.files.redact().then(|| report::redaction(args));
    let hidden = |text: String| redaction.as_ref().map_or_else(|| text.clone(), |redaction| redaction.text(&text));
    let mut print = |text: String| {
        let text = hidden(text);
        if live {
            // A reader that went away is told when the result is written.
            let _ = output::write(&text, None);
        } else {
            lines.push_str(&text);
        }
    };
    let header = |outline: &Outline| {
        judge.learn(outline);
        text::header(args, &options, outline)
    };
    let printer = std::cell::RefCell::new(&mut print);
    let mut began = |outline: &Outline| (printer.borrow_mut())(header(outline));
    let mut interval = |part: &Part| {
        let verdict = judge.part(part);
        progress.event(Event::Interval(watched::interval(part, &verdict, &options)));
        (printer.borrow_mut())(text::interval(part, &verdict, &options));
    };
    progress.on_path(OnPath::Load);
    let finished = transferred(args, &options, &mut began, &mut interval);
    progress.on_path(OnPath::Nothing);
    progress.finish();
    let (finished, beside) = finished.map_err(|failure| progress.failed(complain_in_json(args, failure)))?;
    let verdict = judge.whole(&finished);
    let asked = args.bottleneck.map(|rate| narrows_units::BitRate::from_bps(rate.bps));
    let metrics = metrics::Metrics::of(&finished, &beside, asked.or(judge.interface_rate()));
    let transfers = report::transfers(&finished, &options, &judge, metrics.as_ref());
    let answer = report::answer(&transfers);
    let document = document::build(args, &options, &finished, &judge, started_at, (&beside, metrics.as_ref()));
    let document = report::with_answer(document, &answer, redaction.as_ref());
    if args.json || args.json_stream {
        if !progress.conclude(&document.to_string()) {
            output::write(&format!("{document}\n"), args.output.as_deref())?;
        }
    } else {
        (printer.borrow_mut())(format!("\n{}\n", answer_text(&answer)));
        (printer.borrow_mut())(text::summary(&finished, &verdict, &options));
        let after = after(&judge, &finished, &beside);
        (printer.borrow_mut())(after + &metrics.as_ref().map_or_else(String::new, metrics::Metrics::text));
        if !live {
            output::write(&lines, args.output.as_deref())?;
        }
    }
    args.files.write(
        || report::redaction(args),
        |command| report::file(args, &finished, &transfers, (started_at.rfc_3339(), &document), command),
    )?;
    Ok(args.fail_if.exit(&document, exit_of(&finished)))
}

/// What an ndt7 server knows is another test's.
fn over_ndt7(args: &ThroughputArgs, stop: &Arc<AtomicBool>) -> Result<Exit, Failure> {
    args.files.refuse("--ndt7")?;
    if args.json_stream {
        return Err(Failure::usage("--json-stream: not with --ndt7"));
    }
    ndt7::run(args, stop).map_err(|failure| complain_in_json(args, failure))
}

/// The transfer itself, by the protocol that was asked for.
fn transferred(
    args: &ThroughputArgs,
    options: &TestOptions,
    began: &mut dyn FnMut(&Outline),
    interval: &mut dyn FnMut(&Part),
) -> Result<(Finished, own::Beside), Failure> {
    if !args.iperf3 {
        return own::run(args, options, began, interval);
    }
    let finished = narrows_net::iperf3::run(&args.host, options, began, interval);
    finished.map(|finished| (finished, own::Beside::default())).map_err(|error| {
        let mut failure = crate::connect::failure(&error);
        if matches!(error, narrows_net::Error::Peer(narrows_net::error::PeerError::NotAdmitted { .. })) {
            failure.text += args.login.hint();
        }
        failure
    })
}

/// What follows the sums.
fn after(judge: &limit::Judge, finished: &Finished, beside: &own::Beside) -> String {
    let mut after = judge.reverse(finished).map_or_else(String::new, |reverse| {
        format!("the server's sending is limited by: {}\n", reverse.limited_by.unwrap_or("unknown"))
    });
    if beside.ending == Some(own::Ending::Limit) {
        after += "ended by the server: it allows no longer test (its --max-duration)\n";
    }
    after + &beside.quick.as_ref().map_or_else(String::new, quick::Quickened::text)
}

/// Something must have arrived.
fn exit_of(finished: &Finished) -> Exit {
    let received = finished.outline.streams.iter().filter_map(|stream| {
        let side = if stream.sends { &finished.theirs } else { &finished.ours };
        Some(side.stream(stream.id)?.octets)
    });
    if received.sum::<u64>() > 0 { Exit::Valid } else { Exit::Inconclusive }
}

/// Programs that read iperf3's JSON look for the error there.
fn complain_in_json(args: &ThroughputArgs, failure: Failure) -> Failure {
    if args.json {
        let document = serde_json::json!({ "start": {}, "intervals": [], "end": {}, "error": failure.text,
            "narrows": { "exit": failure.exit.code(), "who": failure.who } });
        // What is wrong stays what is wrong, also where it cannot be written.
        let _ = output::write(&format!("{document}\n"), args.output.as_deref());
    }
    failure
}

impl ThroughputArgs {
    fn transport(&self) -> Transport {
        match (self.udp, self.udp_counters_64bit) {
            (false, _) => Transport::Tcp,
            (true, false) => Transport::Udp(Counters::Bits32),
            (true, true) => Transport::Udp(Counters::Bits64),
        }
    }

    /// Length of the test, unless it ends early.
    fn length(&self) -> Duration {
        self.time.unwrap_or(Duration::from_secs(10))
    }

    /// Whether it may end early: where the rule is trustworthy and nobody asked for a length.
    fn may_end_early(&self) -> bool {
        let asked = self.quick || (self.time.is_none() && !self.no_quick);
        let by_amount = self.bytes.is_some() || self.blockcount.is_some();
        asked && !self.udp && !self.iperf3 && !self.bidir && !by_amount && !self.length().is_zero()
    }

    fn flow(&self) -> Flow {
        match (self.reverse, self.bidir) {
            (true, _) => Flow::Reverse,
            (_, true) => Flow::Both,
            _ => Flow::Forward,
        }
    }

    fn version(&self) -> IpVersion {
        match (self.ipv4, self.ipv6) {
            (true, _) => IpVersion::V4,
            (_, true) => IpVersion::V6,
            _ => IpVersion::Any,
        }
    }

    /// What a test by these flags counts.
    fn check_conditions(&self) -> Result<(), Failure> {
        let counted: &[&str] = match (self.ndt7.wanted(), self.udp) {
            (true, _) => &["throughput"],
            (_, true) => &["throughput", "loss", "jitter"],
            _ => &["throughput", "retransmits", "rtt", "loaded_rtt"],
        };
        self.fail_if.check(&[], counted)
    }

    fn parameters(&self) -> Result<Parameters, Failure> {
        let (least, most, default) = if self.udp {
            // Nothing: the path's own length.
            (16, u64::from(narrows_wire::iperf3::MOST_UDP_BLOCK), 0)
        } else {
            (1, 1 << 20, 128 << 10)
        };
        let block = self.length.map_or(default, Size::count);
        if self.length.is_some() && !(least..=most).contains(&block) {
            return Err(Failure::usage(format!("-l {block}: {least} to {most} octets are possible")));
        }
        let window = self.window.map(Size::count).filter(|&octets| octets > 0);
        let window_octets =
            window.map(u32::try_from).transpose().ok().filter(|window| window.is_none_or(|octets| octets <= 512 << 20));
        let window_octets = window_octets.ok_or_else(|| Failure::usage("-w: at most 512M"))?;
        let rate = self.bitrate.unwrap_or(Rate::of(if self.udp { UDP_BPS } else { 0 }));
        if self.omit > Duration::from_secs(600) {
            return Err(Failure::usage("-O: at most 600 seconds"));
        }
        if self.length() > Duration::from_secs(86_400) {
            return Err(Failure::usage("-t: at most 86400 seconds"));
        }
        for (letter, size) in [("-n", self.bytes), ("-k", self.blockcount)] {
            if size.is_some_and(|size| size.count() == 0) {
                return Err(Failure::usage(format!("{letter} must be above zero")));
            }
        }
        Ok(Parameters {
            transport: self.transport(),
            flow: self.flow(),
            streams: self.parallel,
            octets: self.bytes.map_or(0, Size::count),
            blocks: self.blockcount.map_or(0, Size::count),
            block_octets: u32::try_from(block).unwrap_or(u32::MAX),
            rate_bps: rate.bps,
            burst: rate.burst,
            fq_rate_bps: self.fq_rate.map_or(0, |rate| rate.bps),
            window_octets,
            mss_octets: self.set_mss,
            no_delay: self.no_delay,
            tos: self.dscp.map(|dscp| dscp << 2).or(self.tos).unwrap_or(0),
            congestion: self.congestion.clone(),
            zero_copy: self.zerocopy,
            dont_fragment: self.dont_fragment,
            server_output: self.get_server_output,
            title: self.title.clone(),
            extra_data: self.extra_data.clone(),
            auth_token: self.login.token()?,
            client_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            ..Parameters::default()
        })
    }

    fn options(&self, parameters: Parameters, stop: Arc<AtomicBool>) -> Result<TestOptions, Failure> {
        let interval = match self.interval {
            Duration::ZERO => NO_INTERVAL,
            interval if interval < LEAST_INTERVAL => return Err(Failure::usage("-i: at least 0.1 seconds")),
            interval => interval,
        };
        let port =
            self.port.unwrap_or(if self.iperf3 { narrows_wire::iperf3::PORT } else { narrows_wire::DEFAULT_PORT });
        Ok(TestOptions {
            parameters,
            duration: self.length(),
            omit: self.omit,
            interval,
            port,
            version: self.version(),
            near: self.bind,
            near_port: self.cport,
            timeout: Duration::from_millis(self.connect_timeout),
            stop,
        })
    }
}
