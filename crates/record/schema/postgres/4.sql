-- Orders by hand: as they were signed, and what became of them.

create table given_order (
    id uuid primary key,
    agent text not null,
    doc text not null,
    note text,
    not_after_ms int8 not null,
    state text not null,
    run uuid,
    said text
) with (fillfactor = 70);
create index given_order_end on given_order (not_after_ms);
