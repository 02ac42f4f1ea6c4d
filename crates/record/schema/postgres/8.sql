-- Groupings of paths by their delays: the newest of each set of paths.

create table delay_grouping (
    paths text primary key,
    running bool not null,
    at_ms int8 not null,
    doc text not null
) with (fillfactor = 70);
