"""A program and the lines that it prints."""

import asyncio
import os
import subprocess

from support.deadline import PATIENCE, eventually, patience


class Program:
    def __init__(self, *command, **environment):
        self.command, self.environment, self.lines = [str(word) for word in command], environment, []

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            *self.command, env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **self.environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._reader = asyncio.create_task(self._read())
        return self

    async def _read(self):
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip("\n"))

    def type(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    async def prints(self, what, within=PATIENCE):
        """The first line that has this in it."""
        return await eventually(
            lambda: next((line for line in self.lines if what in line), None), within,
            lambda: f"{what!r} of {self.command}, which said {self.lines[-30:]}")

    async def ends(self, within=PATIENCE):
        """The exit status, once its input has ended."""
        self.process.stdin.close()
        async with patience(within):
            await self.process.wait()
            await self._reader
        return self.process.returncode

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reader
