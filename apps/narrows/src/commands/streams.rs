//! `narrows streams HOST`: how many parallel TCP streams fill the path, disturb others, and harm
//! one another.

use std::path::PathBuf;

use narrows_report::streams::StreamsDocument;
use narrows_units::{BitRate, Metric};

use super::measure::{self, MeasureArgs, Reported};
use crate::exit::{Exit, Failure};
use crate::output;

/// Measure how many parallel TCP streams fill the path, from how many on they are intrusive, and
/// from how many on they do harm.
///
/// Fills the path again and again, for minutes. What is available should be measured first
/// (`narrows available`) and given with --available: without it the filling number is the one
/// beyond which more streams bring no more.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that the user sees")]
pub(crate) struct StreamsArgs {
    #[command(flatten)]
    measure: MeasureArgs,
    /// Available rate at the IP layer, such as "60 Mbit/s"
    #[arg(long, value_name = "RATE")]
    available: Option<BitRate>,
    /// The filling number alone, in a few seconds
    #[arg(long)]
    quick: bool,
    /// Most streams to try
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    max: Option<u16>,
    /// Go on beyond the filling number until streams harm one another, or to --max
    #[arg(long, conflicts_with = "quick")]
    all: bool,
    /// No run with explicit buffers at the end
    #[arg(long)]
    no_buffers: bool,
    /// Draw the curve into this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Nothing beyond ASCII (so too where TERM is dumb)
    #[arg(long)]
    ascii: bool,
}

pub(crate) fn run(args: &StreamsArgs) -> Result<Exit, Failure> {
    output::check(args.svg.as_ref())?;
    let mut extra = vec![("thorough".to_owned(), (!args.quick).to_string())];
    if !args.quick && !args.no_buffers {
        extra.push(("buffers".to_owned(), "true".to_owned()));
    }
    if args.all {
        extra.push(("beyond".to_owned(), "20".to_owned()));
    }
    let flags = [
        ("available_bps", args.available.map(|rate| rate.bps().to_string())),
        ("max_streams", args.max.map(|most| most.to_string())),
    ];
    extra.extend(flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let ascii = args.ascii || std::env::var("TERM").is_ok_and(|term| term == "dumb");
    measure::measure_as(&args.measure, Metric::TcpStreamsToFill, &extra, |found, _| {
        let row = found.metrics[0].clone();
        let document = StreamsDocument::new(row);
        let title = format!("Parallel streams to {}", found.target.name);
        let picture = document.picture(&title);
        if let Some(path) = &args.svg {
            output::write(&picture.svg(), Some(path))?;
        }
        let json = document.json();
        let text = if args.measure.json() { json.clone() + "\n" } else { document.text(ascii) };
        let caption = "Where the line turns flat, more streams bring no more.";
        Ok(Reported { text, file: Some((json, caption, picture)) })
    })
}
