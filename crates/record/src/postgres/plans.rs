//! Reservations, settings, numbers, the audit, and what was refused.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use uuid::Uuid;

use super::connect::{Work, execute, query};
use super::migrate::{Alone, alone};
use crate::codes;
use crate::error::{Error, Result};
use crate::record::{REFUSED, is_span};
use crate::rows::{Audit, Reservation};

pub(super) async fn reserve(tables: &Transaction<'_>, spans: &[Reservation]) -> Work<()> {
    // Two hubs that want the same keys in another order would wait for each other.
    alone(tables, Alone::Reserve).await?;
    for span in spans {
        is_span(span)?;
        let key = span.key.to_string();
        let sql = format!("{RESERVATION} where key = $1 and int8range(begin_ms, end_ms) && int8range($2, $3) limit 1");
        let in_the_way = query(tables, &sql, &[&key, &span.begin_ms, &span.end_ms]).await?;
        if let Some(row) = in_the_way.first() {
            return Err(Error::Reserved(Box::new(read(row)?)).into());
        }
        let sql = "insert into reservation (key, begin_ms, end_ms, run, agent, serial, octets, by_hand)
            values ($1, $2, $3, $4, $5, $6, $7, $8)";
        let Reservation { begin_ms, end_ms, run, by_hand, .. } = span;
        let (agent, serial, octets) = (span.agent.as_str(), codes::signed(span.serial), codes::signed(span.octets));
        execute(tables, sql, &[&key, begin_ms, end_ms, run, &agent, &serial, &octets, by_hand]).await?;
    }
    Ok(())
}

pub(super) async fn free(on: &impl GenericClient, runs: &[Uuid], from_ms: i64) -> Work<()> {
    execute(on, "delete from reservation where run = any($1) and begin_ms > $2", &[&runs, &from_ms]).await?;
    Ok(())
}

pub(super) async fn reservations(on: &impl GenericClient, from_ms: i64) -> Work<Vec<Reservation>> {
    let sql = format!("{RESERVATION} where end_ms > $1 order by begin_ms, key collate \"C\"");
    Ok(query(on, &sql, &[&from_ms]).await?.iter().map(read).collect::<Result<_>>()?)
}

const RESERVATION: &str = "select key, begin_ms, end_ms, run, agent, serial, octets, by_hand from reservation";

fn read(row: &Row) -> Result<Reservation> {
    Ok(Reservation {
        key: codes::key(row.get(0))?,
        begin_ms: row.get(1),
        end_ms: row.get(2),
        run: row.get(3),
        agent: codes::name(row.get(4))?,
        serial: codes::unsigned(row.get(5)),
        octets: codes::unsigned(row.get(6)),
        by_hand: row.get(7),
    })
}

pub(super) async fn setting(on: &impl GenericClient, name: &str) -> Work<String> {
    let rows = query(on, "select text from setting where name = $1", &[&name]).await?;
    Ok(rows.first().map(|row| row.get(0)).unwrap_or_default())
}

pub(super) async fn set_setting(on: &impl GenericClient, name: &str, text: &str) -> Work<()> {
    let sql = "insert into setting (name, text) values ($1, $2) on conflict (name) do update set text = excluded.text";
    execute(on, sql, &[&name, &text]).await?;
    Ok(())
}

pub(super) async fn next_serial(on: &impl GenericClient) -> Work<u64> {
    let sql = "insert into counter (name, value) values ('serial', 1)
        on conflict (name) do update set value = counter.value + 1 returning value";
    let rows = query(on, sql, &[]).await?;
    Ok(codes::unsigned(rows.first().ok_or(Error::NotFound)?.get(0)))
}

pub(super) async fn serial_at_least(on: &impl GenericClient, least: u64) -> Work<u64> {
    let sql = "insert into counter (name, value) values ('serial', $1)
        on conflict (name) do update set value = greatest(counter.value, excluded.value) returning value";
    let rows = query(on, sql, &[&codes::signed(least)]).await?;
    Ok(codes::unsigned(rows.first().ok_or(Error::NotFound)?.get(0)))
}

pub(super) async fn audit(tables: &Transaction<'_>, who: &str, what: &str, text: &str, now_ms: i64) -> Work<Audit> {
    alone(tables, Alone::Audit).await?;
    let last = query(tables, "select number, hash from audit order by number desc limit 1", &[]).await?;
    let (number, before): (i64, String) = last.first().map(|row| (row.get(0), row.get(1))).unwrap_or_default();
    let entry = crate::chain::entry(&before, codes::unsigned(number) + 1, now_ms, who, what, text);
    let sql = "insert into audit (number, at_ms, who, what, text, hash) values ($1, $2, $3, $4, $5, $6)";
    let number = number + 1;
    execute(tables, sql, &[&number, &entry.at_ms, &entry.who, &entry.what, &entry.text, &entry.hash]).await?;
    Ok(entry)
}

pub(super) async fn audits(on: &impl GenericClient, before: Option<u64>, limit: usize) -> Work<Vec<Audit>> {
    let sql = "select number, at_ms, who, what, text, hash from audit where number < $1 order by number desc limit $2";
    let before = before.map_or(i64::MAX, codes::signed);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let read = |row: &Row| Audit {
        number: codes::unsigned(row.get(0)),
        at_ms: row.get(1),
        who: row.get(2),
        what: row.get(3),
        text: row.get(4),
        hash: row.get(5),
    };
    Ok(query(on, sql, &[&before, &limit]).await?.iter().map(read).collect())
}

pub(super) async fn refuse(
    tables: &Transaction<'_>,
    subject: &str,
    payload: &[u8],
    why: &str,
    now_ms: i64,
) -> Work<()> {
    let sql = "insert into refused (at_ms, subject, payload, why) values ($1, $2, $3, $4) returning id";
    let rows = query(tables, sql, &[&now_ms, &subject, &payload, &why]).await?;
    let id: i64 = rows.first().ok_or(Error::NotFound)?.get(0);
    execute(tables, "delete from refused where id <= $1", &[&(id - REFUSED)]).await?;
    Ok(())
}
