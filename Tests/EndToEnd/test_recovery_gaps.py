"""What could be lost without a word: sessions that are not written, tokens that change, an outbox that is emptied."""

import asyncio
import signal

import pytest

from support.bounds import at_most
from support.deadline import eventually, until
from support.freezing import freeze
from support.pypi import Listener, python_client
from support.returning import Returning
from support.tokens import token


@pytest.fixture
def table(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
        # What one client was sent tells on the other.
        own_hub.environment["ROOST_LOOPS"] = "1"
        own_hub.start()
        yield sql


# Whom a killed hub served

REFUSES = """
    create function refuse() returns trigger language plpgsql as $$
    begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
    create trigger refuse before insert or update or delete on roost.session for each statement execute function refuse();
    create trigger refuse before insert or update or delete on roost.session_list
        for each statement execute function refuse();
"""


async def listed(sql):
    """Somebody is on the list, and it is called complete."""
    await eventually(
        lambda: sql.execute("select (select count(*) from roost.session) * (select count(*) from roost.session_list)")
        .fetchone()[0] > 0)


@pytest.mark.parametrize("obstacle", ["lock", "refusal"])
async def test_who_joined_while_the_list_could_not_be_written_is_brought_what_it_missed(
        own_hub, cluster, table, obstacle):
    early = Returning(own_hub, "realtime:r", "t", sub="early")
    late = Returning(own_hub, "realtime:r", "t", sub="late")
    await early.enter()
    await listed(table)
    with cluster.connect(own_hub.database) as other:
        if obstacle == "lock":
            other.execute("begin; lock table roost.session, roost.session_list in access exclusive mode")
        else:
            other.execute(REFUSES)
        await late.enter()
        table.execute("insert into t select generate_series(1, 5)")
        await late.has(range(1, 6))
        await asyncio.to_thread(own_hub.kill)
        for client in (early, late):
            await client.cut()
        other.execute("rollback" if obstacle == "lock" else "drop function refuse cascade")
    table.execute("insert into t select generate_series(6, 10)")
    own_hub.start()
    for client in (early, late):
        await client.enter()
    table.execute("insert into t values (11)")
    for client in (early, late):
        await client.has(range(1, 12))
        await client.close()


async def test_the_list_counts_again_when_it_can_be_written_again(own_hub, table):
    early = Returning(own_hub, "realtime:r", "t", sub="early")
    late = Returning(own_hub, "realtime:r", "t", sub="late")
    await early.enter()
    await listed(table)
    table.execute(REFUSES)
    await late.enter()
    table.execute("drop function refuse cascade")
    await eventually(lambda: table.execute("""
        select count(*) from roost.session_list l join roost.cursor c using (node)
        where l.turn = c.list_turn and (select count(*) from roost.session) = 2""").fetchone()[0] == 1, 30)
    await asyncio.to_thread(own_hub.kill)
    for client in (early, late):
        await client.cut()
    table.execute("insert into t select generate_series(1, 5)")
    own_hub.start()
    stranger = Returning(own_hub, "realtime:r", "t", sub="stranger")
    for client in (early, late, stranger):
        await client.enter()
    table.execute("insert into t values (6)")
    await stranger.has([6])
    assert stranger.ids == [6], "who is new is sent nothing old"
    for client in (early, late):
        await client.has(range(1, 7))
    for client in (early, late, stranger):
        await client.close()


async def test_a_join_that_can_be_written_nowhere_is_refused(own_hub, table):
    early = Returning(own_hub, "realtime:r", "t", sub="early")
    await early.enter()
    await listed(table)
    table.execute(REFUSES + """
        create trigger refuse before insert or update on roost.cursor for each statement execute function refuse();""")
    late = await Returning(own_hub, "realtime:r", "t", sub="late").connect()
    late.client.push("realtime:r", "phx_join", {"config": {"postgres_changes": [late.binding]}}, "1", "1")
    reply = await late.client.next("phx_reply", "realtime:r", "1")
    assert reply.payload["status"] == "error", reply
    assert "UnableToConnectToProject" in reply.payload["response"]["reason"]
    table.execute("drop function refuse cascade")
    await late.close()
    await late.enter()
    table.execute("insert into t values (1)")
    for client in (early, late):
        await client.has([1])
        await client.close()


# A token that is refreshed

FAILS_FOR_ANN = """
    create or replace function allowed() returns boolean language plpgsql stable as $$
    begin
        if current_setting('request.jwt.claims')::json ->> 'sub' = 'ann' then raise 'broken'; end if;
        return true;
    end $$"""
ALLOWS = "create or replace function allowed() returns boolean language plpgsql stable as $$ begin return true; end $$"


async def test_what_waits_for_a_policy_is_not_lost_to_a_new_token(own_hub, table):
    table.execute(ALLOWS)
    table.execute("""
        alter table t enable row level security;
        grant select on t to authenticated;
        create policy readers on t for select to authenticated using (allowed())""")
    ann = Returning(own_hub, "realtime:r", "t", sub="ann")
    eve = Returning(own_hub, "realtime:r", "t", sub="eve")
    for client in (ann, eve):
        await client.enter()
        await client.client.next("system", "realtime:r")
    table.execute("insert into t values (1)")
    for client in (ann, eve):
        await client.has([1])
    table.execute(FAILS_FOR_ANN)
    for number in range(2, 6):
        table.execute("insert into t values (%s)", [number])
        await eve.has([number])
    assert ann.ids == [1]
    fresh = token("authenticated", lifetime=9000, sub="ann")
    ann.client.push("realtime:r", "access_token", {"access_token": fresh}, "90", "1")
    told = await ann.client.next(
        topic="realtime:r", where=lambda message: message.event == "phx_error"
        or "Subscribed" in message.payload.get("message", ""))
    table.execute(ALLOWS)
    if told.event == "phx_error":
        await ann.join()
    await ann.has(range(1, 6))
    for client in (ann, eve):
        await client.close()


# An outbox that is emptied

@pytest.mark.parametrize("emptied", [
    "truncate roost.change",
    "delete from roost.change",
    "set session_replication_role = replica; truncate roost.change; reset session_replication_role",
    "set session_replication_role = replica; truncate roost.change restart identity; reset session_replication_role",
])
async def test_who_is_connected_is_told_of_rows_that_went_before_the_hub_read_them(own_hub, table, emptied):
    plain = Returning(own_hub, "realtime:r", "t", sub="plain")
    exact = Returning(own_hub, "realtime:r", "t", sub="exact")
    await plain.enter()
    await exact.enter(resume={})
    for client in (plain, exact):
        await client.client.next("system", "realtime:r")
    for number in (0, 1):
        # With the second one the hub has looked at what was there with the first.
        table.execute("insert into t values (%s)", [number])
        for client in (plain, exact):
            await client.has(range(number + 1))
    for gone in range(2, 7):
        freeze(own_hub.process.pid)
        try:
            # A statement of the hub's that Postgres still has would read the row.
            until(lambda: table.execute(
                "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
                " and state = 'active' and backend_type = 'client backend'").fetchone() == (0,), what="Postgres has answered the hub")
            table.execute("insert into t values (%s)", [gone])
            table.execute(emptied)
        finally:
            own_hub.process.send_signal(signal.SIGCONT)
        cursor = exact.frames[-1]["cursor"]

        def is_told(client):
            return any(message.event == "phx_error" for message in client.client.messages)
        for client in (plain, exact):
            await eventually(lambda: is_told(client) or gone in client.ids, what="the word of a loss")
        if is_told(exact):
            break
        # One that its session had not begun yet did read it in between.
    for client in (plain, exact):
        await client.client.next("phx_error", "realtime:r")
    await plain.join()
    answer = await exact.join(resume={"cursor": cursor})
    assert answer["resumed"] is False and "older" in answer["reason"], answer
    table.execute("insert into t values (%s)", [gone + 1])
    for client in (plain, exact):
        await client.has([0, 1, gone + 1])
        assert gone not in client.ids
        await client.close()


@pytest.mark.parametrize("emptied", ["truncate roost.change", "delete from roost.change", "vacuum full roost.change"])
async def test_nobody_is_disturbed_where_nothing_is_lost(own_hub, table, emptied):
    client = Returning(own_hub, "realtime:r", "t")
    await client.enter()
    table.execute("insert into t values (1)")
    await client.has([1])
    table.execute(emptied)
    table.execute("insert into t values (2)")
    await client.has([2])
    await client.settled()
    assert not [message for message in client.client.messages if message.event == "phx_error"]
    await client.close()


async def test_who_was_away_is_told_of_what_was_written_to_a_partition_before_it_was_watched(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table p (id int primary key) partition by range (id)")
        sql.execute("create table p1 partition of p for values from (0) to (10)")
        sql.execute("grant select on p to authenticated")
        own_hub.watch("p")
        own_hub.start()
        plain, exact = Returning(own_hub, "realtime:r", "p", sub="plain"), Returning(own_hub, "realtime:r", "p", sub="exact")
        await plain.enter()
        await exact.enter(resume={})
        sql.execute("insert into p values (1)")
        for client in (plain, exact):
            await client.has([1])
            await client.cut()
        await asyncio.to_thread(own_hub.stop)
        sql.execute("create table p2 partition of p for values from (10) to (20)")
        sql.execute("insert into p2 values (11)")
        own_hub.watch("p")
        own_hub.start()
        assert (await exact.enter(resume={"cursor": exact.frames[-1]["cursor"]}))["resumed"] is False
        await plain.enter()
        await plain.client.next(
            "system", where=lambda message: message.payload["message"].startswith("ChangesLost: "))
        for client in (plain, exact):
            await client.close()


async def test_the_python_client_is_told_once_of_what_was_lost_while_it_was_away(own_hub, table):
    """Unmodified, it knows no such message: it stays subscribed, and its application hears of it."""
    async with python_client(own_hub, token("authenticated", sub="ann")) as client:
        listener = await Listener(client, "r").on_changes(schema="public", table="t").subscribe()
        table.execute("insert into t values (1)")
        await listener.take()
        seen = len(listener.states)
        assert await asyncio.to_thread(own_hub.stop) == 0
        table.execute("insert into t values (2)")
        table.execute("truncate roost.change")
        await listener.wait_for_state("CHANNEL_ERROR", after=seen)
        seen = len(listener.states)
        own_hub.start()
        await listener.wait_for_state("SUBSCRIBED", after=seen)

        def losses():
            return [system for system in listener.systems if system.message.startswith("ChangesLost: ")]
        await eventually(lambda: losses(), 20, lambda: f"a loss among {listener.systems}")
        for number in (3, 4):
            table.execute("insert into t values (%s)", [number])
            assert [change["record"]["id"] for change in await listener.take()] == [number]
        assert len(losses()) == 1 and losses()[0].status == "ok", listener.systems
        assert listener.states[seen:] == [("SUBSCRIBED", None)], listener.states
        assert client.is_connected


# How soon a broken capture is noticed

@pytest.mark.clock
async def test_triggers_that_are_off_are_noticed_within_five_seconds(own_hub, table):
    client = Returning(own_hub, "realtime:r", "t")
    await client.enter()
    table.execute("insert into t values (1)")
    await client.has([1])
    with at_most(5, "the word of an interruption"):
        table.execute("alter table t disable trigger all")
        table.execute("insert into t values (2)")
        await client.client.next("phx_error", "realtime:r", within=30)
    await own_hub.settled()
    assert own_hub.metric("roost_feed_interruptions_total") >= 1
    await client.close()
