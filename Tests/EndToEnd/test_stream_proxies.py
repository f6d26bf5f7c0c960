"""Streams through the proxies that operators put in front, as their manuals' first pages set them up."""

import os

import pytest

from support.deadline import eventually
from support.events import EventReader
from support.http import HTTPConnection
from support.reverse_proxy import ReverseProxy
from support.streams import Stream, bearer, byte_count, offset

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["plain nginx", "nginx", "haproxy", "caddy"])
def proxy(shared_hub, request):
    proxy = ReverseProxy(request.param, shared_hub.port)
    try:
        yield proxy.start()
    finally:
        proxy.remove()


async def watch(proxy, stream, at=0, **headers):
    return await EventReader.open(
        proxy.port, f"{stream.path}?offset={offset(at)}&live=sse", **bearer(), **headers)


async def test_each_event_comes_through_by_itself(proxy, stream):
    """A browser asks for gzip; what gathers events to compress them would hold them back."""
    async with await watch(proxy, stream, accept_encoding="gzip") as events:
        assert events.status == 200
        assert (await events.json())[0] == "control"
        for word in ["Hello", ", ", "world"]:
            await stream.append(word.encode())
            assert (await events.next()).data == word
            await events.json()
        await stream.close()
        assert (await events.json())[1]["streamClosed"] and await events.next() is None


async def test_the_end_of_a_reader_reaches_the_hub(proxy, hub, stream):
    def open_files():
        return len(os.listdir(f"/proc/{hub.process.pid}/fd"))

    before = open_files()
    readers = [await watch(proxy, stream) for _ in range(20)]
    for events in readers:
        await events.json()
    # Some of these connections may have been there before.
    assert open_files() >= before + 12
    for events in readers:
        events.close()

    async def are_gone():
        # HAProxy notices when it has something to pass on.
        await stream.append(b".")
        return open_files() <= before + 8
    await eventually(are_gone, what="the readers' ends", every=0.1)


async def test_reconnects_are_byte_exact(proxy, stream):
    rounds = int(os.environ.get("ROOST_STREAM_RECONNECTS", "50"))
    got, said, at = "", "", 0
    for number in range(rounds):
        said += f"{number} Grüße 🐦 "
        await stream.append(f"{number} Grüße 🐦 ".encode())
        async with await watch(proxy, stream, at) as events:
            assert (event := await events.next()).name == "data"
            got += event.data
            at = byte_count((await events.json())[1]["streamNextOffset"])
        assert got == said and at == len(said.encode())


async def test_a_body_arrives_as_it_is_written(proxy, hub, stream):
    """But by nginx as it comes, which keeps uploads until they are whole: docs/streams.md has the two lines."""
    async with await HTTPConnection.open(proxy.port) as connection:
        fields = {**bearer(), "host": "127.0.0.1", "content-type": "text/plain", "transfer-encoding": "chunked", "stream-closed": "true"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        connection.write(f"POST {stream.path} HTTP/1.1\r\n{lines}\r\n5\r\nHello\r\n".encode())
        if proxy.kind != "plain nginx":
            await eventually(lambda: has(stream, 5), what="the first piece, before the body ends")
        connection.write(b"7\r\n, world\r\n0\r\n\r\n")
        assert (await connection.answer()).status == 204
    assert (await stream.read()).body == b"Hello, world"


async def has(stream, count):
    return byte_count((await stream.head()).headers["stream-next-offset"]) >= count
