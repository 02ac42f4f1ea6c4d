//! Programs that know nothing of narrows.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use narrows_lab::{LabHost, RealTimePath, Side, listens};
use narrows_scenario::PathDirection;

use crate::bench::{MS, alone, measured, start, three_hops};

fn output(host: &LabHost, program: &str, arguments: &[&str]) -> String {
    let child = host.spawn(Command::new(program).args(arguments).stdout(Stdio::piped())).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "judge: needs namespaces, ping"]
fn stock_ping_sees_the_round_trip() {
    let _alone = alone();
    let scenario = three_hops();
    let arguments = ["-c", "20", "-i", "0.02", "-s", "1472", "10.77.3.1"];
    let ping = |path: &RealTimePath| output(path.host(Side::Sender), "ping", &arguments);
    let Some((text, _)) = measured("ping", &scenario, ping) else {
        return;
    };
    let numbers = text.lines().last().unwrap().split(" = ").nth(1).unwrap();
    let least: f64 = numbers.split('/').next().unwrap().parse().unwrap();
    let truth = scenario.truth(PathDirection::Forward).base_rtt(1500, 1500).as_secs_f64() * 1e3;
    assert!(text.contains(" 0% packet loss"), "{text}");
    // ping prints microseconds.
    assert!((truth - 0.001..=truth + 0.3).contains(&least), "{least} ms, truth {truth} ms");
}

#[test]
#[ignore = "lab: needs namespaces, traceroute"]
fn stock_traceroute_sees_the_routers() {
    let _alone = alone();
    let path = start(&three_hops());
    for (target, expected) in [
        ("10.77.3.1", ["10.77.1.1", "10.77.1.2", "10.77.3.1"]),
        ("fd5e:4a1c:90b3::3:1", ["fd5e:4a1c:90b3::1:1", "fd5e:4a1c:90b3::1:2", "fd5e:4a1c:90b3::3:1"]),
    ] {
        let text = output(path.host(Side::Sender), "traceroute", &["-n", "-w", "1", target]);
        let shown: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(shown, expected, "{text}");
    }
}

#[test]
#[ignore = "judge: needs namespaces, iperf3"]
fn stock_iperf3_sees_the_rate() {
    let _alone = alone();
    let scenario = three_hops();
    let iperf3 = |path: &RealTimePath| {
        let quiet = Stdio::null;
        let mut server = path
            .host(Side::Receiver)
            .spawn(Command::new("iperf3").args(["-s", "-1", "--forceflush"]).stdout(quiet()))
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !listens(server.id(), 5201) {
            assert!(Instant::now() < deadline, "iperf3 does not listen");
            thread::sleep(MS);
        }
        let arguments = ["-c", "10.77.3.1", "-u", "-b", "140M", "-l", "1472", "-t", "3", "-f", "k"];
        let text = output(path.host(Side::Sender), "iperf3", &arguments);
        server.wait().unwrap();
        text
    };
    let Some((text, _)) = measured("iperf3", &scenario, iperf3) else {
        return;
    };
    let line = text.lines().find(|line| line.ends_with("receiver")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = words.iter().position(|&word| word == "Kbits/sec").unwrap();
    let payload_kbps: f64 = words[unit - 1].parse().unwrap();
    let truth = scenario.truth(PathDirection::Forward).capacity(1500).as_f64() * 1_472.0 / 1_500.0;
    let ratio = payload_kbps * 1e3 / truth;
    eprintln!("ratio {ratio:.4}");
    // Its own clocking of three seconds is good for a percent or two.
    assert!((0.97..=1.02).contains(&ratio), "{text}");
}
