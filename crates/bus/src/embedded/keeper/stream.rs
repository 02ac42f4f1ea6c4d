//! The stream of results, and who takes from it.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{Now, Work};
use crate::embedded::frame::{Answer, Kept};
use crate::embedded::limits::BATCH_OCTETS;
use crate::error::Error;
use crate::settings::{STREAM, Settings};
use crate::subject::covers;

/// What a restart may forget: how much is kept, and what is with the sinks.
pub(super) struct StreamState {
    octets: u64,
    sinks: BTreeMap<String, Sink>,
}

#[derive(Default)]
struct Sink {
    /// The last number that was delivered.
    cursor: u64,
    /// Delivered and not acknowledged.
    pending: BTreeMap<u64, Pending>,
}

struct Pending {
    /// When it is delivered again.
    due: Duration,
    attempt: u64,
}

impl StreamState {
    pub(super) fn load(connection: &Connection) -> Work<Self> {
        let octets = connection.query_row("select coalesce(sum(octets), 0) from kept", [], |row| row.get(0))?;
        Ok(Self { octets, sinks: BTreeMap::new() })
    }

    pub(super) fn publish(
        &mut self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        now: Now,
        subject: &str,
        id: &str,
        payload: &[u8],
    ) -> Work<Answer> {
        if !covers(&settings.stream.subjects, subject) {
            return Err(Error::Missing(format!("stream for {subject}")).into());
        }
        let since = now.wall - millis(settings.stream.duplicate_window);
        let known = transaction
            .prepare_cached("select sequence from recent where id = ?1 and at > ?2")?
            .query_row(params![id, since], |row| row.get(0))
            .optional()?;
        if let Some(sequence) = known {
            return Ok(Answer::Kept { sequence, duplicate: true });
        }
        let octets = u64::try_from(subject.len() + id.len() + payload.len()).unwrap_or(u64::MAX);
        if self.octets.saturating_add(octets) > settings.stream.max_octets {
            self.sweep(transaction, settings, now)?;
        }
        if self.octets.saturating_add(octets) > settings.stream.max_octets {
            return Err(Error::Full(STREAM.to_owned()).into());
        }
        let sequence: u64 = transaction
            .prepare_cached(
                "insert into kept (at, octets, subject, id, payload) values (?1, ?2, ?3, ?4, ?5) returning sequence",
            )?
            .query_row(params![now.wall, octets, subject, id, payload], |row| row.get(0))?;
        transaction
            .prepare_cached("insert or replace into recent (id, sequence, at) values (?1, ?2, ?3)")?
            .execute(params![id, sequence, now.wall])?;
        for sink in &settings.sinks.names {
            transaction
                .prepare_cached("insert into waiting (sink, sequence) values (?1, ?2)")?
                .execute(params![sink, sequence])?;
        }
        self.octets += octets;
        Ok(Answer::Kept { sequence, duplicate: false })
    }

    /// What is due again first, then what is new.
    pub(super) fn fetch(
        &mut self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        now: Now,
        name: &str,
        most: u32,
    ) -> Work<Answer> {
        let state = sink(&mut self.sinks, settings, name)?;
        let (mut batch, mut octets) = (Vec::new(), 0);
        let full = |batch: &Vec<Kept>, octets: u64| batch.len() >= most as usize || octets >= BATCH_OCTETS as u64;
        let due: Vec<u64> =
            state.pending.iter().filter(|(_, one)| one.due <= now.running).map(|(sequence, _)| *sequence).collect();
        let sql = "select sequence, octets, subject, id, payload from kept where sequence = ?1";
        for sequence in due {
            if full(&batch, octets) {
                break;
            }
            let found = transaction.prepare_cached(sql)?.query_row([sequence], kept).optional()?;
            match (found, state.pending.get_mut(&sequence)) {
                (Some((one, size)), Some(pending)) => {
                    *pending = Pending { due: now.running + settings.sinks.ack_wait, attempt: pending.attempt + 1 };
                    octets += size;
                    batch.push(Kept { attempt: pending.attempt, ..one });
                }
                // It was too old to be kept.
                _ => drop(state.pending.remove(&sequence)),
            }
        }
        let sql = "select k.sequence, octets, subject, id, payload from waiting w join kept k using (sequence)
            where sink = ?1 and w.sequence > ?2 order by w.sequence";
        let mut read = transaction.prepare_cached(sql)?;
        let mut rows = read.query(params![name, state.cursor])?;
        while !full(&batch, octets) && state.pending.len() < settings.sinks.max_pending as usize {
            let Some(row) = rows.next()? else { break };
            let (one, size) = kept(row)?;
            state.cursor = one.sequence;
            state.pending.insert(one.sequence, Pending { due: now.running + settings.sinks.ack_wait, attempt: 1 });
            octets += size;
            batch.push(one);
        }
        Ok(Answer::Batch(batch))
    }

    pub(super) fn ack(
        &mut self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        name: &str,
        sequences: &[u64],
    ) -> Work<Answer> {
        let state = sink(&mut self.sinks, settings, name)?;
        let mut delete = transaction.prepare_cached("delete from waiting where sink = ?1 and sequence = ?2")?;
        for sequence in sequences {
            delete.execute(params![name, sequence])?;
            state.pending.remove(sequence);
        }
        Ok(Answer::Done)
    }

    /// Deletes what is too old.
    pub(super) fn sweep(&mut self, transaction: &Transaction<'_>, settings: &Settings, now: Now) -> Work<()> {
        let old = now.wall - millis(settings.stream.max_age);
        transaction
            .execute("delete from waiting where sequence in (select sequence from kept where at <= ?1)", [old])?;
        if transaction.execute("delete from kept where at <= ?1", [old])? > 0 {
            self.octets = transaction.query_row("select coalesce(sum(octets), 0) from kept", [], |row| row.get(0))?;
        }
        let outside = now.wall - millis(settings.stream.duplicate_window);
        transaction.execute("delete from recent where at <= ?1", [outside])?;
        Ok(())
    }
}

fn sink<'a>(sinks: &'a mut BTreeMap<String, Sink>, settings: &Settings, name: &str) -> Result<&'a mut Sink, Error> {
    if settings.sinks.names.iter().any(|known| known == name) {
        return Ok(sinks.entry(name.to_owned()).or_default());
    }
    Err(Error::Missing(format!("{STREAM}/{name}")))
}

fn kept(row: &Row<'_>) -> rusqlite::Result<(Kept, u64)> {
    let one = Kept { sequence: row.get(0)?, attempt: 1, subject: row.get(2)?, id: row.get(3)?, payload: row.get(4)? };
    Ok((one, row.get(1)?))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
