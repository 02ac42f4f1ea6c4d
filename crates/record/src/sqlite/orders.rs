//! Orders by hand.

use narrows_fleet::keys::Name;
use rusqlite::{Row, Transaction, params};
use uuid::Uuid;

use super::plans;
use crate::codes;
use crate::error::Result;
use crate::fit::clean;
use crate::record::GIVEN;
use crate::rows::{GivenOrder, OrderState, Reservation};

pub(super) fn give(
    tables: &Transaction<'_>,
    order: &GivenOrder,
    spans: &[Reservation],
    (who, text): (&str, &str),
    now_ms: i64,
) -> Result<()> {
    plans::reserve(tables, spans)?;
    let GivenOrder { id, agent, doc, note, not_after_ms, state: OrderState { state, run, said } } = order;
    let sql = "insert into given_order (id, agent, doc, note, not_after_ms, state, run, said)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let run = run.as_ref().map(Uuid::as_bytes);
    let row = params![id.as_bytes(), agent.as_str(), doc, note, not_after_ms, state, run, said];
    tables.prepare_cached(sql)?.execute(row)?;
    plans::audit(tables, who, GIVEN, text, now_ms)?;
    Ok(())
}

pub(super) fn set(tables: &Transaction<'_>, id: Uuid, agent: &Name, state: &OrderState) -> Result<()> {
    let sql = "update given_order set state = ?3, run = coalesce(?4, run), said = coalesce(?5, said)
        where id = ?1 and agent = ?2 and (run is null or run = ?4)";
    let OrderState { state, run, said } = state;
    let (run, said) = (run.as_ref().map(Uuid::as_bytes), said.as_deref().map(clean));
    tables.prepare_cached(sql)?.execute(params![id.as_bytes(), agent.as_str(), state, run, said])?;
    Ok(())
}

pub(super) fn newest(tables: &Transaction<'_>, limit: usize) -> Result<Vec<GivenOrder>> {
    let sql = "select id, agent, doc, note, not_after_ms, state, run, said from given_order order by id desc limit ?1";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut orders: Vec<GivenOrder> =
        tables.prepare_cached(sql)?.query_and_then([limit], read)?.collect::<Result<_>>()?;
    orders.reverse();
    Ok(orders)
}

fn read(row: &Row<'_>) -> Result<GivenOrder> {
    Ok(GivenOrder {
        id: Uuid::from_bytes(row.get(0)?),
        agent: codes::name(&row.get::<_, String>(1)?)?,
        doc: row.get(2)?,
        note: row.get(3)?,
        not_after_ms: row.get(4)?,
        state: OrderState {
            state: row.get(5)?,
            run: row.get::<_, Option<[u8; 16]>>(6)?.map(Uuid::from_bytes),
            said: row.get(7)?,
        },
    })
}
