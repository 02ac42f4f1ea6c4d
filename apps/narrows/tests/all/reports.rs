//! Report files and the answer, as the program writes them.

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{Running, Server, client, directory, narrows, run, text};
use serde_json::Value;

/// The document that a page holds.
#[track_caller]
fn held(page: &str) -> Value {
    let json = page.split("id=\"narrows-document\">").nth(1).and_then(|rest| rest.split("</script>").next());
    serde_json::from_str(json.expect("a page holds its document")).expect("it is JSON")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A page, Markdown and JSON of one simulated run.
fn of_demo(folder: &Path) -> (String, String, Value) {
    let (page, ticket) = (folder.join("page.html"), folder.join("ticket.md"));
    let files = ["--html", text(&page), "--markdown", text(&ticket)];
    let ended = run(&[&["demo", "--simulate", "--quick", "--seed", "3", "--json", "--quiet"], &files[..]].concat());
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    (read(&page), read(&ticket), ended.json())
}

/// What a reader looks for of each metric.
fn names(document: &Value) -> Vec<&'static str> {
    let rows = document["metrics"].as_array().expect("a list");
    let name = |row: &Value| match row["metric"].as_str() {
        Some("round_trip_time") => "round trip",
        Some("path_mtu") => "path MTU",
        Some("ip_capacity") => "capacity",
        Some("available_ip_capacity") => "available",
        Some("cross_traffic") => "cross traffic",
        other => panic!("{other:?} has no name here"),
    };
    rows.iter().map(name).collect()
}

#[test]
fn a_demo_writes_a_page_and_a_ticket() {
    let folder = directory();
    let (page, ticket, document) = of_demo(folder.path());
    assert_eq!(held(&page), document, "the page holds what is printed");
    assert!(page.len() < 400_000, "{}", page.len());
    for name in names(&document) {
        assert!(page.contains(name) && ticket.contains(name), "{name}");
    }
    for line in document["answer"].as_array().expect("a list") {
        let said = line["text"].as_str().expect("a sentence");
        assert!(ticket.contains(said), "{said}");
    }
    assert!(ticket.ends_with("narrows demo --simulate --quick --seed 3 --json --quiet\n"), "{ticket}");
    run(&["demo", "--simulate", "--quick", "--html", "/nowhere/at/all.html"]).refused(2, &["/nowhere/at/all.html"]);
}

/// One metric alone opens with its answer, and hides names everywhere.
#[test]
fn one_metric_has_an_answer_a_page_and_hidden_names() {
    let server = Server::start(&[]);
    let folder = directory();
    let page = folder.path().join("page.html");
    for (command, line) in [("capacity", "carries"), ("available", "free_now")] {
        let files = ["--json", "--budget", "10 MB, 2 s", "--redact", "--html", text(&page)];
        let ended = Running::start(&mut client(command, server.address.port(), &files)).end();
        assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
        let row = ended.json();
        assert_eq!(row["answer"][0]["line"], line, "{row:#}");
        let page = read(&page);
        assert_eq!(held(&page), row);
        assert!(!ended.stdout.contains("127.0.0.1") && !page.contains("127.0.0.1"), "{page}");
        assert!(page.contains("host-1"), "{page}");
    }
}

#[test]
fn hops_and_throughput_have_an_answer_and_hide_names() {
    let server = Server::start(&[]);
    let port = server.port();
    let folder = directory();
    let (page, ticket) = (folder.path().join("page.html"), folder.path().join("ticket.md"));
    let files = ["--redact", "--html", text(&page), "--markdown", text(&ticket)];
    let hops = ["--json", "--quiet", "-n", "--server-port", &port, "--param", "probes=24"];
    let ended = Running::start(narrows(["hops", "127.0.0.1"]).args(hops).args(files)).end();
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    let document = ended.json();
    assert_eq!(document["answer"][0]["line"], "carries", "{document:#}");
    assert_eq!(held(&read(&page)), document);
    let hidden = |shown: &str| assert!(!shown.contains("127.0.0.1"), "{shown}");
    for shown in [ended.stdout, read(&page), read(&ticket)] {
        hidden(&shown);
    }
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("the kernel has a name for this host");
    for form in [&["--json"][..], &[]] {
        let letters = ["throughput", "127.0.0.1", "-p", &port, "-t", "0.3", "-i", "0.1"];
        let ended = run(&[&letters[..], form, &files[..]].concat());
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let said = if form.is_empty() {
            ended.stdout.contains("Carried   ") && ended.stdout.contains("Delay     ")
        } else {
            let document = ended.json();
            assert_eq!(held(&read(&page)), document);
            document["narrows"]["answer"][0]["line"] == "carried"
        };
        assert!(said, "{ended:?}");
        for shown in [ended.stdout, read(&page), read(&ticket)] {
            hidden(&shown);
            assert!(here.trim().len() < 4 || !shown.contains(here.trim()), "{shown}");
        }
    }
    run(&["throughput", "127.0.0.1", "--ndt7", "--redact"]).refused(2, &["--redact", "--ndt7"]);
}

/// A browser without a network shows every metric, and has nothing to say.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn a_browser_shows_every_metric_and_says_nothing() {
    let folder = directory();
    let (_, _, document) = of_demo(folder.path());
    let page = format!("file://{}", text(&folder.path().join("page.html")));
    let profile = format!("--user-data-dir={}", text(&folder.path().join("profile")));
    let flags = ["--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND"];
    let mut browser = Command::new("chromium-headless-shell");
    let ended = Running::start(browser.args(flags).args([&profile, "--dump-dom", &page])).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    for name in names(&document) {
        assert!(ended.stdout.contains(name), "{name}");
    }
    assert!(ended.stdout.contains("<button type=\"button\">metric</button>"), "the script ran");
    assert!(!ended.stderr.contains("CONSOLE"), "{}", ended.stderr);
}
