//! What the program says of itself.

use crate::common;

use common::run;

const COMMANDS: &[&str] = &[
    "test",
    "serve",
    "demo",
    "capacity",
    "available",
    "hops",
    "rtt",
    "burst",
    "streams",
    "udp",
    "tcp",
    "throughput",
    "host",
    "emulate",
    "lab",
    "simulate",
    "evaluate",
    "replay",
    "diff",
    "traffic",
    "passive",
    "agent",
    "alerts",
    "history",
    "watch",
    "hub",
    "fleet",
    "methods",
    "completions",
    "config",
    "man",
];

/// Commands of commands.
const PARTS: &[[&str; 2]] = &[
    ["agent", "join"],
    ["agent", "run"],
    ["agent", "leave"],
    ["agent", "status"],
    ["history", "events"],
    ["history", "show"],
    ["history", "import"],
    ["history", "path"],
    ["history", "compare"],
    ["lab", "up"],
    ["lab", "down"],
    ["lab", "run"],
    ["lab", "exec"],
    ["lab", "status"],
    ["config", "show"],
    ["config", "check"],
    ["alerts", "test"],
    ["traffic", "send"],
    ["traffic", "sink"],
    ["hub", "token"],
    ["hub", "revoke"],
    ["hub", "move"],
    ["hub", "backup"],
    ["hub", "operator"],
    ["hub", "check"],
    ["fleet", "status"],
    ["fleet", "bottlenecks"],
    ["fleet", "plan"],
    ["fleet", "apply"],
    ["fleet", "diff"],
    ["fleet", "run"],
];

fn said(arguments: &[&str]) -> String {
    let ended = run(arguments);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    ended.stdout
}

#[test]
fn help() {
    insta::assert_snapshot!("help", said(&["--help"]));
    for command in COMMANDS {
        insta::assert_snapshot!(format!("help-{command}"), said(&[command, "--help"]));
    }
    for [command, part] in PARTS {
        insta::assert_snapshot!(format!("help-{command}-{part}"), said(&[command, part, "--help"]));
    }
}

#[test]
fn every_command_is_in_the_list() {
    let help = said(&["--help"]);
    let listed: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // Longer descriptions go on further in.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert_eq!(listed, COMMANDS);
}

#[test]
fn version() {
    assert_eq!(said(&["--version"]), format!("narrows {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(run(&[]).status.code(), Some(2), "a call without a command makes no sense");
}

#[test]
fn every_flag_says_what_it_does() {
    for command in COMMANDS {
        let help = said(&[command, "--help"]);
        let lines: Vec<&str> = help.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let flag = line.trim_start();
            let is_value = flag.starts_with("- ");
            if !flag.starts_with('-') || is_value || !line.starts_with("  ") {
                continue;
            }
            // Either after two blanks, or on the next line, further in.
            let beside = flag.split_once("  ").is_some_and(|(_, about)| !about.trim().is_empty());
            let below =
                lines.get(index + 1).is_some_and(|next| next.starts_with("          ") && !next.trim().is_empty());
            assert!(beside || below, "{command}: nothing is said of {line:?}");
        }
    }
}

/// Words of `text` that look like long flags.
fn flags(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    text.split(|letter: char| !is_part(letter))
        .filter(|word| word.starts_with("--") && word.len() > 3)
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn the_documents_speak_of_flags_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let known: Vec<String> = COMMANDS
        .iter()
        .flat_map(|command| flags(&said(&[command, "--help"])))
        .chain(PARTS.iter().flat_map(|[command, part]| flags(&said(&[command, part, "--help"]))))
        .collect();
    let guide = std::fs::read_dir(root.join("docs/guide")).expect("the guide is there");
    let pages = guide.map(|page| page.expect("a page").path()).filter(|path| path.is_file());
    for path in [root.join("README.md"), root.join("docs/design/protocol.md")].into_iter().chain(pages) {
        let name = path.display();
        let text = std::fs::read_to_string(&path).expect("the document is there");
        for line in text
            .lines()
            .filter(|line| line.contains("narrows") && !line.contains("cargo") && !line.contains("systemctl"))
        {
            for flag in flags(line) {
                assert!(known.contains(&flag), "{name} speaks of {flag}, which does not exist: {line}");
            }
        }
    }
}

#[test]
fn every_command_of_the_readme_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the document is there");
    let mut seen = 0;
    for line in readme.lines().filter(|line| line.contains("$ ")) {
        let Some(call) = line.split("narrows ").nth(1) else {
            continue;
        };
        let command = call.split_whitespace().next().unwrap_or_default();
        assert!(COMMANDS.contains(&command), "{line}");
        seen += 1;
    }
    assert!(seen >= 2, "the README shows how to begin");
}

fn methods() -> Vec<String> {
    let list: serde_json::Value = serde_json::from_str(&said(&["methods", "--json"])).expect("JSON");
    let names = list.as_array().expect("a list").iter();
    names.map(|info| info["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn the_list_of_methods() {
    insta::assert_snapshot!("methods", said(&["methods"]));
    for name in ["capacity", "pathrate", "fac2", "pathload", "burst", "udp", "tcp", "rtt", "pmtu"] {
        assert!(methods().iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn manuals_have_all_headings() {
    for name in methods() {
        let manual = said(&["methods", &name]);
        let headings: Vec<&str> = manual.lines().filter(|line| line.starts_with("# ")).collect();
        for heading in
            ["Model", "Assumptions", "Formula", "Parameters", "Cost", "Fails when", "References", "Classification"]
        {
            assert!(headings.contains(&format!("# {heading}").as_str()), "{name} has no {heading:?}: {headings:?}");
        }
        let json: serde_json::Value = serde_json::from_str(&said(&["methods", &name, "--json"])).expect("JSON");
        assert_eq!(json["name"], name.as_str());
        for parameter in json["parameters"].as_array().expect("a list") {
            let row = format!("| {} ", parameter["name"].as_str().expect("a name"));
            assert!(manual.contains(&row), "{name}: no row {row:?}");
        }
    }
}

#[test]
fn one_manual_page_has_every_command() {
    let page = said(&["man"]);
    assert!(page.contains(".TH narrows 1"), "{page}");
    for command in COMMANDS {
        assert!(page.contains(&format!(".SH NARROWS {}", command.to_uppercase())), "{command}");
    }
    assert!(page.contains("\\-\\-psk\\-file"), "{page}");
}
