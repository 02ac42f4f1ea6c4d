//! Calls that must be refused, or break, with a given exit code: those that the program's own tests
//! make, as far as no server is needed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Result;

use super::record::Call;

pub(super) const GROUP: &str = "refusals";

const KEY: &str = "0123456789abcdef\n";
const HOP: &str = "name = \"x\"\n[[hop]]\nrate = \"5 Mbit/s\"\n";

/// Files that the calls name.
const FILES: [(&str, u32, &str); 12] = [
    ("key", 0o600, KEY),
    ("open", 0o644, KEY),
    ("short", 0o600, "secret\n"),
    ("odd.toml", 0o600, "speed = 3\n"),
    ("both.toml", 0o600, "quick = true\nthorough = true\n"),
    ("budget.toml", 0o600, "budget = \"much\"\n"),
    ("negative", 0o600, "name = \"x\"\n[[hop]]\nrate = \"-5 Mbit/s\"\n"),
    ("zero", 0o600, "name = \"x\"\n[[hop]]\nrate = \"0 Mbit/s\"\n"),
    ("prose", 0o600, "this is no scenario"),
    ("binary", 0o600, "\u{0}\u{1}\u{2}"),
    ("empty", 0o600, ""),
    ("hopless", 0o600, "name = \"x\"\n"),
];

/// Files that begin with a good hop.
const LONGER: [(&str, &str); 2] = [
    ("unknown", "colour = 3\n"),
    (
        "loop",
        "[[hop]]\nrate = \"5 Mbit/s\"\n[[cross]]\nfirst_hop = 1\nlast_hop = 0\narrivals = \"poisson\"\nrate = \"1 Mbit/s\"\n",
    ),
];

const PLAN: &str = "name = \"small\"\nabout = \"one\"\nsource = \"[Key] table 1\"\nruns = { simulator = 3 }\n\
    [[scenario]]\nfile = \"unknown\"\n[[method]]\nname = \"rttt\"\n";

pub(super) fn write_files(folder: &Path) -> Result<()> {
    let write = |name: &str, mode: u32, content: &str| -> Result<()> {
        std::fs::write(folder.join(name), content)?;
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(mode))?;
        Ok(())
    };
    for (name, mode, content) in FILES {
        write(name, mode, content)?;
    }
    for (name, more) in LONGER {
        write(name, 0o600, &format!("{HOP}{more}"))?;
    }
    write("plan.toml", 0o600, PLAN)
}

/// Words of a call are parted by blanks; `_` stands for a blank within a word, and `@` for an empty
/// word.
const CALLS: &str = include_str!("refusals.txt");

pub(super) fn calls() -> Vec<Call> {
    let lines = CALLS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| Call { group: GROUP.to_owned(), args: line.split(' ').map(word).collect() }).collect()
}

fn word(text: &str) -> String {
    if text == "@" {
        return String::new();
    }
    text.replace('_', " ").replace("  ", "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_within_words() {
        assert_eq!(["a_b", "@", "no__such", "--budget=-5_MB"].map(word), ["a b", "", "no_such", "--budget=-5 MB"]);
        assert!(calls().len() > 100, "{}", calls().len());
    }
}
