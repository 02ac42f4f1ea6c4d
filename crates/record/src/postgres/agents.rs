//! Tokens and agents.

use std::collections::BTreeSet;

use deadpool_postgres::{GenericClient, Transaction};
use narrows_fleet::keys::Name;
use narrows_fleet::message::Status;
use tokio_postgres::Row;

use super::connect::{Work, execute, query};
use super::migrate::{Alone, alone};
use crate::codes;
use crate::error::{Error, Result};
use crate::fit::to_json;
use crate::record::free_name;
use crate::rows::{Agent, AgentState, NewAgent, Token};

pub(super) async fn add_token(on: &impl GenericClient, token: &Token) -> Work<()> {
    let sql = "insert into token (hash, made_ms, not_after_ms, uses) values ($1, $2, $3, $4)";
    let hash = &token.hash[..];
    execute(on, sql, &[&hash, &token.made_ms, &token.not_after_ms, &i64::from(token.uses)]).await?;
    Ok(())
}

pub(super) async fn join(tables: &Transaction<'_>, hash: &[u8; 32], agent: &NewAgent, now_ms: i64) -> Work<Agent> {
    // Of two that want one name, the second sees the first.
    alone(tables, Alone::Join).await?;
    let sql = "update token set uses = uses - 1 where hash = $1 and uses > 0 and not_after_ms > $2";
    if execute(tables, sql, &[&&hash[..], &now_ms]).await? == 0 {
        return Err(Error::Token.into());
    }
    let (labels, member) = (to_json(&agent.labels), codes::of_state(AgentState::Member));
    let sql = "update agent set labels = $2, address = $3 where public_key = $1 and state = $4 returning name";
    let again = query(tables, sql, &[&agent.public_key, &labels, &agent.address, &member]).await?;
    let name = if let Some(row) = again.first() {
        row.get(0)
    } else {
        // The others matter only where somebody has it: most of ten thousand joins read none.
        let sql = "select name from agent where exists (select from agent where name = $1)";
        let taken = query(tables, sql, &[&agent.name.as_str()]).await?;
        let taken: BTreeSet<String> = taken.iter().map(|row| row.get(0)).collect();
        let name = free_name(&agent.name, &taken);
        let sql = "insert into agent (name, public_key, labels, address, joined_ms, state, stored)
            values ($1, $2, $3, $4, $5, $6, '{}')";
        execute(tables, sql, &[&name, &agent.public_key, &labels, &agent.address, &now_ms, &member]).await?;
        name
    };
    let rows = query(tables, &format!("{AGENT} where name = $1"), &[&name]).await?;
    Ok(read(rows.first().ok_or(Error::NotFound)?)?)
}

pub(super) async fn all(on: &impl GenericClient) -> Work<Vec<Agent>> {
    // By octets, whatever language the database is for.
    let rows = query(on, &format!("{AGENT} order by name collate \"C\""), &[]).await?;
    Ok(rows.iter().map(read).collect::<Result<_>>()?)
}

pub(super) async fn set_state(on: &impl GenericClient, agent: &Name, state: AgentState) -> Work<()> {
    let sql = "update agent set state = $2 where name = $1";
    one(execute(on, sql, &[&agent.as_str(), &codes::of_state(state)]).await?)
}

pub(super) async fn heard(on: &impl GenericClient, status: &Status, now_ms: i64) -> Work<()> {
    // Of 10 000 agents 333 come a second, and the next one of each half a minute later: no commit
    // of them waits for the disk.
    let sql = "update agent set heard_ms = $2, status = $3
        where name = $1 and set_config('synchronous_commit', 'off', true) = 'off'";
    one(execute(on, sql, &[&status.agent.as_str(), &now_ms, &to_json(status)]).await?)
}

fn one(changed: u64) -> Work<()> {
    if changed == 0 { Err(Error::NotFound.into()) } else { Ok(()) }
}

const AGENT: &str =
    "select name, public_key, labels, address, joined_ms, state, heard_ms, status, stored::text from agent";

fn read(row: &Row) -> Result<Agent> {
    Ok(Agent {
        name: codes::name(row.get(0))?,
        public_key: row.get(1),
        labels: codes::json(row.get(2))?,
        address: row.get(3),
        joined_ms: row.get(4),
        state: codes::state(row.get(5))?,
        heard_ms: row.get(6),
        // One that an older program wrote may lack what this one wants: then it is not known.
        status: row.get::<_, Option<&str>>(7).and_then(|text| serde_json::from_str(text).ok()),
        stored: codes::stored(row.get(8))?,
    })
}
