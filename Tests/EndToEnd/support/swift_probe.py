"""`client-probe`: a program around RoostClient (Tests/ClientProbe) that takes commands and tells what it is told."""

import asyncio
import json
import os
import pathlib
import subprocess

from support.deadline import PATIENCE, eventually
from support.hub import BINARY

PROBE = os.environ.get("ROOST_CLIENT_PROBE", str(pathlib.Path(BINARY).with_name("client-probe")))


class Probe:
    """`client-probe SCENARIO ARGUMENTS…`; its lines are `events`."""

    def __init__(self):
        self.events = []
        self.process = None

    async def start(self, *arguments, **environment):
        self.process = await asyncio.create_subprocess_exec(
            PROBE, *arguments, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, limit=1 << 22)
        self._reader = asyncio.create_task(self._read())
        self._errors = asyncio.create_task(self.process.stderr.read())
        return self

    async def _read(self):
        async for line in self.process.stdout:
            self.events.append(json.loads(line))

    def do(self, what, **details):
        self.process.stdin.write(json.dumps({"do": what, **details}).encode() + b"\n")

    def all(self, event):
        return [line for line in self.events if line["event"] == event]

    async def see(self, event, within=PATIENCE, after=0, **details):
        """The first such line behind the first `after` lines."""
        def found():
            return next(
                (line for line in self.events[after:]
                 if line["event"] == event and all(line.get(key) == value for key, value in details.items())), None)
        return await eventually(found, within, lambda: f"{event} {details} in {self.events[-40:]}")

    async def close(self):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reader
        errors = (await self._errors).decode()
        if errors:
            print("the probe said:", errors[-3000:])
