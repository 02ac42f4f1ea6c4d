//! Orders by hand.

use deadpool_postgres::{GenericClient, Transaction};
use narrows_fleet::keys::Name;
use tokio_postgres::Row;
use uuid::Uuid;

use super::connect::{Work, execute, query};
use super::plans;
use crate::codes;
use crate::error::Result;
use crate::fit::clean;
use crate::record::GIVEN;
use crate::rows::{GivenOrder, OrderState, Reservation};

pub(super) async fn give(
    tables: &Transaction<'_>,
    order: &GivenOrder,
    spans: &[Reservation],
    (who, text): (&str, &str),
    now_ms: i64,
) -> Work<()> {
    plans::reserve(tables, spans).await?;
    let GivenOrder { id, agent, doc, note, not_after_ms, state: OrderState { state, run, said } } = order;
    let sql = "insert into given_order (id, agent, doc, note, not_after_ms, state, run, said)
        values ($1, $2, $3, $4, $5, $6, $7, $8)";
    execute(tables, sql, &[id, &agent.as_str(), doc, note, not_after_ms, state, run, said]).await?;
    plans::audit(tables, who, GIVEN, text, now_ms).await?;
    Ok(())
}

pub(super) async fn set(on: &impl GenericClient, id: Uuid, agent: &Name, state: &OrderState) -> Work<()> {
    let sql = "update given_order set state = $3, run = coalesce($4, run), said = coalesce($5, said)
        where id = $1 and agent = $2 and (run is null or run = $4)";
    let OrderState { state, run, said } = state;
    execute(on, sql, &[&id, &agent.as_str(), state, run, &said.as_deref().map(clean)]).await?;
    Ok(())
}

pub(super) async fn newest(on: &impl GenericClient, limit: usize) -> Work<Vec<GivenOrder>> {
    let sql = "select id, agent, doc, note, not_after_ms, state, run, said from given_order order by id desc limit $1";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = query(on, sql, &[&limit]).await?;
    Ok(rows.iter().rev().map(read).collect::<Result<_>>()?)
}

fn read(row: &Row) -> Result<GivenOrder> {
    Ok(GivenOrder {
        id: row.get(0),
        agent: codes::name(row.get(1))?,
        doc: row.get(2),
        note: row.get(3),
        not_after_ms: row.get(4),
        state: OrderState { state: row.get(5), run: row.get(6), said: row.get(7) },
    })
}
