//! States of alerts, silences, and notices on their way.

use deadpool_postgres::{GenericClient, Transaction};
use narrows_fleet::alert::{Saved, Silence};
use narrows_fleet::keys::Name;
use tokio_postgres::Row;

use super::connect::{Work, execute, query};
use crate::codes;
use crate::error::{Error, Result};
use crate::rows::{NewNotice, WaitingNotice};

pub(super) async fn keep(tables: &Transaction<'_>, states: &[Saved], notices: &[NewNotice]) -> Work<()> {
    let gone: Vec<&str> = states.iter().filter(|(_, doc)| doc.is_none()).map(|(key, _)| key.as_str()).collect();
    execute(tables, "delete from alert_state where key = any($1)", &[&gone]).await?;
    let kept = states.iter().filter_map(|(key, doc)| Some((key.as_str(), doc.as_deref()?)));
    let (keys, docs): (Vec<&str>, Vec<&str>) = kept.unzip();
    let sql = "insert into alert_state (key, doc) select * from unnest($1::text[], $2::text[])
        on conflict (key) do update set doc = excluded.doc";
    execute(tables, sql, &[&keys, &docs]).await?;
    for notice in notices {
        let sql = "insert into notice (channel, body, made_ms, due_ms, tries) values ($1, $2, $3, $3, 0)";
        execute(tables, sql, &[&notice.channel, &notice.body, &notice.made_ms]).await?;
    }
    Ok(())
}

pub(super) async fn states(on: &impl GenericClient) -> Work<Vec<(String, String)>> {
    let rows = query(on, "select key, doc from alert_state order by key collate \"C\"", &[]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

pub(super) async fn due(on: &impl GenericClient, now_ms: i64) -> Work<Vec<WaitingNotice>> {
    let sql = "select id, channel, body, made_ms, due_ms, tries from notice where due_ms <= $1 order by id";
    let read = |row: &Row| WaitingNotice {
        id: row.get(0),
        channel: row.get(1),
        body: row.get(2),
        made_ms: row.get(3),
        due_ms: row.get(4),
        tries: u32::try_from(row.get::<_, i64>(5)).unwrap_or(u32::MAX),
    };
    Ok(query(on, sql, &[&now_ms]).await?.iter().map(read).collect())
}

pub(super) async fn retry(on: &impl GenericClient, id: i64, due_ms: i64) -> Work<()> {
    execute(on, "update notice set due_ms = $2, tries = tries + 1 where id = $1", &[&id, &due_ms]).await?;
    Ok(())
}

pub(super) async fn done(on: &impl GenericClient, id: i64) -> Work<()> {
    execute(on, "delete from notice where id = $1", &[&id]).await?;
    Ok(())
}

pub(super) async fn add_silence(on: &impl GenericClient, silence: &Silence) -> Work<u64> {
    let Silence { rule, source, target, link, begins_ms, ends_ms, who, reason, .. } = silence;
    let [source, target] = [source, target].map(|host| host.as_ref().map(Name::as_str));
    let sql = "insert into silence (begins_ms, ends_ms, rule, source, target, link, who, reason)
        values ($1, $2, $3, $4, $5, $6, $7, $8) returning id";
    let rows = query(on, sql, &[begins_ms, ends_ms, rule, &source, &target, link, who, reason]).await?;
    Ok(codes::unsigned(rows.first().ok_or(Error::NotFound)?.get(0)))
}

pub(super) async fn end_silence(on: &impl GenericClient, id: u64, now_ms: i64) -> Work<()> {
    let sql = "update silence set ends_ms = $2 where id = $1 and ends_ms > $2";
    let changed = execute(on, sql, &[&codes::signed(id), &now_ms]).await?;
    if changed > 0 { Ok(()) } else { Err(Error::NotFound.into()) }
}

pub(super) async fn silences(on: &impl GenericClient, from_ms: i64) -> Work<Vec<Silence>> {
    let sql = "select id, begins_ms, ends_ms, rule, source, target, link, who, reason from silence
        where ends_ms > $1 order by id";
    let read = |row: &Row| {
        let name = |text: Option<&str>| text.map(codes::name).transpose();
        Ok(Silence {
            id: codes::unsigned(row.get(0)),
            begins_ms: row.get(1),
            ends_ms: row.get(2),
            rule: row.get(3),
            source: name(row.get(4))?,
            target: name(row.get(5))?,
            link: row.get(6),
            who: row.get(7),
            reason: row.get(8),
        })
    };
    Ok(query(on, sql, &[&from_ms]).await?.iter().map(read).collect::<Result<_>>()?)
}
