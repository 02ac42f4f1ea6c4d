//! Progress on standard error; quiet when that is no terminal.

use narrows_methods::job::Observer;
use narrows_probe::Entry;
use narrows_units::Metric;

use crate::output;
use crate::status::StatusLine;

/// Says what is being measured, and what has been found.
#[derive(Clone)]
pub(crate) struct Progress {
    status: StatusLine,
    quiet: bool,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let status = StatusLine::new(quiet);
        Self { status, quiet }
    }

    pub(crate) fn say(&self, text: impl Into<String>) {
        self.status.say(text);
    }

    /// One line that stays, also where standard error is no terminal.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.status.above(|| output::complain(text));
        }
    }

    pub(crate) fn finish(&self) {
        self.status.finish();
    }
}

impl Observer for Progress {
    fn begins(&mut self, metric: Metric, method: &'static str) {
        tracing::info!(%metric, method, "begins");
        self.say(format!("{metric} by {method}"));
    }

    fn ends(&mut self, entry: &Entry) {
        let line = narrows_report::MetricRow::new(entry).line();
        tracing::info!("ends: {line}");
        self.status.print(&format!("  {line}"));
    }
}
