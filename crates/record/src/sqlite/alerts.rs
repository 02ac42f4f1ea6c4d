//! States of alerts, silences, and notices on their way.

use narrows_fleet::alert::{Saved, Silence};
use narrows_fleet::keys::Name;
use rusqlite::{Row, Transaction, params};

use crate::codes;
use crate::error::{Error, Result};
use crate::rows::{NewNotice, WaitingNotice};

pub(super) fn keep(tables: &Transaction<'_>, states: &[Saved], notices: &[NewNotice]) -> Result<()> {
    for (key, doc) in states {
        match doc {
            Some(doc) => tables
                .prepare_cached("insert or replace into alert_state (key, doc) values (?1, ?2)")?
                .execute([key, doc])?,
            None => tables.prepare_cached("delete from alert_state where key = ?1")?.execute([key])?,
        };
    }
    for notice in notices {
        let sql = "insert into notice (channel, body, made_ms, due_ms, tries) values (?1, ?2, ?3, ?3, 0)";
        tables.prepare_cached(sql)?.execute(params![notice.channel, notice.body, notice.made_ms])?;
    }
    Ok(())
}

pub(super) fn states(tables: &Transaction<'_>) -> Result<Vec<(String, String)>> {
    let mut asked = tables.prepare_cached("select key, doc from alert_state order by key")?;
    let rows = asked.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn due(tables: &Transaction<'_>, now_ms: i64) -> Result<Vec<WaitingNotice>> {
    let sql = "select id, channel, body, made_ms, due_ms, tries from notice where due_ms <= ?1 order by id";
    let read = |row: &Row<'_>| {
        Ok(WaitingNotice {
            id: row.get(0)?,
            channel: row.get(1)?,
            body: row.get(2)?,
            made_ms: row.get(3)?,
            due_ms: row.get(4)?,
            tries: row.get(5)?,
        })
    };
    tables.prepare_cached(sql)?.query_and_then([now_ms], read)?.collect()
}

pub(super) fn retry(tables: &Transaction<'_>, id: i64, due_ms: i64) -> Result<()> {
    tables.execute("update notice set due_ms = ?2, tries = tries + 1 where id = ?1", [id, due_ms])?;
    Ok(())
}

pub(super) fn done(tables: &Transaction<'_>, id: i64) -> Result<()> {
    tables.execute("delete from notice where id = ?1", [id])?;
    Ok(())
}

pub(super) fn add_silence(tables: &Transaction<'_>, silence: &Silence) -> Result<u64> {
    let Silence { rule, source, target, link, begins_ms, ends_ms, who, reason, .. } = silence;
    let [source, target] = [source, target].map(|host| host.as_ref().map(Name::as_str));
    tables.execute(
        "insert into silence (begins_ms, ends_ms, rule, source, target, link, who, reason)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![begins_ms, ends_ms, rule, source, target, link, who, reason],
    )?;
    Ok(codes::unsigned(tables.last_insert_rowid()))
}

pub(super) fn end_silence(tables: &Transaction<'_>, id: u64, now_ms: i64) -> Result<()> {
    let sql = "update silence set ends_ms = ?2 where id = ?1 and ends_ms > ?2";
    let changed = tables.execute(sql, [codes::signed(id), now_ms])?;
    if changed > 0 { Ok(()) } else { Err(Error::NotFound) }
}

pub(super) fn silences(tables: &Transaction<'_>, from_ms: i64) -> Result<Vec<Silence>> {
    let sql = "select id, begins_ms, ends_ms, rule, source, target, link, who, reason from silence
        where ends_ms > ?1 order by id";
    let read = |row: &Row<'_>| {
        let name = |text: Option<String>| text.as_deref().map(codes::name).transpose();
        Ok(Silence {
            id: codes::unsigned(row.get(0)?),
            begins_ms: row.get(1)?,
            ends_ms: row.get(2)?,
            rule: row.get(3)?,
            source: name(row.get(4)?)?,
            target: name(row.get(5)?)?,
            link: row.get(6)?,
            who: row.get(7)?,
            reason: row.get(8)?,
        })
    };
    tables.prepare_cached(sql)?.query_and_then([from_ms], read)?.collect()
}
