"""The unmodified client of PyPI in a process of its own, so that a test can kill it."""

import asyncio
import json
import os
import pathlib
import signal
import sys

from realtime import AsyncRealtimeClient

from support.deadline import patience

FOLDER = pathlib.Path(__file__).resolve().parents[1]


class Member:
    """One client in one channel. `do` has it say something; each returns when the hub has taken it."""

    @classmethod
    async def start(cls, hub_url, apikey, topic, key=""):
        member = cls()
        member.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "support.member", hub_url, apikey, topic, key, cwd=FOLDER,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE)
        await member._done()
        return member

    async def do(self, method, *arguments):
        """A method of the client's channel, such as `track`."""
        self.process.stdin.write(json.dumps([method, *arguments]).encode() + b"\n")
        await self._done()
        return self

    async def _done(self):
        async with patience():
            assert await self.process.stdout.readline() == b"done\n", "the member ended; see its standard error"

    def kill(self):
        """-9: the kernel closes its socket, and nobody says goodbye."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)

    async def end(self):
        self.kill()
        await self.process.wait()


async def live(url, apikey, topic, key):
    client = AsyncRealtimeClient(url, apikey)
    channel = client.channel(topic, {"config": {
        "broadcast": {"ack": True, "self": False}, "presence": {"key": key, "enabled": True}, "private": False}})
    await channel.subscribe()
    assert channel.is_joined
    print("done", flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        method, *arguments = json.loads(line)
        await getattr(channel, method)(*arguments)
        if method != "unsubscribe":
            # The hub answers in order; what was said before has been taken when this is acknowledged.
            taken = asyncio.Event()
            push = await channel.push("broadcast", {"type": "broadcast", "event": "taken", "payload": {}})
            push.receive("ok", lambda _: taken.set())
            await taken.wait()
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(live(*sys.argv[1:]))
