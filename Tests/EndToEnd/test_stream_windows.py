"""Streams of speech and sound: media types end to end, bounds by kind, and windows of which only the newest is kept."""

import base64
import json
import os
import random

import pytest

from support.events import EventReader
from support.http import HTTPConnection
from support.streams import Stream, Upload, bearer, byte_count, offset, stamp
from support.tokens import token
from support.wsclient import Client

pytestmark = pytest.mark.anyio

MPEG = "audio/mpeg"
WINDOW = 100_000
#: By how much a window may be larger.
SLACK = 65_536
BOUNDS = [
    {"stream": "radio/*", "bytes": WINDOW, "keep": "newest"},
    {"stream": "small/*", "bytes": 2048},
]


@pytest.fixture
async def http(own_hub):
    own_hub.environment["ROOST_STREAMS_BOUNDS"] = json.dumps(BOUNDS)
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as connection:
        yield connection


async def watch(hub, stream, at):
    return await EventReader.open(hub.port, f"{stream.path}?offset={at}&live=sse", **bearer())


async def fill(stream, pieces, first=0, size=10_000):
    """Numbered pieces; returns what was appended."""
    said = b""
    for number in range(first, first + pieces):
        piece = random.Random(number).randbytes(size)
        answer = await stream.append(piece, MPEG, **stamp(number))
        assert answer.status == 200, answer.body
        said += piece
    return said


async def earliest(stream):
    """Where a page from the start begins."""
    page = await stream.read("?offset=-1")
    return byte_count(page.headers["stream-next-offset"]) - len(page.body), page.body


async def test_sound_by_every_way(own_hub, http):
    """Written by requests, in pieces and by a socket; read as it is, as events, as plain events and by a socket."""
    stream = Stream(http, "voice/1")
    sound = bytes(range(256)) * 40
    created = await stream.create(MPEG, sound[:1000])
    assert created.status == 201 and created.headers["content-type"] == MPEG
    async with await HTTPConnection.open(own_hub.port) as connection:
        upload = Upload(connection, stream, MPEG)
        for place in range(1000, 5000, 1000):
            upload.write(sound[place:place + 1000])
        upload.end()
        assert (await upload.answer()).status == 204
    assert (await stream.append(b"x", "text/plain")).status == 409
    member = await Client.connect(own_hub.port, 2, apikey=token("service_role"))
    await member.join("realtime:stream:voice/1", config={"private": True, "broadcast": {"ack": True}})
    reply = await member.ask(
        "realtime:stream:voice/1", "broadcast",
        {"type": "broadcast", "event": "append", "payload": {"base64": base64.b64encode(sound[5000:]).decode()}})
    assert reply.payload["status"] == "ok", reply.payload
    page = await stream.read("?offset=-1")
    assert page.body == sound and page.headers["content-type"] == MPEG
    assert "content-disposition" not in page.headers, "a browser plays it"
    await stream.close()
    async with await watch(own_hub, stream, -1) as events:
        assert events.headers["stream-sse-data-encoding"] == "base64"
        assert base64.b64decode((await events.next()).data) == sound
    async with await EventReader.open(own_hub.port, f"{stream.path}?live=events", **bearer()) as events:
        assert base64.b64decode((await events.next()).data) == sound
    told = b""
    while len(told) < len(sound):
        frame = json.loads((await member.next("broadcast")).payload.payload)
        assert frame["at"] == len(told)
        told += base64.b64decode(frame["base64"])
    assert told == sound
    await member.close()


async def test_speech_in_json_of_a_hundred_seconds(own_hub, http):
    """64 kbit/s as base64 in messages, by the bounds that a hub has if nobody sets any."""
    stream = Stream(http, "voice/2")
    await stream.create("application/json")
    for number in range(13):
        speech = base64.b64encode(os.urandom(61_440)).decode()
        answer = await stream.append(json.dumps({"type": "audioChunk", "audio": speech, "chunkIndex": number}).encode(),
                                     "application/json")
        assert answer.status == 204, f"piece {number}: {answer.body}"
    assert byte_count((await stream.head()).headers["stream-next-offset"]) > 1_048_576


async def test_a_bound_is_its_patterns(http):
    small, other = Stream(http, "small/1"), Stream(http, "other/1")
    for stream in small, other:
        await stream.create(MPEG)
    refused = await small.append(b"x" * 2049, MPEG)
    assert refused.status == 413 and b"2048 bytes" in refused.body
    assert (await small.append(b"x" * 2048, MPEG)).status == 204
    assert (await other.append(b"x" * 2049, MPEG)).status == 204


async def test_a_window_begins_at_the_earliest_that_is_kept(own_hub, http):
    stream = Stream(http, "radio/1")
    await stream.create(MPEG)
    said = await fill(stream, 50)
    start, body = await earliest(stream)
    assert 0 < start and WINDOW <= len(body) <= WINDOW + SLACK
    assert body == said[start:]
    # What is gone is gone, by every way of reading that names it.
    for query in f"?offset={offset(0)}", f"?offset={offset(start - 1)}", f"?offset={offset(0)}&live=long-poll":
        gone = await stream.read(query)
        assert gone.status == 410, (query, gone.status)
    async with await watch(own_hub, stream, offset(0)) as events:
        assert events.status == 410
    async with await watch(own_hub, stream, -1) as events:
        assert base64.b64decode((await events.next()).data) == said[start:]
    async with await EventReader.open(
            own_hub.port, f"{stream.path}?live=events", last_event_id="1-0", **bearer()) as events:
        assert base64.b64decode((await events.next()).data) == said[start:]
    # A page in the middle never changes.
    middle = await stream.read(f"?offset={offset(start + 5)}")
    assert middle.status == 200 and middle.body == said[start + 5:]
    own_hub.kill()
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http:
        again = Stream(http, "radio/1")
        assert await earliest(again) == (start, said[start:])
        repeated = await again.append(random.Random(49).randbytes(10_000), MPEG, **stamp(49))
        assert repeated.status == 204, "its producer is known"
        said += await fill(again, 30, first=50)
        start, body = await earliest(again)
        assert body == said[start:] and start > 500_000
    files = [name for name in os.listdir(own_hub.environment["ROOST_STREAMS_DIRECTORY"]) if name.endswith(".stream")]
    size = os.path.getsize(f"{own_hub.environment['ROOST_STREAMS_DIRECTORY']}/{files[0]}")
    assert len(files) == 1 and size < 2 * (WINDOW + SLACK), "the file is no larger than what is kept, and its records"
    await own_hub.settled()
    assert own_hub.metric("roost_stream_bytes") == len(body)


async def test_a_member_that_comes_late_is_told_that_it_skips(own_hub, http):
    stream = Stream(http, "radio/2")
    await stream.create(MPEG)
    said = await fill(stream, 50)
    member = await Client.connect(own_hub.port, 2, apikey=token("service_role"))
    await member.join("realtime:stream:radio/2", config={"private": True})
    first = json.loads((await member.next("broadcast")).payload.payload)
    assert first["skipped"] is True and first["at"] > 0
    assert base64.b64decode(first["base64"]) == said[first["at"]:]
    said += await fill(stream, 1, first=50)
    second = json.loads((await member.next("broadcast")).payload.payload)
    assert second["at"] == first["next"] and "skipped" not in second
    assert base64.b64decode(second["base64"]) == said[second["at"]:]
    await member.close()


async def test_a_reader_that_is_too_slow_is_told_so(own_hub, http):
    """It has stopped reading while all that it lacks leaves the window: its answer ends, and its offset is gone."""
    stream = Stream(http, "radio/3")
    await stream.create(MPEG)
    async with await EventReader.open(
            own_hub.port, f"{stream.path}?offset=-1&live=sse", buffer=65_536, **bearer()) as events:
        # More than its socket takes, and the hub's own; and soon, as a peer that acknowledges nothing for 30 s is cut off.
        said = await fill(stream, 80, size=WINDOW)
        last, got = None, b""
        while (event := await events.next()) is not None:
            if event.name == "control":
                last = json.loads(event.data)["streamNextOffset"]
            else:
                got += base64.b64decode(event.data)
        assert got == said[:len(got)] and len(got) < len(said)
        assert byte_count(last) == len(got), "it was told up to where it read"
    assert (await stream.read(f"?offset={last}")).status == 410


async def test_a_window_of_several_hubs_stops_the_start(own_hub):
    failed = own_hub.run(
        "serve", check=False, ROOST_STREAMS_BOUNDS=json.dumps(BOUNDS), ROOST_CLUSTER_URL="redis://127.0.0.1:1")
    assert failed.returncode == 78 and "keep: newest" in failed.stderr, failed.stderr
