-- Proofs that paths share a bottleneck: the newest of each, and what it loads while it runs.

create table proof (
    bottleneck text primary key,
    running integer not null,
    keys text not null,
    at_ms integer not null,
    doc text not null
) strict, without rowid;
