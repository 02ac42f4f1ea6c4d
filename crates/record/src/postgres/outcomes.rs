//! What the newest runs came to.

use std::collections::BTreeMap;

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;

use super::connect::{Work, execute, query};
use super::questions::BY_NAMES;
use crate::codes;
use crate::error::Result;
use crate::fit::Fit;
use crate::rows::LastOutcome;

type Of<'a> = (i32, &'a str);

/// The last run of a batch that gave a value, and those after it that gave none.
#[derive(Default)]
struct Newest<'a> {
    good: Option<&'a Fit>,
    first_failing: Option<&'a Fit>,
    last_failing: Option<&'a Fit>,
}

/// Notes what became of new runs, given in the order of their ids. Those that gave a value come
/// first: the ones after them begin to fail anew.
pub(super) async fn note(tables: &Transaction<'_>, fresh: &[(i32, &Fit)]) -> Work<()> {
    let mut all: BTreeMap<Of<'_>, Newest<'_>> = BTreeMap::new();
    for (pair, run) in fresh {
        let Some(failing) = run.failing else { continue };
        let newest = all.entry((*pair, &*run.kind)).or_default();
        if failing {
            newest.first_failing = newest.first_failing.or(Some(run));
            newest.last_failing = Some(run);
        } else {
            *newest = Newest { good: Some(run), ..Newest::default() };
        }
    }
    let good = all.iter().filter_map(|(of, newest)| Some((*of, newest.good?, None))).collect();
    upsert(tables, good).await?;
    let failing = all.iter().filter_map(|(of, newest)| {
        let since = newest.first_failing?.began_ms;
        Some((*of, newest.last_failing?, Some(since)))
    });
    upsert(tables, failing.collect()).await
}

async fn upsert(tables: &Transaction<'_>, rows: Vec<(Of<'_>, &Fit, Option<i64>)>) -> Work<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = "insert into outcome (pair, kind, exit, reason, at_ms, run, failing_since_ms)
        select * from unnest($1::int4[], $2::text[], $3::int2[], $4::text[], $5::int8[], $6::uuid[], $7::int8[])
        on conflict (pair, kind) do update set exit = excluded.exit, reason = excluded.reason,
            at_ms = excluded.at_ms, run = excluded.run,
            failing_since_ms = case when excluded.failing_since_ms is null then null
                else coalesce(outcome.failing_since_ms, excluded.failing_since_ms) end
            where excluded.run > outcome.run";
    let pairs: Vec<i32> = rows.iter().map(|((pair, _), ..)| *pair).collect();
    let kinds: Vec<&str> = rows.iter().map(|((_, kind), ..)| *kind).collect();
    let exits: Vec<i16> = rows.iter().map(|(_, run, _)| run.exit).collect();
    let reasons: Vec<Option<&str>> = rows.iter().map(|(_, run, _)| run.reason.as_deref()).collect();
    let times: Vec<i64> = rows.iter().map(|(_, run, _)| run.began_ms).collect();
    let ids: Vec<_> = rows.iter().map(|(_, run, _)| run.id).collect();
    let since: Vec<Option<i64>> = rows.iter().map(|(.., since)| *since).collect();
    execute(tables, sql, &[&pairs, &kinds, &exits, &reasons, &times, &ids, &since]).await?;
    Ok(())
}

pub(super) async fn of_kind(on: &impl GenericClient, kind: &str, since_ms: i64) -> Work<Vec<LastOutcome>> {
    let sql = format!(
        "select source, target, exit, reason, at_ms, run, failing_since_ms
            from outcome join pair on pair.id = outcome.pair where kind = $1 and at_ms >= $2 {BY_NAMES}"
    );
    Ok(query(on, &sql, &[&kind, &since_ms]).await?.iter().map(read).collect::<Result<_>>()?)
}

fn read(row: &Row) -> Result<LastOutcome> {
    Ok(LastOutcome {
        agent: codes::name(row.get(0))?,
        target: codes::name(row.get(1))?,
        exit: codes::exit(row.get(2))?,
        reason: row.get(3),
        at_ms: row.get(4),
        run: row.get(5),
        failing_since_ms: row.get(6),
    })
}
