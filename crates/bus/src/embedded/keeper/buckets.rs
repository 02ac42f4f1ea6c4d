//! Keyed values with revisions.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{Work, Written};
use crate::embedded::frame::Answer;
use crate::error::Error;
use crate::settings::{Bucket, Settings};

/// Of each bucket, the last revision and the octets.
pub(super) struct Buckets {
    of: BTreeMap<String, (u64, u64)>,
}

impl Buckets {
    pub(super) fn load(connection: &Connection) -> Work<Self> {
        // The last write of a bucket is never deleted, so that no revision is given twice.
        let sql = "select bucket, max(revision), sum(length(key) + length(value)) from entry group by bucket";
        let mut read = connection.prepare(sql)?;
        let rows = read.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        Ok(Self { of: rows.collect::<rusqlite::Result<_>>()? })
    }

    pub(super) fn read(transaction: &Transaction<'_>, settings: &Settings, bucket: &str, key: &str) -> Work<Answer> {
        find(settings, bucket)?;
        let entry = transaction
            .prepare_cached(
                "select revision, value from entry where bucket = ?1 and key = ?2 order by revision desc limit 1",
            )?
            .query_row([bucket, key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(Answer::Entry(entry))
    }

    pub(super) fn write(
        &mut self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        (bucket, key): (&str, &str),
        value: Vec<u8>,
        expected: u64,
        sent: &mut Vec<Written>,
    ) -> Work<Answer> {
        let bucket = find(settings, bucket)?;
        let last: u64 = transaction
            .prepare_cached("select coalesce(max(revision), 0) from entry where bucket = ?1 and key = ?2")?
            .query_row([&bucket.name, key], |row| row.get(0))?;
        if last != expected {
            return Err(Error::Conflict(format!("{}/{key}", bucket.name)).into());
        }
        let (newest, octets) = self.of.entry(bucket.name.clone()).or_default();
        let more = u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX);
        let (freed, oldest) = outdated(transaction, bucket, key)?;
        let total = octets.saturating_sub(freed).saturating_add(more);
        if total > bucket.max_octets {
            return Err(Error::Full(bucket.name.clone()).into());
        }
        let revision = *newest + 1;
        transaction
            .prepare_cached("insert into entry (bucket, key, revision, value) values (?1, ?2, ?3, ?4)")?
            .execute(params![bucket.name, key, revision, value])?;
        transaction
            .prepare_cached("delete from entry where bucket = ?1 and key = ?2 and revision <= ?3")?
            .execute(params![bucket.name, key, oldest])?;
        (*newest, *octets) = (revision, total);
        if let Some(to) = &bucket.republish {
            sent.push(Written { subject: format!("{to}.{key}"), value, revision });
        }
        Ok(Answer::Revision(revision))
    }
}

/// What one more value pushes out of a key's history: its octets, and the newest such revision.
fn outdated(transaction: &Transaction<'_>, bucket: &Bucket, key: &str) -> Work<(u64, u64)> {
    let stay = bucket.history.max(1) - 1;
    Ok(transaction
        .prepare_cached(
            "select coalesce(sum(length(key) + length(value)), 0), coalesce(max(revision), 0) from
             (select * from entry where bucket = ?1 and key = ?2 order by revision desc limit -1 offset ?3)",
        )?
        .query_row(params![bucket.name, key, stay], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

fn find<'a>(settings: &'a Settings, name: &str) -> Result<&'a Bucket, Error> {
    settings.buckets.iter().find(|bucket| bucket.name == name).ok_or_else(|| Error::Missing(format!("bucket {name}")))
}
