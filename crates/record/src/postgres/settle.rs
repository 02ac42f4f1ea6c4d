//! What ended runs leave of their spans: two statements for all of a batch.

use deadpool_postgres::Transaction;
use narrows_fleet::keys::Key;
use uuid::Uuid;

use super::connect::{Work, execute};
use crate::codes;
use crate::fit::clean;
use crate::rows::{EndedRun, OrderState};

pub(super) async fn settle(tables: &Transaction<'_>, ended: &[EndedRun]) -> Work<()> {
    orders(tables, ended).await?;
    spans(tables, ended).await
}

/// What became of orders, as `orders::set` has it.
async fn orders(tables: &Transaction<'_>, ended: &[EndedRun]) -> Work<()> {
    let mut all: Vec<(&EndedRun, &Uuid, &OrderState)> =
        ended.iter().filter_map(|one| one.order.as_ref().map(|(id, state)| (one, id, state))).collect();
    if all.is_empty() {
        return Ok(());
    }
    // Two hubs that settle the same orders take their rows in one order.
    all.sort_by_key(|(_, id, _)| **id);
    let sql = "update given_order set state = ended.state, run = coalesce(ended.run, given_order.run),
            said = coalesce(ended.said, given_order.said)
        from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[]) as ended (id, agent, state, run, said)
        where given_order.id = ended.id and given_order.agent = ended.agent
            and (given_order.run is null or given_order.run = ended.run)";
    let ids: Vec<Uuid> = all.iter().map(|(_, id, _)| **id).collect();
    let agents: Vec<&str> = all.iter().map(|(one, ..)| one.agent.as_str()).collect();
    let states: Vec<&str> = all.iter().map(|(.., state)| &*state.state).collect();
    let runs: Vec<Option<Uuid>> = all.iter().map(|(.., state)| state.run).collect();
    let said: Vec<Option<String>> = all.iter().map(|(.., state)| state.said.as_deref().map(clean)).collect();
    execute(tables, sql, &[&ids, &agents, &states, &runs, &said]).await?;
    Ok(())
}

/// An entry of the timetable is found by its host's span: all that an agent runs has its host, and
/// nothing else has it meanwhile.
async fn spans(tables: &Transaction<'_>, ended: &[EndedRun]) -> Work<()> {
    let sql = "with ended as (
            select agent, ended_ms, octets, coalesce(run, (
                select run from reservation
                where reservation.key = ended.key and reservation.agent = ended.agent and not by_hand
                    and begin_ms <= ended.began_ms and end_ms >= ended.began_ms
                order by begin_ms desc limit 1)) as run
            from unnest($1::text[], $2::text[], $3::uuid[], $4::int8[], $5::int8[], $6::int8[])
                as ended (key, agent, run, began_ms, ended_ms, octets))
        update reservation
        set end_ms = least(reservation.end_ms, greatest(ended.ended_ms, reservation.begin_ms + 1)),
            octets = least(reservation.octets, coalesce(ended.octets, reservation.octets))
        from ended where reservation.run = ended.run and reservation.agent = ended.agent";
    let keys: Vec<String> = ended.iter().map(|one| Key::Host(one.agent.clone()).to_string()).collect();
    let agents: Vec<&str> = ended.iter().map(|one| one.agent.as_str()).collect();
    let orders: Vec<Option<Uuid>> = ended.iter().map(|one| one.order.as_ref().map(|(id, _)| *id)).collect();
    let began: Vec<i64> = ended.iter().map(|one| one.began_ms).collect();
    let times: Vec<i64> = ended.iter().map(|one| one.ended_ms).collect();
    let octets: Vec<Option<i64>> = ended.iter().map(|one| one.octets.map(codes::signed)).collect();
    execute(tables, sql, &[&keys, &agents, &orders, &began, &times, &octets]).await?;
    Ok(())
}
