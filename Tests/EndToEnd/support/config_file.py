"""A hub that reads its settings from a file, which a test changes while it runs."""

import pathlib
import re
import signal

from support.deadline import eventually, until
from support.hub import Hub

#: What a hub says of a reload, for better or worse.
WORDS = re.compile(r"The configuration (was reloaded|is not reloaded)")


class FileHub(Hub):
    """`roost serve` with `config/roost.yaml` in its folder, where it looks for one."""

    def __init__(self, database_url, text="", **settings):
        super().__init__(database_url, **settings)
        self.file = pathlib.Path(self.folder, "config/roost.yaml")
        self.file.parent.mkdir()
        self.file.write_text(text)

    def write(self, **values):
        """`limits__joins_per_second=5`: those settings and no others."""
        self.file.write_text("".join(f"{key.replace('__', '.')}: {value}\n" for key, value in values.items()))

    @property
    def reloads(self):
        return len(WORDS.findall(self.log))

    async def reload(self, lines=1):
        """SIGHUP; the lines that the hub writes on it, at least so many."""
        length, before = len(self.log), self.reloads
        self.process.send_signal(signal.SIGHUP)
        await eventually(lambda: self.reloads > before, what=lambda: f"a word on the reload in {self.log[length:]}")
        await eventually(lambda: len(self.log[length:].splitlines()) >= lines, what=lambda: f"{lines} lines in {self.log[length:]}")
        # What needs a restart follows at once.
        await self.settled()
        return self.log[length:].splitlines()

    async def settled(self):
        """The log has stopped growing."""
        async def is_quiet():
            length = len(self.log)
            self.ops("/livez")
            return len(self.log) == length
        await eventually(is_quiet, every=0.05)

    def catches(self, number):
        """Whether the process has a handler for a signal (proc(5), SigCgt)."""
        try:
            with open(f"/proc/{self.process.pid}/status") as file:
                caught = next(line for line in file if line.startswith("SigCgt:"))
        except (FileNotFoundError, StopIteration):
            return False
        return bool(int(caught.split()[1], 16) & 1 << (number - 1))

    def wait_until_it_catches(self, number):
        until(lambda: self.catches(number) or self.process.poll() is not None, what=f"a handler for {number!r}", every=0.001)
