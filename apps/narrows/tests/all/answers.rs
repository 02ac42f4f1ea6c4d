//! What the answer says of paths whose truth is known: `plans/answers/*.toml`, each whole in the
//! simulator.

use serde_json::Value;

use crate::common;

use crate::pasted::root;
use common::{run, text};

/// A path, the rules that write carries, free now, limit and do, and what must stand there.
type Row = (&'static str, [&'static str; 4], &'static [&'static str]);

const ROWS: [Row; 9] = [
    ("idle", ["c2", "f1", "l7", "d5"], &["975 Mbit/s", "all of it"]),
    ("tight-behind-narrow", ["c2", "f4", "l6", "d4"], &["97.5 Mbit/s", "other traffic"]),
    (
        "token-bucket",
        ["c1", "f1", "l3", "d3"],
        &["sustained; bursts up to 300 kB pass at 195 Mbit/s", "delays the excess", "sustained rate"],
    ),
    ("slow-receiver", ["c3", "f5", "l2", "d1"], &["at least 706 Mbit/s; far.slow-receiver could not take more"]),
    (
        "stalled-hosts",
        ["c4", "f8", "l1", "d2"],
        &["at least 89.3 Mbit/s\n", "unclear, ", "paused during ", "repeat while both hosts are idle"],
    ),
    ("random-loss", ["c2", "f1", "l4", "d7"], &["loss of 0.", "find the link that loses: narrows hops"]),
    (
        "asymmetric-loss",
        ["c2", "f1", "l10", "d8"],
        &["no loss forward; ", "lost in the reverse direction", "--reverse"],
    ),
    (
        "mtu-black-hole",
        ["c2", "f1", "l9", "d1"],
        &["packets above 1400 octets are dropped without an error", "tcp_mtu_probing"],
    ),
    (
        "stalled-receiver",
        ["c2", "f8", "l1", "d2"],
        &["195 Mbit/s", "it may be all of it", "far.stalled-receiver paused during "],
    ),
];

fn path(name: &str) -> std::path::PathBuf {
    root().join(format!("plans/answers/{name}.toml"))
}

#[test]
fn paths_whose_truth_is_known_are_answered_rightly() {
    for (name, rules, words) in ROWS {
        let file = path(name);
        let ended = run(&["demo", text(&file), "--simulate", "--json", "--quiet"]);
        let document: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{name}: {error}"));
        let lines = document["answer"].as_array().expect("an answer");
        let of = |topic: &str| lines.iter().find(|line| line["line"] == topic).unwrap_or(&Value::Null);
        let said = ["carries", "free_now", "limit", "do"].map(|topic| of(topic)["rule"].as_str().unwrap_or(""));
        assert_eq!(said, rules, "{name}: {lines:#?}");
        let all: String = lines.iter().filter_map(|line| line["text"].as_str()).collect::<Vec<_>>().join("\n");
        for word in words {
            assert!(all.contains(word), "{name}: no {word:?} in\n{all}");
        }
    }
}

/// A path without a row is one that nobody checks.
#[test]
fn every_path_of_the_folder_has_a_row() {
    let folder = std::fs::read_dir(path("x").parent().expect("a folder")).expect("the folder is there");
    let files = folder.map(|file| file.expect("a file").path());
    let mut names: Vec<String> = files.map(|file| file.file_stem().expect("a name").to_string_lossy().into()).collect();
    names.sort();
    let mut rows: Vec<String> = ROWS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    rows.sort();
    assert_eq!(names, rows);
}
