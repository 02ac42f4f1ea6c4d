//! `narrows replay FILE`: a recording again, by the same method, another one, or with other
//! parameters; or its raw rows.

mod again;
mod dump;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use narrows_report::{How, ReplayDocument};
use narrows_trace::Recording;

use self::again::Wanted;
use self::dump::Form;
use crate::commands::methods::unknown;
use crate::exit::{Exit, Failure};
use crate::output;

/// Run a recorded measurement again without probing, by the same or another method, or print its
/// raw rows.
///
/// Recordings are written by `--record FILE` of the commands that measure. The same method with the
/// same parameters is replayed step by step, and must come to the recorded outcome. Another method,
/// or other parameters, are replayed as far as they ask what was recorded; else their analysis
/// reads the rows that are there, or refuses them.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The recording
    file: PathBuf,
    /// Only this run of the file, counted from 1
    #[arg(long, value_name = "N")]
    run: Option<usize>,
    /// Another method than the recorded one; see `narrows methods`
    #[arg(long, short, add = crate::complete::methods())]
    method: Option<String>,
    /// Parameter of the method, NAME=VALUE; may be repeated. Over those recorded, unless the method
    /// is another one
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Scenario file whose truth is shown; the recorded one by default
    #[arg(long, value_name = "SCENARIO")]
    truth: Option<PathBuf>,
    /// Print the raw rows instead, one per packet, status or sample: csv, or json (one object per
    /// line)
    #[arg(long, value_name = "FORM", conflicts_with_all = ["method", "params", "truth", "json"])]
    dump: Option<Form>,
    /// Print one JSON object
    #[arg(long, short = 'J')]
    json: bool,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &ReplayArgs) -> Result<Exit, Failure> {
    output::check(args.output.as_ref())?;
    let refuse = |text: String| Failure::usage(format!("{}: {text}", args.file.display()));
    let file = File::open(&args.file).map_err(|error| refuse(error.to_string()))?;
    let recording = Recording::read(BufReader::new(file)).map_err(|error| refuse(error.to_string()))?;
    if let Some(number) = args.run
        && (number == 0 || number > recording.runs.len())
    {
        return Err(refuse(format!("there is no run {number}; it holds {}", recording.runs.len())));
    }
    if let Some(damage) = &recording.damage {
        output::complain(&format!("{}: {damage}; what came before is read", args.file.display()));
    }
    let runs = (1..).zip(&recording.runs);
    let mut runs = runs.filter(|(number, _)| args.run.is_none_or(|wanted| wanted == *number));
    if let Some(form) = args.dump {
        let text = dump::text(runs, form);
        output::write(&text, args.output.as_deref())?;
        return Ok(Exit::Valid);
    }
    let wanted = Wanted {
        method: match &args.method {
            Some(name) => Some(narrows_methods::find(name).ok_or_else(|| unknown(name))?),
            None => None,
        },
        params: super::simulate::split(&args.params)?,
        truth: args.truth.as_deref().map(super::simulate::load).transpose()?,
    };
    let shown = runs
        .try_fold(Vec::new(), |mut shown, (number, run)| {
            shown.push(again::again(number, run, &wanted)?);
            Ok::<_, Failure>(shown)
        })
        .map_err(|failure| Failure { text: format!("{}: {failure}", args.file.display()), ..failure })?;
    let damage = recording.damage.as_ref().map(ToString::to_string);
    let document = ReplayDocument::new(shown, damage);
    let text = if args.json { document.json() + "\n" } else { document.text() };
    output::write(&text, args.output.as_deref())?;
    exit(&document).ok_or_else(|| refuse("it holds no run".to_owned()))
}

/// A replay that differs is a failure; rows that serve no method asked for are the caller's choice.
fn exit(document: &ReplayDocument) -> Option<Exit> {
    let runs = &document.runs;
    if runs.is_empty() {
        return None;
    }
    Some(if runs.iter().any(|run| run.same == Some(false)) {
        Exit::Failure
    } else if runs.iter().all(|run| run.how == How::Refused) {
        Exit::Usage
    } else if runs.iter().any(|run| run.result.as_ref().is_some_and(|row| row.value.is_some())) {
        Exit::Valid
    } else {
        Exit::Inconclusive
    })
}
