//! Files beside the result: a page, Markdown; and what hides names in all of them.

use std::path::{Path, PathBuf};

use narrows_report::ReportFile;
use narrows_report::redaction::Redaction;

use crate::exit::Failure;
use crate::output;

/// What else is written, and what is hidden in everything.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FileArgs {
    /// Write a page as well: one HTML file with pictures, which any browser shows without a network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write answer and results as Markdown as well, to paste into a ticket
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Hide names and addresses of hosts, routers and interfaces in everything that is written
    #[arg(long)]
    redact: bool,
}

impl FileArgs {
    /// Says now, before anything is measured, that a file cannot be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        output::check(self.html.as_ref())?;
        output::check(self.markdown.as_ref())
    }

    /// For a command that has nothing to write.
    pub(crate) fn refuse(&self, with: &str) -> Result<(), Failure> {
        let given =
            [(self.html.is_some(), "--html"), (self.markdown.is_some(), "--markdown"), (self.redact, "--redact")];
        match given.into_iter().find(|(given, _)| *given) {
            Some((_, flag)) => Err(Failure::usage(format!("{flag}: not with {with}"))),
            None => Ok(()),
        }
    }

    /// Whether names and addresses are hidden.
    pub(crate) fn redact(&self) -> bool {
        self.redact
    }

    /// Writes what was asked for. `redaction` hides names in the command line, `file` makes the
    /// report of that.
    pub(crate) fn write(
        &self,
        redaction: impl FnOnce() -> Redaction,
        file: impl FnOnce(&str) -> ReportFile,
    ) -> Result<(), Failure> {
        if self.html.is_none() && self.markdown.is_none() {
            return Ok(());
        }
        let arguments: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut command = command_line(&arguments, self.redact);
        if self.redact {
            command = redaction().text(&command);
        }
        let file = file(&command);
        if let Some(path) = &self.html {
            output::write(&file.html(), Some(path))?;
        }
        if let Some(path) = &self.markdown {
            output::write(&file.markdown(), Some(path))?;
        }
        Ok(())
    }
}

/// Flags that say where a result goes, with a value behind them: who runs it again says that anew.
const WHERE: [&str; 6] = ["--html", "--markdown", "--output", "-o", "--svg", "--record"];

/// The command line, as a shell would take it. `redact`: without paths, which tell of users.
fn command_line(arguments: &[String], redact: bool) -> String {
    let program = arguments
        .first()
        .map_or("narrows", |path| Path::new(path).file_name().and_then(std::ffi::OsStr::to_str).unwrap_or("narrows"));
    let mut words = vec![program.to_owned()];
    let mut rest = arguments.iter().skip(1);
    while let Some(word) = rest.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if WHERE.contains(&name) {
            if name == word {
                rest.next();
            }
            continue;
        }
        words.push(if redact && word.contains('/') { "FILE".to_owned() } else { quoted(word) });
    }
    words.join(" ")
}

/// In quotes where a shell would see more than a word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_run_again() {
        let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let line = words(&[
            "/usr/bin/narrows",
            "test",
            "far.example",
            "--html",
            "a b.html",
            "--budget",
            "20 MB, 30 s",
            "-o=x",
        ]);
        assert_eq!(command_line(&line, false), "narrows test far.example --budget '20 MB, 30 s'");
        let line = words(&["narrows", "test", "it's", "--psk-file", "/home/someone/key"]);
        assert_eq!(command_line(&line, false), r"narrows test 'it'\''s' --psk-file /home/someone/key");
        assert_eq!(command_line(&line, true), r"narrows test 'it'\''s' --psk-file FILE");
    }
}
