//! Versions of the schema, and a partition for each day.

use deadpool_postgres::Transaction;

use super::connect::{Work, execute};
use crate::error::Error;
use crate::fit::{DAY, id_at};
use crate::migration::{Steps, checksum, missing};

/// What makes version N out of version N - 1.
pub(crate) const STEPS: Steps = &[
    include_str!("../../schema/postgres/1.sql"),
    include_str!("../../schema/postgres/2.sql"),
    include_str!("../../schema/postgres/3.sql"),
    include_str!("../../schema/postgres/4.sql"),
    include_str!("../../schema/postgres/5.sql"),
    include_str!("../../schema/postgres/6.sql"),
    include_str!("../../schema/postgres/7.sql"),
    include_str!("../../schema/postgres/8.sql"),
];

/// Tables of which each day is a partition, in the order in which they are written.
pub(super) const OF_DAYS: [&str; 3] = ["run", "value", "evidence"];

/// PostgreSQL has multiranges from this version on.
const OLDEST: i32 = 140_000;

/// What only one connection does at a time: the numbers of advisory locks ("nrwr", and one each).
#[derive(Debug, Clone, Copy)]
pub(super) enum Alone {
    Migrate = 0,
    Days = 1,
    Join = 2,
    Reserve = 3,
    Audit = 4,
    RollUp = 5,
}

/// Waits until no other transaction does this, and keeps others from it until the end of this one.
pub(super) async fn alone(tables: &Transaction<'_>, what: Alone) -> Work<()> {
    let what = what as i32;
    execute(tables, "select pg_advisory_xact_lock(1853323122, $1)", &[&what]).await?;
    Ok(())
}

/// Brings the database to the last version.
pub(super) async fn migrate(tables: &Transaction<'_>) -> Work<()> {
    alone(tables, Alone::Migrate).await?;
    let about = tables
        .query_one(
            "select current_setting('server_version_num')::int4, to_regclass('narrows_migration') is not null,
                (select count(*) from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace),
                current_database()",
            &[],
        )
        .await?;
    let (server, ours, others, name): (i32, bool, i64, String) =
        (about.get(0), about.get(1), about.get(2), about.get(3));
    if server < OLDEST {
        return Err(
            Error::Foreign(format!("PostgreSQL {} is too old: 14 is the first that does", server / 10_000)).into()
        );
    }
    if !ours && others > 0 {
        return Err(Error::Foreign(format!("database {name} is of another program")).into());
    }
    let sql = "select version, checksum from narrows_migration order by version";
    let rows = if ours { tables.query(sql, &[]).await? } else { Vec::new() };
    let found: Vec<(i32, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for (version, step) in missing(STEPS, &found)? {
        tables.batch_execute(step).await?;
        let sql = "insert into narrows_migration (version, checksum) values ($1, $2)";
        tables.execute(sql, &[&version, &checksum(step)]).await?;
    }
    Ok(())
}

/// The name of a day's partition: days are counted from 1970.
pub(super) fn partition(table: &str, day: i64) -> String {
    format!("{table}_d{day}")
}

/// Makes the partitions of a day, if somebody else has not. What waits for this day in the default
/// partition moves over.
pub(super) async fn add_day(tables: &Transaction<'_>, day: i64) -> Work<()> {
    let (from, until) = (id_at(day * DAY), id_at((day + 1) * DAY));
    // Rather results a little later than everybody waiting for one long question.
    tables.batch_execute("set local lock_timeout = '10s'").await?;
    for table in OF_DAYS {
        let part = partition(table, day);
        let row = tables.query_one("select to_regclass($1) is not null", &[&part]).await?;
        if row.get(0) {
            continue;
        }
        let key = if table == "run" { "id" } else { "run" };
        let sql = format!(
            "lock table {table}_default in access exclusive mode;
            create table {part} (like {table} including all);
            with waiting as (delete from {table}_default where {key} >= '{from}' and {key} < '{until}' returning *)
                insert into {part} select * from waiting;
            alter table {table} attach partition {part} for values from ('{from}') to ('{until}')"
        );
        tables.batch_execute(&sql).await?;
    }
    Ok(())
}
