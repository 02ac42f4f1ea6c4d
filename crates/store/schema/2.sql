-- Why a run has no result, in one line.
alter table run add column reason text;

-- The hops at which the cause of an incident lies, where it names any.
alter table incident add column first_hop integer;
alter table incident add column last_hop integer;

-- 1: the notice was given up. `done` says when, as it does of one that was delivered.
alter table outbox add column undelivered integer not null default 0;
