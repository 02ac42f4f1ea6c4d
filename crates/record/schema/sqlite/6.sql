-- What the newest run of each kind over a pair came to, and since when such runs give no value.

create table outcome (
    pair integer not null,
    kind text not null,
    exit integer not null,
    reason text,
    at_ms integer not null,
    run blob not null,
    failing_since_ms integer,
    primary key (pair, kind)
) strict, without rowid;
