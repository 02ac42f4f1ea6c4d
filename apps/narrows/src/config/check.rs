//! Whether a setting is one of the command that it is meant for.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::{Scope, SetTo, Setting, words};

/// What is wrong with a setting; `None`: nothing. The command line's own parser is asked, so that
/// what it would refuse is refused here, in the same words.
pub(crate) fn faults(setting: &Setting, command: &Command) -> Option<String> {
    match &setting.scope {
        Scope::Any => None,
        Scope::Command(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            fault(setting, &names, command)
        }
        Scope::Host(_) => {
            // One command that takes it is enough.
            let hosts = command.get_subcommands().filter(|one| takes_a_host(one));
            let faults: Vec<_> = hosts.map(|one| fault(setting, &[one.get_name()], command)).collect();
            if faults.iter().any(Option::is_none) { None } else { faults.into_iter().flatten().next() }
        }
    }
}

/// What a command line would complain of.
pub(super) fn fault(setting: &Setting, names: &[&str], command: &Command) -> Option<String> {
    let place = match &setting.scope {
        Scope::Host(host) => format!("hosts.{host}"),
        Scope::Command(_) | Scope::Any => names.join("."),
    };
    let key = format!("{place}.{}", setting.flag);
    let called = names.iter().try_fold(command, |outer, name| outer.find_subcommand(name));
    let arg = called.and_then(|called| called.get_arguments().find(|arg| arg.get_long() == Some(&setting.flag)));
    if arg.is_some_and(|arg| arg.get_action().takes_values()) && matches!(setting.value, SetTo::Switch(_)) {
        return Some(format!("{key}: a value is required, not true or false"));
    }
    let mut line = vec![command.get_name().into()];
    line.extend(names.iter().map(Into::into));
    let said = words(setting);
    // A switch that is off must be one all the same.
    line.extend(if said.is_empty() { vec![format!("--{}", setting.flag).into()] } else { said });
    let error = command.clone().try_get_matches_from(line).err()?;
    let suggested = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => format!("; did you mean {}?", text.trim_start_matches('-')),
        Some(ContextValue::Strings(texts)) if !texts.is_empty() => {
            format!("; did you mean {}?", texts[0].trim_start_matches('-'))
        }
        _ => String::new(),
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            Some(format!("[{place}]: no such command{}", suggested(ContextKind::SuggestedSubcommand)))
        }
        ErrorKind::UnknownArgument => Some(format!("{key}: no such flag{}", suggested(ContextKind::SuggestedArg))),
        // What else is missing, the command line may bring.
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        _ => Some(format!("{key}: {}", first_line(&error))),
    }
}

pub(super) fn takes_a_host(command: &Command) -> bool {
    command.get_positionals().any(|arg| ["host", "server"].contains(&arg.get_id().as_str()))
}

fn first_line(error: &Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
