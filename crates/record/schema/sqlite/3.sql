-- Budgets: what a span may send, and whether an order has it. Spans of before count as the plan's.

alter table reservation add column octets integer not null default 0;
alter table reservation add column by_hand integer not null default 0;
create index reservation_run on reservation (run);
