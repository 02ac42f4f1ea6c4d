//! Opening the file; settings.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Work;
use crate::error::{Error, Result};
use crate::settings::{STREAM, Settings, Stream};
use crate::subject;

/// "nrwb": tells our files from other SQLite files.
const APPLICATION: i64 = 0x6e72_7762;

/// The one version so far.
const SCHEMA: &str = include_str!("../../../schema/1.sql");

/// The name under which the settings are kept.
const SETTINGS: &str = "settings";

pub(super) fn open(path: &Path) -> Result<Connection> {
    let storage = |error: rusqlite::Error| Error::Storage(format!("{}: {error}", path.display()));
    let mut connection = Connection::open(path).map_err(storage)?;
    prepare(&connection).map_err(storage)?;
    let found: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(storage)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(storage)?;
    let tables = "select count(*) from sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0)).map_err(storage)?;
    match (tables, found, version) {
        (0, ..) => create(&mut connection).map_err(storage)?,
        (_, APPLICATION, 1) => {}
        (_, APPLICATION, newer) => {
            return Err(Error::Storage(format!("{} has version {newer}: use a newer program", path.display())));
        }
        _ => return Err(Error::Storage(format!("{} is no bus of narrows", path.display()))),
    }
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    // A second server gets "database is locked", at once.
    connection.busy_timeout(Duration::ZERO)?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // An acknowledgement means that the disk has it.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -4_000)?;
    connection.pragma_update(None, "journal_size_limit", 4 << 20)
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", 1)?;
    transaction.commit()
}

pub(super) fn settings(connection: &Connection) -> Work<Option<Settings>> {
    let sql = "select value from setting where name = ?1";
    let text: Option<String> = connection.query_row(sql, [SETTINGS], |row| row.get(0)).optional()?;
    let read = |text: String| serde_json::from_str(&text).map_err(|error| Error::Storage(error.to_string()));
    Ok(text.map(read).transpose()?)
}

/// Makes what is missing. What is there grows to what is wanted, as a version before this one may
/// have made it smaller; apart from that it must be the same.
pub(super) fn provide(transaction: &Transaction<'_>, now: Option<&Settings>, wanted: Settings) -> Work<Settings> {
    subject::pattern(&wanted.stream.subjects)?;
    for name in wanted.sinks.names.iter().chain(wanted.buckets.iter().map(|bucket| &bucket.name)) {
        subject::name(name)?;
    }
    let mut all = match now {
        Some(now) => now.clone(),
        None => Settings {
            buckets: Vec::new(),
            sinks: crate::settings::Sinks { names: Vec::new(), ..wanted.sinks.clone() },
            ..wanted.clone()
        },
    };
    grow(&mut all.stream, &wanted);
    all.sinks.ack_wait = all.sinks.ack_wait.max(wanted.sinks.ack_wait);
    all.sinks.max_pending = all.sinks.max_pending.max(wanted.sinks.max_pending);
    same(STREAM, "subjects", &all.stream.subjects, &wanted.stream.subjects)?;
    same(STREAM, "max_octets", &all.stream.max_octets, &wanted.stream.max_octets)?;
    same(STREAM, "max_age", &all.stream.max_age, &wanted.stream.max_age)?;
    same(STREAM, "duplicate_window", &all.stream.duplicate_window, &wanted.stream.duplicate_window)?;
    same("the sinks", "ack_wait", &all.sinks.ack_wait, &wanted.sinks.ack_wait)?;
    same("the sinks", "max_pending", &all.sinks.max_pending, &wanted.sinks.max_pending)?;
    for sink in wanted.sinks.names {
        if !all.sinks.names.contains(&sink) {
            // A new sink gets everything that the stream has.
            transaction.execute("insert into waiting (sink, sequence) select ?1, sequence from kept", [&sink])?;
            all.sinks.names.push(sink);
        }
    }
    for bucket in wanted.buckets {
        let Some(found) = all.buckets.iter_mut().find(|one| one.name == bucket.name) else {
            all.buckets.push(bucket);
            continue;
        };
        found.max_octets = found.max_octets.max(bucket.max_octets);
        // Values that were written over are read by nobody; the next write leaves as many as that.
        found.history = bucket.history;
        same(&bucket.name, "max_octets", &found.max_octets, &bucket.max_octets)?;
        same(&bucket.name, "republish", &found.republish, &bucket.republish)?;
    }
    let text = serde_json::to_string(&all).map_err(|error| Error::Storage(error.to_string()))?;
    transaction.execute("insert or replace into setting (name, value) values (?1, ?2)", params![SETTINGS, text])?;
    Ok(all)
}

/// Each limit that is smaller than wanted is as large as that afterwards.
fn grow(stream: &mut Stream, Settings { stream: wanted, .. }: &Settings) {
    stream.max_octets = stream.max_octets.max(wanted.max_octets);
    stream.max_age = stream.max_age.max(wanted.max_age);
    stream.duplicate_window = stream.duplicate_window.max(wanted.duplicate_window);
}

fn same<T: PartialEq + std::fmt::Debug>(name: &str, setting: &str, found: &T, wanted: &T) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let (found, wanted) = (format!("{found:?}"), format!("{wanted:?}"));
    Err(Error::Settings { name: name.to_owned(), setting: setting.to_owned(), found, wanted })
}
