//! How far a plan is, and how long it will take; quiet when standard error is no terminal.

use std::time::Duration;

use evaluate::{Cell, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

pub(super) struct Bar {
    bar: ProgressBar,
    quiet: bool,
}

impl Bar {
    pub(super) fn new(quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {elapsed} gone, {eta} left  {msg}")
        {
            bar.set_style(style);
        }
        Self { bar, quiet }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    /// Only what is still to do: a resumed plan would look faster than it is.
    fn begins(&mut self, to_do: u64, held: u64) {
        self.bar.set_length(to_do);
        self.bar.enable_steady_tick(Duration::from_millis(250));
        if held > 0 && !self.quiet {
            let text = format!("{held} runs are there already, {to_do} are left");
            self.bar.suspend(|| output::complain(&text));
        }
    }

    fn at(&mut self, cell: &Cell) {
        let text = format!(
            "{}: {}, {}",
            cell.world.name(),
            cell.scenario.name,
            cell.subject.label()
        );
        self.bar.set_message(text);
    }

    fn one_more(&mut self) {
        self.bar.inc(1);
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| output::complain(text));
        }
    }
}
