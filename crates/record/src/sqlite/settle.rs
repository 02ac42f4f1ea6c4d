//! What ended runs leave of their spans.

use narrows_fleet::keys::Key;
use rusqlite::{OptionalExtension, Transaction, params};
use uuid::Uuid;

use super::orders;
use crate::codes;
use crate::error::Result;
use crate::rows::EndedRun;

pub(super) fn settle(tables: &Transaction<'_>, ended: &[EndedRun]) -> Result<()> {
    let sql = "update reservation
        set end_ms = min(end_ms, max(?3, begin_ms + 1)), octets = min(octets, coalesce(?4, octets))
        where run = ?1 and agent = ?2";
    for one in ended {
        if let Some((id, state)) = &one.order {
            orders::set(tables, *id, &one.agent, state)?;
        }
        let run = match &one.order {
            Some((id, _)) => Some(*id),
            None => entry(tables, one)?,
        };
        if let Some(run) = run {
            let octets = one.octets.map(codes::signed);
            let row = params![run.as_bytes(), one.agent.as_str(), one.ended_ms, octets];
            tables.prepare_cached(sql)?.execute(row)?;
        }
    }
    Ok(())
}

/// The entry of the timetable that a run was of.
fn entry(tables: &Transaction<'_>, ended: &EndedRun) -> Result<Option<Uuid>> {
    // All that an agent runs has its host, and nothing else has it meanwhile.
    let sql = "select run from reservation
        where key = ?1 and agent = ?2 and begin_ms <= ?3 and end_ms >= ?3 and not by_hand
        order by begin_ms desc limit 1";
    let key = Key::Host(ended.agent.clone()).to_string();
    let mut find = tables.prepare_cached(sql)?;
    let found = find.query_row(params![key, ended.agent.as_str(), ended.began_ms], |row| row.get(0)).optional()?;
    Ok(found.map(Uuid::from_bytes))
}
