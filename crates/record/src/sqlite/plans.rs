//! Reservations, settings, numbers, the audit, and what was refused.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use crate::codes;
use crate::error::{Error, Result};
use crate::record::{REFUSED, is_span};
use crate::rows::{Audit, Reservation};

pub(super) fn reserve(tables: &Transaction<'_>, spans: &[Reservation]) -> Result<()> {
    for span in spans {
        is_span(span)?;
        let key = span.key.to_string();
        let sql = format!("{RESERVATION} where key = ?1 and begin_ms < ?2 and end_ms > ?3 limit 1");
        let times = params![key, span.end_ms, span.begin_ms];
        let in_the_way = tables.prepare_cached(&sql)?.query_and_then(times, read)?.next().transpose()?;
        if let Some(other) = in_the_way {
            return Err(Error::Reserved(Box::new(other)));
        }
        let sql = "insert into reservation (key, begin_ms, end_ms, run, agent, serial, octets, by_hand)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        tables.prepare_cached(sql)?.execute(params![
            key,
            span.begin_ms,
            span.end_ms,
            span.run.as_bytes(),
            span.agent.as_str(),
            codes::signed(span.serial),
            codes::signed(span.octets),
            span.by_hand,
        ])?;
    }
    Ok(())
}

pub(super) fn free(tables: &Transaction<'_>, runs: &[Uuid], from_ms: i64) -> Result<()> {
    let mut delete = tables.prepare_cached("delete from reservation where run = ?1 and begin_ms > ?2")?;
    for run in runs {
        delete.execute(params![run.as_bytes(), from_ms])?;
    }
    Ok(())
}

pub(super) fn reservations(tables: &Transaction<'_>, from_ms: i64) -> Result<Vec<Reservation>> {
    let sql = format!("{RESERVATION} where end_ms > ?1 order by begin_ms, key");
    tables.prepare_cached(&sql)?.query_and_then([from_ms], read)?.collect()
}

const RESERVATION: &str = "select key, begin_ms, end_ms, run, agent, serial, octets, by_hand from reservation";

fn read(row: &Row<'_>) -> Result<Reservation> {
    Ok(Reservation {
        key: codes::key(&row.get::<_, String>(0)?)?,
        begin_ms: row.get(1)?,
        end_ms: row.get(2)?,
        run: Uuid::from_bytes(row.get(3)?),
        agent: codes::name(&row.get::<_, String>(4)?)?,
        serial: codes::unsigned(row.get(5)?),
        octets: codes::unsigned(row.get(6)?),
        by_hand: row.get(7)?,
    })
}

pub(super) fn setting(tables: &Transaction<'_>, name: &str) -> Result<String> {
    let text = tables.query_row("select text from setting where name = ?1", [name], |row| row.get(0)).optional()?;
    Ok(text.unwrap_or_default())
}

pub(super) fn set_setting(tables: &Transaction<'_>, name: &str, text: &str) -> Result<()> {
    tables.execute("insert or replace into setting (name, text) values (?1, ?2)", [name, text])?;
    Ok(())
}

pub(super) fn next_serial(tables: &Transaction<'_>) -> Result<u64> {
    let sql = "insert into counter (name, value) values ('serial', 1)
        on conflict (name) do update set value = value + 1 returning value";
    Ok(codes::unsigned(tables.query_row(sql, [], |row| row.get(0))?))
}

pub(super) fn serial_at_least(tables: &Transaction<'_>, least: u64) -> Result<u64> {
    let sql = "insert into counter (name, value) values ('serial', ?1)
        on conflict (name) do update set value = max(value, excluded.value) returning value";
    Ok(codes::unsigned(tables.query_row(sql, [codes::signed(least)], |row| row.get(0))?))
}

pub(super) fn audit(tables: &Transaction<'_>, who: &str, what: &str, text: &str, now_ms: i64) -> Result<Audit> {
    let last = tables.query_row("select number, hash from audit order by number desc limit 1", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    });
    let (number, before) = last.optional()?.unwrap_or_default();
    let entry = crate::chain::entry(&before, codes::unsigned(number) + 1, now_ms, who, what, text);
    tables.execute(
        "insert into audit (number, at_ms, who, what, text, hash) values (?1, ?2, ?3, ?4, ?5, ?6)",
        params![number + 1, entry.at_ms, entry.who, entry.what, entry.text, entry.hash],
    )?;
    Ok(entry)
}

pub(super) fn audits(tables: &Transaction<'_>, before: Option<u64>, limit: usize) -> Result<Vec<Audit>> {
    let sql = "select number, at_ms, who, what, text, hash from audit where number < ?1 order by number desc limit ?2";
    let before = before.map_or(i64::MAX, codes::signed);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| {
        Ok(Audit {
            number: codes::unsigned(row.get(0)?),
            at_ms: row.get(1)?,
            who: row.get(2)?,
            what: row.get(3)?,
            text: row.get(4)?,
            hash: row.get(5)?,
        })
    };
    tables.prepare_cached(sql)?.query_and_then([before, limit], read)?.collect()
}

pub(super) fn refuse(tables: &Transaction<'_>, subject: &str, payload: &[u8], why: &str, now_ms: i64) -> Result<()> {
    let sql = "insert into refused (at_ms, subject, payload, why) values (?1, ?2, ?3, ?4)";
    tables.execute(sql, params![now_ms, subject, payload, why])?;
    let oldest = tables.last_insert_rowid() - REFUSED;
    tables.execute("delete from refused where id <= ?1", [oldest])?;
    Ok(())
}
