"""Connections that are no WebSocket, or not yet: they count for their address, and make room for others."""

import asyncio
import contextlib
import socket

import pytest

from support.bounds import at_most
from support.certificates import Authority
from support.deadline import eventually
from support.http import HTTPConnection
from support.hub import Hub
from support.tokens import token
from support.websocket import Refused
from support.wsclient import Client

FILES = 300
FLOOD, SOMEBODY, PROXY = "127.0.0.21", "127.0.0.22", "127.0.0.23"
BEARER = f"authorization: Bearer {token('service_role')}"
KINDS = {
    "silent": b"",
    "kept alive": b"GET /healthcheck HTTP/1.1\r\nhost: a\r\n\r\n",
    "half a head": b"GET /healthcheck HTTP/1.1\r\nhost: a\r\n",
    "a body that does not come": f"POST /api/broadcast/t/events/e HTTP/1.1\r\nhost: a\r\n{BEARER}\r\ncontent-length: 5\r\n\r\n{{".encode(),
    "a long-poll": f"GET /streams/open?offset=now&live=long-poll HTTP/1.1\r\nhost: a\r\n{BEARER}\r\n\r\n".encode(),
}
IDLE = {"silent", "kept alive"}


@contextlib.contextmanager
def running(cluster, name, **settings):
    hub = Hub(cluster.create_migrated_database(name), **settings)
    try:
        yield hub
    finally:
        hub.remove()


async def with_a_stream(hub):
    async with await HTTPConnection.open(hub.port) as http:
        made = await http.request("PUT", "/streams/open", b"", authorization=BEARER.split(" ", 1)[1], content_type="text/plain")
        assert made.status in (200, 201)


@pytest.fixture(scope="module")
def scarce(cluster):
    """With few files."""
    with running(cluster, "connections_scarce", within=("prlimit", f"--nofile={FILES}:{FILES}"), ROOST_LOOPS="2") as hub:
        yield hub.start()


@pytest.fixture(scope="module")
def limited(cluster):
    with running(
            cluster, "connections_limited", ROOST_LOOPS="1", ROOST_LIMITS_CONNECTIONS_PER_ADDRESS="5",
            ROOST_HTTP_TRUSTED_PROXIES=PROXY) as hub:
        yield hub.start()


@pytest.fixture
def opened():
    """Opens connections that say something and then nothing more."""
    with contextlib.ExitStack() as stack:
        def open_one(hub, source, said=b""):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", hub.port), source_address=(source, 0)))
            one.sendall(said)
            return one
        yield open_one


async def is_let_in(hub, source, **options):
    return await upgrade(hub, source, **options) == 101


def ended(hub):
    return hub.metric("roost_http_connections_displaced_total") + hub.metric("roost_connections_unheard_total")


async def upgrade(hub, source, **options):
    try:
        async with await Client.connect(hub.port, source=source, **options) as client:
            await client.settled()
            return 101
    except Refused as refused:
        return refused.status


@pytest.mark.parametrize("kind", KINDS)
async def test_one_who_opens_many_keeps_nobody_out(scarce, opened, kind):
    """Twice as many as the hub has files: others get in all the same, one after the other and together."""
    await with_a_stream(scarce)
    await scarce.settled()
    before = ended(scarce)
    flood = []
    for number in range(2 * FILES):
        # A hub that turned one away may have closed it before it could say anything.
        with contextlib.suppress(ConnectionError):
            flood.append(opened(scarce, FLOOD, KINDS[kind]))
        if number % 50 == 0:
            await asyncio.sleep(0)
    with at_most(10, "ten sockets of somebody else"):
        for _ in range(10):
            assert await upgrade(scarce, SOMEBODY) == 101
    together = await asyncio.gather(*(Client.connect(scarce.port, source=SOMEBODY) for _ in range(10)))
    for client in together:
        await client.join("realtime:room")
    # Postgres and the operator's port have what they need.
    assert scarce.ops("/readyz")[0] == 200
    await scarce.settled()
    assert ended(scarce) > before
    assert scarce.open_files < FILES - 40, "some are kept for the hub itself"
    for client in together:
        await client.close()
    for one in flood:
        one.close()
    await eventually(lambda: scarce.metric("roost_http_connections") == 0, what="all of them gone")


@pytest.mark.parametrize("kind", KINDS)
async def test_they_count_for_their_address(limited, opened, kind):
    await with_a_stream(limited)
    await eventually(lambda: limited.metric("roost_http_connections") == 0, what="the last test's gone")
    held = [opened(limited, FLOOD, KINDS[kind]) for _ in range(5)]
    await eventually(lambda: limited.metric("roost_http_connections") == 5, what="all five at the hub")
    await limited.settled()
    # What has been idle for a while makes room for the next of its own address; a request does not.
    if kind in IDLE:
        await eventually(lambda: is_let_in(limited, FLOOD), what="room")
    else:
        assert await upgrade(limited, FLOOD) == 429
    assert await upgrade(limited, SOMEBODY) == 101
    # Of forty more, some are told and the rest are not heard; no more than five are let in.
    more = [opened(limited, FLOOD) for _ in range(40)]
    await eventually(lambda: limited.metric("roost_http_connections") <= 5 + 5 + 8, what="no more than are told")
    for one in [*held, *more]:
        one.close()
    await eventually(lambda: limited.metric("roost_http_connections") == 0, what="all gone")
    assert await upgrade(limited, FLOOD) == 101, "what is gone counts for nobody"


async def test_a_socket_is_one_connection(limited):
    """Its upgrade does not count it twice, nor does its end give back two."""
    for _ in range(2):
        clients = [await Client.connect(limited.port, source="127.0.0.24") for _ in range(5)]
        assert await upgrade(limited, "127.0.0.24") == 429
        for client in clients:
            await client.close()
        await eventually(lambda: limited.metric("roost_connections") == 0, what="all gone")


async def test_requests_over_the_limit_are_answered_so(limited, opened):
    held = [opened(limited, FLOOD, KINDS["half a head"]) for _ in range(5)]
    await eventually(lambda: limited.metric("roost_http_connections") == 5, what="all five at the hub")
    async with await HTTPConnection.open(limited.port, source=FLOOD) as http:
        answer = await http.request("GET", "/healthcheck")
        assert answer.status == 429 and "connections_per_address" in answer.json["error"]
        assert await http.ended() == b""
    for one in held:
        one.close()


async def test_by_a_proxy_a_connection_counts_for_whom_it_speaks(limited, opened):
    """While there is a request: what a proxy keeps for the next one is nobody's."""
    def asks(client, said):
        head, rest = said.split(b"\r\n", 1)
        return head + f"\r\nx-forwarded-for: {client}\r\n".encode() + rest
    headers = {"X-Forwarded-For": "192.0.2.1"}
    for kind, status in (("a body that does not come", 429), ("kept alive", 101)):
        await eventually(lambda: limited.metric("roost_http_connections") == 0, what="the last round's gone")
        held = [opened(limited, PROXY, asks("192.0.2.1", KINDS[kind])) for _ in range(5)]
        await eventually(lambda: limited.metric("roost_http_connections") == 5, what="all five at the hub")
        await limited.settled()
        assert await upgrade(limited, PROXY, headers=headers) == status, kind
        assert await upgrade(limited, PROXY, headers={"X-Forwarded-For": "192.0.2.2"}) == 101
        for one in held:
            one.close()


async def test_where_the_hub_ends_tls_it_is_the_same(cluster, opened, tmp_path):
    authority = Authority(tmp_path)
    with running(cluster, "connections_tls", ROOST_LOOPS="1", ROOST_LIMITS_CONNECTIONS_PER_ADDRESS="5") as hub:
        hub.secure(authority.pair(), authority.trust)
        hub.start()
        for _ in range(5):
            opened(hub, FLOOD)
        await eventually(lambda: hub.metric("roost_http_connections") == 5, what="all five at the hub")
        await eventually(lambda: is_let_in(hub, FLOOD, tls=hub.trust), what="room of those that say nothing")
        clients = [await Client.connect(hub.port, source=SOMEBODY, tls=hub.trust) for _ in range(5)]
        assert await upgrade(hub, SOMEBODY, tls=hub.trust) == 429
        for client in clients:
            await client.close()
        await eventually(lambda: hub.metric("roost_connections") == 0, what="all gone")
        assert await upgrade(hub, SOMEBODY, tls=hub.trust) == 101
