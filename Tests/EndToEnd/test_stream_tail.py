"""`roost tail --stream`: a stream on the standard output, to the byte."""

import asyncio
import os
import pty
import signal
import subprocess
import termios

import pytest

from support.deadline import PATIENCE, eventually
from support.hub import BINARY
from support.streams import Stream
from support.tokens import token


async def start_tail(hub, *arguments):
    return await asyncio.create_subprocess_exec(
        BINARY, "tail", "--stream", *arguments, env=hub.environment, cwd=hub.folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)


class Growing:
    """What a process prints, as it prints it."""

    def __init__(self, process):
        self.bytes = b""
        self._task = asyncio.create_task(self._read(process.stdout))

    async def _read(self, out):
        while piece := await out.read(4096):
            self.bytes += piece

    async def whole(self):
        await self._task
        return self.bytes.decode()


async def ended(process, within=PATIENCE):
    status = await asyncio.wait_for(process.wait(), within)
    return status, (await process.stderr.read()).decode()


async def test_tail_prints_a_stream_through_cuts(stream, way, hub):
    await stream.append("Grüße".encode())
    process = await start_tail(hub, stream.name, "--url", way.url)
    shown, said = Growing(process), "Grüße"
    await eventually(lambda: shown.bytes, what="the beginning")
    for number in range(3):
        way.cut()
        said += (piece := f"\n{number} 🐦")
        await stream.append(piece.encode())
        await eventually(lambda: shown.bytes.decode(errors="ignore") == said, what="the rest")
    await stream.close()
    status, told = await ended(process)
    assert status == 0 and await shown.whole() == said
    assert all(line.startswith("roost tail: ") for line in told.splitlines()) and "trying again in" in told


async def test_tail_ends_as_the_stream_does(http, stream, hub):
    await stream.append(b"so far")
    process = await start_tail(hub, stream.name)
    shown = Growing(process)
    await eventually(lambda: shown.bytes == b"so far", what="text")
    await stream.cancel()
    assert await ended(process) == (1, "Error: The stream ended: cancelled.\n")
    messages = Stream(http)
    await messages.create("application/json", body=b'[{"n": 1}, "two"]')
    await messages.close()
    process = await start_tail(hub, messages.name)
    shown = Growing(process)
    assert (await ended(process))[0] == 0 and await shown.whole() == '{"n": 1}\n"two"\n'


@pytest.mark.parametrize("command", [["tail", "--stream"], ["stream", "read"]])
async def test_a_terminal_obeys_no_stream(stream, hub, command):
    """To a pipe it is to the byte."""
    text = "a\x1b]0;owned\x07b\u009b2Jc\x7f\tÄ\n"
    await stream.append(text.encode())
    await stream.close()
    theirs, ours = pty.openpty()
    attributes = termios.tcgetattr(ours)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(ours, termios.TCSANOW, attributes)
    process = await asyncio.create_subprocess_exec(
        BINARY, *command, stream.name, env=hub.environment, cwd=hub.folder, stdout=ours)
    assert await asyncio.wait_for(process.wait(), 30) == 0
    assert os.read(theirs, 4096).decode() == "a?]0;owned?b??2Jc?\tÄ\n"
    os.close(theirs)
    os.close(ours)
    piped = await asyncio.create_subprocess_exec(
        BINARY, *command, stream.name, env=hub.environment, cwd=hub.folder, stdout=subprocess.PIPE)
    assert (await piped.communicate())[0].decode() == text


async def test_tail_waits_for_what_is_not_there_and_leaves(http, way, hub):
    stream = Stream(http)
    process = await start_tail(hub, stream.name, "--url", way.url)
    shown = Growing(process)
    await eventually(lambda: way.connections, what="the connection")
    await stream.create(body=b"begin")
    await eventually(lambda: shown.bytes == b"begin", what="text")
    process.send_signal(signal.SIGINT)
    assert await ended(process) == (0, "")


@pytest.mark.parametrize("arguments, sentence", [
    (["a", "--token", token("authenticated", sub="ann")], "Unauthorized"),
    (["a//b"], "A stream's name has 1 to 200 bytes"),
    (["a", "room"], "--stream stands alone"),
])
async def test_tail_says_why_it_cannot_follow(hub, arguments, sentence):
    status, told = await ended(await start_tail(hub, *arguments))
    assert status in (1, 64) and sentence in told
