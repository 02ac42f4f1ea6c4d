//! Rows as they travel from one database to another.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Row as SqliteRow, Transaction, params_from_iter};
use uuid::Uuid;

use super::Record;
use super::ingest::{packed, unpacked};
use crate::codes::damaged;
use crate::error::Result;
use crate::tables::{Kind, MOVING, Row, Table, Tables};
use narrows_units::hex;

#[async_trait]
impl Tables for Record {
    async fn count(&self, table: &Table) -> Result<u64> {
        let but = if table.name == "counter" { format!(" where name <> '{MOVING}'") } else { String::new() };
        let sql = format!("select count(*) from {}{but}", table.name);
        let count: i64 = self.read(move |tables| Ok(tables.query_row(&sql, [], |row| row.get(0))?)).await?;
        Ok(crate::codes::unsigned(count))
    }

    async fn page(&self, table: &Table, after: &[String], most: i64) -> Result<Vec<Row>> {
        let table = *table;
        let keys: Vec<&str> = table.columns[..table.keys].iter().map(|(name, _)| *name).collect();
        let keys = keys.join(", ");
        let mut given = Vec::new();
        for (text, (_, kind)) in after.iter().zip(table.columns) {
            given.push(value(Some(text), *kind)?);
        }
        let marks = vec!["?"; given.len()].join(", ");
        let beyond = if given.is_empty() { String::new() } else { format!("where ({keys}) > ({marks})") };
        let sql = format!("select {} from {} {beyond} order by {keys} limit {most}", names(&table), table.name);
        self.read(move |tables| rows(tables, &table, &sql, given)).await
    }

    async fn of_runs(&self, table: &Table, first: Uuid, last: Uuid) -> Result<Vec<Row>> {
        let table = *table;
        let sql = format!("select {} from {} where run >= ? and run <= ?", names(&table), table.name);
        let ends = [first, last].map(|id| Value::Blob(id.as_bytes().to_vec())).to_vec();
        self.read(move |tables| rows(tables, &table, &sql, ends)).await
    }

    async fn load(&self, table: &Table, rows: Vec<Row>) -> Result<()> {
        let table = *table;
        let load = move |tables: &Transaction<'_>| {
            let marks = vec!["?"; table.columns.len()].join(", ");
            let sql = format!("insert into {} ({}) values ({marks})", table.name, names(&table));
            let mut insert = tables.prepare_cached(&sql)?;
            for row in rows {
                let cells = row.iter().zip(table.columns).map(|(text, (_, kind))| value(text.as_deref(), *kind));
                insert.execute(params_from_iter(cells.collect::<Result<Vec<_>>>()?))?;
            }
            Ok(())
        };
        self.write(load).await
    }

    async fn make_days(&self, _: BTreeSet<i64>) -> Result<()> {
        Ok(())
    }

    async fn set_moving(&self, moving: bool) -> Result<()> {
        let sql = if moving {
            "insert into counter (name, value) values (?1, 1)"
        } else {
            "delete from counter where name = ?1"
        };
        self.write(move |tables| Ok(tables.execute(sql, [MOVING]).map(|_| ())?)).await
    }
}

fn names(table: &Table) -> String {
    table.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn rows(tables: &Transaction<'_>, table: &Table, sql: &str, given: Vec<Value>) -> Result<Vec<Row>> {
    let read = |row: &SqliteRow<'_>| {
        let cell = |(at, (_, kind)): (usize, &(&str, Kind))| text(row.get_ref(at)?, *kind);
        table.columns.iter().enumerate().map(cell).collect::<Result<Row>>()
    };
    tables.prepare_cached(sql)?.query_and_then(params_from_iter(given), read)?.collect()
}

fn text(cell: ValueRef<'_>, kind: Kind) -> Result<Option<String>> {
    Ok(Some(match (kind, cell) {
        (_, ValueRef::Null) => return Ok(None),
        (Kind::Bool, ValueRef::Integer(number)) => (number != 0).to_string(),
        (_, ValueRef::Integer(number)) => number.to_string(),
        (_, ValueRef::Real(number)) => number.to_string(),
        (_, ValueRef::Text(text)) => String::from_utf8(text.to_vec()).map_err(damaged)?,
        (Kind::Uuid, ValueRef::Blob(octets)) => Uuid::from_slice(octets).map_err(damaged)?.to_string(),
        (Kind::Document, ValueRef::Blob(octets)) => unpacked(octets)?,
        (_, ValueRef::Blob(octets)) => hex::to_text(octets),
    }))
}

fn value(text: Option<&str>, kind: Kind) -> Result<Value> {
    let Some(text) = text else { return Ok(Value::Null) };
    Ok(match kind {
        Kind::Int => Value::Integer(text.parse().map_err(damaged)?),
        Kind::Bool => Value::Integer(i64::from(text == "true")),
        Kind::Real => Value::Real(text.parse().map_err(damaged)?),
        Kind::Text | Kind::Ranges => Value::Text(text.to_owned()),
        Kind::Uuid => Value::Blob(text.parse::<Uuid>().map_err(damaged)?.as_bytes().to_vec()),
        Kind::Bytes => Value::Blob(hex::to_octets(text).ok_or_else(|| damaged("no hexadecimal text"))?),
        Kind::Document => Value::Blob(packed(text)),
    })
}
