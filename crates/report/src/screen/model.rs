//! The model of a live screen, and what all screens have in common.

use narrows_probe::Timed;

use super::canvas::{Canvas, Screen, Tone};
use super::state::State;
use super::{LEAST, Over, ScreenView, figures, hops, over, printable, stages, throughput, watch};

/// What a run has told so far.
#[derive(Debug, Clone, Default)]
pub struct Model {
    state: State,
}

impl Model {
    /// Takes in an event.
    pub fn apply(&mut self, event: &Timed) {
        self.state.apply(event);
    }

    /// So late is it, since the run began. Time also passes between events.
    pub fn clock(&mut self, at_ns: u64) {
        self.state.now_ns = self.state.now_ns.max(at_ns);
    }

    /// The run is over.
    pub fn is_over(&self) -> bool {
        self.state.ended
    }

    /// What is measured can wait in the middle.
    pub fn may_pause(&self) -> bool {
        !matches!(self.state.plan.command.as_str(), "throughput" | "hops")
    }

    /// Hops or lines that the user can go through.
    pub fn entries(&self) -> usize {
        if self.state.hops.is_empty() { self.state.doubts.len() } else { self.state.hops.len() }
    }

    /// The screen; one line below the least size.
    pub fn view(&self, width: u16, height: u16, look: &ScreenView) -> Screen {
        let (columns, rows) = (usize::from(width), usize::from(height));
        if width < LEAST.0 || height < LEAST.1 {
            let mut canvas = Canvas::new(columns, rows.min(1));
            canvas.put(0, 0, Tone::Plain, &self.line());
            return canvas.finish(look.ascii);
        }
        let mut canvas = Canvas::new(columns, rows);
        let state = &self.state;
        header(&mut canvas, state);
        let keys = match state.plan.command.as_str() {
            "throughput" => throughput::view(&mut canvas, state),
            "hops" => hops::view(&mut canvas, state, look),
            "available" => watch::view(&mut canvas, state),
            _ => stages::view(&mut canvas, state),
        };
        footer(&mut canvas, look, keys);
        match look.over {
            Over::Nothing => {}
            Over::Doubts => over::doubts(&mut canvas, state, look.selected),
            Over::Help => over::help(&mut canvas, &state.plan.command),
        }
        canvas.finish(look.ascii)
    }

    /// One line: of a status line, or of a terminal too small for more.
    pub fn line(&self) -> String {
        let state = &self.state;
        let doing = if let Some(hop) = state.hops.values().last() {
            format!("hop {}", hop.ttl)
        } else if let Some(interval) = state.intervals.last() {
            throughput::line(interval)
        } else if let Some(point) = state.watch.last() {
            watch::line(point)
        } else {
            state
                .log
                .last()
                .map_or_else(|| format!("connecting to {}", printable(&state.plan.target)), |(_, text)| text.clone())
        };
        format!("{} narrows {}: {doing}", figures::clock(state.now_ns), state.plan.command)
    }
}

fn header(canvas: &mut Canvas, state: &State) {
    let plan = &state.plan;
    let target = printable(&plan.target);
    let address = plan.address.map(|address| address.to_string()).filter(|address| *address != target);
    let address = address.map_or_else(String::new, |address| format!(" ({address})"));
    let now = figures::clock(state.now_ns);
    let time = match (plan.about_ns, plan.most_ns) {
        (Some(about), _) => format!("{now} of about {}", figures::clock(about)),
        (None, Some(most)) => format!("{now} of at most {}", figures::clock(most)),
        (None, None) => format!("{now}, until q"),
    };
    let room = canvas.width.saturating_sub(time.len() + 3);
    let head = format!("narrows {}  {target}", plan.command);
    let long = format!("{head}{address}  {}", plan.details);
    // The address first gives way, then the details.
    let fits = |text: &String| text.chars().count() < room;
    let texts = [long, format!("{head}  {}", plan.details), head.clone()];
    let text = texts.into_iter().find(fits).unwrap_or(head);
    canvas.put_within(1, 0, room, Tone::Title, &text);
    canvas.put_right(canvas.width, 0, Tone::Plain, &time);
    canvas.rule(1, 0, canvas.width);
}

fn footer(canvas: &mut Canvas, look: &ScreenView, keys: &str) {
    let last = canvas.height - 1;
    let states = [(look.ending, "ending"), (look.paused, "paused: p goes on"), (look.frozen, "frozen: f goes on")];
    let on: Vec<&str> = states.into_iter().filter(|(on, _)| *on).map(|(_, text)| text).collect();
    canvas.put(1, last, Tone::Faint, keys);
    if !on.is_empty() {
        let text = format!(" {} ", on.join("; "));
        canvas.put_right(canvas.width, last, Tone::Now, &text);
    }
}

impl Model {
    /// Of a run that was recorded.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Timed>) -> Self {
        let mut model = Self::default();
        events.into_iter().for_each(|event| model.apply(event));
        model
    }
}
