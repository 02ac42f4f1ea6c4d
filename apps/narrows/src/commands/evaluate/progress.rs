//! How far a plan is, and how long it will take; quiet when standard error is no terminal.

use std::time::Duration;

use narrows_evaluate::{Cell, Progress};

use crate::output;
use crate::status::StatusLine;

pub(super) struct Bar {
    status: StatusLine,
    quiet: bool,
    to_do: u64,
    done: u64,
    at: String,
}

impl Bar {
    pub(super) fn new(quiet: bool) -> Self {
        Self { status: StatusLine::new(quiet), quiet, to_do: 0, done: 0, at: String::new() }
    }

    pub(super) fn finish(&self) {
        self.status.finish();
    }

    fn say(&self) {
        let Some(elapsed) = self.status.elapsed() else { return };
        let left = left(elapsed, self.done, self.to_do);
        let left = left.map_or_else(String::new, |left| format!(", {} s left", left.as_secs()));
        self.status.say(format!("{}/{} runs{left}  {}", self.done, self.to_do, self.at));
    }
}

/// How long the rest takes if it takes as long as what is done.
fn left(elapsed: Duration, done: u64, to_do: u64) -> Option<Duration> {
    let share = to_do.saturating_sub(done) as f64 / done as f64;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * share).ok()
}

impl Progress for Bar {
    /// Only what is still to do: a resumed plan would look faster than it is.
    fn begins(&mut self, to_do: u64, held: u64) {
        self.to_do = to_do;
        self.say();
        if held > 0 {
            self.note(&format!("{held} runs are there already, {to_do} are left"));
        }
    }

    fn at(&mut self, cell: &Cell) {
        self.at = format!("{}: {}, {}", cell.world.name(), cell.scenario.name, cell.subject.label());
        self.say();
    }

    fn one_more(&mut self) {
        self.done += 1;
        self.say();
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.status.above(|| output::complain(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done() {
        let elapsed = Duration::from_secs(30);
        assert_eq!(left(elapsed, 30, 90), Some(Duration::from_secs(60)));
        assert_eq!(left(elapsed, 90, 90), Some(Duration::ZERO));
        assert_eq!(left(elapsed, 0, 90), None);
    }
}
