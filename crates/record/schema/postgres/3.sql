-- Budgets: what a span may send, and whether an order has it. Spans of before count as the plan's.

alter table reservation add column octets int8 not null default 0;
alter table reservation add column by_hand bool not null default false;
create index reservation_run on reservation (run);
