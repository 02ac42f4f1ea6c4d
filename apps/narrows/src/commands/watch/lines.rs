//! What goes to standard output: JSON lines, a line per value, or on a terminal a line per target.
//!
//! Programs read values that are on disk: whoever compares what was printed with the store, after
//! `kill -9` as well, finds no value that only one of them has. Until the next commit, seconds
//! later, such lines are held. People see theirs at once.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IsTerminal, Write};

use narrows_notify::NoticeBody;
use narrows_report::schema::FOLLOW_NAME as SCHEMA;
use narrows_store::records::{Basis, Event};
use narrows_units::rounded_signed;
use narrows_watch::schedule::TargetId;
use narrows_watch::{Claim, Reading, Signal, WallTime, Zone};
use serde_json::{Value, json};

use super::influx;
use super::keep::OnDisk;

/// A form of standard output.
#[derive(Debug)]
pub(super) enum Form {
    Json,
    /// Line protocol; this host's name stands in each line.
    Influx(String),
    Plain,
    /// Lines are painted over: so many are there.
    Terminal(usize),
}

impl Form {
    /// For people, unless they ask for another.
    pub(super) fn wanted(json: bool, influx: bool) -> Self {
        match (json, influx) {
            (true, _) => Self::Json,
            (false, true) => Self::Influx(crate::environment::hostname()),
            (false, false) if io::stdout().is_terminal() => Self::Terminal(0),
            (false, false) => Self::Plain,
        }
    }
}

/// Standard output.
#[derive(Debug)]
pub(super) struct Lines {
    form: Form,
    zone: Zone,
    /// What is newest of each target.
    rows: BTreeMap<TargetId, (String, BTreeMap<Signal, Reading>)>,
    /// Lines that wait until so many rows are on disk.
    held: VecDeque<(u64, String)>,
    /// Nothing is kept after the end: no line waits for a disk.
    fleeting: bool,
    /// A value was shown.
    any: bool,
    closed: bool,
}

impl Lines {
    pub(super) const fn new(form: Form, zone: Zone) -> Self {
        Self { form, zone, rows: BTreeMap::new(), held: VecDeque::new(), fleeting: false, any: false, closed: false }
    }

    /// Programs need not wait until what they read is on disk, where it goes at the end.
    #[must_use]
    pub(super) const fn fleeting(mut self, fleeting: bool) -> Self {
        self.fleeting = fleeting;
        self
    }

    /// Nobody reads them.
    #[cfg(test)]
    pub(super) fn unread(zone: Zone) -> Self {
        Self { closed: true, ..Self::new(Form::Json, zone) }
    }

    /// A value was shown.
    pub(super) const fn any(&self) -> bool {
        self.any
    }

    /// Nobody reads any more.
    pub(super) const fn closed(&self) -> bool {
        self.closed
    }

    /// A value, which was handed over to be kept.
    pub(super) fn value(
        &mut self,
        (id, target): (TargetId, &str),
        signal: Signal,
        (reading, basis): (&Reading, Basis),
        on_disk: OnDisk,
    ) {
        self.any |= reading.claim != Claim::Inconclusive;
        let (_, row) = self.rows.entry(id).or_insert_with(|| (target.to_owned(), BTreeMap::new()));
        row.insert(signal, *reading);
        let line = match &self.form {
            Form::Json => of_value(target, signal, reading, basis).to_string() + "\n",
            Form::Influx(source) => influx::value(source, target, signal, reading, basis),
            Form::Plain => format!("{} {target}: {}\n", self.clock(reading.at), value_text(signal, reading)),
            Form::Terminal(_) => return self.paint(None),
        };
        if self.fleeting || matches!(self.form, Form::Plain) {
            return self.put(&line);
        }
        self.held.push_back((on_disk.handed, line));
        self.stored(on_disk);
    }

    /// Prints what is on disk by now. To be called before anything else is printed, and now and
    /// then.
    pub(super) fn stored(&mut self, on_disk: OnDisk) {
        let ready = self.held.iter().take_while(|(needed, _)| *needed <= on_disk.stored).count();
        for (_, line) in self.held.drain(..ready).collect::<Vec<_>>() {
            self.put(&line);
        }
    }

    /// The target's line goes; on a terminal the lines are painted afresh below.
    pub(super) fn forget(&mut self, target: TargetId) {
        self.rows.remove(&target);
        if let Form::Terminal(painted) = &mut self.form {
            *painted = 0;
        }
    }

    pub(super) fn event(&mut self, target: &str, event: &Event) {
        let text = format!("{} {}", self.clock(event.found), event.text);
        let line = match &self.form {
            Form::Json => of_event(target, event).to_string() + "\n",
            Form::Influx(source) => influx::event(source, target, event),
            Form::Plain => text + "\n",
            Form::Terminal(_) => return self.paint(Some(&text)),
        };
        self.put(&line);
    }

    pub(super) fn notice(&mut self, body: &NoticeBody) {
        let text = format!("{} alert {} {}: {}", self.clock(body.at), body.rule, body.state_name(), body.text);
        let line = match &self.form {
            Form::Json => of_notice(body).to_string() + "\n",
            Form::Influx(source) => influx::notice(source, body),
            Form::Plain => text + "\n",
            Form::Terminal(_) => return self.paint(Some(&text)),
        };
        self.put(&line);
    }

    /// One line per target over those that are there; `above` stays.
    fn paint(&mut self, above: Option<&str>) {
        let Form::Terminal(painted) = self.form else { return };
        let mut text = vec![if painted > 0 { format!("\x1b[{painted}A") } else { String::new() }];
        if let Some(above) = above {
            text.push(format!("\r{above}\x1b[K\n"));
        }
        for (name, row) in self.rows.values() {
            let values: Vec<String> = row.iter().map(|(signal, reading)| value_text(*signal, reading)).collect();
            text.push(format!("\r{name}: {}\x1b[K\n", values.join("; ")));
        }
        self.form = Form::Terminal(self.rows.len());
        self.put(&text.concat());
    }

    fn clock(&self, at: WallTime) -> String {
        let local = self.zone.local(at);
        format!("{:02}:{:02}:{:02}", local.second / 3600, local.second / 60 % 60, local.second % 60)
    }

    fn put(&mut self, text: &str) {
        if self.closed {
            return;
        }
        let mut out = io::stdout().lock();
        self.closed |= out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err();
    }
}

fn of_value(target: &str, signal: Signal, reading: &Reading, basis: Basis) -> Value {
    let known = |value: f64| (reading.claim != Claim::Inconclusive).then(|| rounded_signed(value));
    json!({
        "schema": SCHEMA,
        "kind": "value",
        "target": target,
        "signal": signal.name(),
        "unit": signal.unit(),
        "value": known(reading.value),
        "low": known(reading.low),
        "high": known(reading.high),
        "at_ms": reading.at.millis(),
        "claim": reading.claim,
        "basis": basis,
        "loaded": reading.loaded,
        "host_busy": reading.host_busy,
    })
}

fn of_event(target: &str, event: &Event) -> Value {
    json!({
        "schema": SCHEMA,
        "kind": "event",
        "target": event.target.map(|_| target),
        "event": event.kind,
        "signal": event.signal.map(Signal::name),
        "at_ms": event.at.millis(),
        "at_low_ms": event.at_low.millis(),
        "at_high_ms": event.at_high.millis(),
        "found_ms": event.found.millis(),
        "before": event.before,
        "after": event.after,
        "cause": event.cause,
        "text": event.text,
    })
}

fn of_notice(body: &NoticeBody) -> Value {
    json!({
        "schema": SCHEMA,
        "kind": "alert",
        "target": body.target,
        "rule": body.rule,
        "state": body.state_name(),
        "at_ms": body.at.millis(),
        "since_ms": body.since.map(WallTime::millis),
        "since_low_ms": body.since_low.map(WallTime::millis),
        "since_high_ms": body.since_high.map(WallTime::millis),
        "lasted_ms": body.lasted_ms,
        "cause": body.cause,
        "text": body.text,
    })
}

fn value_text(signal: Signal, reading: &Reading) -> String {
    let name = signal.name().replace('_', " ");
    let Reading { value, low, high, claim, .. } = *reading;
    match claim {
        Claim::Inconclusive => format!("{name} inconclusive"),
        Claim::AtLeast => format!("{name} at least {}", signal.display(value)),
        Claim::AtMost => format!("{name} at most {}", signal.display(value)),
        Claim::Estimate if low < high => {
            format!("{name} {} ({}..{})", signal.display(value), signal.display(low), signal.display(high))
        }
        Claim::Estimate => format!("{name} {}", signal.display(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_whole_numbers_and_unknown_ones_are_null() {
        let reading = Reading::estimate(WallTime::from_millis(7), 22.4e6, 19e6, 25e6);
        let line = of_value("office", Signal::AvailableForward, &reading, Basis::Server);
        assert_eq!((&line["value"], &line["unit"], &line["at_ms"]), (&json!(22_400_000), &json!("bit/s"), &json!(7)));
        assert_eq!((&line["claim"], &line["basis"]), (&json!("estimate"), &json!("server")));
        let unknown = Reading { claim: Claim::Inconclusive, ..reading };
        let line = of_value("office", Signal::AvailableForward, &unknown, Basis::Server);
        assert!(line["value"].is_null() && line["low"].is_null());
        assert_eq!(value_text(Signal::Loss, &Reading::estimate(reading.at, 1e4, 1e4, 1e4)), "loss 1.00 %");
        assert!(
            value_text(Signal::Capacity, &Reading { claim: Claim::AtLeast, ..reading })
                .contains("at least 22.4 Mbit/s")
        );
    }

    #[test]
    fn what_programs_read_is_on_disk_first() {
        let reading = Reading::estimate(WallTime::from_millis(7), 22.4e6, 19e6, 25e6);
        let value = |lines: &mut Lines, handed, stored| {
            let target = (TargetId::new(1), "office");
            lines.value(target, Signal::Loss, (&reading, Basis::Single), OnDisk { handed, stored });
            lines.held.len()
        };
        let mut lines = Lines::unread(Zone::fixed(0));
        assert_eq!([value(&mut lines, 3, 2), value(&mut lines, 4, 2)], [1, 2]);
        lines.stored(OnDisk { handed: 9, stored: 3 });
        assert_eq!(lines.held.len(), 1, "in their order");
        assert_eq!(value(&mut lines, 10, 10), 0);
        assert_eq!(value(&mut lines, 0, 0), 0, "without a store nothing waits");
        let mut people = Lines { form: Form::Plain, ..Lines::unread(Zone::fixed(0)) };
        assert_eq!(value(&mut people, 3, 2), 0);
        let mut fleeting = Lines::unread(Zone::fixed(0)).fleeting(true);
        assert_eq!(value(&mut fleeting, 3, 2), 0);
    }
}
