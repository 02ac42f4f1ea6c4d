-- Results in the order in which they were kept: whoever reads on from a number misses none.

create table arrival (
    number int8 primary key,
    run uuid not null,
    at_ms int8 not null
);
