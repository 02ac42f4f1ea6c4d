use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};

use super::*;

fn command() -> Command {
    let test = Command::new("test").args([
        Arg::new("host").required(true),
        Arg::new("port").long("port").value_parser(clap::value_parser!(u16)),
        Arg::new("quick").long("quick").action(ArgAction::SetTrue).conflicts_with("thorough"),
        Arg::new("thorough").long("thorough").action(ArgAction::SetTrue),
        Arg::new("param").long("param").action(ArgAction::Append),
        Arg::new("config").long("config").value_parser(clap::value_parser!(PathBuf)),
    ]);
    let serve = Command::new("serve").arg(Arg::new("port").long("port"));
    Command::new("narrows").subcommand_required(true).subcommands([test, serve])
}

/// Files of these texts, the weaker first.
fn files(texts: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |(at, text): (usize, &&str)| {
        let path = folder.path().join(format!("{at}.toml"));
        std::fs::write(&path, text).expect("it is ours");
        path
    };
    let paths = texts.iter().enumerate().map(write).collect();
    (folder, paths)
}

/// What a call comes to: port, quick, thorough, parameters.
fn called(texts: &[&str], line: &str) -> Result<(Option<u16>, bool, bool, Vec<String>), Failure> {
    let (_folder, paths) = files(texts);
    let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let matches = configured(&line, command(), &paths)?.get_matches_from(line);
    let (_, test) = matches.subcommand().expect("a command");
    let params = test.get_many::<String>("param").into_iter().flatten().cloned().collect();
    Ok((test.get_one("port").copied(), test.get_flag("quick"), test.get_flag("thorough"), params))
}

const WEAK: &str = "[test]\nport = 1\nquick = true\n[serve]\nport = 7\n[hosts.\"far.example\"]\nport = 3\n";
const STRONG: &str = "[test]\nport = 2\nparam = [\"a=1\", \"b=2\"]\n";

#[test]
fn the_later_outweighs() {
    let port = |texts: &[&str], line: &str| called(texts, line).unwrap().0;
    assert_eq!(port(&[], "narrows test x"), None);
    assert_eq!(port(&[WEAK], "narrows test x"), Some(1));
    assert_eq!(port(&[WEAK, STRONG], "narrows test x"), Some(2));
    assert_eq!(port(&[WEAK, STRONG], "narrows test far.example"), Some(3));
    assert_eq!(port(&[WEAK, STRONG], "narrows test far.example --port 4"), Some(4));
    let params = called(&[STRONG], "narrows test x").unwrap().3;
    assert_eq!(params, ["a=1", "b=2"]);
    assert_eq!(called(&[STRONG], "narrows test x --param c=3").unwrap().3, ["c=3"]);
}

#[test]
fn a_flag_outweighs_what_it_excludes() {
    let modes = |texts: &[&str], line: &str| called(texts, line).map(|(_, quick, thorough, _)| (quick, thorough));
    assert_eq!(modes(&[WEAK], "narrows test x").unwrap(), (true, false));
    assert_eq!(modes(&[WEAK], "narrows test x --thorough").unwrap(), (false, true));
    // And a heavier file what a lighter one has.
    assert_eq!(modes(&[WEAK, "[test]\nthorough = true\n"], "narrows test x").unwrap(), (false, true));
    assert_eq!(modes(&[WEAK, "[test]\nquick = false\n"], "narrows test x").unwrap(), (false, false));
    let both = modes(&["[test]\nquick = true\nthorough = true\n"], "narrows test x").expect_err("both");
    assert_eq!(both.exit.code(), 2);
    assert!(both.text.contains("0.toml:") && both.text.contains("excludes"), "{both}");
}

#[test]
fn a_named_file_is_a_table_of_its_own() {
    let (folder, paths) = files(&[WEAK]);
    let own = folder.path().join("own.toml");
    std::fs::write(&own, "port = 5\n").expect("it is ours");
    let line: Vec<OsString> = ["narrows", "test", "far.example", "--config"].map(OsString::from).into();
    let line = [line, vec![own.into()]].concat();
    let matches = configured(&line, command(), &paths).unwrap().get_matches_from(&line);
    assert_eq!(matches.subcommand().unwrap().1.get_one("port"), Some(&5u16));
}

/// File, line, key, and what was meant.
#[test]
fn faults_are_named() {
    let path = Path::new("/etc/x.toml");
    let all = |text: &str| -> Vec<String> {
        match file::settings(path, text, None) {
            Err(fault) => vec![fault.to_string()],
            Ok(settings) => settings
                .iter()
                .filter_map(|one| faults(one, &command()).map(|why| format!("{}: {why}", one.source)))
                .collect(),
        }
    };
    assert_eq!(all("[test]\nport = 8620\n\n[hosts.\"a.b\"]\nport = 1\n"), [""; 0]);
    for (text, expected) in [
        ("port = 1\n", "/etc/x.toml:1: port: stands in no table"),
        ("[test]\n\nprot = 1\n", "/etc/x.toml:3: test.prot: no such flag; did you mean port?"),
        ("[tset]\nport = 1\n", "/etc/x.toml:2: [tset]: no such command; did you mean test?"),
        ("[test]\nport = 99999\n", "/etc/x.toml:2: test.port: invalid value '99999'"),
        ("[test]\nport = true\n", "/etc/x.toml:2: test.port: a value is required"),
        ("[test]\nquick = 5\n", "/etc/x.toml:2: test.quick: unexpected value '5'"),
        ("[test]\nqick = false\n", "/etc/x.toml:2: test.qick: no such flag; did you mean quick?"),
        ("[test]\nport = 2020-01-01\n", "/etc/x.toml:2: port: write true, false, a number"),
        ("[hosts]\nport = 1\n", "/etc/x.toml:2: hosts.port: is no table"),
        ("[hosts.\"a.b\"]\nprot = 1\n", "/etc/x.toml:2: hosts.a.b.prot: no such flag"),
        ("[test\n", "/etc/x.toml:1: "),
    ] {
        let found = all(text);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}: {found:?}");
    }
}

#[test]
fn a_call_with_a_wrong_file_names_it() {
    let failure = called(&["[test]\nprot = 1\n"], "narrows test x").expect_err("no such flag");
    assert_eq!((failure.exit.code(), failure.who), (2, "caller"));
    assert!(failure.text.contains("0.toml:2: test.prot"), "{failure}");
    // What other commands have is not this one's business.
    assert!(called(&["[serve]\nprot = 1\n"], "narrows test x").is_ok());
}
