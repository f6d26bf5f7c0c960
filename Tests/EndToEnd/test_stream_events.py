"""Streams as events (`live=sse`): who is late, slow, gone, or behind an old proxy."""

import asyncio
import json
import os
import random

import pytest

from support.bounds import in_time
from support.certificates import Authority
from support.deadline import eventually
from support.events import Broken, EventReader
from support.http import HTTPConnection
from support.ports import SecurePort, over_both
from support.streams import Stream, bearer, byte_count, offset, stamp

pytestmark = pytest.mark.anyio


async def watch(hub, stream, at=0, **options):
    at = offset(at) if isinstance(at, int) else at
    return await EventReader.open(
        hub.port, f"{stream.path}?offset={at}&live=sse", **{**bearer(), **options})


async def text(events, until):
    """What data events say, up to so many bytes; the controls must agree."""
    got = b""
    while len(got) < until:
        name, value, _ = await events.next()
        if name == "data":
            got += value.encode()
    return got


@over_both
async def test_a_reader_is_sent_what_there_is_and_what_comes(hub, stream):
    await stream.append(b"Hello")
    async with await watch(hub, stream) as events:
        assert events.status == 200 and events.headers["content-type"] == "text/event-stream"
        assert events.headers["x-accel-buffering"] == "no" and "no-store" in events.headers["cache-control"]
        assert (await events.next()).data == "Hello"
        name, control = await events.json()
        assert name == "control" and control["streamNextOffset"] == offset(5) and control["upToDate"]
        await stream.append(b", world\nagain")
        assert (await events.next()).data == ", world\nagain"
        assert (await events.json())[1]["streamNextOffset"] == offset(18)
        await stream.close()
        name, control = await events.json()
        assert control == {
            "streamNextOffset": offset(18), "upToDate": True, "streamClosed": True, "status": "complete"}
        assert await events.next() is None


@over_both
async def test_a_connection_is_kept_behind_an_answer_that_ended(hub, stream):
    await stream.append(b"all", stream_closed="true")
    async with await watch(hub, stream) as events:
        assert (await events.next()).data == "all"
        assert (await events.json())[1]["streamClosed"] and await events.next() is None
        http = HTTPConnection(events.reader, events.writer)
        assert (await Stream(http, stream.name).read()).body == b"all"


@over_both
async def test_a_request_behind_an_answer_that_goes_on_waits_for_its_end(hub, stream):
    async with await watch(hub, stream) as events:
        await events.json()
        fields = "".join(f"{name}: {value}\r\n" for name, value in bearer().items())
        events.writer.write(f"HEAD {stream.path} HTTP/1.1\r\nhost: a\r\n{fields}\r\n".encode())
        await stream.append(b"x", stream_closed="true")
        assert (await events.next()).data == "x" and (await events.json())[1]["streamClosed"]
        assert await events.next() is None
        answer = await HTTPConnection(events.reader, events.writer).answer(has_body=False)
        assert answer.status == 200 and answer.headers["stream-closed"] == "true"


@over_both
async def test_http_1_0_has_no_chunks(hub, stream):
    await stream.append(b"Hello")
    async with await watch(hub, stream, version="1.0") as events:
        assert "transfer-encoding" not in events.headers and events.headers["connection"] == "close"
        assert (await events.next()).data == "Hello"
        await stream.close()
        await events.json()
        assert (await events.json())[1]["streamClosed"]
        assert await events.next() is None


@over_both
async def test_json_and_binary_streams_as_events(hub, http):
    messages = Stream(http)
    await messages.create("application/json", b'[{"n":1},{"n":2}]')
    async with await watch(hub, messages) as events:
        assert json.loads((await events.next()).data) == [{"n": 1}, {"n": 2}]
    sound = Stream(http)
    await sound.create("audio/ogg", bytes(range(256)))
    async with await watch(hub, sound) as events:
        import base64
        assert events.headers["stream-sse-data-encoding"] == "base64"
        assert base64.b64decode((await events.next()).data) == bytes(range(256))


@over_both
async def test_a_cancel_ends_the_events(hub, stream):
    await stream.append(b"so far")
    async with await watch(hub, stream) as events:
        await events.next(), await events.next()
        await stream.cancel()
        assert (await events.json())[1]["status"] == "cancelled" and await events.next() is None


async def test_a_producer_that_is_silent_is_said(cluster):
    from support.hub import Hub
    hub = Hub(cluster.create_database("stalls"), ROOST_STREAMS_STALLED_AFTER="1", ROOST_STREAMS_ABORTED_AFTER="3")
    try:
        hub.run("migrate")
        hub.start()
        async with await HTTPConnection.open(hub.port) as http:
            await in_time(1, lambda number: falls_silent(hub, Stream(http)))
    finally:
        hub.remove()


async def falls_silent(hub, stream):
    await stream.create()
    await stream.append(b"a", **stamp(0))
    async with await watch(hub, stream) as events:
        await events.next(), await events.next()
        assert (await events.json())[1]["status"] == "stalled"
        await stream.append(b"b", **stamp(1))
        assert (await events.next()).data == "b"
        assert "status" not in (await events.json())[1]
        assert (await events.json())[1]["status"] == "stalled"
        assert (await events.json())[1]["status"] == "aborted"
        assert await events.next() is None
    zombie = await stream.append(b"c", **stamp(2))
    assert zombie.status == 403 and zombie.headers["producer-epoch"] == "1"


async def test_what_is_deleted_ends_its_events(hub, stream):
    async with await watch(hub, stream) as events:
        await events.json()
        await stream.delete()
        assert await events.next() is None


@pytest.mark.parametrize("at, status", [(99, 410), ("abc", 400), ("", 400)])
async def test_offsets_that_are_none(hub, stream, at, status):
    async with await watch(hub, stream, at) as events:
        assert events.status == status and (await events.body())


async def test_who_may_not_read_is_told_before_the_events(hub, stream):
    async with await watch(hub, stream, **bearer("authenticated")) as events:
        assert events.status == 403


@over_both
async def test_many_watchers_get_the_same_bytes(hub, stream):
    watchers = [await watch(hub, stream) for _ in range(100)]
    said = b""
    for number in range(30):
        piece = f"token {number} ".encode()
        await stream.append(piece)
        said += piece
    for events in watchers:
        assert await text(events, len(said)) == said
        events.close()


@over_both
async def test_late_joiners_drops_and_resumes_are_byte_exact(hub, stream):
    """Readers that come at any time, break off at any time, and go on at the offset of their last control."""
    rounds = int(os.environ.get("ROOST_STREAM_JOINS", "200"))
    rng = random.Random(7)
    said, done, joins = bytearray(), False, {"events": 0, "polls": 0}

    async def write():
        nonlocal done
        for number in range(rounds * 2):
            piece = rng.choice(["word ", "Grüße ", "a\nb\n", "🐦", f"{number}"])
            answer = await stream.append(piece.encode(), **stamp(number))
            assert answer.status == 200
            said.extend(piece.encode())
            await asyncio.sleep(0)
        assert (await stream.close(**stamp(rounds * 2))).status == 200
        done = True

    async def read(seed):
        rng, got, at = random.Random(seed), "", 0
        for _ in range(rounds // 20):
            await asyncio.sleep(rng.random() * 0.01)
            joins["events"] += 1
            async with await watch(hub, stream, at) as events:
                parts = ""
                for _ in range(rng.randrange(1, 12)):
                    event = await events.next()
                    if event.name == "data":
                        parts += event.data
                        continue
                    control = json.loads(event.data)
                    got, parts, at = got + parts, "", byte_count(control["streamNextOffset"])
                    assert len(got.encode()) == at, "what was read is what the offset says"
                    if control.get("streamClosed"):
                        return got
        async with await watch(hub, stream, at) as events:
            while (event := await events.next()) is not None:
                if event.name == "data":
                    got += event.data
        return got

    async def poll(seed):
        """The same by long-polls, each on a connection that may be new."""
        rng, got, at, cursor = random.Random(seed), b"", offset(0), ""
        http = await HTTPConnection.open(hub.port)
        while True:
            if rng.random() < 0.3:
                http.writer.transport.abort()
                http = await HTTPConnection.open(hub.port)
            joins["polls"] += 1
            page = await Stream(http, stream.name).read(f"?offset={at}&live=long-poll{cursor}", within=40)
            got, at = got + page.body, page.headers["stream-next-offset"]
            assert byte_count(at) == len(got), "what was read is what the offset says"
            cursor = f"&cursor={page.headers['stream-cursor']}" if "stream-cursor" in page.headers else ""
            if page.headers.get("stream-closed"):
                http.writer.close()
                return got.decode()

    readers = [asyncio.create_task((poll if seed % 4 == 3 else read)(seed)) for seed in range(20)]
    await write()
    assert done
    for reader in readers:
        assert (await reader).encode() == bytes(said)
    print(joins)


# Who costs the hub something


def descriptors(hub):
    return len(os.listdir(f"/proc/{hub.process.pid}/fd"))


@over_both
async def test_a_reader_that_is_gone_is_noticed_at_once(hub, stream):
    before = descriptors(hub)
    watchers = [await watch(hub, stream) for _ in range(50)]
    for events in watchers:
        await events.json()
    assert descriptors(hub) >= before + 50
    for events in watchers[:25]:
        events.close()
    for events in watchers[25:]:
        events.writer.transport.abort()
    await eventually(lambda: descriptors(hub) <= before, what="the readers' ends")
    assert (await stream.append(b"x")).status == 204


@over_both
async def test_junk_on_an_answer_that_goes_on_is_bounded(hub, stream):
    async with await watch(hub, stream) as events:
        await events.json()
        try:
            for _ in range(100):
                events.writer.write(b"x" * 4096)
                await events.writer.drain()
            with pytest.raises((Broken, ConnectionError)):
                while True:
                    await events.next()
        except ConnectionError:
            pass
    assert (await stream.append(b"x")).status == 204


@over_both
async def test_a_slow_reader_is_sent_what_it_lacks_when_it_reads_again(hub, http):
    """It has an offset, and no queue: what others are sent meanwhile costs nothing for it."""
    stream = Stream(http)
    await stream.create("application/octet-stream")
    async with await watch(hub, stream, buffer=4096) as slow:
        before = hub.resident_bytes
        size = 0
        for _ in range(200):
            await stream.append(os.urandom(50_000), "application/octet-stream")
            size += 50_000
        assert hub.resident_bytes - before < 4 * size, "the stream itself, and little beside it"
        await stream.close()
        import base64
        got = 0
        while (event := await slow.next(30)) is not None:
            if event.name == "data":
                got += len(base64.b64decode(event.data))
        assert got == size


async def test_something_is_said_on_a_silent_answer(hub, stream):
    async with await watch(hub, stream) as events:
        await events.json()
        await eventually(lambda: _comments(events), within=20, what="a comment")


async def _comments(events):
    try:
        # It says nothing but a comment now and then.
        await events.next(within=0.5)
    except TimeoutError:
        pass
    return events.comments


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "tls"])
async def test_a_drain_ends_answers_whole(own_hub, is_secure, tmp_path):
    if is_secure:
        authority = Authority(tmp_path)
        own_hub.secure(authority.pair(), authority.trust)
        own_hub.port = SecurePort(own_hub.port, own_hub.trust)
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http)
        await stream.create()
        async with await watch(own_hub, stream) as events:
            await events.json()
            waiting = asyncio.create_task(events.next(within=30))
            await asyncio.to_thread(own_hub.stop, 30)
            assert await waiting is None
