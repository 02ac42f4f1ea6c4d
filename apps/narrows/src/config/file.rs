//! What a file of settings says.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Scope, SetTo, Setting, Source};

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) path: PathBuf,
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.text)
    }
}

/// The settings of a file with tables, or of one that is a table of its own.
pub(crate) fn settings(path: &Path, text: &str, table_of: Option<&Scope>) -> Result<Vec<Setting>, Fault> {
    let reader = Reader { path, text };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        reader.fault(at, error.message().to_owned())
    })?;
    let mut found = Vec::new();
    match table_of {
        Some(scope) => reader.flags(table.get_ref(), scope, &mut found)?,
        None => reader.tables(table.get_ref(), &mut found)?,
    }
    Ok(found)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|octet| *octet == b'\n').count() + 1
    }

    fn fault(&self, at: usize, text: String) -> Fault {
        Fault { path: self.path.to_owned(), line: self.line(at), text }
    }

    /// Commands and hosts.
    fn tables(&self, table: &DeTable<'_>, found: &mut Vec<Setting>) -> Result<(), Fault> {
        for (name, value) in table {
            let (key, at) = (name.get_ref().as_ref(), name.span().start);
            let DeValue::Table(inner) = value.get_ref() else {
                let why = format!("{key}: stands in no table; write it under the command, such as [test]");
                return Err(self.fault(at, why));
            };
            if key != "hosts" {
                self.flags(inner, &Scope::Command(vec![key.to_owned()]), found)?;
                continue;
            }
            for (host, value) in inner {
                let DeValue::Table(inner) = value.get_ref() else {
                    let why = format!("hosts.{}: is no table; write [hosts.\"NAME\"]", host.get_ref());
                    return Err(self.fault(host.span().start, why));
                };
                self.flags(inner, &Scope::Host(host.get_ref().clone().into_owned()), found)?;
            }
        }
        Ok(())
    }

    fn flags(&self, table: &DeTable<'_>, scope: &Scope, found: &mut Vec<Setting>) -> Result<(), Fault> {
        for (name, value) in table {
            let key = name.get_ref().as_ref();
            // Commands of commands: [traffic.send].
            if let (DeValue::Table(inner), Scope::Command(names)) = (value.get_ref(), scope) {
                let names = names.iter().cloned().chain([key.to_owned()]).collect();
                self.flags(inner, &Scope::Command(names), found)?;
                continue;
            }
            found.push(Setting {
                scope: scope.clone(),
                flag: key.replace('_', "-"),
                value: self.value(key, value)?,
                source: Source::File { path: self.path.to_owned(), line: self.line(name.span().start) },
            });
        }
        Ok(())
    }

    fn value(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<SetTo, Fault> {
        let one = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            _ => None,
        };
        let values = match value.get_ref() {
            DeValue::Boolean(is_on) => return Ok(SetTo::Switch(*is_on)),
            DeValue::Array(values) => values.iter().map(one).collect(),
            _ => one(value).map(|text| vec![text]),
        };
        values.map(SetTo::Values).ok_or_else(|| {
            let why = format!("{key}: write true, false, a number, a text, or a list of them");
            self.fault(value.span().start, why)
        })
    }
}
