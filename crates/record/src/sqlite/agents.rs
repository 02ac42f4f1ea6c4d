//! Tokens and agents.

use std::collections::BTreeSet;

use narrows_fleet::keys::Name;
use narrows_fleet::message::Stored;
use rusqlite::{Row, Transaction, params};

use crate::codes;
use crate::error::{Error, Result};
use crate::fit::to_json;
use crate::record::free_name;
use crate::rows::{Agent, AgentState, NewAgent, Token};

pub(super) fn add_token(tables: &Transaction<'_>, token: &Token) -> Result<()> {
    tables.execute(
        "insert into token (hash, made_ms, not_after_ms, uses) values (?1, ?2, ?3, ?4)",
        params![token.hash, token.made_ms, token.not_after_ms, token.uses],
    )?;
    Ok(())
}

pub(super) fn join(tables: &Transaction<'_>, hash: &[u8; 32], agent: &NewAgent, now_ms: i64) -> Result<Agent> {
    let used = tables.execute(
        "update token set uses = uses - 1 where hash = ?1 and uses > 0 and not_after_ms > ?2",
        params![hash, now_ms],
    )?;
    if used == 0 {
        return Err(Error::Token);
    }
    let labels = to_json(&agent.labels);
    let again: rusqlite::Result<String> = tables.query_row(
        "update agent set labels = ?2, address = ?3 where public_key = ?1 and state = ?4 returning name",
        params![agent.public_key, labels, agent.address, codes::of_state(AgentState::Member)],
        |row| row.get(0),
    );
    let name = match again.map_err(Error::from) {
        Err(Error::NotFound) => insert(tables, agent, &labels, now_ms)?,
        other => other?,
    };
    tables.prepare_cached(&format!("{AGENT} where name = ?1"))?.query_row([name], |row| Ok(read(row)))?
}

fn insert(tables: &Transaction<'_>, agent: &NewAgent, labels: &str, now_ms: i64) -> Result<String> {
    let taken = tables
        .prepare("select name from agent where exists (select 1 from agent where name = ?1)")?
        .query_map([agent.name.as_str()], |row| row.get(0))?
        .collect::<rusqlite::Result<BTreeSet<String>>>()?;
    let name = free_name(&agent.name, &taken);
    tables.execute(
        "insert into agent (name, public_key, labels, address, joined_ms, state, stored)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            name,
            agent.public_key,
            labels,
            agent.address,
            now_ms,
            codes::of_state(AgentState::Member),
            codes::of_stored(&Stored::default()),
        ],
    )?;
    Ok(name)
}

pub(super) fn all(tables: &Transaction<'_>) -> Result<Vec<Agent>> {
    tables.prepare_cached(&format!("{AGENT} order by name"))?.query_and_then([], read)?.collect()
}

pub(super) fn set_state(tables: &Transaction<'_>, agent: &Name, state: AgentState) -> Result<()> {
    let change = "update agent set state = ?2 where name = ?1";
    one(tables.execute(change, params![agent.as_str(), codes::of_state(state)])?)
}

pub(super) fn heard(tables: &Transaction<'_>, agent: &Name, status: &str, now_ms: i64) -> Result<()> {
    let change = "update agent set heard_ms = ?2, status = ?3 where name = ?1";
    one(tables.prepare_cached(change)?.execute(params![agent.as_str(), now_ms, status])?)
}

fn one(changed: usize) -> Result<()> {
    if changed == 0 { Err(Error::NotFound) } else { Ok(()) }
}

const AGENT: &str = "select name, public_key, labels, address, joined_ms, state, heard_ms, status, stored from agent";

fn read(row: &Row<'_>) -> Result<Agent> {
    Ok(Agent {
        name: codes::name(&row.get::<_, String>(0)?)?,
        public_key: row.get(1)?,
        labels: codes::json(&row.get::<_, String>(2)?)?,
        address: row.get(3)?,
        joined_ms: row.get(4)?,
        state: codes::state(row.get(5)?)?,
        heard_ms: row.get(6)?,
        // One that an older program wrote may lack what this one wants: then it is not known.
        status: row.get::<_, Option<String>>(7)?.and_then(|text| serde_json::from_str(&text).ok()),
        stored: codes::stored(&row.get::<_, String>(8)?)?,
    })
}
