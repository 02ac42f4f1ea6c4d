//! `narrows host` between two namespaces joined by a veth pair: what it reads is the namespace's
//! own, both ends are told, and each fix that the namespace allows can be made and taken back.

use crate::common;

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{ProgramResult, Running, validate};
use serde_json::Value;

const NEAR: &str = "10.77.7.1";
const REMOTE: &str = "10.77.7.2";

/// Two namespaces and the pair between; gone when dropped.
struct Pair {
    near: String,
    remote: String,
}

impl Pair {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let pair = Self { near: format!("narrows-host-{id}-a"), remote: format!("narrows-host-{id}-b") };
        for name in [&pair.near, &pair.remote] {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        ip(&[
            "-n",
            &pair.near,
            "link",
            "add",
            "near0",
            "mtu",
            "1400",
            "type",
            "veth",
            "peer",
            "name",
            "far0",
            "netns",
            &pair.remote,
        ]);
        ip(&["-n", &pair.remote, "link", "set", "far0", "mtu", "1400"]);
        for (name, link, address) in [(&pair.near, "near0", NEAR), (&pair.remote, "far0", REMOTE)] {
            ip(&["-n", name, "address", "add", &format!("{address}/30"), "dev", link]);
            ip(&["-n", name, "link", "set", link, "up"]);
        }
        pair
    }

    fn command(name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name]).args(arguments);
        command
    }

    /// Runs a shell's line in the near namespace.
    fn shell(&self, line: &str) {
        let ended = Self::command(&self.near, &["sh", "-c", line]).output().expect("ip is there");
        assert!(ended.status.success(), "{line}: {ended:?}");
    }

    /// Puts `fq` at the root of the near link; `false` if this kernel has none.
    fn paced(&self) -> bool {
        let line = ["tc", "qdisc", "replace", "dev", "near0", "root", "fq"];
        let ended = Self::command(&self.near, &line).output().expect("ip is there");
        let unknown = String::from_utf8_lossy(&ended.stderr).contains("qdisc kind is unknown");
        assert!(ended.status.success() || unknown, "{ended:?}");
        !unknown
    }

    /// A server in the far namespace.
    fn serve(&self) -> Running {
        let serve = [env!("CARGO_BIN_EXE_narrows"), "serve", "--bind", REMOTE];
        let mut server = Running::start(&mut Self::command(&self.remote, &serve));
        server.wait_for("listening on");
        server
    }

    fn host(&self, flags: &[&str]) -> ProgramResult {
        let mut arguments = vec![env!("CARGO_BIN_EXE_narrows"), "host", "--json", "--quiet"];
        arguments.extend_from_slice(flags);
        Running::start(&mut Self::command(&self.near, &arguments)).end()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in [&self.near, &self.remote] {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn ip(arguments: &[&str]) {
    let ended = Command::new("ip").args(arguments).output().expect("ip is there");
    assert!(ended.status.success(), "{arguments:?}: {ended:?}");
}

fn document(ended: &ProgramResult) -> Value {
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let document = ended.json();
    validate(narrows_report::schema::HOST, &document);
    document
}

fn fix<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    document["fixes"].as_array()?.iter().find(|fix| fix["id"] == id)
}

#[test]
#[ignore = "lab: needs namespaces"]
fn both_ends_of_a_veth_pair() {
    let pair = Pair::new();
    let _server = pair.serve();
    let found = document(&pair.host(&[REMOTE, "--fix", "--capture"]));
    let card = &found["near"]["inventory"]["card"];
    assert_eq!((&card["name"], &card["driver"], &card["is_virtual"]), (&"near0".into(), &"veth".into(), &true.into()));
    assert_eq!((&card["mtu"], &card["qdisc"]), (&1400.into(), &"noqueue".into()));
    // What a veth pair says of its rate means nothing, and it has no slot.
    assert_eq!((&card["rate_bps"], &card["pcie"]), (&Value::Null, &Value::Null));
    let offloads = card["offloads"].as_array().expect("a list");
    assert!(offloads.iter().any(|offload| offload["name"] == "tso"), "{card:#}");
    assert_eq!(found["ip_octets"], 1400);
    assert!(found["remote"]["facts"]["receive_cost_ns"].as_u64().is_some_and(|cost| cost > 0));
    assert_eq!(found["remote"]["facts"]["virtual_interface"], true);
    for rows in [&found["families"], &found["reverse_families"]] {
        let rows = rows.as_array().expect("both ways");
        assert_eq!(rows.len(), 8);
        for row in rows.iter().take(2) {
            assert_ne!(row["verdict"], "ok", "no wire, no fine spacings: {row:#}");
        }
    }
    // Packets of a namespace's own: the ring was opened, whatever it took on this machine.
    assert!(found["capture"]["measured"].is_object(), "{:#}", found["capture"]);
    assert_eq!(found["error"], Value::Null);
    // Without a discipline departure times are ignored, which is said.
    let unknown = departure_times(&found);
    assert_eq!((&unknown["error"], &unknown["kept"]), (&Value::Null, &Value::Null));
    assert!(unknown["unknown"].as_str().is_some_and(|why| why.contains("noqueue")), "{unknown:#}");
}

/// What a host found of the pacer that leaves the times to the kernel.
fn departure_times(document: &Value) -> Value {
    let rows = document["near"]["costs"]["pacing"].as_array().expect("a list").clone();
    let row = rows.into_iter().find(|row| row["pacer"] == "departure_times");
    row.expect("always told of")
}

/// With `fq` departure times are kept, to the driver.
#[test]
#[ignore = "judge: needs namespaces, tc"]
fn departure_times_are_kept() {
    let pair = Pair::new();
    let _server = pair.serve();
    if !pair.paced() {
        println!("NOT JUDGED: departure_times: this kernel has no fq");
        return;
    }
    let found = document(&pair.host(&[REMOTE]));
    let kept = departure_times(&found);
    let error = kept["error"]["median_ns"].as_u64();
    // Sent at once they would be microseconds apart, and every gap off by nearly its 200 µs. A
    // machine that kept no time may be so, too.
    if found["noise"]["quiet"] == true {
        assert!(error.is_some_and(|error| error < 100_000), "{kept:#}");
    } else {
        println!("NOT JUDGED: departure_times: the machine was not quiet; gaps were off by {error:?} ns");
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn what_a_namespace_is_set_to_and_back() {
    let pair = Pair::new();
    pair.shell("sysctl -w net.ipv4.tcp_rmem='4096 131072 1000000'");
    pair.shell("tc qdisc replace dev near0 root pfifo_fast");
    pair.shell("sysctl -w net.ipv4.tcp_window_scaling=0");
    let flags = ["-I", "near0", "--fix", "--rate", "1 Gbit/s"];
    let before = document(&pair.host(&flags));
    assert_eq!(before["near"]["inventory"]["tcp"]["receive_memory"], serde_json::json!([4096, 131_072, 1_000_000]));
    assert_eq!(before["near"]["inventory"]["card"]["qdisc"], "pfifo_fast");
    assert!(fix(&before, "qdisc").is_some(), "{:#}", before["fixes"]);
    let has_fq = pair.paced();
    pair.shell("tc qdisc replace dev near0 root pfifo_fast");
    let mut ids = vec!["tcp_receive_buffer", "window_scaling"];
    if has_fq {
        ids.push("qdisc");
    }
    let fixes: Vec<&Value> =
        ids.iter().map(|id| fix(&before, id).unwrap_or_else(|| panic!("no {id}: {before:#}"))).collect();
    // It printed them and ran none.
    let line = |fix: &Value, what: &str| fix[what].as_str().expect("a command").to_owned();
    for fix in &fixes {
        pair.shell(&line(fix, "command"));
    }
    let mended = document(&pair.host(&flags));
    let paced = &mended["near"]["inventory"]["card"]["qdisc"];
    assert_eq!(paced, if has_fq { "fq" } else { "pfifo_fast" });
    for id in ids {
        assert!(fix(&mended, id).is_none(), "{id} helped nothing: {:#}", mended["fixes"]);
    }
    for fix in &fixes {
        pair.shell(&line(fix, "undo"));
    }
    let after = document(&pair.host(&flags));
    let settings = |document: &Value| {
        let inventory = &document["near"]["inventory"];
        (inventory["tcp"].clone(), inventory["card"]["qdisc"].clone())
    };
    assert_eq!(settings(&after), settings(&before));
}
