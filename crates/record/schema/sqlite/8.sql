-- Groupings of paths by their delays: the newest of each set of paths.

create table delay_grouping (
    paths text primary key,
    running integer not null,
    at_ms integer not null,
    doc text not null
) strict, without rowid;
