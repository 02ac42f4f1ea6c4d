-- Times are milliseconds since 1970, UTC; values are in the unit of their signal.
-- docs/design/store.md has the reasons. A released version of this file never changes: add the next one.

create table target (
    id integer primary key,
    name text not null unique,
    host text not null,
    port integer,
    added integer not null,
    retired integer
) strict;

create table series (
    id integer primary key,
    target integer not null,
    signal text not null,
    basis text not null,
    unique (target, signal, basis)
) strict;

create table sample (
    series integer not null,
    at integer not null,
    value real,
    low real,
    high real,
    claim integer not null,
    flags integer not null,
    run blob,
    primary key (series, at)
) strict, without rowid;

create table pulse (
    series integer not null,
    minute integer not null,
    sent integer not null,
    lost integer not null,
    flags integer not null,
    round_trips blob not null,
    primary key (series, minute)
) strict, without rowid;

create table rollup (
    series integer not null,
    tier integer not null,
    at integer not null,
    n integer not null,
    lost integer not null,
    mean real,
    low real,
    high real,
    min real,
    max real,
    claim integer not null,
    sketch blob,
    primary key (series, tier, at)
) strict, without rowid;

create table run (
    id blob primary key,
    target integer not null,
    kind text not null,
    why text not null,
    began integer not null,
    ended integer,
    outcome text not null,
    octets integer
) strict, without rowid;
create index run_began on run (began);
create index run_of_target on run (target, began);

create table document (
    run blob primary key,
    began integer not null,
    body blob not null
) strict, without rowid;
create index document_began on document (began);

create table figure (
    run blob not null,
    metric text not null,
    direction text not null,
    unit text not null,
    value real,
    low real,
    high real,
    claim integer not null,
    primary key (run, metric, direction)
) strict, without rowid;

create table event (
    id integer primary key,
    target integer,
    kind text not null,
    signal text,
    at integer not null,
    at_low integer not null,
    at_high integer not null,
    found integer not null,
    before text,
    after text,
    cause text,
    text text not null,
    evidence text,
    incident blob
) strict;
create index event_at on event (at);
create index event_of_target on event (target, at);

create table incident (
    id blob primary key,
    target integer not null,
    began integer not null,
    ended integer,
    cause text,
    text text not null
) strict, without rowid;
create index incident_began on incident (began);

create table path (
    id integer primary key,
    hash blob not null unique,
    body text not null
) strict;

create table path_seen (
    target integer not null,
    at integer not null,
    path integer not null,
    round_trips text not null,
    primary key (target, at)
) strict, without rowid;

create table alert (
    rule text not null,
    target integer not null,
    state text not null,
    since integer not null,
    detail text,
    primary key (rule, target)
) strict, without rowid;

create table silence (
    id integer primary key,
    rule text,
    target integer,
    begins integer not null,
    ends integer not null,
    note text
) strict;

create table outbox (
    id integer primary key,
    channel text not null,
    body text not null,
    made integer not null,
    due integer not null,
    tries integer not null,
    done integer
) strict;
create index outbox_due on outbox (due) where done is null;

create table spent (
    day integer not null,
    target integer not null,
    kind text not null,
    octets integer not null,
    primary key (day, target, kind)
) strict, without rowid;

create table state (
    key text primary key,
    value any not null
) strict, without rowid;
