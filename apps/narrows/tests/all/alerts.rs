//! `narrows alerts test`: channels tried out.

use crate::common;
use crate::documents::keeps;
use crate::pasted::root;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use common::{directory, file, narrows, run, text};
use serde_json::Value;

/// Answers so many POSTs with 200, and returns their bodies.
fn webhook(posts: usize) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let served = thread::spawn(move || (0..posts).map(|_| one_post(&listener)).collect());
    (address, served)
}

pub(crate) fn one_post(listener: &TcpListener) -> Value {
    let (mut stream, _) = listener.accept().expect("the program connects");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
    let mut length = 0;
    for line in reader.by_ref().lines() {
        let line = line.expect("HTTP is text").to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        length = line.strip_prefix("content-length: ").map_or(length, |value| value.parse().expect("a number"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("as many octets as were promised");
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("the program reads");
    serde_json::from_slice(&body).expect("JSON")
}

/// Where nobody listens.
const NOBODY: &str = "127.0.0.1:1";

#[test]
fn both_notices_arrive_by_every_channel() {
    let home = directory();
    let (address, served) = webhook(2);
    let settings = format!(
        "[[target]]\nhost = \"far.example\"\n\n[channel.ops]\nkind = \"webhook\"\nurl = \"http://{address}/in\"\n\n\
         [channel.script]\nkind = \"exec\"\ncommand = [\"echo\", \"paged\"]\n"
    );
    let settings = file(&home, "watch.toml", &settings);
    let ended = run(&["alerts", "test", "--config", text(&settings), "--json"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let document = ended.json();
    common::validate(narrows_report::schema::ALERTS, &document);
    keeps("alerts-1", &document);
    assert_eq!(document["channels"][0]["answers"][1]["answer"], "HTTP 200 OK: ok");
    let notices = served.join().expect("the server has no fault");
    for (notice, state) in notices.iter().zip(["firing", "resolved"]) {
        common::validate(narrows_report::schema::NOTICE, notice);
        assert!(notice["state"] == state && notice["rule"] == "test", "{notice:#}");
    }
    // The stored one has a value too.
    keeps("notice-1", &notices[0]);
}

#[test]
fn a_channel_that_fails_has_its_exit_code_and_says_why() {
    let home = directory();
    let (address, served) = webhook(2);
    let settings = format!(
        "[channel.away]\nkind = \"webhook\"\nurl = \"http://{NOBODY}/\"\n[channel.ops]\nkind = \"webhook\"\n\
         url = \"http://{address}/in\"\nshape = \"slack\"\n[channel.script]\nkind = \"exec\"\ncommand = [\"false\"]\n"
    );
    let settings = file(&home, "watch.toml", &settings);
    let ended = run(&["alerts", "test", "--config", text(&settings)]);
    assert_eq!(ended.status.code(), Some(3), "the first failure counts: {ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 9, "{ended:?}");
    assert!(
        lines[1].starts_with(&format!("  firing    failed: {NOBODY}: ")) && lines[1].ends_with("[path]"),
        "{ended:?}"
    );
    assert_eq!(lines[3..5], ["ops (webhook)", "  firing    delivered: HTTP 200 OK: ok"]);
    assert_eq!(lines[7], "  firing    failed: false: exit code 1 [program]");
    assert!(served.join().expect("the server has no fault")[0]["blocks"].is_array());
    let one = run(&["alerts", "test", "script", "--config", text(&settings)]);
    assert_eq!((one.status.code(), one.stdout.lines().count()), (Some(1), 3), "{one:?}");
}

#[test]
fn channels_of_more_files_and_of_the_service_manager_count() {
    let home = directory();
    let (settings, more) = (file(&home, "watch.toml", ""), home.path().join("watch.d"));
    run(&["alerts", "test", "--config", text(&settings)]).refused(2, &["there is no [channel.NAME]"]);
    std::fs::create_dir(&more).expect("it is ours");
    let (address, served) = webhook(2);
    let channel = "[channel.ops]\nkind = \"webhook\"\nurl_file = \"address\"\n";
    std::fs::write(more.join("ops.toml"), channel).expect("it is ours");
    run(&["alerts", "test", "--config", text(&settings)]).refused(2, &["channel.ops: ", "address: No such file"]);
    let handed = directory();
    std::fs::write(handed.path().join("address"), format!("http://{address}/s3cret\n")).expect("it is ours");
    let mut program = narrows(["alerts", "test", "--config", text(&settings)]);
    let ended = common::Running::start(program.env("CREDENTIALS_DIRECTORY", handed.path())).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(!ended.stdout.contains("s3cret"), "{ended:?}");
    served.join().expect("the server has no fault");
}

#[test]
fn settings_that_cannot_work_are_told_before_anything_is_sent() {
    let home = directory();
    run(&["alerts", "test", "--config", "/nowhere/watch.toml"]).refused(2, &["/nowhere/watch.toml", "no such file"]);
    let settings = file(&home, "watch.toml", "[channel.ops]\nkind = \"exec\"\ncommand = [\"true\"]\nshell = true\n");
    run(&["alerts", "test", "--config", text(&settings)]).refused(2, &["watch.toml:1: unknown field `shell`"]);
    let settings = file(&home, "watch.toml", "[channel.ops]\nkind = \"exec\"\ncommand = [\"true\"]\n");
    let wrong = run(&["alerts", "test", "chat", "--config", text(&settings)]);
    wrong.refused(2, &["there is no [channel.chat]; there is: ops"]);
}

/// The page's first example, as it stands: a reader needs nothing else.
#[test]
fn the_pages_first_example_runs_as_it_stands() {
    let page = std::fs::read_to_string(root().join("docs/guide/alerts.md")).expect("the page is there");
    let commands = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has commands");
    let home = directory();
    let program = narrows(["--version"]);
    let folder = std::path::Path::new(program.get_program()).parent().expect("programs lie in folders");
    let path = format!("{}:{}", text(folder), std::env::var("PATH").unwrap_or_default());
    let ended = std::process::Command::new("sh")
        .args(["-e", "-c", commands])
        .env("HOME", home.path())
        .env("PATH", path)
        .output()
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(said.contains("alert uplink-low: tells file") && said.contains("resolved  delivered"), "{said}");
    let notices: Vec<Value> =
        said.lines().filter(|line| line.starts_with('{')).map(|line| line.parse().expect("JSON")).collect();
    assert!(notices.len() == 2 && notices[0]["state"] == "firing" && notices[1]["state"] == "resolved", "{said}");
}
