//! The tables that both databases have, and how a row of them travels: each column as text.

use std::collections::BTreeSet;

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::Result;

/// A row of a table.
pub(crate) type Row = Vec<Option<String>>;

/// How a column is written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Real,
    Bool,
    Text,
    Uuid,
    /// In hexadecimal.
    Bytes,
    /// As PostgreSQL prints a multirange.
    Ranges,
    /// Text that a database may have in a smaller form.
    Document,
}

/// A table: the first `keys` of its columns are its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) keys: usize,
    pub(crate) columns: &'static [(&'static str, Kind)],
}

/// Runs. What belongs to runs is copied with them.
pub(crate) const RUN: Table = Table {
    name: "run",
    keys: 1,
    columns: &[
        ("id", Kind::Uuid),
        ("pair", Kind::Int),
        ("seq", Kind::Int),
        ("kind", Kind::Text),
        ("origin", Kind::Int),
        ("order_id", Kind::Uuid),
        ("began_ms", Kind::Int),
        ("length_ms", Kind::Int),
        ("exit", Kind::Int),
        ("reason", Kind::Text),
        ("octets", Kind::Int),
        ("route_before", Kind::Int),
        ("route_after", Kind::Int),
        ("flags", Kind::Int),
    ],
};

/// Tables whose first column is a run.
pub(crate) const OF_RUNS: [Table; 2] = [
    Table {
        name: "value",
        keys: 2,
        columns: &[
            ("run", Kind::Uuid),
            ("number", Kind::Int),
            ("pair", Kind::Int),
            ("metric", Kind::Int),
            ("reverse", Kind::Bool),
            ("claim", Kind::Int),
            ("value", Kind::Real),
            ("low", Kind::Real),
            ("high", Kind::Real),
            ("counts", Kind::Bool),
        ],
    },
    Table { name: "evidence", keys: 1, columns: &[("run", Kind::Uuid), ("doc", Kind::Document)] },
];

/// All others.
pub(crate) const OTHERS: [Table; 21] = [
    Table {
        name: "agent",
        keys: 1,
        columns: &[
            ("name", Kind::Text),
            ("public_key", Kind::Text),
            ("labels", Kind::Text),
            ("address", Kind::Text),
            ("joined_ms", Kind::Int),
            ("state", Kind::Int),
            ("heard_ms", Kind::Int),
            ("status", Kind::Text),
            ("stored", Kind::Ranges),
        ],
    },
    Table {
        name: "token",
        keys: 1,
        columns: &[("hash", Kind::Bytes), ("made_ms", Kind::Int), ("not_after_ms", Kind::Int), ("uses", Kind::Int)],
    },
    Table { name: "pair", keys: 1, columns: &[("id", Kind::Int), ("source", Kind::Text), ("target", Kind::Text)] },
    Table { name: "route", keys: 1, columns: &[("id", Kind::Int), ("hash", Kind::Bytes), ("hops", Kind::Text)] },
    Table {
        name: "latest",
        keys: 2,
        columns: &[
            ("pair", Kind::Int),
            ("metric", Kind::Int),
            ("claim", Kind::Int),
            ("value", Kind::Real),
            ("low", Kind::Real),
            ("high", Kind::Real),
            ("at_ms", Kind::Int),
            ("run", Kind::Uuid),
            ("flags", Kind::Int),
        ],
    },
    Table {
        name: "latest_route",
        keys: 1,
        columns: &[("pair", Kind::Int), ("route", Kind::Int), ("since_ms", Kind::Int), ("seen_ms", Kind::Int)],
    },
    Table { name: "succeeded", keys: 2, columns: &[("pair", Kind::Int), ("kind", Kind::Text), ("at_ms", Kind::Int)] },
    Table {
        name: "pair_hour",
        keys: 3,
        columns: &[
            ("pair", Kind::Int),
            ("metric", Kind::Int),
            ("hour", Kind::Int),
            ("count", Kind::Int),
            ("value", Kind::Real),
            ("low", Kind::Real),
            ("high", Kind::Real),
            ("claim", Kind::Int),
        ],
    },
    Table { name: "dirty", keys: 1, columns: &[("id", Kind::Int), ("hour", Kind::Int)] },
    Table {
        name: "reservation",
        keys: 2,
        columns: &[
            ("key", Kind::Text),
            ("begin_ms", Kind::Int),
            ("end_ms", Kind::Int),
            ("run", Kind::Uuid),
            ("agent", Kind::Text),
            ("serial", Kind::Int),
            ("octets", Kind::Int),
            ("by_hand", Kind::Bool),
        ],
    },
    Table {
        name: "given_order",
        keys: 1,
        columns: &[
            ("id", Kind::Uuid),
            ("agent", Kind::Text),
            ("doc", Kind::Text),
            ("note", Kind::Text),
            ("not_after_ms", Kind::Int),
            ("state", Kind::Text),
            ("run", Kind::Uuid),
            ("said", Kind::Text),
        ],
    },
    Table {
        name: "outcome",
        keys: 2,
        columns: &[
            ("pair", Kind::Int),
            ("kind", Kind::Text),
            ("exit", Kind::Int),
            ("reason", Kind::Text),
            ("at_ms", Kind::Int),
            ("run", Kind::Uuid),
            ("failing_since_ms", Kind::Int),
        ],
    },
    Table { name: "arrival", keys: 1, columns: &[("number", Kind::Int), ("run", Kind::Uuid), ("at_ms", Kind::Int)] },
    Table {
        name: "proof",
        keys: 1,
        columns: &[
            ("bottleneck", Kind::Text),
            ("running", Kind::Bool),
            ("keys", Kind::Text),
            ("at_ms", Kind::Int),
            ("doc", Kind::Text),
        ],
    },
    Table {
        name: "delay_grouping",
        keys: 1,
        columns: &[("paths", Kind::Text), ("running", Kind::Bool), ("at_ms", Kind::Int), ("doc", Kind::Text)],
    },
    Table { name: "setting", keys: 1, columns: &[("name", Kind::Text), ("text", Kind::Text)] },
    Table { name: "counter", keys: 1, columns: &[("name", Kind::Text), ("value", Kind::Int)] },
    Table {
        name: "audit",
        keys: 1,
        columns: &[
            ("number", Kind::Int),
            ("at_ms", Kind::Int),
            ("who", Kind::Text),
            ("what", Kind::Text),
            ("text", Kind::Text),
            ("hash", Kind::Text),
        ],
    },
    Table { name: "alert_state", keys: 1, columns: &[("key", Kind::Text), ("doc", Kind::Text)] },
    Table {
        name: "silence",
        keys: 1,
        columns: &[
            ("id", Kind::Int),
            ("begins_ms", Kind::Int),
            ("ends_ms", Kind::Int),
            ("rule", Kind::Text),
            ("source", Kind::Text),
            ("target", Kind::Text),
            ("link", Kind::Text),
            ("who", Kind::Text),
            ("reason", Kind::Text),
        ],
    },
    Table {
        name: "notice",
        keys: 1,
        columns: &[
            ("id", Kind::Int),
            ("channel", Kind::Text),
            ("body", Kind::Text),
            ("made_ms", Kind::Int),
            ("due_ms", Kind::Int),
            ("tries", Kind::Int),
        ],
    },
];

/// What was refused is for people: nothing else follows from it.
pub(crate) const REFUSED: Table = Table {
    name: "refused",
    keys: 1,
    columns: &[
        ("id", Kind::Int),
        ("at_ms", Kind::Int),
        ("subject", Kind::Text),
        ("payload", Kind::Bytes),
        ("why", Kind::Text),
    ],
};

/// All tables of a record.
pub(crate) fn all() -> impl Iterator<Item = Table> {
    OTHERS.into_iter().chain([REFUSED, RUN]).chain(OF_RUNS)
}

/// The counter that a record has while it is copied into: nobody else opens it meanwhile.
pub(crate) const MOVING: &str = "moving";

/// What is said of it if it stayed.
pub(crate) const HALF_MOVED: &str = "a move into it was not finished: remove it, and move again";

/// A record as its tables.
#[async_trait]
pub(crate) trait Tables: Send + Sync {
    /// The number of rows.
    async fn count(&self, table: &Table) -> Result<u64>;

    /// Rows after a key, in its order; an empty key is before all.
    async fn page(&self, table: &Table, after: &[String], most: i64) -> Result<Vec<Row>>;

    /// Rows of all runs from the first to the last one.
    async fn of_runs(&self, table: &Table, first: Uuid, last: Uuid) -> Result<Vec<Row>>;

    /// Adds rows that are not there, in one transaction.
    async fn load(&self, table: &Table, rows: Vec<Row>) -> Result<()>;

    /// Makes room for runs of these days.
    async fn make_days(&self, days: BTreeSet<i64>) -> Result<()>;

    /// Sets or removes [`MOVING`].
    async fn set_moving(&self, moving: bool) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of each table in a schema.
    fn columns(schema: &str) -> Vec<(String, BTreeSet<String>)> {
        let table = |part: &str| {
            let (name, rest) = part.split_once(" (\n").unwrap();
            let lines = rest
                .lines()
                .take_while(|line| !line.starts_with(')'))
                .map(|line| line.trim().split(' ').next().unwrap());
            let is_column = |word: &&str| !["primary", "unique", "exclude", "--"].contains(word);
            (name.to_owned(), lines.filter(is_column).map(str::to_owned).collect())
        };
        schema
            .split("create table ")
            .skip(1)
            .filter(|part| !part.contains("partition of") || part.contains(" (\n"))
            .map(table)
            .collect()
    }

    /// Columns that a later step added to a table.
    fn added(schema: &str, table: &str) -> Vec<String> {
        let begin = format!("alter table {table} add column ");
        let lines = schema.lines().filter_map(|line| line.strip_prefix(&begin));
        lines.map(|rest| rest.split(' ').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_column_of_both_schemas_travels() {
        for steps in [crate::sqlite::STEPS, crate::postgres::STEPS] {
            let (schema, mut seen) = (steps.concat(), 0);
            for (name, mut columns) in columns(&schema) {
                columns.extend(added(&schema, &name));
                if name.ends_with("migration") || name.contains("partition of") {
                    continue;
                }
                let table = all().find(|table| table.name == name).unwrap_or_else(|| panic!("{name}"));
                let known: BTreeSet<String> = table.columns.iter().map(|(column, _)| (*column).to_owned()).collect();
                assert_eq!(known, columns, "{name}");
                seen += 1;
            }
            assert_eq!(seen, all().count());
        }
    }
}
