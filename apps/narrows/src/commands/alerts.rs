//! `narrows alerts`: whether notices of `narrows watch` and of the hub of a fleet arrive.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use narrows_notify::{Channel, Deliver, Folders, Limits, NoticeBody, Notifier, SendError, SettingsError, Shape};
use narrows_report::schema::ALERTS_NAME;
use narrows_watch::WallTime;
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failure};
use crate::{config, environment, output};

/// Try the channels by which `narrows watch` tells people what changed.
#[derive(Debug, clap::Args)]
pub(crate) struct AlertsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Test(TestArgs),
}

/// Send a firing and a resolved notice, and print each answer.
///
/// Ends with code 0 if all are delivered; else with that of the first failure: 2 if the settings
/// are wrong, 3 if nobody answers, 4 if the peer refuses, 6 if it speaks something else.
#[derive(Debug, clap::Args)]
struct TestArgs {
    /// Which channel; all by default
    channel: Option<String>,
    /// Settings of `narrows watch`; files of the folder NAME.d beside it count too
    // Its name is not `config`: that would be a file of flags.
    #[arg(long = "config", id = "watch-toml", value_name = "FILE", default_value = "/etc/narrows/watch.toml")]
    settings: PathBuf,
    /// Print one JSON object
    #[arg(long, short = 'J')]
    json: bool,
}

pub(crate) fn run(args: &AlertsArgs) -> Result<Exit, Failure> {
    match &args.action {
        Action::Test(args) => test(args),
    }
}

fn test(args: &TestArgs) -> Result<Exit, Failure> {
    let mut channels = channels(&args.settings)?;
    if let Some(wanted) = &args.channel {
        if !channels.contains_key(wanted) {
            let known = channels.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Failure::usage(format!("there is no [channel.{wanted}]; there is: {known}")));
        }
        channels.retain(|name, _| name == wanted);
    }
    if channels.is_empty() {
        let path = args.settings.display();
        return Err(Failure::usage(format!("{path}: there is no [channel.NAME], so nobody would be told")));
    }
    let notifier = notifier(&channels, &args.settings)?;
    let mut exit = Exit::Valid;
    let mut rows = Vec::new();
    for (name, channel) in &channels {
        rows.push(try_out(&notifier, name, channel, &mut exit));
    }
    let document = Document {
        schema: ALERTS_NAME,
        tool: "narrows",
        version: env!("CARGO_PKG_VERSION"),
        started_at: environment::now(),
        delivered: exit == Exit::Valid,
        channels: rows,
    };
    output::write(&if args.json { json(&document)? } else { text(&document) }, None)?;
    Ok(exit)
}

/// Channels of a file, with their secrets read.
pub(crate) fn notifier(channels: &BTreeMap<String, Channel>, settings: &Path) -> Result<Notifier, Failure> {
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let settings = settings.parent().unwrap_or(Path::new("."));
    let folders = Folders { settings, credentials: credentials.as_deref() };
    Notifier::new(channels, folders, Limits::default()).map_err(|error| refusal(&error))
}

/// Why channels cannot be used.
pub(crate) fn refusal(error: &SettingsError) -> Failure {
    match error {
        SettingsError::WithoutTls { .. } => Failure::lacking(error, "tls"),
        error => Failure::usage(error.to_string()),
    }
}

/// Sends both notices by one channel.
fn try_out(notifier: &Notifier, name: &str, channel: &Channel, exit: &mut Exit) -> Row {
    let mut answers = Vec::new();
    for body in NoticeBody::tests(&environment::hostname(), now()) {
        let result = notifier.send(name, &body, now());
        if let (Err(error), Exit::Valid) = (&result, *exit) {
            *exit = exit_of(error);
        }
        let who = result.as_ref().err().map(SendError::who);
        let delivered = result.is_ok();
        let answer = result.unwrap_or_else(|error| error.to_string());
        answers.push(Attempt { state: body.state_name(), delivered, answer, who });
    }
    let shape = if let Channel::Webhook(hook) = channel { Some(hook.shape) } else { None };
    Row { channel: name.to_owned(), kind: channel.kind(), shape, answers }
}

const fn exit_of(error: &SendError) -> Exit {
    match error {
        SendError::Settings(_) => Exit::Usage,
        SendError::Refused(_) | SendError::Busy { .. } => Exit::Refused,
        SendError::Protocol(_) => Exit::Protocol,
        SendError::Unreachable(_) | SendError::Silent(_) => Exit::Unreachable,
        _ => Exit::Failure,
    }
}

fn now() -> WallTime {
    WallTime::from_millis(narrows_net::clock::wall_ns().div_euclid(1_000_000))
}

/// What concerns us of `watch.toml`.
#[derive(Debug, Deserialize)]
struct File {
    #[serde(default, alias = "channels")]
    channel: BTreeMap<String, Channel>,
}

/// The channels of the file, and of those in the folder `NAME.d` beside it.
pub(crate) fn channels(settings: &Path) -> Result<BTreeMap<String, Channel>, Failure> {
    let mut paths = vec![settings.to_owned()];
    if let Ok(entries) = std::fs::read_dir(settings.with_extension("d")) {
        let mut more: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        more.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        more.sort();
        paths.extend(more);
    }
    let mut all = BTreeMap::new();
    for path in paths {
        let missing = || Failure::usage(format!("{}: there is no such file", path.display()));
        let text = config::text(&path)?.ok_or_else(missing)?;
        for (name, channel) in read(&path, &text)? {
            if all.insert(name.clone(), channel).is_some() {
                return Err(Failure::usage(format!("{}: [channel.{name}] is there twice", path.display())));
            }
        }
    }
    Ok(all)
}

fn read(path: &Path, text: &str) -> Result<BTreeMap<String, Channel>, Failure> {
    let file: File = toml::from_str(text).map_err(|error| {
        // The message alone: the line itself may hold what should have been in a file of its own.
        let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Failure::usage(format!("{}:{line}: {}", path.display(), error.message()))
    })?;
    Ok(file.channel)
}

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    tool: &'static str,
    version: &'static str,
    started_at: String,
    /// Whether every notice arrived.
    delivered: bool,
    channels: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    channel: String,
    kind: &'static str,
    shape: Option<Shape>,
    answers: Vec<Attempt>,
}

#[derive(Debug, Serialize)]
struct Attempt {
    state: &'static str,
    delivered: bool,
    /// What the peer said, or what went wrong.
    answer: String,
    /// Who can mend it.
    who: Option<&'static str>,
}

fn json(document: &Document) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(document).map_err(|error| Failure::host(error.to_string()))?;
    Ok(text + "\n")
}

fn text(document: &Document) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    for Row { channel, kind, answers, .. } in &document.channels {
        let _ = writeln!(out, "{channel} ({kind})");
        for Attempt { state, delivered, answer, who } in answers {
            let verdict = if *delivered { "delivered" } else { "failed" };
            let who = who.map_or(String::new(), |who| format!(" [{who}]"));
            let _ = writeln!(out, "  {state:<9} {verdict}: {answer}{who}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_channels_of_a_file_concern_us() {
        let text = "[budget]\nshare = \"1 %\"\n\n[[target]]\nhost = \"x\"\n\n[channel.ops]\nkind = \"exec\"\n\
                    command = [\"true\"]\n";
        let channels = read(Path::new("watch.toml"), text).unwrap();
        assert_eq!(channels.into_keys().collect::<Vec<_>>(), ["ops"]);
    }

    #[test]
    fn a_fault_names_file_and_line_but_no_secret() {
        let text = "\n[channel.ops]\nkind = \"webhook\"\nurl = \"https://x\"\ntoken = \"s3cret\"\n";
        let error = read(Path::new("watch.toml"), text).unwrap_err();
        assert!(error.text.starts_with("watch.toml:2: unknown field `token`"), "{error}");
        assert!(!error.text.contains("s3cret"), "{error}");
    }
}
