"""POST /settled on the operator's port: behind it, what had reached the hub can be seen, and nothing has to be waited for."""

import fcntl
import sys
import termios
import urllib.error
import urllib.request

import pytest

from support.deadline import eventually, until
from support.http import HTTPConnection
from support.hub import Hub
from support.redis import Redis
from support.streams import Stream, Upload
from support.wsclient import Client

pytestmark = pytest.mark.anyio


async def arrives(writer):
    """Waits until the kernel has all that was written in the hub's socket: on a busy machine it is a moment on its way."""
    await writer.drain()
    descriptor = writer.get_extra_info("socket").fileno()

    def unacknowledged():
        return int.from_bytes(fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)), sys.byteorder)

    await eventually(lambda: unacknowledged() == 0, what="the hub's kernel has it", every=0.001)


async def events_of(client, event):
    return [message for message in await client.settled() if message.event == event]


async def test_rows_that_were_committed_before_have_been_sent(hub, sql, table, connect, topic):
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": table})
    for number in range(50):
        sql.execute(f'insert into "{table}" (id, n) values ({number}, {number})')
        hub.settle()
        assert len(await events_of(client, "postgres_changes")) == number + 1
    with sql.transaction():
        sql.execute(f'insert into "{table}" (id) select generate_series(100, 5099)')
    hub.settle()
    assert len(await events_of(client, "postgres_changes")) == 5050


async def test_what_sockets_had_sent_is_counted_and_fanned_out(hub, connect, topic):
    """The shared hub has two loops, so half of it goes from one to the other."""
    clients = [await connect() for _ in range(6)]
    for client in clients:
        await client.join(topic)
    for round in range(20):
        hub.settle()
        before = hub.metric("roost_frames_received_total")
        for client in clients:
            client.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {"round": round}})
        for client in clients:
            await arrives(client.socket.writer)
        hub.settle()
        assert hub.metric("roost_frames_received_total") - before == 6
        for client in clients:
            assert len(await events_of(client, "broadcast")) == 5 * (round + 1)


async def test_appends_that_were_sent_can_be_read(hub, http):
    stream = Stream(http)
    await stream.create()
    async with await HTTPConnection.open(hub.port) as writing:
        upload = Upload(writing, stream)
        for number in range(20):
            # A piece of a request that goes on, so nothing answers it.
            upload.write(f"{number};".encode())
            await arrives(writing.writer)
            hub.settle()
            assert (await stream.read()).body.decode() == "".join(f"{n};" for n in range(number + 1))
        upload.end()
        assert (await upload.answer()).status in (200, 204)


def post(hub, method="POST", query="", **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{hub.ops_port}/settled{query}", method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()


def test_it_is_the_operators_alone(hub):
    assert post(hub) == (200, "ok\n")
    assert post(hub, query="?seconds=61") == (400, "Give seconds as a whole number from 1 to 60\n")
    assert post(hub, "GET") == (405, "Use POST\n")
    assert post(hub, Origin="http://evil.example")[0] == 403
    assert post(hub, Host="evil.example")[0] == 403


def test_with_a_token_it_asks_for_it(own_hub):
    own_hub.environment["ROOST_OPS_TOKEN"] = "operators-only-and-nobody-elses-token"
    own_hub.start()
    assert post(own_hub)[0] == 401
    assert post(own_hub, Authorization="Bearer operators-only-and-nobody-elses-token") == (200, "ok\n")


def test_it_does_not_lie_while_the_database_is_away(own_hub, cluster):
    own_hub.start()
    assert post(own_hub) == (200, "ok\n")
    with cluster.connect() as sql:
        sql.execute(f"alter database \"{own_hub.database}\" allow_connections false")
        try:
            sql.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [own_hub.database])
            until(lambda: own_hub.ops("/readyz")[0] == 503, what="the hub to notice")
            assert post(own_hub, query="?seconds=1") == (503, "not settled: the change feed has not delivered all that was committed\n")
        finally:
            sql.execute(f"alter database \"{own_hub.database}\" allow_connections true")
    until(lambda: post(own_hub)[0] == 200, 30, "the barrier to be reached again")


async def test_other_hubs_have_heard_of_it(cluster):
    with Redis() as redis:
        url = cluster.create_database("barrier_hubs")
        hubs = [Hub(url, ROOST_NODE_NAME=f"barrier{n}", ROOST_CLUSTER_URL=redis.url(), ROOST_LOOPS="2") for n in range(2)]
        try:
            hubs[0].run("migrate")
            for one in hubs:
                one.start()
            for one in hubs:
                until(lambda: one.ops("/readyz") == (200, "ok\n") and one.metric("roost_cluster_hubs") == 1, what="two hubs as one")
            async with await Client.connect(hubs[0].port) as speaker, await Client.connect(hubs[1].port) as hearer:
                for client in (speaker, hearer):
                    await client.join("realtime:both")
                for number in range(30):
                    speaker.push("realtime:both", "broadcast", {"type": "broadcast", "event": "e", "payload": {"n": number}})
                    await speaker.settled()
                    for one in hubs:
                        one.settle()
                    assert len(await events_of(hearer, "broadcast")) == number + 1
        finally:
            for one in hubs:
                one.remove()
