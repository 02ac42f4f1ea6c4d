//! Progress on standard error; quiet when that is no terminal.

use std::time::Duration;

use estimate::job::{Entry, Observer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use units::Metric;

/// A spinner that says what is being measured, and what has been found.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    pub(crate) fn say(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn begins(&mut self, metric: Metric, method: &'static str) {
        self.say(format!("{metric} by {method}"));
    }

    fn ends(&mut self, entry: &Entry) {
        let row = report::MetricRow::new(entry);
        self.bar.println(format!("  {}", row.line()));
    }
}
