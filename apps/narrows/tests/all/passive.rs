//! `narrows passive`: files, damage, filters, an interface.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::documents::keeps;
use common::{run, text, validate};
use narrows_capture::packet::{LinkType, RawPacket};
use narrows_capture::write::PcapWriter;
use serde_json::Value;

/// A transfer of so many data packets and their acknowledgements, 10 ms from the remote host, and a
/// datagram of UDP after each tenth.
fn transfer(folder: &Path, name: &str, packets: u32) -> PathBuf {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 96).expect("memory");
    let mut write = |at_ns: i64, octets: &[u8], payload: u32| {
        let raw = RawPacket {
            at_ns: Some(at_ns),
            link: LinkType::ETHERNET,
            octets,
            whole_octets: u32::try_from(octets.len()).expect("small") + payload,
            vlan: None,
            outgoing: None,
        };
        writer.write(&raw).expect("memory");
    };
    let head = |from: u8, to: u8, protocol: u8, octets: u16| {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(octets.to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        frame
    };
    for index in 0..packets {
        let at_ns = i64::from(index) * 1_000_000;
        let (sequence, taken) = (index * 1_460, (index + 1) * 1_460);
        let mut data = head(1, 2, 6, 1_500);
        data.extend([0x9C, 0x40, 0x14, 0x51]);
        data.extend([sequence, 1].map(u32::to_be_bytes).concat());
        data.extend([0x50, 0x10, 0xFF, 0xFF, 0, 0, 0, 0]);
        write(at_ns, &data, 1_460);
        let mut ack = head(2, 1, 6, 40);
        ack.extend([0x14, 0x51, 0x9C, 0x40]);
        ack.extend([1, taken].map(u32::to_be_bytes).concat());
        ack.extend([0x50, 0x10, 0xFF, 0xFF, 0, 0, 0, 0]);
        write(at_ns + 500_000, &ack, 0);
        if index % 10 == 0 {
            let mut datagram = head(1, 3, 17, 36);
            datagram.extend([0x14, 0xE9, 0, 53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
            write(at_ns + 600_000, &datagram, 0);
        }
    }
    let path = folder.join(name);
    std::fs::write(&path, writer.finish().expect("memory")).expect("a file");
    path
}

fn read(path: &Path, more: &[&str]) -> Value {
    let mut call = vec!["passive", text(path), "--json", "--quiet"];
    call.extend_from_slice(more);
    let ended = run(&call);
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    let document = ended.json();
    validate(narrows_report::schema::PASSIVE, &document);
    document
}

#[test]
fn a_file_becomes_rows_as_promised() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = transfer(folder.path(), "whole.pcap", 200);
    let document = read(&path, &[]);
    keeps("passive-1", &document);
    for key in ["schema", "flows", "pairs", "packets", "octets", "unreadable"] {
        assert!(document.get(key).is_some(), "no {key}");
    }
    assert_eq!((&document["packets"], &document["unreadable"]), (&420.into(), &0.into()));
    assert_eq!(document["octets"], 200 * (1_514 + 54) + 20 * 50);
    let flows = document["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), narrows_diagnose::passive::PASSIVE.len());
    for flow in flows {
        assert_eq!(flow["source"], "10.0.0.1:40000");
        assert_eq!(flow["destination"], "10.0.0.2:5201");
        assert_eq!(flow["data_packets"], 200);
        assert_eq!(flow["value"].is_null(), flow["verdict"] == "inconclusive");
        assert_eq!(flow["value"].is_null(), flow["reason"].is_object());
    }
    assert_eq!(document["pairs"].as_array().map(Vec::len), Some(flows.len()));
    let shown = run(&["passive", text(&path), "--quiet"]);
    assert!(shown.stdout.contains("10.0.0.1:40000 > 10.0.0.2:5201"), "{shown:?}");
    let chosen = read(&path, &["--method", "pprate", "--flow", "10.0.0.1:40000"]);
    assert_eq!(chosen["flows"].as_array().map(Vec::len), Some(1));
    assert_eq!(read(&path, &["--flow", "10.0.0.9"])["flows"], Value::Array(Vec::new()));
    assert_eq!(read(&path, &["--min-packets", "201"])["counts"]["small"], 1);
}

#[test]
fn several_files_are_one_capture_and_damage_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = transfer(folder.path(), "whole.pcap", 200);
    let whole = std::fs::read(&path).expect("written");
    let cut = folder.path().join("cut.pcap");
    std::fs::write(&cut, &whole[..whole.len() - 7]).expect("a file");
    let document = read(&path, &[text(&cut)]);
    assert_eq!((&document["packets"], &document["unreadable"]), (&839.into(), &1.into()));
    let damage = &document["damage"][0];
    assert_eq!(damage["packet"], 419);
    assert!(damage["why"].as_str().is_some_and(|why| why.contains("cut off")), "{damage}");
    // From standard input, too.
    let mut child = common::narrows(["passive", "-", "--json", "--quiet"]);
    let child = child
        .stdin(std::fs::File::open(&path).expect("it was written"))
        .stdout(Stdio::piped())
        .output()
        .expect("it runs");
    let document: Value = serde_json::from_slice(&child.stdout).expect("JSON");
    assert_eq!(document["packets"], 420);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = transfer(folder.path(), "whole.pcap", 20);
    let other = folder.path().join("other");
    std::fs::write(&other, "not a capture at all, whatever it is").expect("a file");
    let path = text(&path);
    run(&["passive"]).refused(2, &["FILE"]);
    run(&["passive", "/nowhere/at.all"]).refused(2, &["/nowhere/at.all"]);
    run(&["passive", text(folder.path())]).refused(2, &["directory"]);
    run(&["passive", text(&other)]).refused(2, &["neither a pcap nor a pcapng"]);
    run(&["passive", path, "--filter", "prot 80"]).refused(2, &["\"prot\"", "character 1"]);
    run(&["passive", path, "--method", "nobody"]).refused(2, &["nobody", "pprate"]);
    run(&["passive", path, "--param", "nothing=1"]).refused(2, &["nothing"]);
    run(&["passive", path, "--param", "nothing"]).refused(2, &["NAME=VALUE"]);
    run(&["passive", path, "--flow", "example.org"]).refused(2, &["ADDRESS"]);
    run(&["passive", path, "--interface", "lo"]).refused(2, &["cannot be used with"]);
    run(&["passive", path, "--duration", "1 s"]).refused(2, &["--duration", "cannot be used with"]);
}

#[test]
#[ignore = "lab: needs tcpdump"]
fn filters_pass_what_tcpdump_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = transfer(folder.path(), "whole.pcap", 200);
    let expressions = [
        "tcp",
        "udp",
        "udp port 53",
        "host 10.0.0.2",
        "src host 10.0.0.2",
        "dst net 10.0.0.2/31",
        "src and dst net 10.0.0.0/8",
        "port 5201 or 53",
        "not port 53",
        "udp or tcp and src host 10.0.0.2",
        "udp or (tcp and src host 10.0.0.2)",
        "portrange 50-60",
        "greater 1000",
        "less 60",
        "ip6",
        "arp",
        "vlan",
        "ip host 10.0.0.3",
        "! tcp && ip",
    ];
    for expression in expressions {
        let output =
            Command::new("tcpdump").args(["-n", "-r", text(&path), expression]).output().expect("tcpdump is installed");
        assert!(output.status.success(), "{expression}: {output:?}");
        let theirs = String::from_utf8_lossy(&output.stdout).lines().count();
        let ours = read(&path, &["--filter", expression]);
        assert_eq!(ours["packets"], theirs, "{expression}");
    }
}

#[test]
#[ignore = "lab: needs namespaces, iperf3"]
fn an_interface_is_heard() {
    let folder = tempfile::tempdir().expect("a folder");
    let incoming = folder.path().join("heard.pcap");
    let received = folder.path().join("received.json");
    // A packet socket has its line in /proc/net/packet, with the interface in column 5 once bound;
    // a listener on port 5301 (hexadecimal 14B5) its own in state 0A.
    let script = format!(
        "ip link set lo up && {{ iperf3 -s -1 -J -p 5301 > {received} & \
         {narrows} passive --interface lo --duration '60 s' --filter 'tcp port 5301' --write {incoming} --json --quiet & listener=$!; \
         for turn in $(seq 600); do \
           awk 'NR > 1 && $5 > 0 {{ bound = 1 }} END {{ exit !bound }}' /proc/net/packet && \
             cat /proc/net/tcp /proc/net/tcp6 | grep -q ':14B5 0*:0000 0A' && break; sleep 0.1; \
         done; \
         iperf3 -c 127.0.0.1 -p 5301 -n 4M -b 80M > /dev/null; sleep 0.5; kill -INT $listener; wait; }}",
        narrows = env!("CARGO_BIN_EXE_narrows"),
        incoming = text(&incoming),
        received = text(&received),
    );
    let output = Command::new("unshare").args(["--net", "sh", "-c", &script]).output().expect("unshare is there");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    validate(narrows_report::schema::PASSIVE, &document);
    assert_eq!(document["counts"]["dropped"], 0);
    let payload = |document: &Value| {
        let flows = document["flows"].as_array().cloned().unwrap_or_default();
        flows.iter().filter_map(|flow| flow["payload_octets"].as_u64()).max().unwrap_or(0)
    };
    let octets = payload(&document);
    // The server closes as soon as the client has sent everything, so it need not have read
    // everything, but at this pace it has read nearly all. What it read was on the wire;
    // retransmissions on a busy machine come on top.
    let server: Value = serde_json::from_slice(&std::fs::read(&received).expect("a report")).expect("JSON");
    let least = server["end"]["sum_received"]["bytes"].as_u64().expect("octets");
    assert!(least > 1 << 20 && (least..6 << 20).contains(&octets), "{least}, {octets}: {document:#}");
    // What was written is what was heard.
    let again = read(&incoming, &[]);
    assert_eq!((&again["packets"], payload(&again)), (&document["packets"], octets));
}
