//! Results that were measured elsewhere, or before anyone watched.

use std::path::Path;

use narrows_watch::schedule::{JobKind, TargetId, Why};
use narrows_watch::{Signal, WallTime};
use rusqlite::{OptionalExtension, TransactionBehavior};
use serde_json::Value;
use uuid::Uuid;

use crate::connection::connect;
use crate::error::{Error, Result};
use crate::migrate::{STEPS, migrate};
use crate::records::{Basis, Figure, Run, RunOutcome, Sample};
use crate::rows::{Row, RowWriter, figures, run};

/// A stored document with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// The document's text: the run's number is made of it (UUID version 5), so twice is once.
    pub text: String,
    /// The same, read.
    pub document: Value,
    /// Under which name its target is followed, and which host it is where it is not yet.
    pub target: String,
    /// When it was measured.
    pub began: WallTime,
    /// Octets that left.
    pub octets: Option<u64>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Those that signals have.
    pub samples: Vec<(Signal, Sample)>,
}

/// Adds documents, also while another process watches. Says how many were new.
pub fn import(path: &Path, all: &[Import]) -> Result<usize> {
    let mut connection = connect(path)?;
    migrate(&mut connection, path, STEPS)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut rows = RowWriter::default();
    let mut added = 0;
    for one in all {
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, one.text.as_bytes());
        let known =
            transaction.query_row("select 1 from run where id = ?1", [id.into_bytes()], |_| Ok(())).optional()?;
        if known.is_some() {
            continue;
        }
        let target =
            match transaction.query_row("select id from target where name = ?1", [&one.target], |row| row.get(0)) {
                Err(rusqlite::Error::QueryReturnedNoRows) => {
                    // It has results, and nobody follows it.
                    let sql = "insert into target (name, host, added, retired) values (?1, ?1, ?2, ?2) returning id";
                    let values = rusqlite::params![one.target, one.began.millis()];
                    transaction.query_row(sql, values, |row| row.get(0)).map_err(Error::from)?
                }
                found => found?,
            };
        let target = TargetId::new(target);
        let imported = Run {
            id,
            target,
            kind: JobKind::Test,
            why: Why::Cadence,
            began: one.began,
            ended: None,
            outcome: RunOutcome::Done,
            reason: None,
            octets: one.octets,
            document: Some(one.document.clone()),
        };
        run(&transaction, &imported)?;
        figures(&transaction, id, &one.figures)?;
        for (signal, sample) in &one.samples {
            let sample = Sample { run: Some(id), ..*sample };
            rows.write(&transaction, &Row::Sample(target, *signal, Basis::Server, sample))?;
        }
        added += 1;
    }
    rows.finish(&transaction)?;
    transaction.commit()?;
    Ok(added)
}
