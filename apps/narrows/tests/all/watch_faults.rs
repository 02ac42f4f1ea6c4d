//! The faults of the design's table, with `narrows watch` as a process: a full disk, damage, clocks
//! that are set, servers that do not do as they should, routes that flap.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Server, directory, file, free_port, narrows, text};
use crate::fleet_faults::fleet::{Part, fill, within};

/// `narrows watch` with a page, its output in files.
pub(crate) struct Watch {
    part: Part,
    page: SocketAddr,
    home: PathBuf,
}

impl Watch {
    /// With these settings; `around` may put another program in front.
    pub(crate) fn start(
        home: &tempfile::TempDir,
        settings: &str,
        around: impl Fn(Command) -> Command + 'static,
    ) -> Self {
        let settings = file(home, "watch.toml", settings);
        let page = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let store = home.path().join("store/watch.db");
        std::fs::create_dir_all(home.path().join("store")).expect("it is ours");
        let command = move || {
            let mut program = narrows(["watch", "--config", text(&settings), "--store", text(&store), "--json"]);
            program.args(["--listen", &page.to_string()]).env("TZ", "UTC");
            around(program)
        };
        Self { part: Part::new("watch", home.path(), command), page, home: home.path().to_owned() }
    }

    /// Status and body of an answer; nothing while it does not listen.
    fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.page).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.page).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    fn list(&self, path: &str, name: &str) -> Vec<Value> {
        let answer = self.get(path).map(|(_, body)| serde_json::from_str::<Value>(&body).unwrap_or_default());
        answer.and_then(|answer| answer[name].as_array().cloned()).unwrap_or_default()
    }

    /// Kinds of the events so far, the newest first.
    fn events(&self) -> Vec<String> {
        let kind = |event: &Value| event["kind"].as_str().unwrap_or_default().to_owned();
        self.list("/api/v1/events?since=24h", "events").iter().map(kind).collect()
    }

    pub(crate) fn printed(&self) -> Vec<Value> {
        let all = std::fs::read_to_string(self.home.join("watch.out")).unwrap_or_default();
        let whole = all.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }

    /// How many values of a target were printed.
    pub(crate) fn values(&self, target: &str, signal: &str) -> usize {
        let wanted = |line: &&Value| line["kind"] == "value" && line["target"] == target && line["signal"] == signal;
        self.printed().iter().filter(wanted).count()
    }
}

fn target(name: &str, port: &str) -> String {
    target_at(name, "127.0.0.1", port)
}

pub(crate) fn target_at(name: &str, host: &str, port: &str) -> String {
    format!("[[target]]\nname = \"{name}\"\nhost = \"{host}\"\nport = {port}\n")
}

/// A program within a namespace.
pub(crate) fn program_in(namespace: &str, program: &Command) -> Command {
    let mut around = Command::new("ip");
    around.args(["netns", "exec", namespace]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => around.env(name, value),
            None => around.env_remove(name),
        };
    }
    around
}

const MINUTES: Duration = Duration::from_secs(200);

/// The process goes on, says so everywhere, and what it measured meanwhile is in the store later.
#[test]
#[ignore = "lab: needs root"]
fn a_watch_on_a_full_disk_goes_on_and_rows_follow() {
    let (home, server) = (directory(), Server::start(&[]));
    let script = "mount -t tmpfs -o size=16m tmpfs \"$0\" && exec \"$@\"";
    let disk = home.path().join("store");
    let watch = Watch::start(&home, &target("office", &server.port()), move |program| {
        let mut around = Command::new("unshare");
        around.args(["--mount", "sh", "-c", script]).arg(&disk).arg(program.get_program()).args(program.get_args());
        around
    });
    within("a minute of pulses", MINUTES, || watch.values("office", "least_round_trip") > 0);
    assert_eq!(watch.get("/-/ready").map(|(status, _)| status), Some(200));
    // Its disk, as the process sees it.
    let ballast = Path::new("/proc").join(watch.part.process().to_string()).join("root");
    let ballast = ballast.join(home.path().join("store/ballast").strip_prefix("/").expect("an absolute path"));
    drop(fill(&ballast));
    let before = watch.values("office", "least_round_trip");
    let full =
        |watch: &Watch| watch.get("/-/ready").is_some_and(|(status, body)| status == 503 && body.contains("store"));
    within("it says that its disk is full", MINUTES, || full(&watch));
    within("pulses go on", MINUTES, || watch.values("office", "least_round_trip") >= before + 2);
    assert!(full(&watch), "{:?}", watch.get("/-/ready"));
    let metrics = watch.get("/metrics").map(|(_, body)| body).unwrap_or_default();
    assert!(
        metrics.lines().any(|line| line.starts_with("narrows_store_degraded") && line.ends_with(" 1.0")),
        "{metrics}"
    );
    assert!(watch.part.said().contains("the store cannot be written now"), "{}", watch.part.said());
    let path = "/api/v1/series?target=office&signal=least_round_trip&since=1h&points=2000";
    let stored = |watch: &Watch| watch.list(path, "points").len();
    let held = stored(&watch);
    std::fs::remove_file(&ballast).expect("it is ours");
    within("it is ready again", MINUTES, || watch.get("/-/ready").is_some_and(|(status, _)| status == 200));
    let printed = watch.values("office", "least_round_trip");
    within("the rows follow", MINUTES, || stored(&watch) >= printed);
    println!("{held} values in the store while it was full, {} afterwards, {printed} printed", stored(&watch));
}

/// Octets of a page are flipped while it does not run: the next start saves the rest, says so, and
/// goes on.
#[test]
#[ignore = "lab: takes minutes"]
fn a_watch_with_a_damaged_store_starts_and_says_so() {
    let (home, server) = (directory(), Server::start(&[]));
    let mut watch = Watch::start(&home, &target("office", &server.port()), |program| program);
    within("a minute of pulses", MINUTES, || watch.values("office", "least_round_trip") > 0);
    watch.part.kill();
    let store = home.path().join("store/watch.db");
    let mut octets = std::fs::read(&store).expect("a store");
    let page = 4096 * (octets.len() / 4096 / 2);
    octets[page..page + 200].iter_mut().for_each(|octet| *octet ^= 0xa5);
    std::fs::write(&store, octets).expect("it is ours");
    // What waits in the log would hide the damage.
    std::fs::remove_file(home.path().join("store/watch.db-wal")).expect("a killed process leaves its log");
    let before = watch.values("office", "least_round_trip");
    watch.part.start();
    within("the event", MINUTES, || watch.events().iter().any(|kind| kind == "store"));
    within("values go on", MINUTES, || watch.values("office", "least_round_trip") > before);
    assert_eq!(watch.get("/-/ready").map(|(status, _)| status), Some(200));
}

/// The wall clock is set, forwards and back by an hour, a day and a year, under a running process.
/// The kernel's stamps of packets know nothing of that, so round trips mean nothing here.
#[test]
#[ignore = "soak: needs faketime"]
fn a_clock_that_is_set_stops_nothing() {
    let (home, server) = (directory(), Server::start(&[]));
    let clock = home.path().join("clock");
    let set = |seconds: i64| {
        let fresh = home.path().join("clock.new");
        std::fs::write(&fresh, format!("{seconds:+}")).expect("it is ours");
        std::fs::rename(&fresh, &clock).expect("it is ours");
    };
    set(0);
    let file = clock.clone();
    // Loopback is fast: slices once a minute take more of the day than the usual 2 GB.
    let settings = format!("[budget]\nper_day = \"20 GB\"\n{}", target("office", &server.port()));
    let watch = Watch::start(&home, &settings, move |mut program| {
        program.env("LD_PRELOAD", "/usr/$LIB/faketime/libfaketimeMT.so.1").env("FAKETIME_TIMESTAMP_FILE", &file);
        program.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        program
    });
    within("a slice", MINUTES, || watch.values("office", "available") > 0);
    let mut steps = 0;
    for seconds in [3600, 0, -3600, 0, 86_400, 0, 31_536_000, 0] {
        set(seconds);
        steps += 1;
        let said = |watch: &Watch| watch.printed().iter().filter(|line| line["event"] == "clock_step").count();
        within("it notices", MINUTES, || said(&watch) == steps);
        let slices = watch.values("office", "available");
        within("slices go on", MINUTES, || watch.values("office", "available") > slices);
    }
    let kinds: Vec<String> = watch.events();
    for kind in ["woke", "server_gone"] {
        assert!(!kinds.iter().any(|one| one == kind), "{kinds:?}");
    }
    println!("{steps} steps, {} slices, events: {kinds:?}", watch.values("office", "available"));
}

/// Eight clients hold a server's eight light slots: whoever comes later waits in the queue.
fn hold_light_slots(server: &Server, home: &tempfile::TempDir) -> Vec<Part> {
    let hold = |holder: usize| {
        let port = server.port();
        Part::new(&format!("holder-{holder}"), home.path(), move || {
            let mut program = narrows(["rtt", "127.0.0.1", "-p", &port, "--json-stream", "--budget", "9 MB, 1200 s"]);
            program.args(["--param", "probes=1000", "--param", "spacing=1s", "--param", "duration=1200s"]);
            program
        })
    };
    let holders = (1..=8).map(hold).collect();
    // The first event says that a client starts, the second that it was let in.
    let events = |holder: usize| {
        let file = home.path().join(format!("holder-{holder}.out"));
        std::fs::read_to_string(file).unwrap_or_default().lines().count()
    };
    within("all slots are held", MINUTES, || (1..=8).all(|holder| events(holder) > 1));
    holders
}

/// One server dies and comes back, one wants a key, one speaks something else, one has no slot.
#[test]
#[ignore = "soak: takes minutes of back-off"]
fn servers_that_die_refuse_or_are_busy_are_each_left_alone() {
    let home = directory();
    let port = free_port().to_string();
    let mut mortal = Part::new("server", home.path(), {
        let port = port.clone();
        move || narrows(["serve", "-B", "127.0.0.1", "-p", &port])
    });
    let key = file(&home, "psk", "correct horse battery staple\n");
    let refusing = Server::start(&["--psk-file", text(&key)]);
    let foreign = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let foreign_port = foreign.local_addr().expect("bound").port().to_string();
    std::thread::spawn(move || {
        for stream in foreign.incoming() {
            let _ = stream.and_then(|mut stream| stream.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n"));
        }
    });
    let busy = Server::start(&["--max-duration", "1 h"]);
    let holders = hold_light_slots(&busy, &home);
    let settings: String =
        [("mortal", &port), ("refusing", &refusing.port()), ("foreign", &foreign_port), ("busy", &busy.port())]
            .map(|(name, port)| target(name, port))
            .concat();
    // Loopback is fast: slices once a minute take more of the day than the usual 2 GB.
    let budget = "[budget]\ntest = \"off\"\nper_day = \"20 GB\"\n";
    let watch = Watch::start(&home, &format!("{budget}{settings}"), |program| program);
    within("a value of the good server", MINUTES, || watch.values("mortal", "available") > 0);
    let ended = |watch: &Watch, target: &str, kind: &str| -> Vec<Value> {
        let path = format!("/api/v1/runs?target={target}&since=24h");
        let of_kind = |run: &Value| run["kind"] == kind && run["outcome"] != "running";
        watch.list(&path, "runs").into_iter().filter(of_kind).collect()
    };
    mortal.kill();
    let of = |watch: &Watch, kind: &str| watch.events().iter().filter(|one| *one == kind).count();
    let gone = within("the server is gone", Duration::from_secs(150), || of(&watch, "server_gone") == 1);
    let (pulses, began) = (watch.values("mortal", "least_round_trip"), std::time::Instant::now());
    within("pulses go on", MINUTES, || watch.values("mortal", "least_round_trip") > pulses);
    mortal.start();
    let back = within("the server is back", Duration::from_secs(150), || of(&watch, "server_back") == 1);
    within("its values go on", MINUTES, || {
        let newest =
            watch.printed().into_iter().rev().find(|line| line["target"] == "mortal" && line["signal"] == "available");
        newest.is_some_and(|line| line["basis"] == "server")
    });
    // Until the longest back-off that four minutes can show has passed.
    within("four minutes", Duration::from_secs(300), || began.elapsed() > Duration::from_secs(240));
    for (name, outcome, word) in [
        ("refusing", "refused", "key"),
        ("foreign", "refused", "protocol"),
        ("busy", "server_busy", "no slot within 5 s"),
    ] {
        let asked = ["slice", "capacity"].map(|kind| ended(&watch, name, kind)).concat();
        let runs: Vec<_> = asked.iter().map(|run| [&run["kind"], &run["outcome"], &run["reason"]]).collect();
        println!("{name}: {runs:?}");
        // Each run says what became of it, and why.
        let says = |run: &Value| {
            run["outcome"] == outcome && run["reason"].as_str().is_some_and(|reason| reason.contains(word))
        };
        assert!(!asked.is_empty() && asked.iter().all(says), "{name}: {runs:?}");
        // After 1, 2 and 4 minutes; one without a slot is asked as often as any other.
        assert!(name == "busy" || asked.len() <= 5, "{name}: {runs:?}");
        assert!(watch.values(name, "least_round_trip") > 0, "{name}: pulses go on");
    }
    assert_eq!((of(&watch, "server_gone"), of(&watch, "server_back")), (1, 1), "{:?}", watch.events());
    println!("gone after {:.0} s, back after {:.0} s", gone.as_secs_f64(), back.as_secs_f64());
    drop(holders);
}
