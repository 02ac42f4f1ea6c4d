//! What can be read of a damaged file moves to a new one.
//!
//! Tables are read from both ends of their keys, and tables of series one series at a time. So a
//! damaged page costs what it holds and, with a second one in the same series, what lies between.

use std::fmt;
use std::path::{Path, PathBuf};

use narrows_watch::WallTime;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::connection::{connect, files};
use crate::error::{Error, Result};
use crate::migrate::{STEPS, beside, migrate};

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    /// The damaged file's new name.
    pub renamed: PathBuf,
    /// Rows that were saved.
    pub rows: u64,
    /// Tables of which rows are missing, as far as can be told.
    pub damaged: Vec<String>,
}

impl fmt::Display for Salvage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store was damaged: {} rows saved, the old file is {}", self.rows, self.renamed.display())?;
        if !self.damaged.is_empty() {
            write!(f, "; rows are missing in {}", self.damaged.join(", "))?;
        }
        Ok(())
    }
}

/// Renames the file, and makes a new one of what can be read.
pub(crate) fn salvage(path: &Path, now: WallTime) -> Result<(Connection, Salvage)> {
    let renamed = free_name(path, now);
    for ((from, _), (to, _)) in files(path).into_iter().zip(files(&renamed)) {
        if from.exists() {
            std::fs::rename(&from, &to).map_err(|error| Error::File { path: from, error })?;
        }
    }
    let mut new = connect(path)?;
    migrate(&mut new, path, STEPS)?;
    let mut found = Salvage { renamed, rows: 0, damaged: Vec::new() };
    let tables = tables(&new)?;
    let transaction = new.transaction()?;
    match Connection::open(&found.renamed) {
        Ok(old) => {
            for table in tables {
                let (rows, whole) = table_of(&old, &transaction, &table)?;
                found.rows += rows;
                if !whole {
                    found.damaged.push(table);
                }
            }
        }
        Err(_) => found.damaged = tables,
    }
    transaction.commit()?;
    Ok((new, found))
}

fn free_name(path: &Path, now: WallTime) -> PathBuf {
    let first = now.millis();
    let names = (first..).map(|at| beside(path, &format!("damaged-{at}")));
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| beside(path, "damaged"))
}

/// All tables, `series` first: what is saved of others is asked for by series.
fn tables(new: &Connection) -> Result<Vec<String>> {
    let sql = "select name from sqlite_schema where type = 'table' and name not like 'sqlite%'
        order by name <> 'series', name";
    let mut statement = new.prepare(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

/// Copies a table. Says how many rows, and whether no damage was met.
fn table_of(old: &Connection, new: &Connection, table: &str) -> Result<(u64, bool)> {
    let (columns, keys) = shape(new, table)?;
    // A file of an older version has fewer columns.
    let columns: Vec<String> = match shape(old, table) {
        Ok((had, _)) => columns.into_iter().filter(|column| had.contains(column)).collect(),
        Err(_) => return Ok((0, false)),
    };
    if columns.is_empty() {
        return Ok((0, false));
    }
    let copy = Copy { old, new, table, columns: columns.join(", "), width: columns.len(), keys };
    if copy.keys.first().is_some_and(|key| key == "series") {
        let mut statement = new.prepare("select id from series")?;
        let series = statement.query_map([], |row| row.get::<_, i64>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut all = (0, true);
        for one in series {
            let (rows, whole) = copy.rows(&format!("where series = {one}"))?;
            all = (all.0 + rows, all.1 && whole);
        }
        return Ok(all);
    }
    copy.rows("")
}

/// Columns and key columns of a table.
fn shape(connection: &Connection, table: &str) -> Result<(Vec<String>, Vec<String>)> {
    let mut statement = connection.prepare("select name, pk from pragma_table_info(?1)")?;
    let all: Vec<(String, u32)> =
        statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let mut keys: Vec<_> = all.iter().filter(|(_, place)| *place > 0).collect();
    keys.sort_by_key(|(_, place)| *place);
    let keys = keys.into_iter().map(|(name, _)| name.clone()).collect();
    Ok((all.iter().map(|(name, _)| name.clone()).collect(), keys))
}

struct Copy<'a> {
    old: &'a Connection,
    new: &'a Connection,
    table: &'a str,
    columns: String,
    width: usize,
    keys: Vec<String>,
}

impl Copy<'_> {
    /// Reads up to the first damage, then from the other end down to what is known.
    fn rows(&self, filter: &str) -> Result<(u64, bool)> {
        let mut saved = 0;
        for order in ["asc", "desc"] {
            let (rows, end) = self.one_way(filter, order)?;
            saved += rows;
            if end {
                return Ok((saved, order == "asc"));
            }
        }
        Ok((saved, false))
    }

    /// Rows saved, and whether the other end, or what is known, was reached.
    fn one_way(&self, filter: &str, order: &str) -> Result<(u64, bool)> {
        let keys: Vec<_> = self.keys.iter().map(|key| format!("{key} {order}")).collect();
        let (columns, table) = (&self.columns, self.table);
        let read = format!("select {columns} from {table} not indexed {filter} order by {}", keys.join(", "));
        let places = vec!["?"; self.width].join(", ");
        let mut insert = self.new.prepare(&format!("insert or ignore into {table} ({columns}) values ({places})"))?;
        let Ok(mut read) = self.old.prepare(&read) else { return Ok((0, false)) };
        let Ok(mut rows) = read.query([]) else { return Ok((0, false)) };
        let mut saved = 0;
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok((saved, true)),
                Err(_) => return Ok((saved, false)),
            };
            let values: Vec<Value> = (0..self.width).map(|at| row.get(at).unwrap_or(Value::Null)).collect();
            match insert.execute(params_from_iter(values)) {
                Ok(0) if order == "desc" => return Ok((saved, true)),
                Ok(rows) => saved += u64::try_from(rows).unwrap_or(0),
                // Damage may have changed a value's type: that row is lost.
                Err(error) => match Error::from(error) {
                    error if error.is_of_disk() => return Err(error),
                    _ => {}
                },
            }
        }
    }
}
