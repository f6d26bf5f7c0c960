"""`feed.capture: wal`: rows are read from Postgres' WAL, by one hub of several, and nothing is lost or there twice."""

import asyncio
import contextlib
import os
import random
import signal
import threading

import psycopg
import pytest

from support.bounds import at_most
from support.cluster import Cluster
from support.deadline import eventually, until
from support.freezing import freeze
from support.hub import Hub
from support.returning import Returning
from support.wsclient import Client

#: How often the leader and Postgres are killed; a night's run sets more.
KILLS = int(os.environ.get("ROOST_CAPTURE_KILLS", "6"))
TABLE = "create table t (id bigint generated always as identity primary key, w int, n int); grant select on t to authenticated, service_role"


@pytest.fixture
def own():
    """A cluster that may be killed, with a database whose table t is read from the WAL."""
    cluster = Cluster().start()
    hubs = []
    try:
        url = cluster.create_database("own")

        def hub(name):
            hubs.append(Hub(url, ROOST_FEED_CAPTURE="wal", ROOST_NODE_NAME=name))
            return hubs[-1]
        first = hub("one")
        first.run("migrate")
        with cluster.connect("own") as sql:
            # The test clusters do without; but what was told to be committed has to survive a killed server here.
            sql.execute("alter database own set synchronous_commit = on")
            sql.execute(TABLE)
        first.run("watch", "t")
        yield cluster, first, hub
    finally:
        for each in hubs:
            with contextlib.suppress(ProcessLookupError):
                if each.process:
                    each.process.send_signal(signal.SIGCONT)
            each.remove()
        cluster.remove()


def rows(cluster, sql="select record ->> 'id', record ->> 'n' from roost.change where relid = 't'::regclass order by id"):
    with cluster.connect("own") as connection:
        return connection.execute(sql).fetchall()


def is_loss(message):
    return message.payload["status"] == "ok" and message.payload["message"].startswith("ChangesLost: ")


def state(hub):
    return next((name for name in ("leading", "following", "idle", "preparing", "away")
                 if hub.metric(f'roost_capture_state{{state="{name}"}}') == 1), None)


async def test_rows_reach_clients(own):
    cluster, hub, _ = own
    hub.start()
    async with await Client.connect(hub.port) as client:
        await client.watch("realtime:room", {"event": "*", "schema": "public", "table": "t"})
        with cluster.connect("own") as sql:
            sql.execute("insert into t (w, n) values (1, 1)")
            sql.execute("update t set n = 3")
            sql.execute("delete from t")
        changes = [(await client.next("postgres_changes")).payload["data"] for _ in range(3)]
    assert [change["type"] for change in changes] == ["INSERT", "UPDATE", "DELETE"]
    assert changes[1]["record"] == {"id": 1, "w": 1, "n": 3}
    assert changes[1]["old_record"] == changes[2]["old_record"] == {"id": 1}
    assert changes[0]["commit_timestamp"] <= changes[1]["commit_timestamp"]


async def test_who_was_away_is_brought_what_it_missed(own):
    cluster, hub, _ = own
    hub.start()
    with cluster.connect("own") as sql:
        async with await Client.connect(hub.port) as client:
            await client.watch("realtime:room", {"event": "INSERT", "schema": "public", "table": "t"})
            sql.execute("insert into t (n) values (1)")
            await client.next("postgres_changes")
            client.socket.abort()
        await asyncio.to_thread(hub.kill)
        sql.execute("insert into t (n) values (2)")
        hub.start()
        sql.execute("insert into t (n) values (3)")
        async with await Client.connect(hub.port) as client:
            await client.watch("realtime:room", {"event": "INSERT", "schema": "public", "table": "t"})
            seen = []
            while 3 not in seen:
                seen.append((await client.next("postgres_changes")).payload["data"]["record"]["n"])
    assert [n for n in seen if n > 1] == [2, 3]


async def test_a_table_changes_over_before_a_clients_eyes(cluster, own_hub):
    """From the WAL to triggers and back by `roost watch`, and away; the last table takes the slot along."""
    own_hub.environment["ROOST_FEED_CAPTURE"] = "wal"
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (n int); grant select on t to authenticated")
        said = own_hub.run("watch", "t").stdout
        assert "public.t is watched now." in said and "its REPLICA IDENTITY is FULL now" in said
        own_hub.start()
        async with await Client.connect(own_hub.port) as client:
            await client.watch("realtime:room", {"event": "*", "schema": "public", "table": "t"})
            sql.execute("insert into t values (1)")
            await asyncio.to_thread(own_hub.run, "watch", "t", ROOST_FEED_CAPTURE="triggers")
            sql.execute("insert into t values (2)")
            await asyncio.to_thread(own_hub.run, "watch", "t")
            sql.execute("insert into t values (3)")
            seen = [(await client.next("postgres_changes")).payload["data"]["record"]["n"] for _ in range(3)]
        assert seen == [1, 2, 3]
        by = sql.execute("select lsn is not null from roost.change where relid = 't'::regclass order by id").fetchall()
        assert by == [(True,), (False,), (True,)]
        assert "public.t is not watched now." in own_hub.run("unwatch", "t").stdout
        until(lambda: not sql.execute("select from pg_replication_slots where database = current_database()").fetchall(),
              what="the hub to drop the slot")


def test_every_row_once_whoever_is_killed(own):
    """Two hubs and Postgres are killed, one after the other, while four sessions write."""
    cluster, one, hub = own
    chance = random.Random(7)
    hubs = [one, hub("two")]
    for each in hubs:
        each.start()
    ended, failures = threading.Event(), []

    def write(writer):
        n = 0
        while not ended.is_set():
            try:
                with psycopg.connect(cluster.url("own"), connect_timeout=5, autocommit=True) as sql:
                    # What was not told to be committed may be or not.
                    n = sql.execute("select coalesce(max(n), 0) from t where w = %s", [writer]).fetchone()[0]
                    while not ended.is_set():
                        n += 1
                        sql.execute("insert into t (w, n) select %s, %s from generate_series(1, %s)",
                                    [writer, n, 1 if n % 20 else 200])
                        ended.wait(0.004)
            except psycopg.OperationalError:
                ended.wait(0.1)
            except Exception as failure:
                failures.append(failure)
                return

    writers = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for writer in writers:
        writer.start()
    try:
        for kill in range(KILLS):
            until(lambda: any(state(each) == "leading" for each in hubs), 30, "a leader")
            ended.wait(chance.random() * 0.3)
            if kill % 3 == 2:
                cluster.stop("immediate")
                cluster.start()
            else:
                leader = next((each for each in hubs if state(each) == "leading"), hubs[0])
                leader.kill()
                leader.start()
    finally:
        ended.set()
        for writer in writers:
            writer.join()
    assert not failures
    with cluster.connect("own") as sql:
        count = sql.execute("select count(*) from t").fetchone()[0]
    assert count > KILLS
    until(lambda: rows(cluster, "select count(*) from roost.change where relid = 't'::regclass")[0][0] >= count, 30,
          "all rows in the outbox")
    assert rows(cluster, """
        select count(*), count(distinct record ->> 'id'), (select count(*) from t) from roost.change
        where relid = 't'::regclass""") == [(count, count, count)]
    # Each writer's in its order.
    assert rows(cluster, """
        select count(*) from (
            select (record ->> 'id')::bigint < lag((record ->> 'id')::bigint) over (partition by record ->> 'w' order by id) as wrong
            from roost.change where relid = 't'::regclass) o where wrong""") == [(0,)]


def test_another_hub_leads_when_the_leader_freezes(own):
    cluster, one, hub = own
    one.start()
    until(lambda: state(one) == "leading", what="the lead")
    two = hub("two").start()
    until(lambda: state(two) == "following", what="a follower")
    freeze(one.process.pid)
    with cluster.connect("own") as sql:
        sql.execute("insert into t (n) values (1)")
    until(lambda: len(rows(cluster)) == 1, what="the row, by the other hub")
    assert state(two) == "leading"
    one.process.send_signal(signal.SIGCONT)
    until(lambda: state(one) == "following", what="the first one to follow")
    with cluster.connect("own") as sql:
        sql.execute("insert into t (n) values (2)")
    until(lambda: len(rows(cluster)) == 2, what="the next row")


async def test_clients_are_told_of_a_slot_that_was_lost(own):
    """The bound of WAL was too small for the time without a hub."""
    cluster, hub, _ = own
    with cluster.connect("own") as sql:
        sql.execute("alter system set max_slot_wal_keep_size = '1MB'")
        sql.execute("select pg_reload_conf()")
    hub.start()
    with cluster.connect("own") as sql:
        async with await Client.connect(hub.port) as client:
            await client.watch("realtime:room", {"event": "INSERT", "schema": "public", "table": "t"})
            sql.execute("insert into t (n) values (1)")
            cursor = (await client.next("postgres_changes")).payload["cursor"]
        plain = Returning(hub, "realtime:plain", "t")
        await plain.enter()
        await plain.cut()
        await asyncio.to_thread(hub.stop)
        sql.execute("create table other (n int)")

        def is_lost():
            sql.execute("insert into other select generate_series(1, 100000)")
            sql.execute("select pg_switch_wal()")
            sql.execute("checkpoint")
            return sql.execute("select wal_status from pg_replication_slots").fetchone()[0] == "lost"
        await eventually(lambda: asyncio.to_thread(is_lost), 30, "the slot to be lost")
        hub.start()
        until(lambda: state(hub) == "leading", what="another slot")
        sql.execute("insert into t (n) values (2)")
        async with await Client.connect(hub.port) as client:
            reply = await client.ask("realtime:room", "phx_join", {"config": {
                "postgres_changes": [{"event": "INSERT", "schema": "public", "table": "t"}], "resume": {"cursor": cursor}}})
            assert reply.payload["status"] == "ok"
            assert reply.payload["response"]["resumed"] is False, reply.payload
        # Who has no cursor is told as well, and sent what was written since there is another slot.
        assert "resumed" not in await plain.enter()
        assert is_loss((await plain.client.next("system", where=is_loss)))
        await plain.has([2])
        await plain.close()
        hub.wait_until_logged("are missing")


async def test_who_was_told_before_the_wal_was_read_is_told_again(own):
    """What the WAL has from before an interruption is stored, and sent, after clients loaded their data because of it."""
    cluster, hub, _ = own
    hub.start()
    with cluster.connect("own") as sql:
        # With the last table the slot would go.
        sql.execute("create table other (id int primary key)")
        await asyncio.to_thread(hub.run, "watch", "other")
        client = Returning(hub, "realtime:room", "t")
        await client.enter()
        sql.execute("insert into t (n) values (1)")
        await client.has([1])
        await asyncio.to_thread(hub.kill)
        await client.cut()
        until(lambda: not sql.execute("select active from pg_replication_slots").fetchone()[0], 30, "the walsender to end")
        sql.execute("update t set n = 2")
        await asyncio.to_thread(hub.run, "unwatch", "t")
        sql.execute("update t set n = 3")
        await asyncio.to_thread(hub.run, "watch", "t")
        assert sql.execute("select unread_lsn is not null from roost.meta").fetchone()[0]
        hub.start()
        shown = []

        def fold():
            """As an application that loads its data when it is told to. Whether the channel has ended."""
            messages, client.client.messages = client.client.messages, []
            for message in messages:
                if message.event == "postgres_changes":
                    shown.append(message.payload["data"]["record"]["n"])
                elif message.event == "system" and is_loss(message):
                    shown.append(sql.execute("select n from t").fetchone()[0])
            return any(message.event == "phx_error" for message in messages)

        async def is_told():
            if fold():
                await client.join()
            return sql.execute("select unread_lsn is null from roost.meta").fetchone()[0]
        await client.connect()
        client.client.on_message = None
        await client.join()
        await eventually(is_told, 30, "the word that the rest is stored")
        await hub.settled()
        await client.settled()
        if fold():
            await client.join()
            await client.settled()
            fold()
        await client.close()
    assert shown[-1] == 3, shown


PUBLISH = "create publication roost for table t with (publish = 'insert, update, delete, truncate', publish_via_partition_root = true)"


@pytest.mark.parametrize("how", ["unwatched", "unwatched while stopped", "publication", "narrowed", "taken out"])
async def test_what_was_written_while_a_table_was_not_captured_is_never_taken_for_resumed(own, how):
    cluster, hub, _ = own
    hub.start()
    binding = {"event": "INSERT", "schema": "public", "table": "t"}
    with cluster.connect("own") as sql:
        async with await Client.connect(hub.port) as client:
            await client.watch("realtime:room", binding)
            sql.execute("insert into t (n) values (1)")
            cursor = (await client.next("postgres_changes")).payload["cursor"]
        hole = "insert into t (n) select generate_series(2, 51)"
        if how.startswith("unwatched"):
            if how != "unwatched":
                await asyncio.to_thread(hub.stop)
            await asyncio.to_thread(hub.run, "unwatch", "t")
            sql.execute(hole)
            await asyncio.to_thread(hub.run, "watch", "t")
            if how != "unwatched":
                hub.start()
        else:
            broken, mended = {
                "publication": ("drop publication roost", PUBLISH),
                "narrowed": ("alter publication roost set (publish = 'update')",
                             "alter publication roost set (publish = 'insert, update, delete, truncate')"),
                "taken out": ("alter publication roost drop table t", "alter publication roost add table t"),
            }[how]
            for statement in (broken, hole, mended):
                sql.execute(statement)
        until(lambda: state(hub) == "leading", 30, "the lead")
        async with await Client.connect(hub.port) as client:
            config = {"config": {"postgres_changes": [binding], "resume": {"cursor": cursor}}}

            async def answer():
                reply = await client.ask("realtime:room", "phx_join", config)
                return reply.payload["response"] if reply.payload["status"] == "ok" else None
            assert (await eventually(answer, 30, "an answer"))["resumed"] is False
    if not how.startswith("unwatched"):
        hub.wait_until_logged("The capture of changes was interrupted (public.t)")


@pytest.mark.clock
async def test_a_publication_that_is_narrowed_is_noticed_within_five_seconds(own):
    cluster, hub, _ = own
    hub.start()
    client = Returning(hub, "realtime:room", "t")
    await client.enter()
    with cluster.connect("own") as sql:
        sql.execute("insert into t (n) values (1)")
        await client.has([1])
        with at_most(5, "the word of an interruption"):
            sql.execute("alter publication roost set (publish = 'update')")
            sql.execute("insert into t (n) values (2)")
            await client.client.next("phx_error", "realtime:room", within=30)
    await hub.settled()
    assert hub.metric("roost_feed_interruptions_total") >= 1
    await client.close()
