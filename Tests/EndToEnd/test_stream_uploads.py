"""One long request that is appended as it comes: a backend that writes a reply for as long as it takes."""

import asyncio
import json

import pytest

from support.bounds import at_most
from support.deadline import eventually
from support.events import EventReader
from support.http import HTTPConnection
from support.ports import over_both
from support.streams import Stream, Upload, bearer, byte_count, offset

pytestmark = pytest.mark.anyio


@pytest.fixture
async def connection(hub):
    async with await HTTPConnection.open(hub.port) as connection:
        yield connection


async def length(stream):
    return byte_count((await stream.head()).headers["stream-next-offset"])


async def status(stream):
    return (await stream.head()).headers.get("stream-status")


@over_both
async def test_pieces_are_appended_as_they_come(hub, connection, stream):
    upload = Upload(connection, stream, stream_closed="true")
    async with await EventReader.open(hub.port, f"{stream.path}?offset=-1&live=sse", **bearer()) as events:
        await events.json()
        for word in ["Hello", ", ", "world"]:
            upload.write(word.encode())
            assert (await events.next()).data == word, "a reader has it before the next is written"
            await events.next()
        upload.end()
        answer = await upload.answer()
        assert answer.status == 204 and answer.headers["stream-next-offset"] == offset(12)
        assert (await events.json())[1]["streamClosed"]
    again = await connection.request("GET", stream.path, None, **bearer())
    assert again.body == b"Hello, world", "the connection is kept"


@over_both
async def test_an_end_without_a_close_leaves_the_stream_open(connection, stream):
    upload = Upload(connection, stream)
    upload.write(b"first half, ")
    upload.end()
    assert (await upload.answer()).status == 204
    assert await status(stream) is None
    upload = Upload(connection, stream)
    upload.write(b"second half")
    upload.end()
    assert (await upload.answer()).headers["stream-next-offset"] == offset(23)


@over_both
async def test_characters_may_be_torn_between_pieces(connection, stream):
    text = "Grüße an alle 🐦 überall"
    upload = Upload(connection, stream)
    for byte in text.encode():
        upload.write(bytes([byte]))
    upload.end()
    assert (await upload.answer()).status == 204
    assert (await stream.read()).body.decode() == text
    upload = Upload(connection, stream)
    upload.write(b"x\xc3")
    upload.end()
    assert (await upload.answer()).status == 400, "an end within a character is none"
    assert (await stream.read()).body.decode() in (text, text + "x"), "nothing of the torn character"


@over_both
async def test_a_body_that_breaks_off_stalls_the_stream(hub, stream):
    connection = await HTTPConnection.open(hub.port)
    upload = Upload(connection, stream)
    upload.write(b"begin")
    await eventually(lambda: has(stream, 5), what="the piece")
    connection.writer.close()
    with at_most(5, "the word of the stall"):
        await eventually(lambda: is_stalled(stream), what="the stall")
    assert (await stream.append(b" again")).status == 204
    assert await status(stream) is None


async def has(stream, count):
    return await length(stream) >= count


async def is_stalled(stream):
    return await status(stream) == "stalled"


@pytest.mark.parametrize("end", ["cancel", "close", "delete"])
@over_both
async def test_the_producer_is_told_of_an_end_at_once(connection, stream, end):
    """In the middle of its body, whatever it is about to write."""
    upload = Upload(connection, stream)
    upload.write(b"so far")
    await eventually(lambda: has(stream, 6), what="the piece")
    match end:
        case "cancel": await stream.cancel()
        case "close": await stream.close()
        case "delete": await stream.delete()
    answer = await upload.answer()
    if end == "delete":
        assert answer.status == 404
    else:
        assert answer.status == 409 and answer.headers["stream-next-offset"] == offset(6)
        assert answer.headers["stream-closed"] == "true"
        assert (answer.headers.get("stream-cancelled") == "true") == (end == "cancel")
    assert answer.headers["connection"] == "close"


@over_both
async def test_who_may_not_write_is_told_before_anything_is_read(connection, stream):
    upload = Upload(connection, stream, **bearer("authenticated"))
    assert (await upload.answer()).status == 403
    assert await length(stream) == 0


async def test_a_stream_that_is_not_there(connection, http):
    upload = Upload(connection, Stream(http))
    assert (await upload.answer()).status == 404


@over_both
async def test_a_hundred_thousand_pieces_cost_no_memory(hub, connection, http):
    """What comes faster than it can be kept waits in the sender's socket."""
    stream = Stream(http)
    await stream.create("application/octet-stream")
    upload = Upload(connection, stream, "application/octet-stream", stream_closed="true")
    before = hub.resident_bytes
    for _ in range(1000):
        for _ in range(100):
            upload.write(b"x" * 100)
        await connection.writer.drain()
    upload.end()
    assert (await upload.answer(60)).headers["stream-next-offset"] == offset(10_000_000)
    assert hub.resident_bytes - before < 60_000_000


@over_both
async def test_a_stream_that_is_full_ends_the_request(connection, stream):
    upload = Upload(connection, stream)
    try:
        for _ in range(60):
            upload.write(b"x" * 100_000)
            await connection.writer.drain()
    except ConnectionError:
        pass
    answer = await upload.answer()
    assert answer.status == 413 and "streams.bytes" in answer.json["error"]
    assert await length(stream) <= 4_194_304


@over_both
async def test_messages_are_one_append_however_they_come(connection, http):
    stream = Stream(http)
    await stream.create("application/json")
    upload = Upload(connection, stream, "application/json")
    body = json.dumps([{"n": number} for number in range(5)]).encode()
    for byte in body:
        upload.write(bytes([byte]))
    upload.end()
    assert (await upload.answer()).status == 204
    assert (await stream.read()).json == [{"n": number} for number in range(5)]
