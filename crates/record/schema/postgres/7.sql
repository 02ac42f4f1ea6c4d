-- Proofs that paths share a bottleneck: the newest of each, and what it loads while it runs.

create table proof (
    bottleneck text primary key,
    running bool not null,
    keys text not null,
    at_ms int8 not null,
    doc text not null
) with (fillfactor = 70);
