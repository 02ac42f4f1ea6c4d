//! Progress on standard error; quiet when that is no terminal.

use std::time::Duration;

use estimate::job::{Entry, Observer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use units::Metric;

/// A spinner that says what is being measured, and what has been found.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
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
        Self { bar, quiet }
    }

    pub(crate) fn say(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    /// One line that stays, also where standard error is no terminal.
    pub(crate) fn note(&self, text: &str) {
        if self.quiet {
            return;
        }
        self.bar.suspend(|| crate::output::complain(text));
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn begins(&mut self, metric: Metric, method: &'static str) {
        tracing::info!(%metric, method, "begins");
        self.say(format!("{metric} by {method}"));
    }

    fn ends(&mut self, entry: &Entry) {
        let line = report::MetricRow::new(entry).line();
        tracing::info!("ends: {line}");
        self.bar.println(format!("  {line}"));
    }
}
