//! Writes pictures of the live screens, from runs that were recorded with `--json-stream`.
//!
//! `cargo run -p narrows-report --example screens -- FOLDER` writes an SVG of each into a folder;
//! `cargo xtask pictures` writes those of the guide. `-- print COLUMNS ROWS [FILE]` prints them, or
//! that of a file, as text.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use narrows_report::events::parse;
use narrows_report::screen::{Model, Screen, ScreenView, picture};

#[path = "../src/screen/runs.rs"]
mod runs;

use runs::RUNS;

/// A run after a share of its events.
fn screen(lines: &str, percent: usize, (columns, rows): (u16, u16)) -> Screen {
    let events: Vec<_> = lines.lines().filter_map(parse).collect();
    let some = events.len() * percent / 100;
    Model::of(events.iter().take(some.max(1))).view(columns, rows, &ScreenView::default())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let written = match arguments.as_slice() {
        ["print", columns, rows, rest @ ..] => {
            let size = (columns.parse().unwrap_or(80), rows.parse().unwrap_or(24));
            print(size, rest.first().copied())
        }
        [folder] => RUNS.iter().try_for_each(|(name, lines, percent, rows)| {
            let picture = picture::svg(&screen(lines, *percent, (100, *rows)));
            std::fs::write(Path::new(folder).join(format!("screen-{name}.svg")), picture)
        }),
        _ => return ExitCode::from(2),
    };
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(size: (u16, u16), file: Option<&str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if let Some(file) = file {
        let lines = std::fs::read_to_string(file)?;
        return out.write_all(screen(&lines, 100, size).text().as_bytes());
    }
    RUNS.iter().try_for_each(|(_, lines, percent, _)| out.write_all(screen(lines, *percent, size).text().as_bytes()))
}
