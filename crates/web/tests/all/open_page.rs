//! A page that stays open shows what is new, and leaves a person what they look at.

use std::sync::Arc;

use narrows_store::records::{Basis, Event, PulseMinute, Run, RunOutcome, Sample};
use narrows_store::{Options, Store};
use narrows_watch::schedule::{JobKind, TargetId, Why};
use narrows_watch::{Claim, Signal, WallTime};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::cdp::Tab;
use crate::site::{Site, local};
use crate::year::{NOW_MS, now};

/// Pages of a store that is written while they are open.
struct Written {
    site: Site,
    store: Store,
    target: TargetId,
    _folder: TempDir,
}

impl Written {
    /// The target is followed for so long.
    fn since(added_ms: i64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("watch.db"), Options::new(now())).expect("a store");
        let target = store.writer().target("office", "office.example", None, ago(added_ms)).expect("it is written");
        let site = Site::of(local(), Arc::new(store.reader()));
        site.live.ready();
        Self { site, store, target, _folder: folder }
    }

    /// A value of what is available, so long ago; stored, and told as the program tells it.
    fn value(&self, before_ms: i64, mbps: f64) {
        let value = mbps * 1e6;
        let sample = Sample {
            at: ago(before_ms),
            value: Some(value),
            low: Some(value * 0.9),
            high: Some(value * 1.1),
            claim: Claim::Estimate,
            loaded: false,
            host_busy: false,
            run: None,
        };
        let writer = self.store.writer();
        writer.sample(self.target, Signal::AvailableForward, Basis::Server, sample);
        writer.flush().expect("the disk takes it");
        self.site.live.sample("office", Signal::AvailableForward, Basis::Server, &sample);
    }

    fn pulses(&self, before_ms: i64) {
        let round_trips_ns = (0..60).map(|n| 18_000_000 + n * 50_000).collect();
        let minute = PulseMinute { minute: ago(before_ms), sent: 60, lost: 0, loaded: false, round_trips_ns };
        self.store.writer().pulses(self.target, minute);
    }

    fn run(&self) {
        self.site.live.run(
            "office",
            &Run {
                id: Uuid::from_u128(1),
                target: self.target,
                kind: JobKind::Slice,
                why: Why::Cadence,
                began: now(),
                ended: None,
                outcome: RunOutcome::Running,
                reason: None,
                octets: None,
                document: None,
            },
        );
    }

    fn event(&self, text: &str) {
        let mut event = Event {
            id: 0,
            target: Some(self.target),
            kind: "note".to_owned(),
            signal: None,
            at: ago(1000),
            at_low: ago(1000),
            at_high: ago(1000),
            found: now(),
            before: None,
            after: None,
            cause: None,
            text: text.to_owned(),
            evidence: None,
            incident: None,
        };
        self.store.writer().event(&mut event).expect("the disk takes it");
        self.site.live.event(Some("office"), &event);
    }

    fn open(&self, path: &str) -> Tab {
        let mut tab = Tab::open();
        tab.show(&format!("http://{}{path}", self.site.address), 1280, false);
        // News come from now on.
        tab.until("the page follows the news", "document.querySelector('#live').textContent === 'Live'");
        tab
    }
}

fn ago(millis: i64) -> WallTime {
    WallTime::from_millis(NOW_MS - millis)
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// Where the line stands that marks the value that was read.
fn mark(tab: &mut Tab) -> Value {
    tab.evaluate("document.querySelector('.u-cursor-x').style.transform")
}

/// Drags the pointer over an element, from one share of its width to another.
fn drag(tab: &mut Tab, element: &str, from: f64, to: f64) {
    let place = tab.evaluate(&format!(
        "(() => {{ const box = document.querySelector({}).getBoundingClientRect();
            return [box.left, box.width, box.top + box.height / 2]; }})()",
        json!(element)
    ));
    let [left, width, y] = [0, 1, 2].map(|n| place[n].as_f64().expect("a number"));
    let moved = [("mousePressed", from, 1), ("mouseMoved", f64::midpoint(from, to), 1), ("mouseMoved", to, 1)];
    for (kind, share, buttons) in moved.into_iter().chain([("mouseReleased", to, 0)]) {
        let x = left + share * width;
        let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
        tab.call("Input.dispatchMouseEvent", &event);
    }
}

fn shows(text: &str) -> String {
    format!("document.querySelector('main').innerText.includes({})", json!(text))
}

/// A run comes first, and what follows at once is on the page all the same.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn what_comes_behind_a_run_is_on_the_target_page() {
    let written = Written::since(2 * MINUTE);
    let mut tab = written.open("/target/office?range=1h");
    assert_eq!(tab.evaluate(&shows("◌ starting")), true, "nothing was measured yet");
    written.run();
    written.value(MINUTE, 23.4);
    written.event("office: the link is slow");
    tab.until("the event is on the page", &shows("office: the link is slow"));
    tab.until("the value is on the page", &shows("23.4 Mbit/s"));
    assert_eq!(tab.evaluate(&shows("◌ starting")), false);
    // Each later value as well.
    written.value(0, 31.7);
    tab.until("the next value is on the page", &shows("31.7 Mbit/s"));
    assert_eq!(tab.said, Vec::<String>::new());
}

#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn what_comes_behind_a_run_is_on_the_overview() {
    let written = Written::since(HOUR);
    let mut tab = written.open("/");
    written.run();
    written.value(MINUTE, 23.4);
    written.event("office: the link is slow");
    tab.until("the event is on the page", &shows("office: the link is slow"));
    tab.until("the value is on the page", &shows("23.4 Mbit/s"));
}

/// The zoom, the value that was read, the focus, an opened table, what was typed, how far the page
/// is scrolled: all of it is as before.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn a_page_that_is_drawn_anew_leaves_what_a_person_looks_at() {
    let written = Written::since(HOUR);
    for minute in 1..50 {
        written.value(minute * MINUTE, 40.0 + minute as f64 / 10.0);
        written.pulses(minute * MINUTE);
    }
    let mut tab = written.open("/target/office?range=1h");
    tab.evaluate("document.querySelector('main input[size]').value = 'half a note'");
    tab.evaluate("document.querySelector('main section details').open = true");
    drag(&mut tab, ".chart .u-over", 0.3, 0.6);
    tab.evaluate("document.querySelector('.chart').focus()");
    let unread = mark(&mut tab);
    for _ in 0..20 {
        tab.press("ArrowLeft");
    }
    assert_ne!(mark(&mut tab), unread, "a value is read");
    let zoomed = mark(&mut tab);
    tab.evaluate("scrollTo(0, 300)");
    let seen = "[document.querySelector('.readout').textContent, document.activeElement.className,
        document.querySelector('main section details table').rows.length > 5, scrollY,
        document.querySelector('main input[size]').value]";
    let before = tab.evaluate(seen);
    assert_eq!((&before[1], &before[3], &before[4]), (&json!("chart"), &json!(300), &json!("half a note")), "{before}");

    tab.evaluate("document.querySelector('main h1').dataset.old = 'yes'");
    written.value(0, 23.4);
    tab.until("the value is on the page", &shows("23.4 Mbit/s"));
    assert_eq!(tab.evaluate("document.querySelector('main h1').dataset.old ?? null"), Value::Null, "it is drawn anew");
    assert_eq!(tab.evaluate(seen), before);
    assert_eq!(mark(&mut tab), zoomed, "the zoom is the same");
    // A double click ends the zoom.
    tab.evaluate(
        "document.querySelector('.chart .u-over').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))",
    );
    tab.press("ArrowLeft");
    tab.press("ArrowRight");
    assert_ne!(mark(&mut tab), zoomed, "the whole time is shown");
}
