//! Proofs by load.

use rusqlite::{Row, Transaction, params};

use crate::codes;
use crate::error::{Error, Result};
use crate::fit::to_json;
use crate::record::in_the_way;
use crate::rows::KeptProof;

pub(super) fn begin(tables: &Transaction<'_>, proof: &KeptProof) -> Result<()> {
    if let Some(other) = in_the_way(proof, all(tables)?) {
        return Err(Error::Proving(other));
    }
    let sql = "insert or replace into proof (bottleneck, running, keys, at_ms, doc) values (?1, ?2, ?3, ?4, ?5)";
    let KeptProof { bottleneck, running, keys, at_ms, doc } = proof;
    tables.prepare_cached(sql)?.execute(params![bottleneck, running, to_json(keys), at_ms, doc])?;
    Ok(())
}

pub(super) fn set(tables: &Transaction<'_>, proof: &KeptProof) -> Result<bool> {
    let sql = "update proof set running = ?2, at_ms = ?3, doc = ?4 where bottleneck = ?1 and running";
    let KeptProof { bottleneck, running, at_ms, doc, .. } = proof;
    Ok(tables.prepare_cached(sql)?.execute(params![bottleneck, running, at_ms, doc])? > 0)
}

pub(super) fn all(tables: &Transaction<'_>) -> Result<Vec<KeptProof>> {
    let sql = "select bottleneck, running, keys, at_ms, doc from proof order by bottleneck";
    tables.prepare_cached(sql)?.query_and_then([], read)?.collect()
}

fn read(row: &Row<'_>) -> Result<KeptProof> {
    Ok(KeptProof {
        bottleneck: row.get(0)?,
        running: row.get(1)?,
        keys: codes::json(&row.get::<_, String>(2)?)?,
        at_ms: row.get(3)?,
        doc: row.get(4)?,
    })
}
