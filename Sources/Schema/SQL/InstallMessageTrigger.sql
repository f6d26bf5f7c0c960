-- Puts roost's trigger on realtime.messages, roost's own or Supabase's. Run by every `roost migrate`.
--
-- Invariants
--   * A partitioned table's root is enough: that is what is inserted into, by realtime.send and by everybody else. An
--     insert straight into a partition is not seen.
--   * A table that is not Supabase's, for lack of its columns, is left alone.
--   * What this role may not do, or not within 2 s, is left out with a NOTICE (`roost doctor` reports it).
-- Locks: ShareRowExclusive on realtime.messages until the end of the transaction, only where the trigger is missing.
do $install$
declare
    messages oid := (
        select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'realtime' and c.relname = 'messages' and c.relkind in ('r', 'p'));
    patience text := current_setting('lock_timeout');
begin
    if messages is null or exists (
        select from pg_catalog.pg_trigger
        where tgrelid = messages and tgfoid = 'roost.on_message()'::regprocedure
    ) then
        return;
    end if;
    if 6 <> (
        select count(*) from pg_catalog.pg_attribute
        where attrelid = messages and not attisdropped
          and attname in ('id', 'topic', 'extension', 'event', 'payload', 'private')
    ) then
        raise notice 'roost: realtime.messages is not a table of channel messages, and is left alone';
        return;
    end if;
    begin
        perform set_config('lock_timeout', '2s', true);
        create trigger roost_message after insert on realtime.messages referencing new table as roost_new
            for each statement execute function roost.on_message();
        perform set_config('lock_timeout', patience, true);
    exception when insufficient_privilege or lock_not_available then
        raise notice 'roost: no trigger on realtime.messages, so SQL cannot send to channels: %', sqlerrm
            using hint = '`roost doctor` says what to do.';
    end;
end
$install$;
