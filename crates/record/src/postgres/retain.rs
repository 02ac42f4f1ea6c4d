//! What is removed when: partitions, a day each.

use deadpool_postgres::Transaction;

use super::arrivals;
use super::connect::{Work, execute, query};
use super::migrate::{Alone, OF_DAYS, alone, partition};
use crate::codes;
use crate::fit::{DAY, id_at};
use crate::record::{EVIDENCE_DAYS, OTHER_DAYS, RUN_DAYS, day_before};

pub(super) async fn retain(tables: &Transaction<'_>, now_ms: i64) -> Work<u64> {
    alone(tables, Alone::Days).await?;
    // Rather no removal today than everybody waiting for one long question.
    tables.batch_execute("set local lock_timeout = '10s'").await?;
    let mut removed = 0;
    for table in OF_DAYS {
        let kept_from = day_before(now_ms, if table == "evidence" { EVIDENCE_DAYS } else { RUN_DAYS });
        let counts = table == "run";
        let mut rows = 0;
        for part in old(tables, table, kept_from / DAY).await? {
            if counts {
                let row = tables.query_one(&format!("select count(*) from {part}"), &[]).await?;
                rows += codes::unsigned(row.get(0));
            }
            tables.batch_execute(&format!("drop table {part}")).await?;
        }
        let key = if table == "run" { "id" } else { "run" };
        let sql = format!("delete from {table}_default where {key} < $1");
        rows += execute(tables, &sql, &[&id_at(kept_from)]).await?;
        removed += if counts { rows } else { 0 };
    }
    let before = day_before(now_ms, OTHER_DAYS);
    execute(tables, "delete from reservation where end_ms < $1", &[&before]).await?;
    execute(tables, "delete from given_order where not_after_ms < $1", &[&before]).await?;
    execute(tables, "delete from proof where at_ms < $1", &[&before]).await?;
    execute(tables, "delete from delay_grouping where at_ms < $1", &[&before]).await?;
    arrivals::forget(tables, before).await?;
    execute(tables, "delete from token where not_after_ms < $1", &[&before]).await?;
    execute(tables, "delete from refused where at_ms < $1", &[&before]).await?;
    execute(tables, "delete from silence where ends_ms < $1", &[&before]).await?;
    execute(tables, "delete from notice where made_ms < $1", &[&before]).await?;
    let sql = "insert into counter (name, value) values ('kept_from_ms', $1)
        on conflict (name) do update set value = greatest(counter.value, excluded.value)";
    execute(tables, sql, &[&day_before(now_ms, RUN_DAYS)]).await?;
    Ok(removed)
}

/// Partitions of a table before a day.
async fn old(tables: &Transaction<'_>, table: &str, day: i64) -> Work<Vec<String>> {
    let sql = "select relname::text from pg_inherits join pg_class on pg_class.oid = inhrelid
        where inhparent = $1::text::regclass";
    let rows = query(tables, sql, &[&table]).await?;
    let day_of = |name: &str| name.strip_prefix(&partition(table, 0)[..table.len() + 2])?.parse::<i64>().ok();
    let names = rows.iter().map(|row| row.get::<_, String>(0));
    Ok(names.filter(|name| day_of(name).is_some_and(|found| found < day)).collect())
}
