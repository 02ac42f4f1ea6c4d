//! The reference: what the program says of itself, as pages, made anew for each book.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::stage::Generated;
use super::{caveats, schemas};
use crate::shell::root;

/// Columns of a help text: what a page of the book shows without a scroll bar.
const COLUMNS: &str = "100";

/// Commands that measure nothing and take no settings.
const WITHOUT_SETTINGS: [&str; 6] = ["help", "completions", "man", "config", "methods", "diff"];

pub(super) fn pages(program: &str) -> Result<Vec<Generated>> {
    let program = root().join(program).canonicalize().with_context(|| program.to_owned())?;
    let says = |args: &[&str]| -> Result<String> {
        let mut command = Command::new(&program);
        let kept = std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("NARROWS_"));
        let ended = command.env_clear().envs(kept).env("COLUMNS", COLUMNS).args(args).output()?;
        ensure!(ended.status.success(), "narrows {}: {}", args.join(" "), String::from_utf8_lossy(&ended.stderr));
        Ok(String::from_utf8(ended.stdout)?)
    };
    let help = says(&["--help"])?;
    let mut pages = Vec::new();
    commands(&help, &says, &mut pages)?;
    pages.push(page(0, "Configuration", "configuration", configuration(&help, &says)?));
    pages.push(page(0, "Exit codes", "exit-codes", exit_codes(&help)?));
    schemas::pages(&mut pages)?;
    methods(&says, &mut pages)?;
    pages.push(page(0, "Doubts", "doubts", caveats::page()?));
    Ok(pages)
}

pub(super) fn page(depth: usize, title: &str, name: &str, text: String) -> Generated {
    Generated { depth, title: title.to_owned(), name: format!("reference/{name}.md"), text }
}

/// Text in a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

fn commands(help: &str, says: &dyn Fn(&[&str]) -> Result<String>, pages: &mut Vec<Generated>) -> Result<()> {
    let mut text = String::from(
        "# Commands\n\nWhat `narrows --help` and `narrows COMMAND --help` print.\n\n| command | what it does |\n|---|---|\n",
    );
    let listed = listed(help);
    ensure!(!listed.is_empty(), "`narrows --help` lists no commands");
    for (name, about) in &listed {
        let _ = writeln!(text, "| [{name}](commands/{name}.md) | {} |", cell(about));
    }
    pages.push(page(0, "Commands", "commands", text));
    for (name, _) in &listed {
        let help = says(&[name, "--help"])?;
        let mut text = format!("# narrows {name}\n\n{}", fenced(&help));
        for (part, _) in self::listed(&help) {
            let _ = write!(text, "\n## narrows {name} {part}\n\n{}", fenced(&says(&[name, &part, "--help"])?));
        }
        pages.push(page(1, &format!("narrows {name}"), &format!("commands/{name}"), text));
    }
    Ok(())
}

fn fenced(text: &str) -> String {
    format!("```text\n{}\n```\n", text.trim_end())
}

/// Name and description of each command below `Commands:`.
fn listed(help: &str) -> Vec<(String, String)> {
    entries(help, "Commands:", |line| line.split_once("  ").unwrap_or((line, "")))
        .into_iter()
        .filter(|(name, _)| name != "help")
        .collect()
}

/// The entries of a section of a help text: each begins two blanks in and goes on further in.
fn entries(help: &str, heading: &str, split: impl Fn(&str) -> (&str, &str)) -> Vec<(String, String)> {
    let section = help.lines().skip_while(|line| *line != heading).skip(1);
    let mut found: Vec<(String, String)> = Vec::new();
    for line in section.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        if line.starts_with("   ") && !line.trim_start().starts_with('-') {
            if let Some((_, about)) = found.last_mut() {
                let _ = write!(about, " {}", line.trim());
            }
        } else if !line.is_empty() {
            let (name, about) = split(line.trim());
            found.push((name.to_owned(), about.trim().to_owned()));
        }
    }
    found.into_iter().map(|(name, about)| (name, about.trim().to_owned())).collect()
}

/// The flags of every section, with what they take and what they do.
fn flags(help: &str) -> Vec<(String, String, String)> {
    let headings: BTreeSet<&str> = help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
    let mut found = Vec::new();
    for heading in headings {
        for (flag, about) in entries(help, heading, |line| line.split_once("  ").unwrap_or((line, ""))) {
            let Some(at) = flag.find("--") else { continue };
            let (name, takes) = flag[at + 2..].split_once([' ', '[', '=']).unwrap_or((&flag[at + 2..], ""));
            found.push((
                name.trim_end_matches("...").to_owned(),
                takes.trim_matches(['[', ']', '=']).to_owned(),
                about,
            ));
        }
    }
    found.sort();
    found
}

/// Each command's keys: they are its long flags.
fn configuration(help: &str, says: &dyn Fn(&[&str]) -> Result<String>) -> Result<String> {
    let mut text = String::from(
        "# Configuration\n\nEvery key that a file of settings may have, by command. A key is the long flag of the same name, and the\n\
         environment has it as `NARROWS_` and the flag in capitals. A switch is `true` or `false`. Which source outweighs which is in\n\
         [Keep settings](../docs/guide/configuration.md).\n",
    );
    for (name, _) in listed(help).iter().filter(|(name, _)| !WITHOUT_SETTINGS.contains(&name.as_str())) {
        let own = says(&[name, "--help"])?;
        let parts = listed(&own);
        let mut all: Vec<(String, String)> =
            parts.iter().map(|(part, _)| (format!("{name}.{part}"), part.clone())).collect();
        if all.is_empty() {
            all.push((name.clone(), String::new()));
        }
        for (table, part) in all {
            let help = if part.is_empty() { own.clone() } else { says(&[name, &part, "--help"])? };
            let _ = writeln!(text, "\n## \\[{table}\\]\n\n| key | value | what it does |\n|---|---|---|");
            for (flag, takes, about) in flags(&help) {
                if !["help", "version", "verbose"].contains(&flag.as_str()) {
                    let value = if takes.is_empty() { "switch".to_owned() } else { cell(&takes) };
                    let _ = writeln!(text, "| `{flag}` | {value} | {} |", cell(&about));
                }
            }
        }
    }
    Ok(text)
}

fn exit_codes(help: &str) -> Result<String> {
    let mut text = String::from("# Exit codes\n\n| code | meaning |\n|--:|---|\n");
    let codes = entries(help, "Exit codes:", |line| line.split_once(' ').unwrap_or((line, "")));
    ensure!(!codes.is_empty(), "`narrows --help` lists no exit codes");
    for (code, meaning) in codes {
        let _ = writeln!(text, "| {code} | {} |", cell(&meaning));
    }
    text.push_str("\nWhat each of them means for a script: [Use results in scripts](../docs/guide/gate.md).\n");
    Ok(text)
}

fn methods(says: &dyn Fn(&[&str]) -> Result<String>, pages: &mut Vec<Generated>) -> Result<()> {
    let list: Value = serde_json::from_str(&says(&["methods", "--json"])?)?;
    let list = list.as_array().context("no list of methods")?;
    let mut text = String::from(
        "# Methods\n\nWhat `narrows methods` and `narrows methods NAME` print.\n\n| method | metric | what it does |\n|---|---|---|\n",
    );
    let mut manuals = Vec::new();
    for info in list {
        let field = |key: &str| info[key].as_str().with_context(|| format!("a method without {key}"));
        let (name, metric, summary) = (field("name")?, field("metric")?, field("summary")?);
        let _ = writeln!(text, "| [{name}](methods/{name}.md) | `{metric}` | {} |", cell(summary));
        manuals.push(page(1, name, &format!("methods/{name}"), manual(name, &says(&["methods", name])?)));
    }
    pages.push(page(0, "Methods", "methods", text));
    pages.extend(manuals);
    Ok(())
}

/// A manual as a page: its headings one level down, its last list as it stands.
fn manual(name: &str, text: &str) -> String {
    let mut page = format!("# {name}\n\n");
    let mut is_code = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        is_code ^= line.starts_with("```");
        let heading = if line.starts_with("# ") && !is_code { "#" } else { "" };
        let _ = writeln!(page, "{heading}{line}");
        if line == "# Classification" {
            let rest: String = lines.by_ref().map(|line| line.to_owned() + "\n").collect();
            let _ = write!(page, "\n{}", fenced(rest.trim_matches('\n')));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Do it\n\nCommands:\n  up    Build it, and\n        more\n  help  No\n\nOptions:\n  -b, --budget <B>  Most [env: X]\n      --long-flag\n          What it does\n\nExit codes:\n  0    fine\n  10   a limit | crossed";

    #[test]
    fn help_is_read() {
        assert_eq!(listed(HELP), [("up".to_owned(), "Build it, and more".to_owned())]);
        let flags = flags(HELP);
        assert_eq!(flags[0], ("budget".to_owned(), "<B>".to_owned(), "Most [env: X]".to_owned()));
        assert_eq!(flags[1], ("long-flag".to_owned(), String::new(), "What it does".to_owned()));
        assert!(exit_codes(HELP).unwrap().ends_with("| 10 | a limit \\| crossed |\n\nWhat each of them means for a script: [Use results in scripts](../docs/guide/gate.md).\n"));
        exit_codes("nothing").unwrap_err();
    }

    #[test]
    fn manuals_begin_with_their_name() {
        let page = manual("rtt", "rtt: it.\n\n# Model\n```text\n# not\n```\n# Classification\n\n  a  b\n");
        assert_eq!(
            page,
            "# rtt\n\nrtt: it.\n\n## Model\n```text\n# not\n```\n## Classification\n\n```text\n  a  b\n```\n"
        );
    }
}
