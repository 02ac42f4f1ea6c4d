//! Capture files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_capture::Analysis;
use narrows_capture::damage::Damages;
use narrows_capture::file::CaptureReader;
use narrows_capture::filter::{FileFilter, Filter};
use narrows_capture::matching::Departures;

use super::{PassiveArgs, Read};
use crate::exit::Failure;
use crate::interrupt;
use crate::progress::Progress;

/// Packets between two looks at the interrupt flag.
const POLL_EVERY: u64 = 1 << 14;

type Input = Box<dyn io::Read>;

/// Reads all files, one after the other. A file that cannot be read at all ends the reading if it
/// is the only one.
pub(super) fn read(args: &PassiveArgs, filter: Option<Filter>, mut analysis: Analysis) -> Result<Read, Failure> {
    let stop = interrupt::flag()?;
    let twice = args.files.iter().filter(|file| is_stdin(file)).count() > 1;
    if twice {
        return Err(Failure::usage("standard input can be read once"));
    }
    let mut departures = args.sent.as_deref().map(open).transpose()?.map(Departures::new);
    let mut filter = filter.map(FileFilter::new);
    let (mut inputs, mut damages, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    let mut dropped = 0;
    let progress = Progress::new(args.quiet);
    for path in &args.files {
        let name = named(path);
        let mut reader = match open(path) {
            Ok(reader) => reader,
            Err(failure) => {
                unread.push(failure);
                continue;
            }
        };
        progress.say(format!("reading {name}"));
        one(&mut reader, &mut analysis, &mut filter, &mut departures, (stop, &progress))?;
        dropped += reader.dropped();
        analysis.set_dropped(dropped);
        inputs.push(name.clone());
        damages.push((name, reader.damages().clone()));
    }
    progress.finish();
    if inputs.is_empty() {
        return Err(unread.swap_remove(0));
    }
    // The first one is told at the end, as the failure that it is.
    for failure in unread.iter().skip(1) {
        crate::output::complain(&failure.text);
    }
    let matched = departures.as_ref().map_or(0, Departures::matched);
    if let (Some(departures), Some(path)) = (&departures, &args.sent) {
        damages.push((named(path), departures.reader().damages().clone()));
    }
    for (input, damages) in &damages {
        if let Some(text) = reported(input, damages) {
            crate::output::complain(&text);
        }
    }
    let findings = analysis.finish();
    let first = unread.into_iter().next();
    Ok(Read { failure: first.or_else(|| unreadable(&findings, &damages)), inputs, findings, damages, matched })
}

/// What is wrong with an input, on one line, whatever form the result is printed in.
fn reported(input: &str, damages: &Damages) -> Option<String> {
    let first = damages.first().first()?;
    let more = match damages.count() {
        1 => String::new(),
        count => format!(", and {} more place(s)", count - 1),
    };
    Some(format!(
        "{input}: damaged at octet {}, after packet {}: {}{more}; {} octets were passed over",
        first.octet,
        first.packet,
        first.fault,
        damages.skipped_octets(),
    ))
}

/// Damage from the head on, and not one packet: that is no capture, whatever its head says.
fn unreadable(findings: &narrows_capture::Findings, damages: &[(String, Damages)]) -> Option<Failure> {
    let (input, _) = damages.iter().find(|(_, damages)| damages.count() > 0)?;
    (findings.counts.packets == 0).then(|| Failure::usage(format!("{input}: no packet of it can be read")))
}

fn named(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn one(
    reader: &mut CaptureReader<Input>,
    analysis: &mut Analysis,
    filter: &mut Option<FileFilter>,
    departures: &mut Option<Departures<Input>>,
    (stop, progress): (&AtomicBool, &Progress),
) -> Result<(), Failure> {
    let mut until_poll = POLL_EVERY;
    let mut resolution = 0;
    loop {
        let current = reader.resolution_ns();
        if current != resolution {
            resolution = current;
            analysis.set_resolution(current);
        }
        let Some(raw) = reader.next_packet() else {
            return Ok(());
        };
        let passes = match filter {
            Some(filter) => filter.matches(&raw).map_err(|error| Failure::usage(error.to_string()))?,
            None => true,
        };
        if passes && let Some(mut packet) = analysis.decoded(&raw) {
            if let Some(departures) = departures {
                packet.seen.departed_ns = departures.departed_ns(&packet);
            }
            analysis.follow(&packet);
        }
        until_poll -= 1;
        if until_poll == 0 {
            until_poll = POLL_EVERY;
            if stop.load(Ordering::Relaxed) {
                progress.note("interrupted: what was read by now is shown");
                return Ok(());
            }
        }
    }
}

fn open(path: &Path) -> Result<CaptureReader<Input>, Failure> {
    let refuse = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", named(path)));
    let input: Input = if is_stdin(path) {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| refuse(&error))?;
        // Opening a directory works; reading it does not, and the kernel's words for it are clear.
        Box::new(file.take(u64::MAX))
    };
    CaptureReader::open(input).map_err(|error| refuse(&error))
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Of one input: none.
pub(super) fn undamaged(name: &str) -> (String, Damages) {
    (name.to_owned(), Damages::default())
}
