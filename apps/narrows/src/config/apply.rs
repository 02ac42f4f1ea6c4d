//! Settings become defaults of the flags of the command that is called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::{Scope, SetTo, Setting, Source, check, file, settings, text};
use crate::exit::Failure;

/// Commands that set nothing and measure nothing; they must work whatever the files say.
const OWN: [&str; 4] = ["config", "completions", "man", "help"];

/// What is set for a command, by weight: the last of a flag counts.
pub(crate) type Effective = Vec<Setting>;

/// The command with the settings for this call as its defaults.
pub(crate) fn configured(line: &[OsString], command: Command, paths: &[PathBuf]) -> Result<Command, Failure> {
    // Only what was given matters here; what is wrong with it is told by the real parsing.
    let Ok(given) = command.clone().ignore_errors(true).try_get_matches_from(line) else { return Ok(command) };
    let (names, given) = innermost(&given);
    if names.first().is_none_or(|name| OWN.contains(name)) {
        return Ok(command);
    }
    let called = names.iter().try_fold(&command, |outer, name| outer.find_subcommand(name));
    let Some(called) = called.cloned() else { return Ok(command) };
    let host = ["host", "server"].into_iter().find_map(|id| given.try_get_one::<String>(id).ok().flatten());
    let file = given.try_get_one::<PathBuf>("config").ok().flatten();
    let all = effective(&names, &called, host.map(String::as_str), file.map(PathBuf::as_path), paths)?;
    for setting in &all {
        if let Some(why) = check::fault(setting, &names, &command) {
            return Err(Failure::usage(format!("{}: {why}", setting.source)));
        }
    }
    let chosen = chosen(&all, &called, given)?;
    Ok(with_defaults(command, &names, &chosen))
}

/// Everything that is set for a command, the weaker first.
pub(crate) fn effective(
    names: &[&str],
    called: &Command,
    host: Option<&str>,
    own: Option<&Path>,
    paths: &[PathBuf],
) -> Result<Effective, Failure> {
    let has = |flag: &str| long(called, flag).is_some();
    let from_files = settings(paths)?;
    let of_command = |setting: &&Setting| matches!(&setting.scope, Scope::Command(of) if of == names);
    // Of a host's table a command takes what it knows.
    let of_host = |setting: &&Setting| matches!(&setting.scope, Scope::Host(of) if Some(of.as_str()) == host);
    let mut all: Effective = from_files.iter().filter(of_command).cloned().collect();
    all.extend(from_files.iter().filter(of_host).filter(|setting| has(&setting.flag)).cloned());
    if let Some(path) = own {
        let missing = || Failure::usage(format!("{}: there is no such file", path.display()));
        let text = text(path)?.ok_or_else(missing)?;
        let of_file = file::settings(path, &text, Some(&Scope::Any));
        all.extend(of_file.map_err(|fault| Failure::usage(fault.to_string()))?);
    }
    all.extend(called.get_arguments().filter_map(from_environment));
    Ok(all)
}

/// `NARROWS_FAIL_IF` for `--fail-if`, unless the flag has a variable of another name.
fn from_environment(arg: &Arg) -> Option<Setting> {
    let flag = arg.get_long()?;
    let usual = || format!("NARROWS_{}", flag.to_uppercase().replace('-', "_"));
    let name = arg.get_env().map_or_else(usual, |name| name.to_string_lossy().into_owned());
    let value = std::env::var(&name).ok()?;
    let is_switch = !arg.get_action().takes_values();
    let value = match value.as_str() {
        "1" | "true" | "yes" if is_switch => SetTo::Switch(true),
        "" | "0" | "false" | "no" if is_switch => SetTo::Switch(false),
        _ => SetTo::Values(vec![value]),
    };
    Some(Setting { scope: Scope::Any, flag: flag.to_owned(), value, source: Source::Environment(name) })
}

/// Of settings that exclude each other the heavier, and none that what was given excludes.
fn chosen<'a>(all: &'a [Setting], called: &Command, given: &ArgMatches) -> Result<Vec<&'a Setting>, Failure> {
    let is_given = |arg: &Arg| {
        let source = given.value_source(arg.get_id().as_str());
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    };
    let mut chosen: Vec<&Setting> = Vec::new();
    for setting in all.iter().rev().filter(|setting| setting.value != SetTo::Switch(false)) {
        let Some(arg) = long(called, &setting.flag) else { continue };
        let is_free = called.get_arguments().filter(|other| is_given(other)).all(|other| !exclude(called, arg, other));
        let excluding = chosen
            .iter()
            .find(|other| long(called, &other.flag).is_some_and(|other| exclude(called, arg, other) && other != arg));
        if let Some(excluding) = excluding.filter(|excluding| rank(excluding) == rank(setting)) {
            let why =
                format!("{}: {} excludes {} ({})", setting.source, setting.flag, excluding.flag, excluding.source);
            return Err(Failure::usage(why));
        }
        let is_outweighed = all.iter().rev().find(|other| other.flag == setting.flag) != Some(setting);
        if is_free && excluding.is_none() && !is_given(arg) && !is_outweighed {
            chosen.push(setting);
        }
    }
    Ok(chosen)
}

/// Settings of one file weigh the same.
fn rank(setting: &Setting) -> (&Path, &Scope) {
    match &setting.source {
        Source::File { path, .. } => (path, &setting.scope),
        Source::Environment(_) => (Path::new(""), &setting.scope),
    }
}

/// They are one flag, or cannot be given together.
fn exclude(called: &Command, one: &Arg, other: &Arg) -> bool {
    one.get_id() == other.get_id()
        || called.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
        || called.get_arg_conflicts_with(other).iter().any(|arg| arg.get_id() == one.get_id())
}

fn with_defaults(command: Command, names: &[&str], chosen: &[&Setting]) -> Command {
    let Some((name, inner)) = names.split_first() else {
        return chosen.iter().fold(command, |command, setting| {
            let Some(id) = long(&command, &setting.flag).map(|arg| arg.get_id().clone()) else { return command };
            let values: Vec<OsString> = match &setting.value {
                SetTo::Switch(is_on) => vec![is_on.to_string().into()],
                SetTo::Values(values) => values.iter().map(OsString::from).collect(),
            };
            command.mut_arg(id, |arg| arg.default_values(values))
        });
    };
    command.mut_subcommand(*name, |command| with_defaults(command, inner, chosen))
}

fn long<'a>(command: &'a Command, flag: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(flag))
}

/// The command that was called, by its names, and what it was given.
fn innermost(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut names, mut matches) = (Vec::new(), matches);
    while let Some((name, inner)) = matches.subcommand() {
        names.push(name);
        matches = inner;
    }
    (names, matches)
}
