"""Clients that know nothing of cursors lose their socket while rows are written, come back, and have missed nothing."""

import asyncio
import os
import socket
import struct

import pytest

from support.chat import A, ADA, GRACE, install, message, person
from support.deadline import eventually
from support.pypi import Listener, python_client
from support.returning import Returning, Rows, in_order
from support.wsclient import Client

RECONNECTS = int(os.environ.get("ROOST_E2E_RECONNECTS", "20"))
ROWS_PER_RECONNECT = 100


@pytest.fixture
def url(hub):
    return hub.environment["ROOST_DATABASE_URL"]


@pytest.fixture
async def returning(hub):
    """Makes returning clients and closes them at the end."""
    made = []

    def make(*arguments, **options):
        made.append(Returning(hub, *arguments, **options))
        return made[-1]

    yield make
    for client in made:
        await client.close()


def reset(client):
    """Cuts the PyPI client's connection as a dying network does."""
    transport = client._ws_connection.transport
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


@pytest.mark.parametrize("version", [1, 2])
async def test_a_socket_is_cut_again_and_again_while_rows_flow(returning, table, topic, url, version):
    client = returning(topic, table, version)
    await client.enter()
    rows = Rows(url, table, rate=400)
    rows.start()
    for turn in range(10):
        await asyncio.sleep(0.1)
        # Every other time with bytes that the kernel has acknowledged and the client has not seen.
        await client.cut(unread=0.1 if turn % 2 else 0)
        await asyncio.sleep(0.05)
        await client.enter()
    committed = await rows.stop()
    await client.has(committed)
    await client.settled()
    print(f"{len(committed)} rows, {client.sockets - 1} reconnects, {len(client.ids) - len(committed)} repeats")
    assert set(client.ids) == set(committed)
    assert in_order(client.ids)


@pytest.mark.parametrize("version", [1, 2])
async def test_all_that_was_missed_comes_and_then_what_is_new(returning, sql, table, topic, version):
    """Inserts, updates and deletes while the client is away, among them one transaction of many rows."""
    client = returning(topic, table, version)
    await client.enter()
    sql.execute(f"insert into {table} values (1, 'seen', 1)")
    await client.has([1])
    await client.cut()
    sql.execute(f"insert into {table} select n, 'missed', n from generate_series(2, 3000) n")
    sql.execute(f"update {table} set body = 'changed' where id = 2")
    sql.execute(f"delete from {table} where id = 3")
    response = await client.enter()
    assert set(response) == {"postgres_changes"}, "a client that did not ask is told nothing else"
    sql.execute(f"insert into {table} values (4000, 'new', 0)")
    await client.has([*range(1, 3001), 4000])
    kinds = [(frame["data"]["type"], record["id"]) for frame, record in zip(client.frames, client.records)]
    missed = [kind for kind in dict.fromkeys(kinds) if kind != ("INSERT", 1)]
    assert missed == [*(("INSERT", n) for n in range(2, 3001)), ("UPDATE", 2), ("DELETE", 3), ("INSERT", 4000)]


async def test_the_python_client_is_cut_while_many_rows_are_inserted(hub, table, name, url):
    """The must-show: 100 reconnects and 10,000 rows with ROOST_E2E_RECONNECTS=100."""
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(schema="public", table=table).subscribe()
        rows = Rows(url, table, rate=800)
        rows.start()
        for turn in range(RECONNECTS):
            await eventually(lambda: len(rows.committed) >= turn * ROWS_PER_RECONNECT, 60)
            if turn % 2:
                # Bytes arrive that it never reads.
                client._ws_connection.transport.pause_reading()
                await asyncio.sleep(0.05)
            seen = len(listener.states)
            reset(client)
            await listener.wait_for_state("SUBSCRIBED", after=seen)
        await eventually(lambda: len(rows.committed) >= RECONNECTS * ROWS_PER_RECONNECT, 60)
        committed = await rows.stop()
        ids = [change["data"]["record"]["id"] for change in listener.changes]
        def received():
            ids[:] = [change["data"]["record"]["id"] for change in listener.changes]
            return set(ids) >= set(committed)
        await eventually(received, what=lambda: f"{len(set(committed) - set(ids))} of {len(committed)} rows: "
                         f"{sorted(set(committed) - set(ids))[:20]}")
    print(f"\n{len(committed)} rows, {RECONNECTS} forced reconnects of the PyPI client: lost 0, "
          f"repeats {len(ids) - len(committed)}")
    assert set(ids) == set(committed)
    assert in_order(ids)


async def test_a_client_that_closes_its_socket_without_leaving_may_come_back(returning, sql, table, topic):
    client = returning(topic, table)
    await client.enter()
    await client.close()
    sql.execute(f"insert into {table} values (1)")
    await client.enter()
    await client.has([1])


@pytest.fixture
async def witness(returning, table):
    """Somebody who hears everything: what has arrived here is behind the hub, and live for nobody any more."""
    client = returning("realtime:witness", table, sub="witness")
    await client.enter()
    return client


async def test_nothing_is_replayed_after_a_leave(returning, sql, table, topic, witness):
    client = returning(topic, table)
    fillers = iter(range(100, 200))

    async def write_unheard(row):
        """And so long before the next join that it lies before the hub's last mark, of which there is one in 20 ms."""
        for number in (row, next(fillers), next(fillers)):
            sql.execute(f"insert into {table} values ({number})")
            await witness.has([number])
            await asyncio.sleep(0.03)

    await client.enter()
    reply = await client.client.ask(topic, "phx_leave", {})
    assert reply.payload["status"] == "ok"
    await write_unheard(1)
    client._refs = client.client._refs
    await client.join()
    sql.execute(f"insert into {table} values (2)")
    await client.has([2])
    assert 1 not in client.ids
    await client.close()
    # Nor on a new socket, after a leave on the old one.
    other = returning(topic, table, sub="other")
    await other.enter()
    await other.client.ask(topic, "phx_leave", {})
    await other.cut()
    await write_unheard(3)
    await other.enter()
    sql.execute(f"insert into {table} values (4)")
    await other.has([4])
    assert 3 not in other.ids


async def test_a_half_open_socket_is_no_obstacle(returning, table, topic, url):
    """The client gave its socket up, and the hub cannot know: what was sent there has to come again."""
    client = returning(topic, table)
    await client.enter()
    rows = Rows(url, table, rate=300)
    rows.start()
    deaf = []
    for _ in range(4):
        await asyncio.sleep(0.2)
        deaf.append(client.go_deaf())
        await asyncio.sleep(0.2)
        await client.enter()
    committed = await rows.stop()
    await client.has(committed)
    assert in_order(client.ids)
    for old in deaf:
        old.socket.abort()


async def test_joining_again_on_the_same_socket_misses_nothing(returning, table, topic, url):
    client = returning(topic, table)
    await client.enter()
    rows = Rows(url, table, rate=500)
    rows.start()
    for _ in range(20):
        await asyncio.sleep(0.03)
        await client.join()
    committed = await rows.stop()
    await client.has(committed)
    assert in_order(client.ids)


async def test_a_join_that_timed_out_on_the_client_ends_no_session(returning, sql, table, topic):
    """realtime-js sends phx_leave when the answer to its join is late, and joins again: that is no goodbye."""
    client = returning(topic, table)
    await client.enter()
    await client.cut()
    sql.execute(f"insert into {table} select generate_series(1, 50)")
    await client.connect()
    raw = client.client
    first = raw.ref()
    payload = {"config": {"postgres_changes": [client.binding]}}
    raw.push(topic, "phx_join", payload, first, first)
    raw.push(topic, "phx_leave", {}, raw.ref(), first)
    await client.join()
    await client.has(range(1, 51))


@pytest.mark.parametrize(
    "other", [{"sub": "another"}, {"role": "service_role"}, {"filter": "id=gt.0"}, {"event": "INSERT"}],
    ids=["user", "role", "filter", "event"])
async def test_a_session_is_taken_over_by_the_same_client_only(returning, sql, table, topic, witness, other):
    client, stranger = returning(topic, table), returning(topic, table, **other)
    await client.enter()
    await client.cut()
    sql.execute(f"insert into {table} values (1)")
    await witness.has([1])
    await stranger.enter()
    sql.execute(f"insert into {table} values (2)")
    await stranger.has([2])
    assert stranger.ids == [2], "what another missed"
    # And it is still there for the one that it belongs to.
    await client.enter()
    await client.has([1, 2])


async def test_two_devices_of_one_user_both_get_what_they_missed(returning, sql, table, topic):
    devices = [returning(topic, table, version) for version in (1, 2, 2)]
    for device in devices:
        await device.enter()
    for number in range(1, 6):
        # One after the other goes away, and they come back in another order.
        for device in devices:
            await device.cut()
            sql.execute(f"insert into {table} select generate_series({number * 100}, {number * 100 + 50})")
            sql.execute(f"delete from {table} where id >= {number * 100}")
        for device in reversed(devices):
            await device.enter()
    for device in devices:
        await device.has(n for number in range(1, 6) for n in range(number * 100, number * 100 + 51))


async def test_whoever_was_removed_meanwhile_gets_nothing(own_hub, cluster):
    """Entitlement is that of the moment of the replay. The one who stayed gets all."""
    with cluster.connect(own_hub.database) as sql:
        install(sql)
        own_hub.run("watch", "messages", "--scope", "conversation_id", "--members", "conversation_participants")
        own_hub.start()
        ada, grace = (Returning(own_hub, f"realtime:{A}", "messages", sub=user.sub, filter=f"conversation_id=eq.{A}")
                      for user in (ADA, GRACE))
        for client in (ada, grace):
            await client.enter()
        sql.execute(message(100, A, person(0)))
        for client in (ada, grace):
            await client.has([100])
            await client.client.settled()
            await client.cut()
        sql.execute(message(101, A, person(0)))
        sql.execute("delete from conversation_participants where conversation_id = %s and user_id = %s", [A, GRACE.sub])
        sql.execute(message(102, A, person(0)))
        for client in (ada, grace):
            await client.enter()
        await ada.has([101, 102])
        await asyncio.sleep(1)
        await grace.settled()
        assert {101, 102}.isdisjoint(grace.ids), "shown to one who is not a member any more"
        sql.execute("insert into conversation_participants (conversation_id, user_id) values (%s, %s)", [A, GRACE.sub])
        sql.execute(message(103, A, person(0)))
        await grace.has([103])
        assert {101, 102}.isdisjoint(grace.ids), "shown to one who is not a member any more"
        for client in (ada, grace):
            await client.close()


async def test_a_session_ends_with_its_window(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
        own_hub.environment["ROOST_FEED_RECOVERY_WINDOW_SECONDS"] = "1"
        own_hub.start()
        client = Returning(own_hub, "realtime:r", "t")
        await client.enter()
        await client.cut()
        sql.execute("insert into t values (1)")
        # The hub has noticed, and the window begins.
        await own_hub.settled()
        await asyncio.sleep(1.5)
        await client.enter()
        sql.execute("insert into t values (2)")
        await client.has([2])
        assert client.ids == [2]
        await client.close()
