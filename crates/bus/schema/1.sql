-- Times are milliseconds since 1970, UTC. Octets count subject, id and payload.

create table setting (
    name text primary key,
    value text not null
) strict, without rowid;

-- The stream. A number is never used twice, also if the newest message is deleted.
create table kept (
    sequence integer primary key autoincrement,
    at integer not null,
    octets integer not null,
    subject text not null,
    id text not null,
    payload blob not null
) strict;
create index kept_at on kept (at);

-- Ids of the duplicate window.
create table recent (
    id text primary key,
    sequence integer not null,
    at integer not null
) strict, without rowid;
create index recent_at on recent (at);

-- What a sink has not acknowledged.
create table waiting (
    sink text not null,
    sequence integer not null,
    primary key (sink, sequence)
) strict, without rowid;

-- Revisions count the writes of a bucket.
create table entry (
    bucket text not null,
    key text not null,
    revision integer not null,
    value blob not null,
    primary key (bucket, key, revision)
) strict, without rowid;
