"""`roost stream`: replies piped in and read by a command."""

import asyncio
import json
import signal
import subprocess

import pytest

from support.deadline import PATIENCE
from support.hub import BINARY
from support.streams import Stream, bearer, new_name

pytestmark = pytest.mark.anyio


def command(hub, *arguments, **options):
    return subprocess.Popen(
        [BINARY, "stream", *arguments], env=hub.environment, cwd=hub.folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


async def ended(process, within=PATIENCE, as_bytes=False):
    out, err = await asyncio.wait_for(asyncio.to_thread(process.communicate), within)
    return (process.returncode, out, err) if as_bytes else (process.returncode, out.decode(), err.decode())


async def test_what_comes_in_is_read_as_it_comes(hub, http):
    name = new_name()
    writer = command(hub, "append", name, "--create", "--close")
    writer.stdin.write("Grüße, ".encode())
    writer.stdin.flush()
    stream = Stream(http, name, **bearer())

    async def has(text):
        for _ in range(500):
            if (answer := await stream.read("?offset=-1")).status == 200 and answer.body.decode() == text:
                return True
            await asyncio.sleep(0.02)
    assert await has("Grüße, "), "before the end of the input"
    reader = command(hub, "read", name)
    writer.stdin.write(b"world\nand more")
    assert await ended(writer) == (0, "", "")
    assert await ended(reader) == (0, "Grüße, world\nand more", "")


async def test_turn_by_turn(hub):
    name = new_name()
    for turn in (b"one", b"two"):
        writer = command(hub, "append", name, "--next", "--close")
        writer.stdin.write(turn)
        assert await ended(writer) == (0, "", "")
        assert await ended(command(hub, "read", name)) == (0, turn.decode(), "")


@pytest.mark.parametrize("format, events", [
    ("openai", ['{"choices":[{"delta":{"content":"Hel"}}]}', '{"choices":[{"delta":{"content":"lo"}}]}', "[DONE]"]),
    ("anthropic", ['{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hello"}}']),
    ("vercel", ['{"type":"text-delta","delta":"Hello"}', '{"type":"finish"}']),
])
async def test_the_text_of_models_replies(hub, http, format, events):
    name = new_name()
    writer = command(hub, "append", name, "--create", "--close", "--format", format)
    writer.stdin.write("".join(f"event: x\ndata: {event}\n\n" for event in events).encode())
    assert (await ended(writer))[0] == 0
    assert (await Stream(http, name, **bearer()).read("?offset=-1")).body == b"Hello"


async def test_a_stream_from_its_making_to_its_end(hub):
    name = new_name()
    assert await ended(command(hub, "create", name, "--type", "application/json")) == (0, "", "")
    writer = command(hub, "append", name, "--type", "application/json")
    writer.stdin.write(json.dumps([{"n": 1}]).encode())
    assert (await ended(writer))[0] == 0
    assert await ended(command(hub, "read", name, "--once")) == (0, '{"n": 1}\n', "")
    assert await ended(command(hub, "cancel", name)) == (0, "", "")
    status, _, sentence = await ended(command(hub, "read", name))
    assert status == 1 and sentence == "Error: The stream ended: cancelled.\n"
    writer = command(hub, "append", name, "--type", "application/json")
    writer.stdin.write(b"[2]")
    status, _, sentence = await ended(writer)
    assert status == 1 and sentence == "Error: This stream has ended.\n"
    assert await ended(command(hub, "delete", name)) == (0, "", "")
    status, _, sentence = await ended(command(hub, "close", name))
    assert status == 1 and "no such stream" in sentence.lower()


@pytest.mark.parametrize("kind, pieces", [
    ("text/plain", ["eins\r\nzwei\r".encode(), "\n\r\rdrei\0\ufeff\u2028".encode(), b"\r"]),
    # More than one answer has, and all bytes that there are.
    ("application/octet-stream", [bytes(range(256)) * 9000, b"\r\n\r", b"\xff\x00"]),
], ids=["text", "bytes"])
async def test_what_is_read_is_what_was_written(hub, http, kind, pieces):
    stream = Stream(http)
    assert (await stream.create(kind, body=pieces[0])).status == 201
    reader = command(hub, "read", stream.name)
    # Two come while it reads, each behind what it has printed.
    shown = b""
    for number, piece in enumerate(pieces):
        if number:
            assert (await stream.append(piece, kind)).status == 204
        while len(shown) < len(b"".join(pieces[:number + 1])):
            got = await asyncio.wait_for(asyncio.to_thread(reader.stdout.read1), 30)
            assert got, await ended(reader)
            shown += got
        assert shown == b"".join(pieces[:number + 1])
    assert await ended(command(hub, "read", stream.name, "--once"), as_bytes=True) == (0, shown, b"")
    await stream.close()
    assert await ended(reader) == (0, "", "")


async def test_messages_are_printed_in_lines(hub, http):
    stream = Stream(http)
    await stream.create("application/json", body=b'[{"a": [1, "\\r"]},\n  "two"]')
    # Unbuffered: what is behind the line is left for `ended`.
    reader = command(hub, "read", stream.name, bufsize=0)
    line = await asyncio.wait_for(asyncio.to_thread(reader.stdout.readline), 30)
    assert json.loads(line) == {"a": [1, "\r"]}
    await stream.append(b"[3, [4]]", "application/json")
    await stream.close()
    assert await ended(reader) == (0, '"two"\n3\n[4]\n', "")


async def test_a_reader_of_the_command_may_leave(hub, http):
    stream = Stream(http)
    await stream.create(body=b"x")
    reader = command(hub, "read", stream.name)
    assert await asyncio.wait_for(asyncio.to_thread(reader.stdout.read, 1), 30) == b"x"
    reader.stdout.close()
    await stream.append(b"y")
    assert await asyncio.wait_for(asyncio.to_thread(reader.wait), 30) == -signal.SIGPIPE


async def test_a_hub_that_is_not_there(hub):
    status, _, sentence = await ended(command(hub, "close", "a", "--url", "http://127.0.0.1:1"))
    assert status == 69 and "cannot be reached" in sentence and "--url" in sentence
    status, _, sentence = await ended(command(hub, "close", "a", "--url", "ws://127.0.0.1:1"))
    assert status == 64 and "--url must be" in sentence
