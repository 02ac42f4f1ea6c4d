-- What the newest run of each kind over a pair came to, and since when such runs give no value.

create table outcome (
    pair int4 not null,
    kind text not null,
    exit int2 not null,
    reason text,
    at_ms int8 not null,
    run uuid not null,
    failing_since_ms int8,
    primary key (pair, kind)
) with (fillfactor = 70);
