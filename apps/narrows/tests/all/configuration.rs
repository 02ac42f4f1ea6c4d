//! Settings from files and the environment, manual pages, and what shells are offered.

use crate::common;

use std::path::Path;

use common::{Running, directory, file, narrows, run, text};

/// The program with a folder of settings of its own.
fn with(home: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> common::ProgramResult {
    let mut command = narrows(arguments);
    command.env("XDG_CONFIG_HOME", home).envs(environment.iter().copied());
    Running::start(&mut command).end()
}

fn settings(toml: &str) -> tempfile::TempDir {
    let home = directory();
    std::fs::create_dir(home.path().join("narrows")).expect("a folder of ours");
    std::fs::write(home.path().join("narrows/config.toml"), toml).expect("a file of ours");
    home
}

const HOSTS: &str = "[test]\nport = 3\nquick = true\n\n[hosts.\"127.0.0.1\"]\nport = 2\n";

#[test]
fn settings_are_defaults_and_the_later_outweighs() {
    let home = settings(HOSTS);
    let port = |environment: &[(&str, &str)], arguments: &[&str], port: &str| {
        let ended = with(home.path(), environment, arguments);
        ended.refused(3, &[&format!("127.0.0.1:{port}:")]);
    };
    // The complaint names the port that was asked at.
    port(&[], &["test", "127.0.0.1", "--json"], "2");
    port(&[], &["127.0.0.1", "--json", "--thorough"], "2");
    port(&[("NARROWS_PORT", "4")], &["127.0.0.1", "--json"], "4");
    port(&[("NARROWS_PORT", "4")], &["127.0.0.1", "--json", "--port", "5"], "5");
    port(&[("NARROWS_JSON", "true")], &["127.0.0.1"], "2");
    port(&[], &["capacity", "127.0.0.1"], "2");
    let elsewhere = with(home.path(), &[], &["localhost", "-4", "--json"]);
    elsewhere.refused(3, &["127.0.0.1:3:"]);
}

#[test]
fn what_is_set_is_shown_with_its_source() {
    let home = settings(HOSTS);
    let shown = with(home.path(), &[("NARROWS_BUDGET", "5 s")], &["config", "show"]);
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    let path = format!("{}/narrows/config.toml", home.path().display());
    for line in [
        format!("# {path}\n"),
        format!("# {path}:2\n"),
        format!("# {path}:6\n"),
        "[hosts.\"127.0.0.1\"]\n".to_owned(),
        "budget = \"5 s\"".to_owned(),
        "# NARROWS_BUDGET\n".to_owned(),
    ] {
        assert!(shown.stdout.contains(&line), "no {line:?} in {}", shown.stdout);
    }
}

#[test]
fn what_is_wrong_is_named_by_file_line_and_key() {
    let home = settings("[test]\nprot = 3\n[tset]\nquick = true\n[serve]\nport = \"many\"\n");
    let checked = with(home.path(), &[], &["config", "check"]);
    assert_eq!(checked.status.code(), Some(2), "{checked:?}");
    for fault in [
        "config.toml:2: test.prot: no such flag; did you mean port?",
        "config.toml:4: [tset]: no such command; did you mean",
        "config.toml:6: serve.port: invalid value 'many'",
    ] {
        assert!(checked.stderr.contains(fault), "no {fault:?}: {checked:?}");
    }
    // A call is held up by what is wrong for it alone.
    with(home.path(), &[], &["test", "no..such..host"]).refused(2, &["config.toml:2: test.prot"]);
    with(home.path(), &[], &["rtt", "no..such..host"]).refused(3, &["no..such..host"]);
    let other = directory();
    let right = file(&other, "right.toml", HOSTS);
    let checked = run(&["config", "check", text(&right)]);
    assert_eq!((checked.status.code(), checked.stderr.as_str()), (Some(0), ""), "{checked:?}");
    run(&["config", "check", "/nonexistent/c.toml"]).refused(2, &["/nonexistent/c.toml"]);
}

#[test]
fn a_page_for_each_command_and_for_the_file() {
    let home = directory();
    let folder = home.path().join("man1");
    let ended = run(&["man", "--out", text(&folder)]);
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    let page =
        |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(page("narrows.1").contains(".TH narrows 1"));
    assert!(page("narrows-test.1").contains("narrows\\-test") || page("narrows-test.1").contains("narrows-test"));
    assert!(page("narrows-traffic-send.1").contains("\\-\\-model"), "commands of commands have theirs");
    let settings = page("narrows.toml.5");
    // Its example is one.
    let example: String = settings
        .split(".SH EXAMPLE\n.nf\n")
        .nth(1)
        .and_then(|rest| rest.split(".fi").next())
        .expect("an example")
        .into();
    let checked = run(&["config", "check", text(&file(&home, "example.toml", &example))]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    run(&["man", "--out", "/proc/nowhere"]).refused(1, &["/proc/nowhere"]);
}

/// What bash is offered when the last of these words is to be completed.
fn completed(home: &Path, words: &[&str]) -> Vec<String> {
    let at = (words.len() - 1).to_string();
    let asked = [("NARROWS_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", &at), ("_CLAP_IFS", "\n")];
    let ended = with(home, &asked, &[&["--"], words].concat());
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    ended.stdout.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn shells_ask_the_program() {
    let home = settings(HOSTS);
    let is_offered = |words: &[&str], word: &str| {
        let offered = completed(home.path(), words);
        assert!(offered.iter().any(|one| one == word), "no {word:?} for {words:?}: {offered:?}");
    };
    is_offered(&["narrows", "te"], "test");
    is_offered(&["narrows", "capacity", "h", "--method", ""], "pathrate");
    is_offered(&["narrows", "hops", "h", "--method", "ho"], "hops");
    is_offered(&["narrows", "methods", ""], "slope");
    is_offered(&["narrows", "replay", "path.rec", "--method", ""], "pathload");
    is_offered(&["narrows", "test", ""], "127.0.0.1");
    is_offered(&["narrows", "passive", "--interface", ""], "lo");
    is_offered(&["narrows", "test", "h", "--bu"], "--budget");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]);
        assert_eq!(script.status.code(), Some(0), "{script:?}");
        assert!(script.stdout.contains("NARROWS_COMPLETE"), "{shell}: {}", script.stdout);
    }
}
