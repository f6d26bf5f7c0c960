"""Behind Envoy as docs/supabase.md has it, and as Supabase's own compose files have it."""

import asyncio
import itertools

import pytest

from support.envoy import Envoy
from support.events import Broken
from support.http import HTTPConnection
from support.hub import Hub
from support.ports import free_port
from support.pypi import Listener, python_client
from support.subscriptions import Subscription
from support.tokens import token
from support.websocket import Refused
from support.wsclient import Client

_numbers = itertools.count(1)
#: As the gateway of Supabase's compose files has it (supabase/supabase, docker/volumes/api/envoy), but for the seconds.
LIMITED = ("timeout: 0s", "timeout: 1s")
REWRITTEN = ("cluster: roost\n", "cluster: roost\n                  prefix_rewrite: /socket/\n")


@pytest.fixture(scope="module")
def gated(cluster):
    """A hub that takes Envoy's word for who its clients are."""
    hub = Hub(cluster.create_migrated_database("gated"), ROOST_LIMITS_CONNECTIONS_PER_ADDRESS="2", ROOST_LIMITS_FAILURES_PER_MINUTE="0",
              ROOST_HTTP_TRUSTED_PROXIES="127.0.0.1")
    try:
        with cluster.connect("gated") as sql:
            sql.execute("create table t (id int primary key)")
            hub.watch("t")
            hub.sql = sql
            yield hub.start()
    finally:
        hub.remove()


class Through:
    """A hub's address as its clients have it."""

    def __init__(self, envoy):
        self.port, self.url = envoy.port, f"ws://127.0.0.1:{envoy.port}/realtime/v1"


@pytest.fixture(params=[(), (LIMITED, REWRITTEN)], ids=["page", "supabase"])
def envoy(gated, request):
    with Envoy(gated.port, free_port(), *request.param) as envoy:
        yield envoy


async def test_rows_broadcasts_and_presence_come_through(gated, envoy, name):
    secret = token(sub="whoever-reads-the-log")
    number = next(_numbers)
    async with python_client(Through(envoy), apikey=secret) as client:
        listener = Listener(client, name, broadcast_self=True, ack=True, presence=True)
        await listener.on_broadcast("wave").on_changes(table="t", schema="public").subscribe()
        gated.sql.execute("insert into t values (%s)", [number])
        assert (await listener.take())[0]["record"] == {"id": number}
        await listener.channel.send_broadcast("wave", {"n": 1})
        await listener.channel.track({"name": "ann"})
        gated.sql.execute("delete from t where id = %s", [number])
        assert (await listener.take())[0]["old_record"] == {"id": number}
        assert [wave["payload"]["n"] for wave in listener.broadcasts] == [1] and listener.joins
    assert "/websocket" in envoy.log
    assert secret not in envoy.log and secret.split(".")[1] not in envoy.log, envoy.log


async def test_limits_are_those_of_the_clients_address(gated, envoy):
    async with await Client.connect(envoy.port, headers={"X-Forwarded-For": "198.51.100.1"}) as first, await Client.connect(envoy.port) as second:
        await first.settled(), await second.settled()
        with pytest.raises(Refused) as refused:
            await Client.connect(envoy.port, headers={"X-Forwarded-For": "198.51.100.2"})
        assert refused.value.status == 429, "Envoy names the address that it was called from"


async def test_a_route_s_timeout_ends_event_sources_and_no_sockets(gated, name):
    with Envoy(gated.port, free_port(), LIMITED) as envoy:
        async with await Client.connect(envoy.port) as client:
            await client.join(f"realtime:{name}")
            async with await Subscription.open(envoy.port, f"/realtime/v1/api/broadcast/{name}/events") as events:
                client.push(f"realtime:{name}", "broadcast", {"type": "broadcast", "event": "wave", "payload": {"n": 1}})
                assert (await events.message()).payload == {"n": 1}
                with pytest.raises(Broken):
                    await events.message()
            await client.settled()


async def test_what_comes_while_the_hub_restarts_waits_for_it(gated):
    with Envoy(gated.port, free_port()) as envoy:
        await asyncio.to_thread(gated.stop)
        async with await HTTPConnection.open(envoy.port) as http:
            http.write(f"GET /realtime/v1/api/ping HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token()}\r\n\r\n".encode())
            await asyncio.to_thread(gated.start)
            assert (await http.answer()).status == 200, "without retries it would have been 503, at which an event source gives up"
