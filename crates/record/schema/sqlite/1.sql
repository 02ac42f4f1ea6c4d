-- Times are milliseconds since 1970, UTC; sizes octets; values are in the unit of their metric.
-- src/codes.rs has what numbers mean, docs/design/record.md the reasons. A released version of this
-- file never changes: add the next one.

create table migration (
    version integer primary key,
    checksum text not null
) strict;

create table agent (
    name text primary key,
    public_key text not null,
    labels text not null,
    address text not null,
    joined_ms integer not null,
    state integer not null,
    heard_ms integer,
    status text,
    stored text not null
) strict, without rowid;

create table token (
    hash blob primary key,
    made_ms integer not null,
    not_after_ms integer not null,
    uses integer not null
) strict, without rowid;

create table pair (
    id integer primary key,
    source text not null,
    target text not null,
    unique (source, target)
) strict;

create table route (
    id integer primary key,
    hash blob not null unique,
    hops text not null
) strict;

create table run (
    id blob primary key,
    pair integer not null,
    seq integer not null,
    kind text not null,
    origin integer not null,
    order_id blob,
    began_ms integer not null,
    length_ms integer not null,
    exit integer not null,
    reason text,
    octets integer not null,
    route_before integer,
    route_after integer,
    flags integer not null
) strict, without rowid;
create index run_of_pair on run (pair, id);

create table value (
    run blob not null,
    number integer not null,
    pair integer not null,
    metric integer not null,
    reverse integer not null,
    claim integer not null,
    value real not null,
    low real not null,
    high real not null,
    counts integer not null,
    primary key (run, number)
) strict, without rowid;
create index value_of_pair on value (pair, metric, run) where counts;

create table evidence (
    run blob primary key,
    doc blob not null
) strict;

create table latest (
    pair integer not null,
    metric integer not null,
    claim integer not null,
    value real not null,
    low real not null,
    high real not null,
    at_ms integer not null,
    run blob not null,
    flags integer not null,
    primary key (pair, metric)
) strict, without rowid;

create table latest_route (
    pair integer primary key,
    route integer not null,
    since_ms integer not null,
    seen_ms integer not null
) strict;

create table succeeded (
    pair integer not null,
    kind text not null,
    at_ms integer not null,
    primary key (pair, kind)
) strict, without rowid;

create table pair_hour (
    pair integer not null,
    metric integer not null,
    hour integer not null,
    count integer not null,
    value real not null,
    low real not null,
    high real not null,
    claim integer not null,
    primary key (pair, metric, hour)
) strict, without rowid;

create table dirty (
    id integer primary key,
    hour integer not null
) strict;

create table reservation (
    key text not null,
    begin_ms integer not null,
    end_ms integer not null,
    run blob not null,
    agent text not null,
    serial integer not null,
    primary key (key, begin_ms)
) strict, without rowid;
create index reservation_end on reservation (end_ms);

create table setting (
    name text primary key,
    text text not null
) strict, without rowid;

create table counter (
    name text primary key,
    value integer not null
) strict, without rowid;

create table audit (
    number integer primary key,
    at_ms integer not null,
    who text not null,
    what text not null,
    text text not null,
    hash text not null
) strict;

create table refused (
    id integer primary key autoincrement,
    at_ms integer not null,
    subject text not null,
    payload blob not null,
    why text not null
) strict;
