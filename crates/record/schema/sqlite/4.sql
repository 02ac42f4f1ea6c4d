-- Orders by hand: as they were signed, and what became of them.

create table given_order (
    id blob primary key,
    agent text not null,
    doc text not null,
    note text,
    not_after_ms integer not null,
    state text not null,
    run blob,
    said text
) strict, without rowid;
create index given_order_end on given_order (not_after_ms);
