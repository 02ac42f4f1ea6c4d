//! The thread that paints. It is as nice as can be, stays off the processor that sends, and draws
//! nothing while a train is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{self, Event, KeyEventKind};
use narrows_net::thread_scheduling::Background;
use narrows_probe::OnPath;
use narrows_probe::progress::Timed;
use narrows_report::screen::{Model, ScreenView};
use signal_hook::consts::{SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use super::keys::{Asked, press};
use super::terminal::{Terminal, restore};
use super::theme::Theme;
use crate::interrupt;
use crate::painting::Shared;

/// Time between two pictures: ten a second at most; four while a load is on the path; two where the
/// picture itself may cross it.
const OFTEN: Duration = Duration::from_millis(100);
const UNDER_LOAD: Duration = Duration::from_millis(250);
const OVER_SSH: Duration = Duration::from_millis(500);

pub(super) fn start(events: Receiver<Timed>, shared: Arc<Shared>, ascii: bool) -> Option<JoinHandle<()>> {
    let stop = Arc::clone(interrupt::flag().ok()?);
    let signals = Signals::new([SIGINT, SIGTERM, SIGTSTP]).ok()?;
    // It restores the terminal where the program panics.
    let terminal = Terminal::open().ok()?;
    interrupt::second_quits(false);
    let painter = Painter {
        terminal: Some(terminal),
        model: Model::default(),
        frozen: None,
        look: ScreenView { ascii, ..ScreenView::default() },
        theme: Theme::of_environment(),
        shared,
        stop,
        asked: 0,
        began_ns: narrows_net::clock::now_ns(),
        drawn_ns: None,
        slow: ["SSH_CONNECTION", "SSH_TTY"].iter().any(|name| std::env::var_os(name).is_some()),
    };
    let thread = std::thread::Builder::new().name("screen".to_owned()).spawn(move || painter.run(&events, signals));
    if thread.is_err() {
        leave();
    }
    thread.ok()
}

/// The terminal as it was.
fn leave() {
    restore();
    interrupt::second_quits(true);
}

struct Painter {
    /// `None`: nothing can be written to it any more.
    terminal: Option<Terminal>,
    model: Model,
    /// What is shown while the view stands still.
    frozen: Option<Model>,
    look: ScreenView,
    theme: Theme,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    /// How often the user asked for the end.
    asked: u32,
    began_ns: i64,
    drawn_ns: Option<i64>,
    /// The terminal is at the other end of a network.
    slow: bool,
}

impl Painter {
    fn run(mut self, events: &Receiver<Timed>, mut signals: Signals) {
        let mut background = Background::take();
        loop {
            background.stay_off(self.shared.cpu());
            let over = self.take(events);
            for signal in signals.pending() {
                match signal {
                    SIGTSTP => self.suspend(),
                    SIGINT => self.end(130),
                    _ => self.end(143),
                }
            }
            if over {
                leave();
                return;
            }
            if self.is_due() {
                self.draw();
            }
            self.listen();
        }
    }

    /// Takes in what has been told; says whether that was the end.
    fn take(&mut self, events: &Receiver<Timed>) -> bool {
        loop {
            match events.try_recv() {
                Ok(event) => self.model.apply(&event),
                Err(TryRecvError::Empty) => return self.model.is_over(),
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn is_due(&self) -> bool {
        let every = match self.shared.on_path() {
            OnPath::Train => return false,
            OnPath::Load => UNDER_LOAD,
            OnPath::Nothing => OFTEN,
        };
        let every = if self.slow { every.max(OVER_SSH) } else { every };
        let since = self.drawn_ns.map(|drawn| narrows_net::clock::now_ns().saturating_sub(drawn));
        since.is_none_or(|since| u128::try_from(since).is_ok_and(|since| since >= every.as_nanos()))
    }

    fn draw(&mut self) {
        let now_ns = narrows_net::clock::now_ns();
        self.drawn_ns = Some(now_ns);
        self.model.clock(u64::try_from(now_ns.saturating_sub(self.began_ns)).unwrap_or(0));
        self.look.paused = self.shared.paused();
        self.look.ending = self.stop.load(Ordering::Relaxed);
        if !self.look.frozen {
            self.frozen = None;
        } else if self.frozen.is_none() {
            self.frozen = Some(self.model.clone());
        }
        let (model, look, theme) = (self.frozen.as_ref().unwrap_or(&self.model), &self.look, self.theme);
        let Some(terminal) = &mut self.terminal else { return };
        let drawn = terminal.size().and_then(|(width, height)| {
            let lines = model.view(width, height, look).lines.into_iter().take(height.into());
            let styled = |(tone, text)| (theme.style(tone), text);
            terminal.draw(lines.map(|pieces| pieces.into_iter().map(styled).collect()).collect())
        });
        if drawn.is_err() {
            self.terminal = None;
        }
    }

    /// Waits for keys, no longer than until the next picture.
    fn listen(&mut self) {
        if self.terminal.is_none() {
            interrupt::nap(OFTEN);
            return;
        }
        match event::poll(OFTEN / 2) {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) => return interrupt::nap(OFTEN),
        }
        match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                match press(key, &mut self.look, self.model.entries()) {
                    Asked::End => {
                        self.stop.store(true, Ordering::Relaxed);
                        self.end(130);
                    }
                    Asked::Pause if self.model.may_pause() => {
                        self.shared.toggle_pause();
                    }
                    Asked::Pause | Asked::Nothing => {}
                    Asked::Theme => self.theme = self.theme.next(),
                    Asked::Suspend => self.suspend(),
                }
                self.drawn_ns = None;
            }
            Ok(Event::Resize(..)) => self.drawn_ns = None,
            _ => {}
        }
    }

    /// The first time the measurement ends by itself, and is reported; the second time all ends.
    fn end(&mut self, code: i32) {
        self.asked += 1;
        if self.asked > 1 {
            leave();
            std::process::exit(code);
        }
    }

    /// Stops the program as if nobody had watched for the signal, and comes back with it.
    fn suspend(&mut self) {
        restore();
        let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
        self.terminal = Terminal::open().ok();
        self.drawn_ns = None;
    }
}
