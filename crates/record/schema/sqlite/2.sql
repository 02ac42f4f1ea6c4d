-- Alerts: the states of rules, silences, and notices on their way to channels.

create table alert_state (
    key text primary key,
    doc text not null
) strict, without rowid;

create table silence (
    id integer primary key autoincrement,
    begins_ms integer not null,
    ends_ms integer not null,
    rule text,
    source text,
    target text,
    link text,
    who text not null,
    reason text not null
) strict;

create table notice (
    id integer primary key autoincrement,
    channel text not null,
    body text not null,
    made_ms integer not null,
    due_ms integer not null,
    tries integer not null
) strict;
