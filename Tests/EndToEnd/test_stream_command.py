"""`roost stream`: replies piped in and read by a command."""

import asyncio
import json
import subprocess

import pytest

from support.hub import BINARY
from support.streams import Stream, bearer, new_name

pytestmark = pytest.mark.anyio


def command(hub, *arguments, **options):
    return subprocess.Popen(
        [BINARY, "stream", *arguments], env=hub.environment, cwd=hub.folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


async def ended(process, within=20):
    out, err = await asyncio.wait_for(asyncio.to_thread(process.communicate), within)
    return process.returncode, out.decode(), err.decode()


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
    assert await ended(command(hub, "read", name, "--once")) == (0, '[\n{"n": 1}\n]', "")
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


async def test_a_hub_that_is_not_there(hub):
    status, _, sentence = await ended(command(hub, "close", "a", "--url", "http://127.0.0.1:1"))
    assert status == 69 and "cannot be reached" in sentence and "--url" in sentence
    status, _, sentence = await ended(command(hub, "close", "a", "--url", "ws://127.0.0.1:1"))
    assert status == 64 and "--url must be" in sentence
