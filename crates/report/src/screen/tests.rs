//! The screens of recorded runs, at both sizes, in ASCII, and what lies over them.
//!
//! What was told is kept as `--json-stream` writes it. `test` is a run of the simulator over
//! `scenarios/demo.toml` (its plan says `demo` there), `throughput` one over the same path between
//! two hosts of `narrows emulate`. `available` has the values of a simulated run of `track`, with
//! intervals as wide as its last; `hops` the packets of a simulated run, with capacities by hand.

use std::fmt::Write as _;

use narrows_probe::progress::{Plan, Progress, Timed};
use proptest::prelude::*;

use super::*;
use crate::events::parse;

const TEST: &str = include_str!("runs/test.jsonl");
const THROUGHPUT: &str = include_str!("runs/throughput.jsonl");
const HOPS: &str = include_str!("runs/hops.jsonl");
const AVAILABLE: &str = include_str!("runs/available.jsonl");

fn events(lines: &str) -> Vec<Timed> {
    lines.lines().map(|line| parse(line).unwrap_or_else(|| panic!("no event: {line}"))).collect()
}

/// After a share of the events.
fn after(lines: &str, percent: usize) -> Model {
    let events = events(lines);
    Model::of(events.iter().take(events.len() * percent / 100))
}

#[track_caller]
fn shown(model: &Model, (columns, rows): (u16, u16), look: &ScreenView) -> String {
    let text = model.view(columns, rows, look).text();
    assert_eq!(text.lines().count(), usize::from(rows));
    assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
    text
}

#[test]
fn the_eight_screens() {
    for (name, lines, percent) in
        [("test", TEST, 60), ("throughput", THROUGHPUT, 100), ("hops", HOPS, 100), ("available", AVAILABLE, 100)]
    {
        let model = after(lines, percent);
        for size in [(80, 24), (120, 40)] {
            insta::assert_snapshot!(format!("{name}-{}", size.0), shown(&model, size, &ScreenView::default()));
        }
    }
}

#[test]
fn ascii_has_nothing_else() {
    let look = ScreenView { ascii: true, ..ScreenView::default() };
    let mut all = String::new();
    for lines in [TEST, THROUGHPUT, HOPS, AVAILABLE] {
        let text = shown(&after(lines, 80), (80, 24), &look);
        assert!(text.is_ascii() && !text.contains('?'.to_string().repeat(4).as_str()), "{text}");
        all += &text;
    }
    insta::assert_snapshot!("ascii", all);
}

/// What a terminal without colours shows: the pieces with what they are.
#[test]
fn tones_repeat_what_words_say() {
    let screen = after(TEST, 60).view(80, 24, &ScreenView::default());
    let mut text = String::new();
    for line in screen.lines.iter().take(14) {
        for (tone, piece) in line.iter().filter(|(_, piece)| !piece.trim().is_empty()) {
            let _ = write!(text, "{tone:?} {:?}; ", piece.trim());
        }
        text.push('\n');
    }
    insta::assert_snapshot!("tones", text);
}

#[test]
fn doubts_and_keys_lie_over_it() {
    let model = after(TEST, 100);
    let doubts = shown(&model, (80, 24), &ScreenView { over: Over::Doubts, ..ScreenView::default() });
    let keys =
        shown(&after(HOPS, 100), (80, 24), &ScreenView { over: Over::Help, paused: true, ..ScreenView::default() });
    insta::assert_snapshot!("over", doubts + &keys);
}

#[test]
fn a_small_terminal_has_one_line() {
    for size in [(59, 24), (80, 15)] {
        let text = after(TEST, 60).view(size.0, size.1, &ScreenView::default()).text();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("narrows test"), "{text}");
    }
}

#[test]
fn before_the_first_answer_nothing_is_known() {
    for command in ["test", "throughput", "hops", "available"] {
        let plan = Plan { command: command.to_owned(), target: "far.example".to_owned(), ..Plan::default() };
        let model = Model::of(&[Timed { at_ns: 0, progress: Progress::Plan(plan) }]);
        let text = shown(&model, (80, 24), &ScreenView::default());
        assert!(text.contains("far.example") && !text.contains("NaN") && !text.contains("0 bit/s"), "{text}");
    }
}

#[test]
fn a_peers_text_moves_no_cursor() {
    let evil = "far\u{1b}[2J\u{202e}\u{9b}31m";
    let plan = Plan { command: "test".to_owned(), target: evil.to_owned(), ..Plan::default() };
    let events = [Progress::Plan(plan), Progress::Note(evil.to_owned())];
    let model = Model::of(&events.map(|progress| Timed { at_ns: 0, progress }));
    for size in [(80, 24), (120, 40)] {
        let text = shown(&model, size, &ScreenView::default());
        let harmless = |c: char| c == '\n' || (!c.is_control() && c != '\u{202e}');
        assert!(text.chars().all(harmless) && text.contains("far?[2J"), "{text:?}");
    }
}

/// `cargo xtask pictures` makes them.
#[test]
fn the_pictures_of_the_guide_are_of_todays_screens() {
    for (name, lines, percent, rows) in runs::RUNS {
        let path = format!("{}/../../docs/guide/pictures/screen-{name}.svg", env!("CARGO_MANIFEST_DIR"));
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let drawn = picture::svg(&after(lines, percent).view(100, rows, &ScreenView::default()));
        assert!(kept == drawn, "{path} is of an older screen: cargo xtask pictures");
    }
}

#[test]
fn pictures_are_well_formed() {
    let svg = picture::svg(&after(TEST, 60).view(80, 24, &ScreenView::default()));
    let mut reader = quick_xml::Reader::from_str(&svg);
    let mut pieces = 0;
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(tag) if tag.name().as_ref() == b"text" => pieces += 1,
            _ => {}
        }
    }
    assert!(pieces > 40, "{pieces}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Any size, at any time of any run: as many lines as there are rows, none too long.
    #[test]
    fn any_size_is_kept(columns in 1u16..200, rows in 1u16..80, percent in 0usize..=100, which in 0usize..4) {
        let model = after([TEST, THROUGHPUT, HOPS, AVAILABLE][which], percent);
        let text = model.view(columns, rows, &ScreenView { selected: usize::from(rows % 7), ..ScreenView::default() }).text();
        prop_assert!(text.lines().count() <= usize::from(rows));
        prop_assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)));
    }
}
