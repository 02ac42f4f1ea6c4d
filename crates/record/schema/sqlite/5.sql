-- Results in the order in which they were kept: whoever reads on from a number misses none.

create table arrival (
    number integer primary key,
    run blob not null,
    at_ms integer not null
) strict;
