//! Every run that the README and the guide show is what the program prints.
//!
//! A block with output has a marker on the line above it:
//!
//! | marker | what the block is compared with |
//! |---|---|
//! | `<!-- run: exact -->` | what its commands print, octet by octet; `…` stands for lines left out |
//! | `<!-- run: live -->` | what they print between namespaces (`pasted_lab.rs`), with numbers masked |
//! | `<!-- run: live; as ARGUMENTS -->` | the same, of a call of narrows that needs no network |
//! | `<!-- run: live; may lack A, B -->` | lines that begin so, and doubts, may be missing in a run |
//! | `<!-- run: live; long -->` | the same, in `cargo xtask soak` |
//! | `<!-- run: part of FILE -->` | the lines of a file of the repository, in this order |
//!
//! A command before which a page shows `cat FILE` finds that file as shown. All files of
//! `tests/pasted` lie in the folder in which commands run.

use std::path::{Path, PathBuf};

use crate::common;

use common::{directory, narrows};

/// What begins a line that shows a command, after the prompt if there is one.
const PROGRAMS: [&str; 7] = ["narrows ", "cargo ", "head ", "printf ", "sed ", "cat ", "systemctl "];

/// A block of a page.
#[derive(Debug)]
pub(crate) struct Pasted {
    /// Page and line, for complaints.
    pub(crate) place: String,
    pub(crate) marker: Option<String>,
    pub(crate) lines: Vec<String>,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// The blocks without a language of the README and of every page of the guide.
fn blocks() -> Vec<Pasted> {
    let guide = std::fs::read_dir(root().join("docs/guide")).expect("the guide is there");
    let mut pages: Vec<PathBuf> = guide.map(|page| page.expect("a page").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.push(root().join("README.md"));
    pages.sort();
    pages.iter().flat_map(|page| blocks_of(page)).collect()
}

fn blocks_of(page: &Path) -> Vec<Pasted> {
    let text = std::fs::read_to_string(page).expect("pages can be read");
    let name = page.file_name().expect("a page has a name").to_string_lossy();
    let (mut found, mut open, mut before) = (Vec::new(), None::<Pasted>, "");
    for (number, line) in text.lines().enumerate() {
        match &mut open {
            None if line.starts_with("```") => {
                let marker = before.strip_prefix("<!-- run: ").and_then(|rest| rest.strip_suffix(" -->"));
                let place = format!("{name}:{}", number + 1);
                open = Some(Pasted { place, marker: marker.map(ToOwned::to_owned), lines: vec![line[3..].to_owned()] });
            }
            Some(_) if line == "```" => found.extend(open.take()),
            Some(block) => block.lines.push(line.to_owned()),
            None => {}
        }
        before = line;
    }
    found.retain(|block| block.lines[0].is_empty());
    for block in &mut found {
        block.lines.remove(0);
    }
    found
}

/// The command that a line shows.
fn command(line: &str) -> Option<&str> {
    let shown = line.split_once("$ ").filter(|(host, _)| host.chars().all(char::is_alphanumeric));
    let rest = shown.map_or(line, |(_, rest)| rest);
    PROGRAMS.iter().any(|program| rest.starts_with(program)).then_some(rest)
}

impl Pasted {
    fn has_output(&self) -> bool {
        self.lines.iter().any(|line| !line.is_empty() && command(line).is_none())
    }

    /// Each command with the lines below it.
    pub(crate) fn runs(&self) -> Vec<(&str, Vec<&str>)> {
        let mut runs: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in &self.lines {
            match (command(line).filter(|_| line.contains("$ ")), runs.last_mut()) {
                (Some(command), _) => runs.push((command, Vec::new())),
                (None, Some((_, output))) => output.push(line),
                (None, None) => panic!("{}: output before the first command: {line}", self.place),
            }
        }
        for (_, output) in &mut runs {
            let end = output.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
            output.truncate(end);
        }
        runs
    }
}

/// The blocks of one kind, with what follows its name in the marker.
pub(crate) fn of_kind(kind: &str) -> Vec<(Pasted, String)> {
    let marked = blocks().into_iter().filter_map(|block| {
        let rest = block.marker.as_ref()?.strip_prefix(kind)?.to_owned();
        Some((block, rest))
    });
    marked.collect()
}

#[test]
fn every_run_says_what_it_is() {
    let kinds = ["exact", "live", "part of "];
    let is_wrong = |block: &Pasted| match &block.marker {
        Some(marker) => !kinds.iter().any(|kind| marker.starts_with(kind)),
        None => block.has_output(),
    };
    let wrong: Vec<String> = blocks().into_iter().filter(is_wrong).map(|block| block.place).collect();
    assert!(wrong.is_empty(), "output without a marker, or with an unknown one: {wrong:?}");
}

#[test]
fn exact_runs_are_what_the_program_prints() {
    let blocks = of_kind("exact");
    assert!(blocks.len() >= 5, "the guide shows runs in the simulator");
    let mut faults = Vec::new();
    for (block, _) in blocks {
        let home = Home::new();
        for (command, shown) in block.runs() {
            let printed = home.run(command, &shown);
            if !is_shown(&shown, &printed) {
                faults.push(format!("{}: $ {command}\nprints\n{printed}", block.place));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn parts_of_files_stand_there() {
    for (block, file) in of_kind("part of ") {
        let text = std::fs::read_to_string(root().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut rest = text.lines();
        let is_output = |line: &&String| !line.is_empty() && *line != "…" && !line.contains("$ ");
        for line in block.lines.iter().filter(is_output) {
            assert!(
                rest.any(|there| there.contains(line.as_str())),
                "{}: not in {file} from there on: {line}",
                block.place
            );
        }
    }
}

#[test]
fn live_runs_look_as_shown_in_the_simulator() {
    let mut count = 0;
    for (block, rest) in of_kind("live") {
        let live = Live::of(&rest);
        let Some(arguments) = live.stand_in else { continue };
        let printed = Home::new().run(&format!("narrows {arguments}"), &[]);
        for (_, shown) in block.runs() {
            assert_eq!(live.missing(&shown, &printed), [""; 0], "{}: not as in\n{printed}", block.place);
        }
        count += 1;
    }
    assert!(count > 0, "the README shows the demo");
}

/// What a marker says of a live run.
pub(crate) struct Live<'a> {
    /// Arguments of a call that prints the same lines wherever it runs.
    pub(crate) stand_in: Option<&'a str>,
    pub(crate) is_long: bool,
    may_lack: Vec<&'a str>,
}

impl<'a> Live<'a> {
    pub(crate) fn of(rest: &'a str) -> Self {
        let parts = || rest.split("; ");
        let named = parts().filter_map(|part| part.strip_prefix("may lack ")).flat_map(|list| list.split(", "));
        Self {
            stand_in: parts().find_map(|part| part.strip_prefix("as ")),
            is_long: parts().any(|part| part == "long"),
            may_lack: named.chain(["!", "…"]).collect(),
        }
    }

    /// Whether a run has doubts that the page's has not: a busy machine may miss lines.
    pub(crate) fn is_disturbed(shown: &[&str], printed: &str) -> bool {
        let doubts = |line: &&str| line.trim_start().starts_with('!');
        let known: Vec<String> = shown.iter().copied().filter(doubts).map(shape).collect();
        printed.lines().filter(doubts).any(|line| !known.contains(&shape(line)))
    }

    /// The lines shown that no line printed begins like.
    pub(crate) fn missing<'b>(&self, shown: &[&'b str], printed: &str) -> Vec<&'b str> {
        let shapes: Vec<String> = printed.lines().map(shape).collect();
        let is_surely_there = |line: &str| !self.may_lack.iter().any(|prefix| line.trim_start().starts_with(prefix));
        let lines = shown.iter().copied().filter(|line| is_surely_there(line));
        let is_there = |line: &&str| shapes.iter().any(|printed| printed.starts_with(&shape(line)));
        lines.filter(|line| !is_there(line)).collect()
    }
}

/// A line without its numbers, units and grades, what limited a value, doubts by name, and bars.
fn shape(line: &str) -> String {
    const UNITS: &str = "bit/s kbit/s Mbit/s Gbit/s ns µs us ms s min B kB MB GB octets % …";
    const LIMITS: &str = "path budget peer window still growing queue asked rate sending receiving host application send buffer \
                          pacing interface reordering shaper policer random unexplained loss mtu black hole";
    let mut shape: Vec<&str> = Vec::new();
    let mut in_brackets = false;
    for word in line.split_whitespace() {
        let is_named = in_brackets || (word.starts_with('[') && word.contains(char::is_alphabetic));
        in_brackets = is_named && !word.ends_with(']');
        let bare = word.trim_matches(|letter: char| ",;:()[]".contains(letter) || ('▀'..='▟').contains(&letter));
        let is_grade = bare.len() == 1 && bare.starts_with(|letter: char| letter.is_ascii_uppercase());
        let word = if is_grade || bare.contains(|letter: char| letter.is_ascii_digit()) { "#" } else { bare };
        let is_other = [UNITS, LIMITS].iter().any(|words| words.split(' ').any(|other| other == word));
        let is_repeated = word == "#" && shape.last() == Some(&"#");
        if !(is_named || is_other || is_repeated || word.is_empty()) {
            shape.push(word);
        }
    }
    shape.join(" ")
}

/// Whether `printed` is what is shown, where `…` stands for any number of lines; a command that
/// shows nothing may print anything.
fn is_shown(shown: &[&str], printed: &str) -> bool {
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    let parts: Vec<&[&str]> = shown.split(|line| *line == "…").collect();
    let [first, between @ ..] = parts.as_slice() else { return false };
    let Some(mut rest) = printed.strip_prefix(*first) else { return shown.is_empty() };
    for (number, part) in between.iter().enumerate() {
        let mut places = 0..=rest.len().saturating_sub(part.len());
        let is_last = number + 1 == between.len();
        let found = if is_last { places.next_back() } else { places.find(|at| rest[*at..].starts_with(part)) };
        match found.map(|at| &rest[at..]).filter(|from| from.starts_with(part)) {
            Some(from) => rest = &from[part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || shown.is_empty()
}

/// Where commands run: a folder like the repository's, and a home of its own.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = directory();
        let at = home.path().to_owned();
        for (from, to) in [(root().join("scenarios"), "scenarios"), (root().join("plans"), "plans")] {
            copy(&from, &at.join(to));
        }
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pasted"), &at);
        std::fs::create_dir_all(at.join("home/ann/.config/narrows")).expect("the folder is ours");
        Self(home)
    }

    /// What a command prints to both outputs, with the pages' names for our folders.
    fn run(&self, command: &str, shown: &[&str]) -> String {
        let home = self.0.path().join("home/ann");
        if let Some(file) = command.strip_prefix("cat ~/") {
            std::fs::write(home.join(file), shown.join("\n")).expect("the folder is ours");
            return shown.join("\n");
        }
        let words = words(command.strip_prefix("narrows ").unwrap_or_else(|| panic!("{command} cannot be run here")));
        let mut program = narrows(words);
        program.current_dir(self.0.path()).env("HOME", &home).env_remove("XDG_CONFIG_HOME");
        let ended = program.output().expect("the program starts");
        let text = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        text.replace(common::text(&self.0.path().join("home")), "/home")
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the folder is ours");
    for entry in std::fs::read_dir(from).expect("it is in the repository") {
        let path = entry.expect("a file").path();
        let to = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).expect("the folder is ours");
        }
    }
}

/// Words as a shell splits them: quotes hold blanks, `#` begins a comment.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(end), _) if letter == end => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => all.extend(word.take()),
            (None, '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    all
}

#[test]
fn live_runs_are_compared_without_their_numbers() {
    let live = Live::of("; as demo --simulate; may lack hint, by the way");
    assert_eq!(live.stand_in, Some("demo --simulate"));
    let shown = ["free: 73 Mbit/s (70 ms … 75 s)  [a b]", "  hint x", "! a doubt", "was 3  ██", "[ 1] queue"];
    assert_eq!(live.missing(&shown, "  free:  7 kbit/s\nis 3\n[ 21]  asked rate"), ["was 3  ██"]);
    assert!(Live::is_disturbed(&["! 2 lost"], "a\n  ! late") && !Live::is_disturbed(&["! 2 lost"], "b\n ! 4 lost"));
}

#[test]
fn pages_are_compared_line_by_line() {
    assert_eq!(words(r#"a "b c" 'd<1' # e"#), ["a", "b c", "d<1"]);
    assert!(is_shown(&["a", "…", "c"], "a\nb\nb\nc\n") && is_shown(&["…", "b", "…"], "a\nb\nc") && is_shown(&[], "x"));
    for shown in [&["a"][..], &["a", "…", "b"], &["a", "b", "c", "d"], &["…", "c", "…", "b"], &["b", "…"]] {
        assert!(!is_shown(shown, "a\nb\nc"), "{shown:?}");
    }
}
