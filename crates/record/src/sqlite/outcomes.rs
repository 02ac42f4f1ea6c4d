//! What the newest runs came to.

use narrows_fleet::keys::Name;
use rusqlite::{Row, Transaction, params};
use uuid::Uuid;

use crate::codes;
use crate::error::Result;
use crate::fit::Fit;
use crate::rows::LastOutcome;

/// Notes what became of new runs, in the order of their ids.
pub(super) fn note(tables: &Transaction<'_>, fresh: &[(i64, &Fit)]) -> Result<()> {
    let sql = "insert into outcome (pair, kind, exit, reason, at_ms, run, failing_since_ms)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        on conflict (pair, kind) do update set exit = excluded.exit, reason = excluded.reason,
            at_ms = excluded.at_ms, run = excluded.run,
            failing_since_ms = case when excluded.failing_since_ms is null then null
                else coalesce(outcome.failing_since_ms, excluded.failing_since_ms) end
            where excluded.run > outcome.run";
    let mut upsert = tables.prepare_cached(sql)?;
    for (pair, run) in fresh {
        let Some(failing) = run.failing else { continue };
        let since = failing.then_some(run.began_ms);
        upsert.execute(params![pair, run.kind, run.exit, run.reason, run.began_ms, run.id.as_bytes(), since])?;
    }
    Ok(())
}

pub(super) fn of_kind(tables: &Transaction<'_>, kind: &str, since_ms: i64) -> Result<Vec<LastOutcome>> {
    let sql = "select source, target, exit, reason, at_ms, run, failing_since_ms
        from outcome join pair on pair.id = outcome.pair
        where kind = ?1 and at_ms >= ?2 order by source, target";
    tables.prepare_cached(sql)?.query_and_then(params![kind, since_ms], read)?.collect()
}

fn read(row: &Row<'_>) -> Result<LastOutcome> {
    let name = |text: String| -> Result<Name> { codes::name(&text) };
    Ok(LastOutcome {
        agent: name(row.get(0)?)?,
        target: name(row.get(1)?)?,
        exit: codes::exit(row.get(2)?)?,
        reason: row.get(3)?,
        at_ms: row.get(4)?,
        run: Uuid::from_bytes(row.get(5)?),
        failing_since_ms: row.get(6)?,
    })
}
