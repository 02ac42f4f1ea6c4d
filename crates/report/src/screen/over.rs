//! What lies over a screen: doubts, and the keys.

use super::canvas::{Canvas, Tone};
use super::state::State;

/// A framed box in the middle; the place of its first line, and its columns.
fn open(canvas: &mut Canvas, title: &str, rows: usize) -> (usize, usize, usize) {
    let width = canvas.width.saturating_sub(8).min(76);
    let rows = rows.min(canvas.height.saturating_sub(6)).max(1);
    let (x, y) = ((canvas.width - width) / 2, (canvas.height - rows - 2) / 2);
    canvas.clear((x, y), (width, rows + 2));
    for row in [y, y + rows + 1] {
        canvas.rule(row, x, x + width);
    }
    for column in [x, x + width - 1] {
        canvas.fence(column, y + 1, y + rows + 1);
    }
    for (column, row, corner) in
        [(x, y, '╭'), (x + width - 1, y, '╮'), (x, y + rows + 1, '╰'), (x + width - 1, y + rows + 1, '╯')]
    {
        canvas.set(column, row, Tone::Faint, corner);
    }
    canvas.put(x + 2, y, Tone::Title, &format!(" {title} "));
    (x + 2, y + 1, width - 4)
}

pub(super) fn doubts(canvas: &mut Canvas, state: &State, first: usize) {
    let lines: Vec<String> = if state.doubts.is_empty() {
        vec!["none yet".to_owned()]
    } else {
        state.doubts.iter().map(|(of, text)| format!("{of}: {text}")).collect()
    };
    let (x, y, width) = open(canvas, "doubts", lines.len());
    let room = canvas.height.saturating_sub(2 * y).max(1);
    let first = first.min(lines.len().saturating_sub(room));
    for (row, line) in lines.iter().skip(first).take(room).enumerate() {
        canvas.put_within(x, y + row, x + width, Tone::Plain, line);
    }
}

pub(super) fn help(canvas: &mut Canvas, command: &str) {
    let pause = match command {
        "throughput" | "hops" => None,
        "available" => Some(("p", "pause probing; p again goes on")),
        _ => Some(("p", "pause before the next stage; p again goes on")),
    };
    let hops = (command == "hops").then_some([("up, down", "another hop"), ("n", "names or addresses")]);
    let keys = [("q, Ctrl-C", "end, and print the report; again: quit at once")];
    let rest = [
        ("f", "freeze the view; the measurement goes on"),
        ("d", "doubts: why results might mislead"),
        ("t", "theme: auto, contrast, mono"),
        ("?", "this help; any key closes it"),
    ];
    let keys: Vec<(&str, &str)> = keys.into_iter().chain(pause).chain(hops.into_iter().flatten()).chain(rest).collect();
    let (x, y, width) = open(canvas, "keys", keys.len());
    for (row, (key, text)) in keys.into_iter().enumerate() {
        canvas.put_within(x, y + row, x + width, Tone::Title, key);
        canvas.put_within(x + 12, y + row, x + width, Tone::Plain, text);
    }
}
