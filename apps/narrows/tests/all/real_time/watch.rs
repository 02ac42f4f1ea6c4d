//! `narrows watch` as a new user has it: a host behind a path of three hops, a page, a webhook, and
//! cross traffic in the middle that goes from 20 to 70 % while it follows the host.

#![expect(clippy::disallowed_methods, reason = "a path is followed for minutes")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use narrows_lab::{RealTimePath, Side};
use narrows_scenario::{Arrivals, Cross, Hop, PathDirection, Queue, Scenario, SizeMix};
use narrows_units::BitRate;
use serde_json::Value;

use super::bench::{alone, in_time, serving, start};
use crate::alerts::one_post;
use crate::common::{Running, directory};

/// When the page is looked at, as the issue of the first minutes says; then the traffic changes.
const LOOKED_AT: Duration = Duration::from_secs(120);
const CHANGE: Duration = Duration::from_secs(140);
/// The design: three minutes (median) where a queue shows. One run has twice that.
const LONGEST: Duration = Duration::from_secs(360);
/// Cross traffic in Mbit/s: always, and more of it from [`CHANGE`] on.
const TRAFFIC: [u64; 2] = [20, 50];

fn scenario() -> Scenario {
    let ms = Duration::from_millis(1);
    let traffic = |mbps| Cross::on_hop(1, Arrivals::Poisson, BitRate::from_mbps(mbps), SizeMix::constant(1500));
    Scenario::new("watch")
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(ms).queue(Queue::Unlimited))
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(5 * ms).queue(Queue::Packets(400)))
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(ms).queue(Queue::Unlimited))
        .cross(traffic(TRAFFIC[0]))
        .cross(Cross { from: CHANGE, ..traffic(TRAFFIC[1]) })
        .validate()
        .unwrap()
}

/// What was found of one path.
struct Followed {
    /// What the page asks for, two minutes after the start.
    targets: Value,
    /// When the traffic changed, in ms since 1970.
    changed_ms: i64,
    /// Notices, and how long after the change they came; the last one names a queue.
    notices: Vec<(Duration, Value)>,
    /// What the page has of it in the end.
    events: Value,
}

fn ask(page: SocketAddr, question: &str) -> Value {
    let mut stream = TcpStream::connect(page).unwrap();
    write!(stream, "GET {question} HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (_, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{question}: {error}: {reply}"))
}

/// Where notices go, and what comes there.
fn webhook(path: &RealTimePath) -> (SocketAddr, Receiver<Value>) {
    let listener = path.host(Side::Sender).run(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let (address, (notices, received)) = (listener.local_addr().unwrap(), channel());
    // It ends with the test.
    std::thread::spawn(move || while notices.send(one_post(&listener)).is_ok() {});
    (address, received)
}

fn followed() -> (Followed, Result<(), String>) {
    let (home, path) = (directory(), start(&scenario()));
    let (began, began_ms) = (Instant::now(), now_ms());
    let server = serving(&path);
    let port = server.addresses().first().unwrap().port();
    let remote = path.host(Side::Receiver).addresses().ipv4;
    let (hook, notices) = webhook(&path);
    let page: SocketAddr = "127.0.0.1:8621".parse().unwrap();
    let settings = format!(
        "[[target]]\nname = \"office\"\nhost = \"{remote}\"\nport = {port}\n\
         [channel.hook]\nkind = \"webhook\"\nurl = \"http://{hook}/\"\n\
         [[alert]]\nname = \"fell\"\nwhen = \"change(available) < -20 %\"\nnotify = [\"hook\"]\n"
    );
    let (file, store) = (home.path().join("watch.toml"), home.path().join("watch.db"));
    std::fs::write(&file, settings).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.arg("watch").arg("--config").arg(&file).arg("--store").arg(&store).args(["--listen", &page.to_string()]);
    let _watch = path.host(Side::Sender).run(move || Running::start(&mut command)).unwrap();
    let look = |question: &str| path.host(Side::Sender).run(|| ask(page, question)).unwrap();
    std::thread::sleep(LOOKED_AT.saturating_sub(began.elapsed()));
    let targets = look("/api/v1/targets");
    let changed = began + CHANGE;
    let mut found =
        Followed { targets, changed_ms: began_ms + as_ms(CHANGE), notices: Vec::new(), events: Value::Null };
    while Instant::now() < changed + LONGEST && !found.notices.last().is_some_and(|(_, notice)| names_a_queue(notice)) {
        std::thread::sleep(Duration::from_secs(1));
        let late = Instant::now().saturating_duration_since(changed);
        found.notices.extend(notices.try_iter().map(|notice| (late, notice)));
    }
    found.events = look("/api/v1/events");
    let report = path.take_timing_report().unwrap();
    (found, if report.timing_valid() { Ok(()) } else { Err(report.to_string()) })
}

#[test]
#[ignore = "judge: needs namespaces"]
fn a_new_user_sees_the_path_and_hears_what_became_of_it() {
    let _alone = alone();
    let Some(found) = in_time("a path that is followed", followed) else { return };
    println!("{:#}\n{:#}", found.targets, found.events);
    let free = |taken: u64| scenario().truth(PathDirection::Forward).capacity(1500).as_f64() - taken as f64 * 1e6;
    let near = |value: &Value, truth: f64| value.as_f64().is_some_and(|value| (value / truth - 1.0).abs() < NEAR);
    let newest = &found.targets["targets"][0]["newest"];
    assert!(near(&newest["least_round_trip"]["value"], 14e6), "{newest:#}");
    assert!(near(&newest["available"]["value"], free(TRAFFIC[0])), "{newest:#}");
    for (late, notice) in &found.notices {
        println!("{:.0} s after the change: {notice}", late.as_secs_f64());
    }
    let (late, last) = found.notices.last().expect("a notice");
    assert!(names_a_queue(last), "no cause within {late:?}: {last:#}");
    assert!(near(&last["usual"], free(TRAFFIC[0])), "{last:#}");
    let [low, high] = ["low", "high"].map(|key| last[key].as_f64().unwrap_or(f64::NAN));
    let now = free(TRAFFIC.iter().sum());
    assert!(low <= now * (1.0 + NEAR) && high >= now * (1.0 - NEAR), "{now}: {last:#}");
    let since_ms = last["since_ms"].as_i64().expect("a time");
    assert!((since_ms - found.changed_ms).abs() < 60_000, "changed at {}: {last:#}", found.changed_ms);
    let mut events = found.events["events"].as_array().into_iter().flatten();
    assert!(events.any(|event| event["kind"] == "change" && event["signal"] == "available"), "the page has it");
}

fn names_a_queue(notice: &Value) -> bool {
    notice["cause"].as_str().is_some_and(|cause| cause.contains("queue"))
}

fn now_ms() -> i64 {
    as_ms(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap())
}

fn as_ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap()
}

/// What a few trains find of Poisson traffic, as a share.
const NEAR: f64 = 0.15;
