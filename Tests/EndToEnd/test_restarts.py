"""The hub ends and comes back, Postgres ends and comes back: clients return, and nothing is lost on the way to them."""

import asyncio
import json

import pytest

from support.bounds import Elapsed
from support.cluster import Cluster
from support.deadline import eventually, until
from support.http import HTTPConnection
from support.hub import Hub
from support.pypi import Listener, python_client
from support.subscriptions import query
from support.tokens import token
from support.websocket import Refused
from support.wsclient import Client


@pytest.fixture
def own_table(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
        yield sql


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_the_python_client_comes_back_after_a_restart(own_hub, own_table, ending):
    own_hub.start()
    async with python_client(own_hub) as client:
        listener = await Listener(client, "room", presence=True, presence_key="p").on_changes(schema="public", table="t").on_broadcast("e").subscribe()
        own_table.execute("insert into t values (1)")
        await listener.take()
        seen = len(listener.states)
        status = await asyncio.to_thread(getattr(own_hub, ending))
        if ending == "stop":
            assert status == 0
        own_table.execute("insert into t values (2)")
        await listener.wait_for_state("CHANNEL_ERROR", after=seen)
        seen = len(listener.states)
        own_hub.start()
        await listener.wait_for_state("SUBSCRIBED", after=seen)
        own_table.execute("insert into t values (3)")

        def ids():
            return [change["data"]["record"]["id"] for change in listener.changes]
        # What it missed comes first. Row 1 may come again: a hub that was killed does not know what had arrived.
        await eventually(lambda: {2, 3} <= set(ids()), what=lambda: f"2 and 3 among {ids()}")
        assert ids() in ([2, 3], [1, 2, 3])
        await listener.channel.track({"n": 1})
        await eventually(lambda: listener.syncs and listener.syncs[-1] == ["p"], what="presence")


async def test_sigterm_closes_sockets_with_1012(own_hub):
    own_hub.start()
    clients = [await Client.connect(own_hub.port, version) for version in (1, 2)]
    for client in clients:
        await client.join("realtime:room")
    stopping = asyncio.create_task(asyncio.to_thread(own_hub.stop))
    for client in clients:
        assert (await client.end()).code == 1012, "the clients' word for: come again"
    assert await stopping == 0


@pytest.mark.clock
async def test_a_drain_ends_all_sockets_within_its_time(own_hub):
    own_hub.environment["ROOST_DRAIN_SECONDS"] = "3"
    own_hub.start()
    clients = [await Client.connect(own_hub.port) for _ in range(120)]
    await eventually(lambda: own_hub.metric("roost_connections") == 120, what="all counted")
    elapsed = Elapsed()
    stopping = asyncio.create_task(asyncio.to_thread(own_hub.stop))
    ends = await asyncio.gather(*(client.end() for client in clients))
    assert {end.code for end in ends} == {1012}
    assert await stopping == 0
    elapsed.assert_at_most(5, "the drain")
    for client in clients:
        await client.close()


async def test_changes_while_the_hub_is_away_are_read_when_it_is_back(own_hub, own_table):
    """The stored cursor: what was committed meanwhile is gone through, and who was there before may ask for it."""
    own_hub.start()
    client = await Client.connect(own_hub.port)
    await client.watch("realtime:room", {"event": "*", "schema": "public", "table": "t"})
    own_table.execute("insert into t values (1)")
    await client.next("postgres_changes")
    await eventually(lambda: own_table.execute("select count(*) from roost.cursor").fetchone()[0] == 1)
    await asyncio.to_thread(own_hub.kill)
    own_table.execute("insert into t select generate_series(10, 1009)")
    own_hub.start()

    def seen():
        return own_hub.metric("roost_feed_changes_total") + own_hub.metric("roost_feed_passed_total")

    await eventually(lambda: seen() >= 1000, what="the changes of the time without a hub")


ROWS = {"config": {"postgres_changes": [{"event": "*", "schema": "public", "table": "t"}]}}


@pytest.mark.parametrize("requires", [True, False])
async def test_the_hub_starts_before_postgres(requires):
    cluster = Cluster().start()
    try:
        url = cluster.create_database("late")
        hub = Hub(url, **({} if requires else {"ROOST_FEED_REQUIRED": "false"}))
        try:
            hub.run("migrate")
            with cluster.connect("late") as sql:
                sql.execute("create table t (id int primary key)")
            hub.watch("t")
            cluster.stop()
            hub.start(wait=False)
            until(lambda: "refused" in hub.log or hub.process.poll() is not None, what="a word in the log")
            # The first to say so in the log need not be the feed.
            until(lambda: "onnection" in hub.ops("/readyz")[1], what=lambda: f"the reason in /readyz: {hub.ops('/readyz')}")
            status, text = hub.ops("/readyz")
            assert status == 503 if requires else (status == 200 and text.startswith("ok, degraded: ")), text
            assert hub.ops("/livez")[0] == 200
            assert not hub.is_listening, "the line is for a hub that is ready"
            if requires:
                await refused_for_now(hub)
            else:
                # A socket is let in, and a join for changes is refused in a way that makes clients come again.
                client = await Client.connect(hub.port)
                reply = await client.ask("realtime:r", "phx_join", ROWS)
                assert reply.payload["status"] == "error"
                assert "Realtime was unable to connect to the project database" in reply.payload["response"]["reason"]
                await client.join("realtime:chat")
            cluster.start()
            hub.wait_until_listening()
            until(lambda: hub.ops("/readyz") == (200, "ok\n"), what=lambda: hub.ops("/readyz"))
            if requires:
                client = await Client.connect(hub.port)
            await client.watch("realtime:r", {"event": "*", "schema": "public", "table": "t"})
            with cluster.connect("late") as sql:
                sql.execute("insert into t values (1)")
            await client.next("postgres_changes")
            await client.close()
        finally:
            hub.remove()
    finally:
        cluster.remove()


# What /readyz says its loops know a moment later.


async def refused_for_now(hub):
    async def refusal():
        try:
            await (await Client.connect(hub.port)).close()
        except Refused as refused:
            return refused
    refused = await eventually(refusal, what="a refusal")
    assert refused.status == 503 and refused.headers["retry-after"] == "1"
    assert b"unable to connect to the project database" in refused.body


async def let_in(hub, **options):
    await eventually(lambda: hub.ops("/readyz")[0] == 200, what="/readyz to notice")

    async def attempt():
        try:
            return await Client.connect(hub.port, **options)
        except Refused as refused:
            assert refused.status == 503, refused
    return await eventually(attempt, what="a client is let in")


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_whoever_is_let_in_while_the_hub_starts_is_served(own_hub, own_table, ending):
    """Some clients never come back from a join that is refused; all of them do from a connection that is."""
    async def attempt():
        try:
            client = await Client.connect(own_hub.port)
        except Refused as refused:
            assert refused.status == 503
            return "refused"
        except OSError:
            return "not there"
        try:
            reply = await client.ask("realtime:r", "phx_join", ROWS)
            assert reply.payload["status"] == "ok", reply
            return "served"
        finally:
            await client.close()
    # On a busy machine the hub may be there before the first comes.
    rounds = early = 0
    while rounds < 3 or not early:
        own_hub.start(wait=False)
        outcomes = []
        async with asyncio.timeout(60):
            while outcomes.count("served") < 5:
                outcomes.extend(await asyncio.gather(attempt(), attempt()))
        rounds, early = rounds + 1, early + (outcomes.index("served") > 0)
        assert rounds < 30, "the test never began before the hub did"
        await asyncio.to_thread(getattr(own_hub, ending))


async def test_while_postgres_is_away_nobody_new_comes_and_nobody_goes():
    cluster = Cluster().start()
    hub = Hub(cluster.create_migrated_database("away"))
    try:
        with cluster.connect("away") as sql:
            sql.execute("alter database away set synchronous_commit = on")
            sql.execute("create table t (id int primary key)")
        hub.watch("t")
        hub.start()
        path = "/api/broadcast/chat/events"
        async with await Client.connect(hub.port) as client, await HTTPConnection.open(hub.port) as http:
            await client.watch("realtime:r", ROWS["config"]["postgres_changes"][0])
            await client.join("realtime:chat", config={"broadcast": {"self": True}})
            await asyncio.to_thread(cluster.stop, "immediate")
            await eventually(lambda: hub.ops("/readyz")[0] == 503, what="/readyz to notice")
            await refused_for_now(hub)
            # Whoever is there stays, and what needs no database goes on.
            client.push("realtime:chat", "broadcast", {"event": "e", "payload": {}})
            await client.next("broadcast")
            sent = await http.request("POST", path + "/e", b"{}", authorization="Bearer " + token(), content_type="application/json")
            assert sent.status == 202
            # An event source would take a 503 for the last word: its connection breaks, and it comes again. Others are told.
            rows = query([json.dumps({"topic": "r", **ROWS})], apikey=token())
            async with await HTTPConnection.open(hub.port) as source:
                source.write(f"GET /api/sse{rows} HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n".encode())
                assert await source.ended() == b""
            assert (await http.request("GET", f"/api/sse{rows}", None)).status == 503
            await asyncio.to_thread(cluster.start)
            async with await let_in(hub) as new:
                await new.watch("realtime:r", ROWS["config"]["postgres_changes"][0])
            with cluster.connect("away") as sql:
                sql.execute("insert into t values (1)")
            assert (await client.next("postgres_changes")).payload["data"]["record"] == {"id": 1}
        await hub.settled()
        assert hub.metric('roost_connections_refused_total{reason="database"}') >= 1
    finally:
        hub.remove()
        cluster.remove()


async def test_a_token_that_cannot_be_judged_while_postgres_is_away_ends_the_socket_and_no_channel():
    """A refused rejoin is the last word for some clients; a socket that is closed is not."""
    cluster = Cluster().start()
    hub = Hub(cluster.create_migrated_database("away"))
    try:
        with cluster.connect("away") as sql:
            sql.execute("create policy readers on realtime.messages for select to authenticated using (true)")
        hub.start()
        async with await Client.connect(hub.port, apikey=token("authenticated", lifetime=15, sub="ann")) as client:
            ref, _ = await client.join("realtime:a", config={"private": True})
            await asyncio.to_thread(cluster.stop, "immediate")
            await eventually(lambda: hub.ops("/readyz")[0] == 503, what="/readyz to notice")
            first = await client.ask("realtime:b", "phx_join", {"config": {"private": True}})
            assert first.payload["status"] == "error", "the socket and its channels go on"
            fresh = token("authenticated", lifetime=9000, sub="ann")
            client.push("realtime:a", "access_token", {"access_token": fresh}, client.ref(), ref)
            # Whether the fresh token may read cannot be judged: the channel keeps what it has, until the old one ends.
            await client.settled()
            assert client.closed is None
            assert (await client.end()).code == 1012
            assert not [message for message in client.messages if message.event == "phx_error"], "no channel is ended before"
        await refused_for_now(hub)
        await asyncio.to_thread(cluster.start)
        async with await let_in(hub, apikey=fresh) as client:
            await client.join("realtime:a", config={"private": True})
    finally:
        hub.remove()
        cluster.remove()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_postgres_restarts_while_clients_are_connected(mode):
    """They stay connected, broadcasts go on, and every commit before and after reaches them once."""
    cluster = Cluster().start()
    try:
        hub = Hub(cluster.create_database("shaky"))
        try:
            hub.run("migrate")
            with cluster.connect("shaky") as sql:
                # synchronous_commit is off in these clusters, but what was told to be committed must survive here.
                sql.execute("alter database shaky set synchronous_commit = on")
                sql.execute("create table t (id int primary key)")
            hub.watch("t")
            hub.start()
            client = await Client.connect(hub.port)
            await client.watch("realtime:r", {"event": "*", "schema": "public", "table": "t"})
            await client.join("realtime:chat", config={"broadcast": {"self": True}})
            seen = []
            client.on_message = lambda m: seen.append(m.payload["data"]["record"]["id"])
            with cluster.connect("shaky") as sql:
                for number in range(200):
                    sql.execute("insert into t values (%s)", (number,))
            await asyncio.to_thread(cluster.stop, mode)
            await eventually(lambda: hub.ops("/readyz")[0] == 503, what="/readyz to notice")
            client.push("realtime:chat", "broadcast", {"event": "e", "payload": {}})
            await client.next("broadcast")
            await asyncio.to_thread(cluster.start)
            with cluster.connect("shaky") as sql:
                for number in range(200, 400):
                    sql.execute("insert into t values (%s)", (number,))
            await eventually(lambda: len(seen) >= 400, what=lambda: f"{len(seen)} of 400")
            assert hub.ops("/readyz")[0] == 200
            with cluster.connect("shaky") as sql:
                sql.execute("insert into t values (400)")
            await eventually(lambda: seen[-1] == 400)
            assert seen == list(range(401)), "each once and in order"
            assert client.closed is None
            await client.close()
        finally:
            hub.remove()
    finally:
        cluster.remove()


async def test_the_hubs_sessions_are_terminated_under_load(own_hub, own_table, cluster):
    """pg_terminate_backend on all of the hub's sessions, again and again, while rows are written."""
    own_hub.start()
    client = await Client.connect(own_hub.port)
    await client.watch("realtime:r", {"event": "*", "schema": "public", "table": "t"})
    seen = []
    client.on_message = lambda m: seen.append(m.payload["data"]["record"]["id"])

    def write():
        with cluster.connect(own_hub.database) as sql, cluster.connect(own_hub.database) as killer:
            for number in range(3000):
                sql.execute("insert into t values (%s)", (number,))
                if number % 1000 == 500:
                    killer.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                                   " and datname = current_database() and pid <> %s", (sql.info.backend_pid,))

    await asyncio.to_thread(write)
    await eventually(lambda: len(set(seen)) == 3000, what=lambda: f"{len(set(seen))} of 3000")
    assert seen == list(range(3000)), f"{len(seen) - 3000} twice"
    assert client.closed is None
    await client.close()
