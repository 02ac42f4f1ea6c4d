//! The tests themselves.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_net::ndt7::{Finished, TestOptions, Tick, Trust};
use narrows_units::{BitRate, Octets, nanos};
use narrows_wire::ndt7::{Subtest, check_target};
use serde_json::{Value, json};

use super::super::ThroughputArgs;
use super::Which;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// Where a test goes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    tls: bool,
    host: String,
    port: u16,
    /// Path and query, where the URL names a test.
    target: Option<(String, Subtest)>,
    query: String,
}

/// Reads HOST, HOST:PORT, or a URL.
fn place(text: &str, port: Option<u16>) -> Result<Place, Failure> {
    let wrong = |why: &str| Failure::usage(format!("{text:?} is no ndt7 server: {why}"));
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let (authority, target) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let bare = authority.parse::<std::net::Ipv6Addr>().is_ok();
    let (host, given) = match authority.rsplit_once(':') {
        Some((host, digits)) if !bare && !authority.ends_with(']') => {
            let digits = digits.parse().ok().filter(|port| *port > 0);
            (host, Some(digits.ok_or_else(|| wrong("that port cannot be"))?))
        }
        _ => (authority, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains(['@', ' ']) {
        return Err(wrong("there is no host in it"));
    }
    let given = given.or(port);
    let tls = match scheme {
        Some("ws") => false,
        Some("wss") => true,
        None => given.is_none_or(|port| port == 443),
        Some(_) => return Err(wrong("the scheme is ws or wss")),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let named = match path {
        "" | "/" => None,
        path => {
            let found = check_target(path, Some(query).filter(|query| !query.is_empty()));
            let found = found.map_err(|error| wrong(&error.to_string()))?;
            Some((target.to_owned(), found.subtest))
        }
    };
    Ok(Place {
        tls,
        host: host.to_owned(),
        port: given.unwrap_or(if tls { 443 } else { 80 }),
        target: named,
        query: query.to_owned(),
    })
}

impl Place {
    /// The tests to run: the one that the URL names, or those that were asked for.
    fn tests(&self, which: Which, reverse: bool) -> Vec<(String, Subtest)> {
        if let Some(named) = &self.target {
            return vec![named.clone()];
        }
        let all: &[Subtest] = match (which, reverse) {
            (Which::Download, _) | (Which::Both, true) => &[Subtest::Download],
            (Which::Upload, _) => &[Subtest::Upload],
            (Which::Both, false) => &[Subtest::Download, Subtest::Upload],
        };
        let own = format!("client_name=narrows&client_version={}", env!("CARGO_PKG_VERSION"));
        let query = if self.query.is_empty() { own } else { format!("{}&{own}", self.query) };
        let target = |subtest: &Subtest| (format!("{}?{query}", subtest.path()), *subtest);
        all.iter().map(target).collect()
    }
}

pub(in super::super) fn run(args: &ThroughputArgs, stop: &Arc<AtomicBool>) -> Result<Exit, Failure> {
    let place = place(&args.host, args.port)?;
    let trust = match (&args.ndt7.ca, place.tls) {
        (Some(path), true) => Some(Trust::read(path).map_err(|error| Failure::usage(error.to_string()))?),
        (Some(_), false) => return Err(Failure::usage("--ca is for wss servers, and this is ws")),
        (None, tls) => tls.then(Trust::public),
    };
    let which = args.ndt7.ndt7.unwrap_or(Which::Both);
    let live = !args.json && args.output.is_none();
    let (mut text, mut all) = (String::new(), Vec::new());
    for (target, subtest) in place.tests(which, args.reverse) {
        let options = TestOptions {
            host: place.host.clone(),
            port: place.port,
            target,
            subtest,
            trust: trust.clone(),
            // As long as such a test is, where there is no limit.
            duration: args.time.filter(|time| !time.is_zero()).unwrap_or(narrows_wire::ndt7::LENGTH),
            version: args.version(),
            timeout: Duration::from_millis(args.connect_timeout),
            stop: Arc::clone(stop),
        };
        let mut last = Tick { at: Duration::ZERO, octets: 0 };
        let mut tick = |tick: &Tick| {
            if live && tick.at.saturating_sub(last.at) >= args.interval.max(Duration::from_millis(100)) {
                let _ = output::write(&interval(subtest, &last, tick), None);
                last = tick.clone();
            }
        };
        let finished = narrows_net::ndt7::run(&options, &mut tick).map_err(|error| crate::connect::failure(&error))?;
        let reported = summary(&finished);
        if live {
            output::write(&reported, None)?;
        }
        text += &reported;
        all.push(finished);
        if interrupt::flag()?.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
    }
    if args.json {
        output::write(&format!("{}\n", document(&place, &all)), args.output.as_deref())?;
    } else if !live {
        output::write(&text, args.output.as_deref())?;
    }
    let whole = all.iter().all(|finished| finished.received_bps().is_some());
    Ok(args.fail_if.exit(&document(&place, &all), if whole { Exit::Valid } else { Exit::Inconclusive }))
}

fn interval(subtest: Subtest, from: &Tick, to: &Tick) -> String {
    let time = to.at.saturating_sub(from.at);
    let octets = to.octets.saturating_sub(from.octets);
    let rate = BitRate::over(octets, time).map_or_else(|| "?".to_owned(), |rate| rate.to_string());
    format!(
        "{:<8} {:6.2} to {:6.2} s  {:>12}  {rate}\n",
        subtest.name(),
        from.at.as_secs_f64(),
        to.at.as_secs_f64(),
        Octets::new(octets).to_string()
    )
}

fn summary(finished: &Finished) -> String {
    let mut out = String::new();
    let rate = finished.received_bps().map(BitRate::from_bps);
    let rate = rate.map_or_else(|| "unknown: the server reported nothing".to_owned(), |rate| rate.to_string());
    // Writing to a string cannot fail.
    let _ = write!(out, "{:<8} {rate} of payload received", finished.subtest.name());
    let _ = write!(out, ", {} in {:.2} s", Octets::new(finished.octets), finished.elapsed.as_secs_f64());
    if let Some(rtt) = sender_info(finished).and_then(|tcp| tcp.min_rtt) {
        let _ = write!(out, ", least round trip {:.1} ms", micros(rtt) / 1e3);
    }
    if let Some((again, sent)) = sender_info(finished).and_then(|tcp| tcp.bytes_retrans.zip(tcp.bytes_sent))
        && sent > 0
    {
        let _ = write!(out, ", {:.3} % sent again", 100.0 * micros(again) / micros(sent));
    }
    if !finished.complete {
        out += "; it ended before its time";
    }
    out + "\n"
}

fn micros(value: i64) -> f64 {
    value as f64
}

/// What the sending side's kernel said last.
fn sender_info(finished: &Finished) -> Option<narrows_wire::ndt7::TcpInfo> {
    match finished.subtest {
        Subtest::Download => finished.theirs.as_ref()?.tcp_info,
        Subtest::Upload => finished.ours.tcp_info,
    }
}

/// iperf3's shape; what is ndt7's own is under `narrows`.
fn document(place: &Place, all: &[Finished]) -> Value {
    let mut intervals = Vec::new();
    for finished in all {
        let mut last = (Duration::ZERO, 0);
        for tick in &finished.ticks {
            let (time, octets) = (tick.at.saturating_sub(last.0), tick.octets.saturating_sub(last.1));
            intervals.push(json!({ "sum": {
                "start": last.0.as_secs_f64(), "end": tick.at.as_secs_f64(), "seconds": time.as_secs_f64(),
                "bytes": octets, "bits_per_second": BitRate::over(octets, time).map(BitRate::bps),
                "sender": finished.subtest == Subtest::Upload, "test": finished.subtest.name() } }));
            last = (tick.at, tick.octets);
        }
    }
    let end = |finished: &Finished| {
        json!({ "seconds": finished.elapsed.as_secs_f64(), "bytes": finished.octets,
                "bits_per_second": finished.received_bps(), "sender": finished.subtest == Subtest::Upload })
    };
    let own = |finished: &Finished| {
        let info = sender_info(finished);
        let from_micros = |value: Option<i64>| value.map(|micros| micros.saturating_mul(1_000));
        json!({
            "payload_received_bps": finished.received_bps(),
            "payload_octets": finished.octets,
            "elapsed_ns": nanos(finished.elapsed),
            "complete": finished.complete,
            "near": finished.near.to_string(),
            "remote": finished.peer.to_string(),
            "rtt_min_ns": from_micros(info.and_then(|tcp| tcp.min_rtt)),
            "rtt_ns": from_micros(info.and_then(|tcp| tcp.rtt)),
            "retransmitted_octets": info.and_then(|tcp| tcp.bytes_retrans),
            "client": finished.ours,
            "server": finished.theirs,
        })
    };
    let (mut ends, mut ours) = (serde_json::Map::new(), serde_json::Map::new());
    for finished in all {
        ends.insert(finished.subtest.name().to_owned(), end(finished));
        ours.insert(finished.subtest.name().to_owned(), own(finished));
    }
    let scheme = if place.tls { "wss" } else { "ws" };
    json!({
        "start": { "connecting_to": { "host": place.host, "port": place.port },
                   "version": format!("narrows {}", env!("CARGO_PKG_VERSION")),
                   "test_start": { "protocol": "TCP", "num_streams": 1, "blksize": narrows_wire::ndt7::FIRST_OCTETS } },
        "intervals": intervals,
        "end": ends,
        "narrows": { "ndt7": ours, "scheme": scheme },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_hosts_or_addresses_of_the_web() {
        let read = |text: &str, port| place(text, port).map(|place| (place.tls, place.host, place.port));
        let is = |tls, host: &str, port| Ok::<_, ()>((tls, host.to_owned(), port));
        for (text, port, wanted) in [
            ("host.example", None, is(true, "host.example", 443)),
            ("host.example", Some(8080), is(false, "host.example", 8080)),
            ("host.example:8080", None, is(false, "host.example", 8080)),
            ("::1", Some(443), is(true, "::1", 443)),
            ("[::1]:80", None, is(false, "::1", 80)),
            ("wss://[2001:db8::1]", None, is(true, "2001:db8::1", 443)),
            ("ws://10.0.0.1", None, is(false, "10.0.0.1", 80)),
            ("wss://h:4443/", None, is(true, "h", 4443)),
        ] {
            assert_eq!(read(text, port).map_err(|_| ()), wanted, "{text}");
        }
        for wrong in
            ["http://h", "ws://", "ws://h:0", "ws://h:x", "ws://h/other", "wss://u@h", "ws://h/ndt/v7/upload?a=%"]
        {
            assert!(place(wrong, None).is_err(), "{wrong}");
        }
        let named = place("wss://h/ndt/v7/upload?access_token=abc", None).unwrap();
        let target = ("/ndt/v7/upload?access_token=abc".to_owned(), Subtest::Upload);
        assert_eq!(named.tests(Which::Both, false), [target]);
        let both = place("h", None).unwrap();
        assert_eq!(both.tests(Which::Both, false).len(), 2);
        assert_eq!(both.tests(Which::Both, true)[0].1, Subtest::Download);
    }
}
