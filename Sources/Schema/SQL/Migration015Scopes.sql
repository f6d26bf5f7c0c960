-- Scopes that `roost watch` derived itself from the policies, beside those that somebody declared.
--
-- Invariants
--   * Of a derived scope this table names what the catalog cannot tell: the tables that functions were seen to read, as
--     members. The columns, and the tables that policies name, are read from the policies each time (Scopes in Catalog.sql),
--     so that policies which change take their scope along. scope_column is the first of the columns, for people; it is
--     empty where visibility goes by none.
--   * Only `roost watch` writes here. The hub needs no right to.
-- Locks: ACCESS EXCLUSIVE on roost.scope for a moment; nothing is rewritten.

alter table roost.scope add derived boolean not null default false;
comment on column roost.scope.derived is
    'Whether `roost watch` found it in the policies; the columns are then read from them each time.';
