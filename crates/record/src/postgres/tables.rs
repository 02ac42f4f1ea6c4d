//! Rows as they travel from one database to another.

use std::collections::BTreeSet;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connect::{Failed, Work, execute, query};
use super::{ATTEMPTS, Record};
use crate::error::{Error, Result};
use crate::tables::{Kind, MOVING, Row, Table, Tables};

#[async_trait]
impl Tables for Record {
    async fn count(&self, table: &Table) -> Result<u64> {
        let but = if table.name == "counter" { format!(" where name <> '{MOVING}'") } else { String::new() };
        let sql = format!("select count(*) from {}{but}", table.name);
        let rows = ask!(self, client => async { Ok::<_, Failed>(query(&client, &sql, &[]).await?) })?;
        Ok(crate::codes::unsigned(rows[0].get(0)))
    }

    async fn page(&self, table: &Table, after: &[String], most: i64) -> Result<Vec<Row>> {
        let keys = &table.columns[..table.keys];
        let names = keys.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let marks = keys.iter().zip(1..).map(|((_, kind), at)| from_text(*kind, &format!("${at}"))).collect::<Vec<_>>();
        let beyond = if after.is_empty() { String::new() } else { format!("where ({names}) > ({})", marks.join(", ")) };
        // Without its table a name means the column of the answer, which is text: "9" after "10".
        let order = keys.iter().map(|(name, _)| format!("{}.{name}", table.name)).collect::<Vec<_>>().join(", ");
        let sql = format!("select {} from {} {beyond} order by {order} limit {most}", as_text(table), table.name);
        let given: Vec<&(dyn ToSql + Sync)> = after.iter().map(|text| text as &(dyn ToSql + Sync)).collect();
        ask!(self, client => async { Ok::<_, Failed>(rows(&query(&client, &sql, &given).await?, table)) })
    }

    async fn of_runs(&self, table: &Table, first: Uuid, last: Uuid) -> Result<Vec<Row>> {
        let sql = format!("select {} from {} where run >= $1 and run <= $2", as_text(table), table.name);
        ask!(self, client => async { Ok::<_, Failed>(rows(&query(&client, &sql, &[&first, &last]).await?, table)) })
    }

    async fn load(&self, table: &Table, rows: Vec<Row>) -> Result<()> {
        transact!(self, tables => load(&tables, table, &rows))
    }

    async fn make_days(&self, days: BTreeSet<i64>) -> Result<()> {
        self.add_days(days).await
    }

    async fn set_moving(&self, moving: bool) -> Result<()> {
        let sql = if moving {
            "insert into counter (name, value) values ($1, 1)"
        } else {
            "delete from counter where name = $1"
        };
        ask!(self, client => async { Ok::<_, Failed>(execute(&client, sql, &[&MOVING]).await?) })?;
        Ok(())
    }
}

async fn load(tables: &Transaction<'_>, table: &Table, rows: &[Row]) -> Work<()> {
    let columns: Vec<Vec<Option<&str>>> = (0..table.columns.len())
        .map(|at| rows.iter().map(|row| row.get(at).and_then(Option::as_deref)).collect())
        .collect();
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    let cells: Vec<String> =
        table.columns.iter().map(|(name, kind)| from_text(*kind, &format!("given.{name}"))).collect();
    let arrays: Vec<String> = (1..=names.len()).map(|at| format!("${at}::text[]")).collect();
    let sql = format!(
        "insert into {} ({}) select {} from unnest({}) as given ({})",
        table.name,
        names.join(", "),
        cells.join(", "),
        arrays.join(", "),
        names.join(", "),
    );
    let given: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect();
    execute(tables, &sql, &given).await?;
    if table.columns[0] == ("id", Kind::Int) {
        // The next number that the database gives is after these.
        let name = table.name;
        let sql = format!("select setval(pg_get_serial_sequence('{name}', 'id'), max(id)) from {name}");
        query(tables, &sql, &[]).await?;
    }
    Ok(())
}

fn rows(found: &[tokio_postgres::Row], table: &Table) -> Vec<Row> {
    found.iter().map(|row| (0..table.columns.len()).map(|at| row.get(at)).collect()).collect()
}

fn as_text(table: &Table) -> String {
    let text = |(name, kind): &(&str, Kind)| match kind {
        Kind::Bytes => format!("encode({name}, 'hex')"),
        _ => format!("{name}::text"),
    };
    table.columns.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn from_text(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Int => format!("{text}::text::int8"),
        Kind::Real => format!("{text}::text::float8"),
        Kind::Bool => format!("{text}::text::bool"),
        Kind::Text | Kind::Document => format!("{text}::text"),
        Kind::Uuid => format!("{text}::text::uuid"),
        Kind::Bytes => format!("decode({text}::text, 'hex')"),
        Kind::Ranges => format!("{text}::text::int8multirange"),
    }
}
