//! `narrows burst HOST`: the largest burst that no queue drops, the queue behind it, and what that
//! means.

use std::path::PathBuf;

use narrows_report::burst::BurstDocument;
use narrows_units::{BitRate, Metric};

use super::measure::{self, MeasureArgs, Reported};
use super::simulate::split;
use crate::exit::{Exit, Failure};
use crate::output;

/// Measure the largest burst that no queue drops, over the rate at which it is sent; what drops it,
/// and what it means for windows and bursts.
///
/// The mean load is a twentieth of the available rate (`--param load=SHARE`). Each burst fills the
/// queue until it has drained. With --via icmp or stamp the target need not run narrows; by ICMP
/// the result is the lesser of both directions.
#[derive(Debug, clap::Args)]
pub(crate) struct BurstArgs {
    #[command(flatten)]
    measure: MeasureArgs,
    /// The size and its distribution alone, in about three seconds: no curve, no small packets,
    /// nothing about what drops
    #[arg(long)]
    brief: bool,
    /// Available rate at the IP layer, if it is known, such as "60 Mbit/s"; else the curve shows it
    #[arg(long, value_name = "RATE")]
    available: Option<BitRate>,
    /// Draw the curve into this SVG file
    #[arg(long, value_name = "FILE", conflicts_with = "brief")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: &BurstArgs) -> Result<Exit, Failure> {
    output::check(args.svg.as_ref())?;
    let mut extra = Vec::new();
    if !args.brief {
        extra.push(("detail".to_owned(), "true".to_owned()));
        extra.push(("load".to_owned(), "0.05".to_owned()));
    }
    let given = args.available.map(|rate| ("available_bps".to_owned(), rate.bps().to_string()));
    extra.extend(given);
    let available = match args.available {
        Some(rate) => Some(rate),
        None => split(args.measure.params())?
            .into_iter()
            .find(|(name, _)| name == "available_bps")
            .and_then(|(_, value)| value.parse().ok()),
    };
    measure::measure_as(&args.measure, Metric::MaximumBurstOctets, &extra, |found, _| {
        let row = found.metrics[0].clone();
        let document = BurstDocument::new(row, available);
        let title = format!("Bursts to {}", found.target.name);
        let picture = document.picture(&title);
        if let Some(path) = &args.svg {
            output::write(&picture.svg(), Some(path))?;
        }
        let json = document.json();
        let text = if args.measure.json() { json.clone() + "\n" } else { document.text() };
        let caption = "How much of a burst survives, over the rate at which it is sent.";
        // A brief run has one rate, and no curve.
        Ok(Reported { text, file: (!args.brief).then_some((json, caption, picture)) })
    })
}
