//! Proofs by load.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;

use super::connect::{Work, execute, query};
use super::migrate::{Alone, alone};
use crate::codes;
use crate::error::{Error, Result};
use crate::fit::to_json;
use crate::record::in_the_way;
use crate::rows::KeptProof;

pub(super) async fn begin(tables: &Transaction<'_>, proof: &KeptProof) -> Work<()> {
    // Of two hubs that begin one at a time, the second sees what the first has.
    alone(tables, Alone::Reserve).await?;
    if let Some(other) = in_the_way(proof, all(tables).await?) {
        return Err(Error::Proving(other).into());
    }
    let sql = "insert into proof (bottleneck, running, keys, at_ms, doc) values ($1, $2, $3, $4, $5)
        on conflict (bottleneck) do update set running = excluded.running, keys = excluded.keys,
            at_ms = excluded.at_ms, doc = excluded.doc";
    let KeptProof { bottleneck, running, keys, at_ms, doc } = proof;
    execute(tables, sql, &[bottleneck, running, &to_json(keys), at_ms, doc]).await?;
    Ok(())
}

pub(super) async fn set(on: &impl GenericClient, proof: &KeptProof) -> Work<bool> {
    let sql = "update proof set running = $2, at_ms = $3, doc = $4 where bottleneck = $1 and running";
    let KeptProof { bottleneck, running, at_ms, doc, .. } = proof;
    Ok(execute(on, sql, &[bottleneck, running, at_ms, doc]).await? > 0)
}

pub(super) async fn all(on: &impl GenericClient) -> Work<Vec<KeptProof>> {
    let sql = "select bottleneck, running, keys, at_ms, doc from proof order by bottleneck collate \"C\"";
    Ok(query(on, sql, &[]).await?.iter().map(read).collect::<Result<_>>()?)
}

fn read(row: &Row) -> Result<KeptProof> {
    Ok(KeptProof {
        bottleneck: row.get(0),
        running: row.get(1),
        keys: codes::json(row.get(2))?,
        at_ms: row.get(3),
        doc: row.get(4),
    })
}
